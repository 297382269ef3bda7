"""Formulas that became CUDA C give the bits that they give in Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from support.examples import examples
from support.training import device

from gpuboost import elementary, losses
from gpuboost.backends.cuda.codegen.formulas import formulas
from gpuboost.backends.cuda.codegen.functions import Library
from gpuboost.errors import DeviceError

Array = np.ndarray

KERNEL = """
extern "C" __global__ void run(const double *x, const double *y, int n, double *out)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = (double)FUNCTION(ARGUMENTS);
}
"""


def emulated(function: Callable[..., Any], x: Array, y: Array | None = None) -> Array:
    """function(x) or function(x, y), element by element, on the emulated device."""
    runtime = device()
    library = Library()
    name, _ = library.function(function, ("float",) * (1 if y is None else 2))
    text = library.text + KERNEL.replace("FUNCTION", name).replace("ARGUMENTS", "x[i]" if y is None else "x[i], y[i]")
    out = runtime.zeros(len(x), np.float64)
    arrays = runtime.upload(x), runtime.upload(x if y is None else y)
    runtime.kernel(text, "run")((4,), (64,), (*arrays, np.int32(len(x)), out))
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
    text = formulas(loss) + (
        'extern "C" __global__ void run(const double *y, const double *f, double a, int n, double *out)\n{\n'
        "    for (int i = threadIdx.x; i < n; i += blockDim.x) {\n"
        "        out[3 * i] = value_of(y[i], f[i], a);\n"
        "        derivatives_of(y[i], f[i], a, out[3 * i + 1], out[3 * i + 2]);\n    }\n}\n"
    )
    out = runtime.zeros(3 * len(y), np.float64)
    arguments = runtime.upload(y), runtime.upload(f), np.float64(loss.parameter), np.int32(len(y)), out
    runtime.kernel(text, "run")((1,), (64,), arguments)
    a, pairs = loss.parameter, list(zip(y.tolist(), f.tolist(), strict=True))
    expected = [(loss.value(t, s, a), *loss.derivatives(t, s, a)) for t, s in pairs]
    assert_same_bits(runtime.download(out), np.array(expected, np.float64).reshape(-1))


# Python's rules, one function each

SCALE, WHOLE, FLAG = 2.5, 3, True


def divisions(x: float, y: float) -> float:
    return (x // y) + 2.0 * (x % y) + x / y


def whole_divisions(x: float, y: float) -> float:
    a, b = int(x), int(y)
    return a // b * 1000 + a % b + a / b


def branches(x: float, y: float) -> float:
    """A docstring, which is nothing."""
    if x < y <= 2.0 * SCALE:
        result = 1
    elif not (x == y or y > 3.0) and x != -1.0:
        result = x
    else:
        result = WHOLE if FLAG else -WHOLE
    return result


def loops(x: float, y: float) -> float:
    total, i = 0.0, 0
    while total < 50.0:
        i += 1
        if i == 3:
            continue
        total += abs(x) + 1.0
        if i > 20:
            break
    for k in range(5, -1, -2):
        total = total * 0.5 + k
        k = int(total)  # noqa: PLW2901 - Python's loops do not mind
    for _ in range(int(min(abs(y), 4.0))):
        total -= 1
    return total + i + k


def choices(x: float, y: float) -> float:
    return (x and y) + (x or 7.0) + (x > 0.0 and y > 0.0) + max(x, y, 1) - min(x, 2.0, y) + bool(y) + round(x)


def swapped(x: float, y: float) -> float:
    x, y = y, x + 1.0
    a, b = pair(x, y)
    return a - 2.0 * b


def pair(x: float, y: float) -> tuple[float, float]:
    return x + y, x - y if x > y else 0


def powers(x: float, y: float) -> float:
    return x**2 - 3.0 * x**3 + 2**4 + (x * x + 1.0) ** -2 + float(True) + (7 & 5 | 8 ^ 1) + (1 << 4) + (-17 >> 2) + ~3


def shapes(x: float, y: float) -> float:
    low = (
        np.where(x < y, x, y)
        + np.maximum(x, y) * np.minimum(x, 1.0)
        + np.clip(x, -1.0, 2.0)
        + np.sign(y)
        + np.square(x)
    )
    return low + np.abs(x) + math.floor(x) + math.ceil(y) + np.rint(y) + math.copysign(x, y) + math.sqrt(abs(x))


def bits(x: float, y: float) -> float:
    return float(np.int64(np.float64(x).view(np.int64) ^ 1).view(np.float64)) + y


NUMBERS = st.one_of(
    st.floats(-20.0, 20.0).map(lambda x: round(x, 3)), st.integers(-9, 9).map(float), st.sampled_from([-0.0, 0.5, 1.0])
)


@pytest.mark.parametrize(
    "function",
    [divisions, whole_divisions, branches, loops, choices, swapped, powers, shapes, bits],
    ids=lambda function: function.__name__,
)
@settings(max_examples=examples(4), deadline=None, derandomize=True)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=60))
def test_python_means_in_cuda_what_it_means_in_python(
    function: Callable[[float, float], float], pairs: list[tuple[float, float]]
) -> None:
    if "divisions" in function.__name__:
        pairs = [(x, y if int(y) != 0 else 2.5) for x, y in pairs]
    expected = np.array([function(x, y) for x, y in pairs], np.float64)
    assert_same_bits(emulated(function, *np.array(pairs, np.float64).T.copy()), expected)


def test_closures_lambdas_on_one_line_and_compiled_functions_are_found() -> None:
    def times(by: float) -> Callable[[float], float]:
        return lambda x: by * x

    both = (lambda x: x + 1.0), (lambda x: x - 1.0)
    x = np.array([1.5, -2.0])
    assert emulated(times(3.0), x).tolist() == [4.5, -6.0]
    assert [emulated(one, x).tolist() for one in both] == [[2.5, -1.0], [0.5, -3.0]]
    assert emulated(njit(halved), x).tolist() == [0.75, -1.0]


def halved(x: float) -> float:
    return 0.5 * x


# What does not become CUDA is named

TABLE = [1.0, 2.0]


def with_list(y: float, f: float) -> float:
    return sum([y, f])


def with_global_list(y: float, f: float) -> float:
    return TABLE[0] * f


def with_try(y: float, f: float) -> float:
    try:
        return y
    except ValueError:
        return f


def with_recursion(y: float, f: float) -> float:
    return with_recursion(y, f) if f > 0.0 else y


def with_no_end(y: float, f: float) -> float:
    if y > f:
        return 1.0


def with_strings(y: float, f: float) -> float:
    return float("1") + y


def with_keyword(y: float, f: float) -> float:
    return np.clip(f, a_min=0.0, a_max=y)


def with_print(y: float, f: float) -> float:
    print(y)
    return f


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (with_list, ["with_list", "a list", "[y, f]"]),
        (with_global_list, ["with_global_list", "TABLE", "not an array argument"]),
        (with_try, ["with_try", "'try:'"]),
        (with_recursion, ["with_recursion", "calls itself"]),
        (with_no_end, ["with_no_end", "may end without a return"]),
        (with_strings, ["with_strings", "'1'", "not a number"]),
        (with_keyword, ["with_keyword", "np.clip", "plain positional"]),
        (with_print, ["with_print", "print(y)"]),
        (math.sin, ["not a function written in Python"]),
        (eval("lambda y, f: y"), ["cannot be found"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_has_no_translation_is_refused_by_name_line_and_construct(
    function: Callable[..., Any], words: list[str]
) -> None:
    with pytest.raises(DeviceError) as caught:
        Library().function(function, ("float", "float"))
    message = str(caught.value)
    assert all(word in message for word in (*words, "device='cpu'")), message
    if function.__name__.startswith("with_"):
        assert f"{__file__}, line " in message
