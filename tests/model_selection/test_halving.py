"""Stages of successive halving, and settings of a space."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import uniform
from sklearn.model_selection import ParameterGrid, ParameterSampler
from support.examples import examples

from gpuboost.model_selection.halving import LEAST_ROUNDS, Rung, cost, most_settings, rungs
from gpuboost.model_selection.search_space import check_space, settings_of


def test_stages_of_a_search() -> None:
    assert rungs(27, 1000, 3) == (Rung(27, 37), Rung(9, 111), Rung(3, 333), Rung(1, 1000))
    assert rungs(4, 20, 3) == (Rung(4, 20),)  # 6 rounds would be too few
    assert rungs(2, 1000, 3) == (Rung(2, 1000),)  # and a third of 2 settings none


def test_a_stage_costs_its_further_rounds() -> None:
    assert cost((Rung(10, 20), Rung(2, 100))) == pytest.approx((10 * 20 + 2 * 80) / 100)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 60), st.integers(1, 1500), st.integers(2, 5))
def test_the_budget_is_kept_and_used(budget: int, rounds: int, reduction: int) -> None:
    count = most_settings(budget, rounds, reduction)
    stages = rungs(count, rounds, reduction)
    assert cost(stages) <= budget
    assert cost(rungs(count + 1, rounds, reduction)) > budget
    assert stages[-1].rounds == rounds
    assert len(stages) == 1 or stages[0].rounds >= LEAST_ROUNDS
    assert all(1 <= b.settings <= a.settings and a.rounds < b.rounds for a, b in pairwise(stages))


def test_settings_are_those_of_scikit_learn() -> None:
    grid = {"a": [1, 2, 3], "b": ["x", "y"]}
    assert settings_of(check_space(grid), 6, 0) == list(ParameterGrid(grid))
    drawn = settings_of(check_space(grid), 4, 0)
    assert drawn == list(ParameterSampler(grid, 4, random_state=0))
    assert len({tuple(one.items()) for one in drawn}) == 4
    spaces = [{"a": uniform(0, 1)}, {"b": [1, 2]}]
    assert settings_of(check_space(spaces), 5, 1) == list(ParameterSampler(spaces, 5, random_state=1))


def test_settings_of_optuna() -> None:
    optuna = pytest.importorskip("optuna")
    space = {
        "rate": optuna.distributions.FloatDistribution(0.01, 0.3, log=True),
        "depth": optuna.distributions.IntDistribution(2, 8),
        "growth": ["depthwise", "leafwise"],
    }
    before = optuna.logging.get_verbosity()
    drawn = settings_of(check_space(space), 50, 0)
    assert drawn == settings_of(check_space(space), 50, 0) != settings_of(check_space(space), 50, 1)
    assert {one["depth"] for one in drawn} == set(range(2, 9))
    assert {one["growth"] for one in drawn} == {"depthwise", "leafwise"}
    rates = np.array([one["rate"] for one in drawn])
    assert rates.min() >= 0.01
    assert rates.max() <= 0.3
    assert 0.03 < np.exp(np.log(rates).mean()) < 0.1  # the logarithm is uniform: 0.055
    assert optuna.logging.get_verbosity() == before
