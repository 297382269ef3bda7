"""The loss of several targets a row."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from gpuboost import losses
from gpuboost.errors import InputError
from gpuboost.losses.per_output import PerOutput

Y = np.array([[0.5, 3.0], [1.0, 0.0], [2.0, 1.0]])
ONES = np.ones(3)


def test_value_and_derivatives_are_those_of_each_column() -> None:
    alone = losses.Huber(0.7)
    loss, f = PerOutput(alone, 2), np.array([1.5, 2.8])
    g, h = np.empty(2), np.empty(2)
    loss.row_derivatives(Y[0], f, g, h, loss.parameter)
    each = [alone.derivatives(y, score, 0.7) for y, score in zip(Y[0], f, strict=True)]
    assert [*zip(g, h, strict=True)] == each
    expected = sum(alone.value(y, score, 0.7) for y, score in zip(Y[0], f, strict=True))
    assert loss.row_value(Y[0], f, loss.parameter) == pytest.approx(expected, rel=1e-15)


def test_facts_are_those_of_the_loss_of_a_column() -> None:
    loss = PerOutput(losses.AbsoluteError(), 4)
    assert (loss.task, loss.n_outputs, loss.leaf_quantile, loss.default_metric) == ("regression", 4, None, "mae")
    assert loss.lipschitz == 2.0
    assert loss.of_output(2) == losses.AbsoluteError()
    assert PerOutput(losses.Logistic(0.5), 2).task == "multilabel"
    assert PerOutput(losses.Logistic(0.5), 2).strong_convexity == 0.5


def test_starts_and_predictions_are_those_of_each_column() -> None:
    loss = PerOutput(losses.Poisson(), 2)
    np.testing.assert_allclose(loss.start(Y, ONES), np.log(Y.mean(axis=0)), rtol=1e-6)
    scores = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0]])
    np.testing.assert_allclose(loss.inverse_link(scores), np.exp(scores).T, rtol=1e-12)
    beside = PerOutput(losses.SquaredError(), 2).start_beside(Y, ONES, np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(beside, Y.mean(axis=0) - [1.0, 0.0], rtol=1e-6)


def test_errors_of_targets_name_the_column() -> None:
    loss = PerOutput(losses.Poisson(), 2)
    with pytest.raises(InputError, match=r"row 1 holds -1.0.*\(column 1 of y\)"):
        loss.check_target(np.array([[1.0, 2.0], [1.0, -1.0]]))
    with pytest.raises(InputError, match=r"y: the model has 2 targets for each row; got shape \(3,\)"):
        loss.check_target(ONES)


def test_functions_of_different_losses_have_different_names() -> None:
    """Machine code of other processes is linked by names: of one name, one loss would have the other's gradient."""
    each = [PerOutput(loss, 2) for loss in (losses.SquaredError(), losses.AbsoluteError(), losses.Huber())]
    for one, other in combinations(each, 2):
        assert one.row_derivatives.__qualname__ != other.row_derivatives.__qualname__
        assert one.row_value.__qualname__ != other.row_value.__qualname__
    assert PerOutput(losses.Huber(1.0), 3).row_value is PerOutput(losses.Huber(2.0), 2).row_value
