"""Parameters that have no effect beside other pieces: one finding each, if their value is not the default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuboost.base_learners import BaseLearner
from gpuboost.base_learners.best_of_families import BestOfFamilies
from gpuboost.base_learners.estimator import AnyEstimator
from gpuboost.composition.findings import Finding
from gpuboost.langevin import Dynamics

DEFAULTS: dict[str, Any] = {
    "growth": "depthwise",
    "max_depth": 6,
    "max_leaves": None,
    "min_samples_leaf": 1,
    "min_child_weight": 1.0,
    "reg_lambda": None,
    "reg_alpha": 0.0,
    "max_delta_step": 0.0,
    "path_smooth": 0.0,
    "min_split_gain": 0.0,
    "random_strength": 0.0,
    "extra_trees": False,
    "max_bins": 255,
    "binning": "quantile",
    "sampling": None,
    "learners": None,
}
"""Parameters of the tables below, and their defaults in the estimators."""

TREE_PARAMETERS = (
    "growth",
    "max_depth",
    "max_leaves",
    "min_samples_leaf",
    "min_child_weight",
    "reg_lambda",
    "reg_alpha",
    "max_delta_step",
    "path_smooth",
    "min_split_gain",
    "random_strength",
    "extra_trees",
)

UNREAD = {
    "base_learner": TREE_PARAMETERS,
    "a single family of trees": ("learners",),
    "an estimator": ("max_bins", "binning"),
    "random shapes": ("sampling", "random_strength", "extra_trees", "min_child_weight"),
}
"""Piece -> parameters that it does not read"""


def inert_findings(
    params: Mapping[str, Any], learner: BaseLearner | None, langevin: Dynamics, rounds: int
) -> tuple[Finding, ...]:
    """One finding for each parameter that is not the default and has no effect.

    rounds: of the fit. Shapes that are drawn at random from a later round on do not count.
    """
    return tuple(
        Finding("sound", f"{name}: {params[name]!r} has no effect, as {why}", warns=True)
        for piece, why in _pieces(params, learner, langevin, rounds)
        for name in UNREAD[piece]
        if name in params and not _is_default(params[name], DEFAULTS[name])
    )


def _pieces(
    params: Mapping[str, Any], learner: BaseLearner | None, langevin: Dynamics, rounds: int
) -> Iterator[tuple[str, str]]:
    """The pieces of ``UNREAD`` in use, each with the reason."""
    if learner is not None:
        shown = params["base_learner"]
        yield "base_learner", f"it is for trees without base_learner; {shown!r} has parameters of its own."
    if isinstance(learner, BestOfFamilies) and not learner.smooth and len(learner.trees) == 1:
        yield "a single family of trees", f"{learner.trees[0]!r} searches all features, and no other family competes."
    if isinstance(learner, AnyEstimator):
        yield "an estimator", f"{type(learner.template).__name__} is fitted to the numbers and not to their bins."
    if langevin.random_from == 0 and rounds:
        yield "random shapes", "with random_from=0 every tree's shape is drawn at random, and no split is searched."


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, type(default)) and bool(value == default))
