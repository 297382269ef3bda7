"""Rules that draw rows, features and cuts, which the tests of every machine go through."""

from __future__ import annotations

from math import inf

from gpuboost.backends.numerics.probabilities import GossRule, ProbabilityRule, ThresholdRule, TrimmingRule
from gpuboost.growth import DepthWise
from gpuboost.keys import Key
from gpuboost.learners import (
    CyclicGroups,
    RandomByLevel,
    RandomByNode,
    RandomGroup,
    RandomGroups,
    RandomLearners,
    Selection,
    WeightedGroups,
)
from gpuboost.types import Limits

STUMP = DepthWise(Limits(2, 1, reg_lambda=0.0))
LABELS = ("a", "b", "a", "c", "b")  # groups of five columns
FOR_TREES: list[Selection] = [
    RandomByNode(2),
    RandomByNode(1),
    RandomByLevel(2),
    RandomGroups(2, "root"),
    RandomGroups(1, LABELS),
    RandomGroup(LABELS),
    WeightedGroups(2, (1.0, 0.0, 2.0, 3.0, 0.5)),
]
FOR_STUMPS: list[Selection] = [RandomLearners(1), RandomLearners(7), RandomLearners(0.5), CyclicGroups(2)]

KEY = Key.root(3) / "rows" / 5
KAPPAS = [0.0, 0.1, 30.0, inf]
OF_EACH_KIND: list[ProbabilityRule] = [
    TrimmingRule(0.7),
    ThresholdRule(rate=0.4, floor=0.05),
    ThresholdRule(rho=0.8),
    GossRule(0.2, 0.2),
]
PROBABILITY_RULES: list[ProbabilityRule] = [
    ThresholdRule(rate=0.1, floor=0.01),
    ThresholdRule(rate=0.4),
    ThresholdRule(rate=0.9, floor=0.3),
    ThresholdRule(rate=0.5, floor=0.5),
    ThresholdRule(rate=1.0, floor=0.1),
    ThresholdRule(rho=0.7),
    ThresholdRule(rho=3.0, floor=0.2),
    GossRule(0.2, 0.1),
    GossRule(0.05, 0.95),
    TrimmingRule(0.8),
    TrimmingRule(0.05),
    TrimmingRule(1.0),
]
