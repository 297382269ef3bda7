"""Python functions that kernels call have the bits that they have in Python; what numba refuses is refused in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu
from numba import njit
from support.examples import daily
from support.training import device

import gpuboost as gb
from gpuboost import elementary, losses
from gpuboost.backends.cuda.codegen.formulas import formulas
from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.errors import DeviceError

Array = np.ndarray

KERNEL = """
extern "C" __global__ void run(const double *x, int n, double *out)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = function_of(x[i]);
}
"""


def emulated(function: Callable[..., Any], x: Array) -> Array:
    """function(x), element by element, on the emulated device."""
    runtime = device()
    functions = (DeviceFunction("function_of", function, ("f64",)),)
    out = runtime.zeros(len(x), np.float64)
    runtime.kernel(KERNEL, "run", functions=functions)((4,), (64,), (runtime.upload(x), np.int32(len(x)), out))
    return runtime.download(out)


def assert_same_bits(found: Array, expected: Array) -> None:
    missing = np.isnan(expected)
    assert np.array_equal(np.isnan(found), missing)
    assert found[~missing].tobytes() == np.asarray(expected, np.float64)[~missing].tobytes()


SPECIALS = np.array(
    [
        0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 5e-324, -5e-324, 2.2250738585072014e-308, 709.8, 709.7, -693.2, -708.4,
        -745.2, 1.7976931348623157e308, -1.7976931348623157e308, 40.0, -40.0, math.sqrt(0.5), math.sqrt(2.0), 0.5,
        2.0**53, 1e-17,
    ]
)  # fmt: skip


def patterns(count: int, seed: int = 5) -> Array:
    """Floats of every exponent, those where functions have something to do, and the special ones."""
    rng = np.random.default_rng(seed)
    any_bits = rng.integers(-(2**63), 2**63 - 1, count // 2, dtype=np.int64).view(np.float64)
    return np.concatenate([any_bits, rng.normal(size=count // 4) * 300.0, rng.normal(size=count // 4), SPECIALS])


@pytest.mark.parametrize("name", ["exp", "log", "expit", "log1pexp"])
def test_elementary_functions_have_the_same_bits_for_millions_of_numbers(name: str) -> None:
    x = patterns(1_000_000)
    assert_same_bits(emulated(getattr(elementary, name), x), getattr(elementary, f"{name}_array")(x))


def test_the_remaining_elementary_function_as_well() -> None:
    x = patterns(20_000)
    assert_same_bits(emulated(elementary.bounded, x), np.array([elementary.bounded(v) for v in x.tolist()]))


@pytest.mark.parametrize(
    "loss",
    [
        losses.SquaredError(),
        losses.Huber(0.7),
        losses.AbsoluteError(),
        losses.Quantile(0.3),
        losses.Poisson(),
        losses.Gamma(),
        losses.Tweedie(1.3),
        losses.CrossEntropy(),
        *(losses.AFT(distribution, 0.7) for distribution in ("normal", "logistic", "extreme")),
        losses.Logistic(0.2),
        losses.Exponential(),
    ],
    ids=lambda loss: loss.name,
)
def test_every_loss_of_one_output(loss: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3_000).astype(np.float64)
    f = np.concatenate([rng.normal(size=1_500) * 3.0, rng.normal(size=1_500) * 60.0])
    runtime = device()
    asked = formulas(loss)
    text = asked.text + (
        'extern "C" __global__ void run(const double *y, const double *f, double a, int n, double *out)\n{\n'
        "    for (int i = threadIdx.x; i < n; i += blockDim.x) {\n"
        "        out[3 * i] = value_of(y[i], f[i], a);\n"
        "        derivatives_of(y[i], f[i], a, out[3 * i + 1], out[3 * i + 2]);\n    }\n}\n"
    )
    out = runtime.zeros(3 * len(y), np.float64)
    arguments = runtime.upload(y), runtime.upload(f), np.float64(loss.parameter), np.int32(len(y)), out
    runtime.kernel(text, "run", functions=asked.functions)((1,), (64,), arguments)
    a, pairs = loss.parameter, list(zip(y.tolist(), f.tolist(), strict=True))
    expected = [(loss.value(t, s, a), *loss.derivatives(t, s, a)) for t, s in pairs]
    assert_same_bits(runtime.download(out), np.array(expected, np.float64).reshape(-1))


# What a user may write

KNOTS = np.array([-1.0, 0.0, 1.0])
WEIGHTS = (1.0, 0.5, 0.25)


def bend(r: float) -> float:
    """A plain function, which needs no decorator."""
    return r if abs(r) < 1.0 else (1.0 if r > 0.0 else -1.0)


@njit
def steep(r: float, by: float) -> float:
    return by * r


def with_a_loop(y: float, f: float) -> float:
    total, r = 0.0, f - y
    for k in range(3):
        if k == 1:
            continue
        a, b = bend(r - KNOTS[k]), steep(r, 0.25)
        total += WEIGHTS[k] * a + b
    while total > 8.0:
        total *= 0.5
    return total


def squared(y: float, f: float) -> float:
    return 0.5 * (f - y) * (f - y)


def one(y: float, f: float) -> float:
    return 1.0


def smoothed(scale: float, knots: Array) -> Callable[[float, float], float]:
    """A closure over a number and an array."""

    def gradient(y: float, f: float) -> float:
        total = 0.0
        for knot in knots:
            r = (f - y - knot) / scale
            total += r / math.sqrt(1.0 + r * r)
        return total

    return gradient


@pytest.mark.parametrize(
    "gradient",
    daily([smoothed(0.5, np.array([-1.0, 0.5])), with_a_loop, njit(with_a_loop), lambda y, f: np.sign(f - y)], 2),
)
def test_a_loss_in_the_dialect_of_numba_trains_the_same_model_on_both_machines(
    gradient: Any, regression_data: tuple[Array, Array]
) -> None:
    x, y = regression_data
    loss = losses.custom(squared, gradient, one, check_derivatives=False)
    given = {"loss": loss, "n_estimators": 3, "max_depth": 3}
    host = gb.GradientBoostingRegressor(device="cpu", **given).fit(x, y)
    with emulated_gpu():
        assert (
            gb.GradientBoostingRegressor(device="cuda", **given).fit(x, y).predict(x).tobytes()
            == host.predict(x).tobytes()
        )
    assert np.ptp(host.predict(x)) > 0.0


TABLE = [1.0, 2.0]


def with_global_list(y: float, f: float) -> float:
    return TABLE[0] * f


def with_a_name_of_nothing(y: float, f: float) -> float:
    r = f - y
    return nowhere(r)  # noqa: F821


def calls_it(y: float, f: float) -> float:
    return with_a_name_of_nothing(y, f)


def with_recursion(y: float, f: float) -> float:
    return with_recursion(y, f) if f > 0.0 else y


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (with_global_list, ["list", "TABLE[0] * f"]),
        (with_a_name_of_nothing, ["name 'nowhere' is not defined"]),
        (calls_it, ["name 'nowhere' is not defined"]),
        (with_recursion, ["compiler re-entrant", "return with_recursion(y, f)"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_does_not_compile_is_refused_before_the_fit_with_the_reason_and_the_line(
    function: Callable[..., Any], words: list[str], regression_data: tuple[Array, Array]
) -> None:
    loss = losses.custom(squared, function, one, check_derivatives=False)
    with emulated_gpu(), pytest.raises(DeviceError) as caught:
        gb.GradientBoostingRegressor(loss=loss, n_estimators=1, device="cuda").fit(*regression_data)
    message = str(caught.value)
    assert all(word in message for word in (*words, "test_cuda_formulas.py, line ", "device='cpu'")), message
