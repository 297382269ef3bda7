"""Custom losses whose facts or derivatives are wrong are refused, and never train to nonsense."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.examples import daily

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


def negative(y: float, f: float) -> float:
    return -1.0


def with_a_value_of_its_own(y: float, f: float, c: float = 2.0) -> float:
    return c


def test_a_negative_curvature_that_spoils_the_fit_is_warned_of(
    regression_data: tuple[np.ndarray, np.ndarray],
) -> None:
    """Where the check is switched off, as a curvature may be negative somewhere."""
    loss = gb.losses.custom(value, gradient, negative, check_derivatives=False)
    with pytest.warns(gb.OutsideTheoryWarning, match=r"the training loss rose from .* or hessian of the loss"):
        gb.GradientBoostingRegressor(loss=loss, n_estimators=2).fit(*regression_data)


def test_functions_that_cannot_be_compiled_for_two_numbers_are_refused() -> None:
    with pytest.raises(gb.RecipeError, match=r"hessian: must be a function of .*: c would have a value of its own"):
        gb.losses.custom(value, gradient, with_a_value_of_its_own)
    with pytest.raises(gb.RecipeError, match=r"value: must be a function of .*: no signature found"):
        gb.losses.custom(max, gradient, two)
    with pytest.raises(gb.RecipeError, match=r"noise_scale: must be a function of .*: c would have a value"):
        gb.Langevin(noise_scale=with_a_value_of_its_own)


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


Formula = Callable[[float, float], float]


def fit(*functions: Any, y: np.ndarray | None = None, step: str = "auto", **more: Any) -> gb.GradientBoostingRegressor:
    x = np.random.default_rng(0).normal(size=(200, 2))
    loss = gb.losses.custom(*functions, **more)
    target = 3.0 * x[:, 0] if y is None else y
    return gb.GradientBoostingRegressor(loss=loss, n_estimators=2, step=step, n_jobs=1).fit(x, target)


@pytest.mark.parametrize(
    ("functions", "more", "message"),
    [
        ((value, lambda y, f: f - y, two), {}, r"gradient: at y=.*, f=.* it is .*, and the value rises by"),
        ((value, lambda y, f: 2.0 * (y - f), two), {}, "gradient: at y="),
        ((lambda y, f: 3.0 * value(y, f) if f < y else value(y, f), gradient, two), {}, "gradient: at y="),
        ((value, gradient, lambda y, f: -1.0), {}, r"hessian: .* rises by 2 per unit of f, and the hessian -1 is neg"),
        ((value, gradient, lambda y, f: 1e-3), {}, "hessian: .* is less than 0.1 of that"),
        ((value, gradient, lambda y, f: 1e6), {}, "hessian: it is 500000 times the second derivative"),
        ((value, gradient, two), {"smoothness": 0.01, "step": "constant"}, "smoothness: 0.01 is the largest second"),
        ((lambda y, f: math.cos(f - y), lambda y, f: -math.sin(f - y), two), {"convex": True}, "convex: the loss is"),
        ((value, gradient, two), {"inverse_link": lambda s: s[:3]}, r"inverse_link: .* 200 scores; .* shape \(3,\)"),
        ((value, gradient, two), {"inverse_link": lambda s: None}, "inverse_link: must return one .*; it returns None"),
        ((value, gradient, two), {"inverse_link": lambda s: s.astype(str)}, "inverse_link: must return numbers"),
        ((value, gradient, two), {"start": lambda y, w: "a"}, "start: must return a finite number; it returns 'a'"),
        ((value, lambda y, f: 1j, two), {}, "gradient: must return a number for each row; .* returns complex128"),
    ],
)
def test_functions_that_contradict_each_other_are_refused(functions: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(gb.RecipeError, match=message):
        fit(*functions, **more).predict(np.zeros((200, 2)))


def test_the_comparison_can_be_turned_off() -> None:
    assert fit(value, lambda y, f: f - y, two, check_derivatives=False).n_iter_ == 2
    with pytest.raises(gb.RecipeError, match="check_derivatives: must be True or False; got 1"):
        gb.losses.custom(value, gradient, two, check_derivatives=1)  # type: ignore[arg-type]


SOUND: dict[str, tuple[Formula, Formula, Formula | None, dict[str, Any]]] = {
    "squared": (value, gradient, two, {}),
    "a larger curvature": (value, gradient, lambda y, f: 20.0, {}),
    "absolute": (lambda y, f: abs(f - y), lambda y, f: 1.0 if f > y else -1.0, None, {}),
    "not convex": (
        lambda y, f: math.log(1.0 + (f - y) ** 2),
        lambda y, f: 2.0 * (f - y) / (1.0 + (f - y) ** 2),
        lambda y, f: 2.0 * (1.0 - (f - y) ** 2) / (1.0 + (f - y) ** 2) ** 2,
        {},
    ),
    "far from 0": (value, gradient, two, {"y": 1e15 + np.arange(200.0)}),
    "small and large": (value, gradient, two, {"y": np.geomspace(1e-9, 1e9, 200)}),
    "counts": (
        lambda y, f: math.exp(f) - y * f,
        lambda y, f: math.exp(f) - y,
        lambda y, f: math.exp(f),
        {"y": np.arange(200.0) % 7.0},
    ),
    "probabilities": (
        lambda y, f: math.log(1.0 + math.exp(f)) - y * f,
        lambda y, f: 1.0 / (1.0 + math.exp(-f)) - y,
        lambda y, f: 0.25,
        {"y": np.arange(200.0) % 2},
    ),
}


@pytest.mark.parametrize("case", daily([*SOUND], 6))  # functions that no other case has take a second to compile
def test_sound_losses_pass(case: str) -> None:
    *functions, more = SOUND[case]
    assert fit(*functions, **more).n_iter_ == 2


def test_an_old_pickle_of_a_custom_loss_has_its_derivatives_checked() -> None:
    loss = gb.losses.custom(value, gradient, two)
    state = loss.__getstate__()[:-1]  # type: ignore[index]
    old = object.__new__(type(loss))
    old.__setstate__(state)
    assert old == loss
    assert old.check_derivatives is True
