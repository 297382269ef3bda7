"""Constants of the theorems that a run rests on: which are computed, bounded or unknown."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, sqrt

from gpuboost.composition.learners import is_stump
from gpuboost.langevin import Langevin, total_weight
from gpuboost.losses import SmoothedZeroOne
from gpuboost.losses.protocol import Loss, LossTraits, is_drawn, is_smoothed
from gpuboost.recipe import Recipe
from gpuboost.records import declared
from gpuboost.theory.guarantee import WEIGHTED, TheoremConstant
from gpuboost.types import TrainingSet

EDGE = "in [0, 1]; a lower bound is theory.smallest_expected_edge(B, norm).lower of B = theory.sign_stumps"
LEVEL_SET = "diameter of {L <= L_0} in the dual norm of the selection; theory.huber_distance for the Huber loss"


def of_rate(loss: Loss, step: float, *, weighted: bool) -> tuple[TheoremConstant, ...]:
    """Constants of theorems 4.1 and 4.2 of RGBM, for a loss of finite smoothness. step: nu, in units of 1 / sigma."""
    sigma, mu = loss.smoothness or 0.0, loss.strong_convexity
    known = (
        TheoremConstant("sigma", sigma, "computed", "sup l'' of a row of weight 1"),
        TheoremConstant("mu", mu, "computed", "inf l''"),
        TheoremConstant("nu", step, "computed", "step in units of 1 / sigma"),
    )
    if mu > 0.0:
        of_rows = f"(X, sample_weight=w), {WEIGHTED}" if weighted else "(X)"
        return (*known, TheoremConstant("Xi", None, "unknown", EDGE + of_rows))
    return (*known, TheoremConstant("Dist", None, "unknown", LEVEL_SET))


def of_law(recipe: Recipe, data: TrainingSet) -> tuple[TheoremConstant, ...]:
    """Constants of theorems 1 to 3 of SGLB; () without Langevin noise."""
    return tuple(_of_law(recipe, data, recipe.langevin)) if isinstance(recipe.langevin, Langevin) else ()


def _of_law(recipe: Recipe, data: TrainingSet, policy: Langevin) -> Iterator[TheoremConstant]:
    loss, weight = recipe.loss, total_weight(data)
    curvature = recipe.step.curvature(loss)
    eps, beta = recipe.learning_rate / (curvature or 1.0), policy.beta(weight)
    chain = policy.chain(data, recipe.learning_rate, curvature, recipe.growth.limits)
    gamma = (1.0 - chain.shrink) / eps
    yield TheoremConstant("epsilon", eps, "computed", "step of a leaf, in units of its mean gradient; the law is for 0")
    yield TheoremConstant("beta", beta, "computed", "inverse temperature of the mean loss")
    yield TheoremConstant("gamma", gamma, "computed", "shrinkage")
    yield _given("sigma", loss.smoothness, "sup l'' of a row of weight 1")
    slope = declared(LossTraits, loss).lipschitz
    yield _given("Lipschitz", slope, "sup |l'| of a row of weight 1")
    yield _of_estimates(loss, slope)
    if slope is None:
        yield TheoremConstant("C2", None, "unknown", "size of the gradient of the mean loss")
    else:
        length = sqrt(float((data.row_weight() ** 2).sum())) / weight
        yield TheoremConstant("C2", slope * length, "bounded", "at most; size of the gradient of the mean loss")
    yield TheoremConstant(
        "d", _dimension(recipe, data), "bounded", "at most; dimension of the functions that trees make"
    )
    yield _of_gap(loss, beta, gamma)


def _given(name: str, value: float | None, note: str) -> TheoremConstant:
    return TheoremConstant(name, value, "unknown" if value is None else "computed", note)


def _of_estimates(loss: Loss, slope: float | None) -> TheoremConstant:
    """C1 of section 6.2: leaf values are means over all rows, whatever rows a tree's shape was found on."""
    if not is_drawn(loss):
        return TheoremConstant("C1", 0.0, "computed", "error of the gradients in leaf values, which are of all rows")
    if slope is None:
        return TheoremConstant("C1", None, "unknown", "error of the estimates of a row's gradient")
    return TheoremConstant("C1", 2.0 * slope, "bounded", "at most; error of the estimates of a row's gradient")


def _dimension(recipe: Recipe, data: TrainingSet) -> float:
    """Rows, or cuts and a constant if trees are stumps; times the outputs."""
    several = data.n_rows
    if is_stump(recipe.growth.limits) and not data.cuts.is_categorical.any():
        several = min(several, 1 + sum(len(cuts) for cuts in data.cuts.thresholds))
    return float(several * recipe.loss.n_outputs)


def _of_gap(loss: Loss, beta: float, gamma: float) -> TheoremConstant:
    """lambda*, from below, in coordinates P^-1/2 F, where the regulariser is beta gamma / 2 |y|^2.

    Bakry and Emery: a density whose logarithm is beta gamma strongly concave has a gap of beta gamma. Holley and
    Stroock: a mean loss that varies by at most 1 costs a factor of exp(-beta).
    """
    if loss.convex:
        note = "at least; beta gamma, as the loss is convex (Bakry and Emery)"
        return TheoremConstant("lambda*", beta * gamma, "bounded", note)
    if isinstance(loss, SmoothedZeroOne) or is_smoothed(loss):
        note = "at least; beta gamma exp(-beta), as the mean loss lies between 0 and 1 (Holley and Stroock)"
        return TheoremConstant("lambda*", beta * gamma * exp(-beta), "bounded", note)
    return TheoremConstant("lambda*", None, "unknown", "spectral gap: the loss is neither convex nor bounded")
