"""Findings of theory about a base learner combined with the other pieces of a recipe.

The descent lemma holds for any direction with an edge, so most compositions are as sound as with trees. The exceptions:
rows are weighted and the learner takes no weights, other pieces need the leaves of trees, or the learner leaves nothing
to boost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuboost.base_learners.best_of_families import BestOfFamilies
from gpuboost.base_learners.estimator import AnyEstimator
from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.execution import DataParallel
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.langevin import Dynamics, Langevin
from gpuboost.learners import AllLearners, Selection
from gpuboost.losses.protocol import Loss
from gpuboost.records import declared
from gpuboost.sampling import EveryRow, Sampling, UniformSampling, WeightTrimming
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import NewtonStep, Step


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings; none for trees, and if the learner does not change the verdict on the recipe."""
    learner, sampling = recipe.base_learner, recipe.sampling
    if learner is None:
        return
    yield from _of_trees_only(sampling, recipe.langevin, recipe.execution)
    if isinstance(learner, AnyEstimator):
        yield from _of_weights(learner, recipe.loss, recipe.step, sampling)
        yield from _of_selection(recipe.learners)
        yield from _of_linear(learner, recipe.loss, recipe.learners)
    else:
        yield from _of_family(learner, sampling)


def _of_trees_only(sampling: Any, langevin: Dynamics, execution: Any) -> Iterator[Finding]:
    if isinstance(execution, DataParallel) and not execution.offers.base_learners:
        why = "shards of DataParallel grow trees, and no other base learners. Use execution=None."
        yield Finding("refused", f"base_learner: {why}")
    if isinstance(langevin, Langevin):
        yield Finding(
            "refused",
            "langevin: its noise is that of leaves which average over their rows, so it is for trees. Use "
            "base_learner=None, or langevin=None.",
        )
    control = declared(SamplingTraits, sampling).variance_control
    if control != "leaf_refit":
        yield Finding(
            "refused",
            f"variance_control: {control!r} says where the leaf values of trees come from; other base learners have "
            "their step searched on all rows. Use variance_control='leaf_refit'.",
        )
    if declared(ExecutionTraits, execution).leaf_values == "worker":
        yield Finding(
            "refused",
            "execution: leaf_values='worker' is for trees; the step of another base learner is searched by the server, "
            "on the newest scores. Use leaf_values='server'.",
        )


def _of_weights(learner: AnyEstimator, loss: Loss, step: Step, sampling: Sampling) -> Iterator[Finding]:
    if learner.weighted or isinstance(sampling, (EveryRow, UniformSampling, WeightTrimming)):
        return
    if learner.cancels and isinstance(step, NewtonStep) and loss.n_outputs == 1:
        return  # with several scores, p is in proportion to the norm of their h, and to none of them
    name = type(learner.template).__name__
    yield Finding(
        "refused",
        f"sampling: learner {name!r} does not accept sample weights, which importance sampling needs. Use a uniform "
        "rate such as sampling=0.5, or score='hessian' with rho=, without a floor, and step='newton' (weights cancel).",
    )


def _of_selection(learners: Selection) -> Iterator[Finding]:
    if not isinstance(learners, AllLearners):
        why = "an estimator sees the drawn columns only, so how near it comes to the best of all is unknown."
        yield Finding("heuristic", f"learners: {why}")


def _of_linear(learner: AnyEstimator, loss: Loss, learners: Selection) -> Iterator[Finding]:
    linear = "linear_model" in type(learner.template).__module__
    if linear and loss.smoothness == loss.strong_convexity and isinstance(learners, AllLearners):
        name = type(learner.template).__name__
        why = (
            f"{name} on all features is the least-squares fit at once: with loss {loss.name!r} more rounds only repeat "
        )
        more = "it. Use gb.learners.Linear(), which goes feature by feature, or fit the estimator alone."
        yield Finding("sound", f"base_learner: {why}{more}", warns=True)


def _of_family(learner: Any, sampling: Sampling) -> Iterator[Finding]:
    if isinstance(sampling, (EveryRow, UniformSampling)):
        return
    for family in learner.trees if isinstance(learner, BestOfFamilies) else ():
        if family.ridge == 0.0:
            yield Finding(
                "refused",
                f"base_learner: the regressions in the leaves of {family!r} are ill-conditioned on rows of unequal "
                "weight, so they need a ridge. Use a ridge above 0, or sampling=None.",
            )
        elif family.ridge is not None:
            why = "regressions in leaves are less well conditioned on rows of unequal weight; the ridge holds them."
            yield Finding("heuristic", f"base_learner: {why}")
