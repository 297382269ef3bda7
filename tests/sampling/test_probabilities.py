"""Sampling probability rules: the numbers they have in kernels, and the names they had before."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from support.rules import OF_EACH_KIND, PROBABILITY_RULES

from gpuboost.backends.cuda.device.runtime import source
from gpuboost.backends.numerics import probabilities
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.backends.reference.sampling import probabilities as probabilities_of
from gpuboost.kernels.sampling import importance
from gpuboost.sampling import GossRule, ThresholdRule, TrimmingRule


def test_kinds_are_the_same_numbers_in_all_kernels() -> None:
    enum = re.search(r"enum Kind \{([^}]*)\}", source("sampling/threshold.cuh"))
    assert enum is not None
    kinds = dict(entry.split(" = ") for entry in enum[1].strip().split(", "))
    for name, number in kinds.items():
        assert getattr(probabilities, name) == getattr(importance, name) == int(number)
    assert sorted(rule.kind for rule in OF_EACH_KIND) == sorted(map(int, kinds.values()))


def test_names_of_version_0_1() -> None:
    from gpuboost.backends import odds

    assert (odds.Proportional, odds.TopAndOthers, odds.Heaviest) == (ThresholdRule, GossRule, TrimmingRule)


@pytest.mark.parametrize("rule", PROBABILITY_RULES, ids=repr)
def test_a_rule_is_a_value_that_shards_can_be_sent(rule: ProbabilityRule) -> None:
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert hash(rule) == hash(pickle.loads(pickle.dumps(rule)))


@pytest.mark.parametrize("rule", PROBABILITY_RULES, ids=repr)
def test_no_more_rows_are_expected_than_a_rule_declares(rule: ProbabilityRule) -> None:
    scores = np.random.default_rng(0).exponential(size=5_000).astype(np.float32)
    assert probabilities_of(scores, rule).mean() <= rule.largest_rate * (1.0 + 1e-3)
