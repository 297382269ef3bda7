"""How far to go: what each rule puts in the denominator, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.builders import TEAMS, random_case

from gpuboost import losses
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import RecipeError
from gpuboost.growth import DepthWise
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.steps import ConstantStep, GradientStep, NewtonStep, QuantileStep, Step, automatic
from gpuboost.types import Limits, TrainingSet

Array = np.ndarray
BACKENDS = [Reference(), TEAMS[2]]


@pytest.mark.parametrize(
    ("step", "loss", "curvature"),
    [
        (NewtonStep(), losses.SquaredError(), None),
        (NewtonStep(), losses.Softmax(4), None),
        (GradientStep(), losses.AbsoluteError(), 1.0),
        (GradientStep(), losses.Poisson(), 1.0),
        (ConstantStep(), losses.Logistic(), 0.25),
        (ConstantStep(), losses.Logistic(0.5), 0.75),
        (ConstantStep(), losses.Softmax(3), 0.5),
        (QuantileStep(), losses.Quantile(0.9), 1.0),
    ],
)
def test_what_stands_for_the_curvature(step: Step, loss: Loss, curvature: float | None) -> None:
    assert step.curvature(loss) == curvature


@pytest.mark.parametrize(
    ("step", "loss", "text"),
    [
        (NewtonStep(), losses.AbsoluteError(), "second derivative, which may be 0 for loss 'absolute_error'"),
        (NewtonStep(), losses.Huber(), "second derivative, which may be 0 for loss 'huber'"),
        (ConstantStep(), losses.Poisson(), "finite smoothness constant; loss 'poisson' has none"),
        (QuantileStep(), losses.SquaredError(), "loss 'squared_error' has no quantile"),
        (QuantileStep(), losses.Softmax(3), "loss 'softmax' has no quantile"),
    ],
)
def test_a_step_that_the_loss_cannot_serve_is_refused_before_any_work(step: Step, loss: Loss, text: str) -> None:
    with pytest.raises(RecipeError, match=text):
        Recipe(loss, step=step)


def test_the_automatic_step() -> None:
    assert automatic(losses.Quantile(0.1)) == QuantileStep()
    assert automatic(losses.AbsoluteError()) == QuantileStep()
    assert automatic(losses.Huber()) == GradientStep()
    assert automatic(losses.Logistic()) == NewtonStep()
    assert automatic(losses.custom(lambda y, f: abs(f - y), lambda y, f: 1.0, None, name="mine")) == GradientStep()


def first_tree(step: Step, loss: Loss, data: TrainingSet, ridge: float, backend: Backend) -> tuple[Array, Array]:
    """Leaf values, and the leaf of every row, of a first tree."""
    limits = Limits(6, 3, reg_lambda=ridge)
    tree = boost(Recipe(loss, 1, 0.5, DepthWise(limits), step=step), data, backend).trees[0]
    scores = np.zeros((1, data.n_rows))
    marked = replace(tree, value=np.arange(len(tree.value), dtype=float))
    backend.add_tree(scores, marked, 1.0, data.bins, data.cuts)
    return tree.value, scores[0].astype(int)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
@pytest.mark.parametrize("step", [NewtonStep(), GradientStep(), ConstantStep()])
def test_leaf_values_are_minus_g_over_d_plus_lambda(backend: Backend, ridge: float, weights: str, step: Step) -> None:
    data, loss = random_case(5, 150, 3, target="binary", weights=weights).data, losses.Logistic(0.1)
    value, leaf = first_tree(step, loss, data, ridge, backend)
    start, weight = float(loss.start(data.y, data.row_weight())[0]), data.row_weight()
    pairs = np.array([loss.derivatives(y, start, 0.1) for y in data.y])
    below = {NewtonStep(): pairs[:, 1], GradientStep(): np.ones(150), ConstantStep(): np.full(150, 0.35)}[step]
    assert len(set(leaf)) > 1
    for v in set(leaf):
        rows = leaf == v
        expected = -(weight * pairs[:, 0])[rows].sum() / ((weight * below)[rows].sum() + ridge)
        assert value[v] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("weights", ["none", "whole"])
def test_quantile_leaves_are_weighted_quantiles_of_the_residuals(backend: Backend, alpha: float, weights: str) -> None:
    """The smallest residual that, with all smaller ones, has the share alpha of the leaf's weight."""
    data, loss = random_case(5, 150, 3, weights=weights).data, losses.Quantile(alpha)
    value, leaf = first_tree(QuantileStep(), loss, data, 0.0, backend)
    start, weight = float(loss.start(data.y, data.row_weight())[0]), data.row_weight()
    assert len(set(leaf)) > 1
    for v in set(leaf):
        rows = leaf == v
        residual = np.sort(np.repeat((data.y - start)[rows], weight[rows].astype(int)))
        share = np.arange(1, len(residual) + 1) / len(residual)
        assert value[v] == residual[np.flatnonzero(share >= alpha - 1e-12)[0]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_quantile_leaves_make_the_loss_least_in_each_leaf(backend: Backend) -> None:
    data, loss = random_case(9, 120, 3, weights="real").data, losses.Quantile(0.3)
    value, leaf = first_tree(QuantileStep(), loss, data, 0.0, backend)
    residual = data.y - float(loss.start(data.y, data.weight)[0])
    for v in set(leaf):
        rows = np.flatnonzero(leaf == v)

        def cost(f: float, rows: Array = rows) -> float:
            return sum(data.weight[i] * loss.value(residual[i], f, 0.3) for i in rows)

        assert cost(value[v]) <= min(cost(f) for f in residual[rows]) + 1e-12


@pytest.mark.parametrize("step", [NewtonStep(), GradientStep(), ConstantStep()])
def test_other_steps_leave_a_tree_as_it_is(step: Step) -> None:
    marker = object()
    assert step.refine(None, marker, None, None, None, None) is marker
