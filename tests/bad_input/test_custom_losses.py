"""Custom losses whose facts or derivatives are wrong are refused, and never train to nonsense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb


def value(y: float, f: float) -> float:
    return (y - f) ** 2


def gradient(y: float, f: float) -> float:
    return 2.0 * (f - y)


def two(y: float, f: float) -> float:
    return 2.0


def not_a_number(y: float, f: float) -> float:
    return float("nan")


def infinite(y: float, f: float) -> float:
    return float("inf")


@pytest.mark.parametrize("hessian", [not_a_number, infinite])
def test_a_hessian_that_is_no_number_is_refused(hessian: Any, regression_data: tuple[np.ndarray, np.ndarray]) -> None:
    loss = gb.losses.custom(value, gradient, hessian)
    with pytest.raises(gb.InputError, match="loss: gradients must be finite numbers"):
        gb.GradientBoostingRegressor(loss=loss, n_estimators=2).fit(*regression_data)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"name": 3}, "name: must be text"),
        ({"name": ""}, "name: must be text"),
        ({"smoothness": -1}, "smoothness: must be a finite number above 0"),
        ({"smoothness": float("nan")}, "smoothness: must be a finite number above 0"),
        ({"smoothness": "2"}, "smoothness: must be a finite number above 0"),
        ({"convex": "x"}, "convex: must be True or False"),
    ],
)
def test_wrong_facts_are_refused(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(gb.RecipeError, match=message):
        gb.losses.custom(value, gradient, two, **facts)
