from __future__ import annotations

import hashlib
import math
import sys
from decimal import Decimal, localcontext

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.extending import register_jitable

from gpuboost import elementary
from gpuboost.elementary import bounded, exp, exp_array, expit, expit_array, log, log1pexp, log1pexp_array, log_array

TWINS = [(exp, exp_array), (log, log_array), (expit, expit_array), (log1pexp, log1pexp_array)]
inf, nan = math.inf, math.nan


def bits(x):
    return np.asarray(x, np.float64).view(np.int64)


def same_bits(a, b):
    """Equal to the last bit, the sign of zero included; any nan is like any other."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return bool(np.all((bits(a) == bits(b)) | (np.isnan(a) & np.isnan(b))))


def inputs(n):
    """n numbers of every size, where the functions bend, and where they end."""
    rng = np.random.default_rng(20)
    power = 10.0 ** rng.uniform(-320.0, 308.0, n // 4)
    edges = [0.0, -0.0, inf, -inf, nan, -nan, 5e-324, sys.float_info.min, sys.float_info.max, 709.78, 709.79, -693.2]
    return np.concatenate(
        [
            rng.normal(size=n // 4),
            rng.uniform(-760.0, 760.0, n // 4),
            power,
            -power,
            np.arange(-1030.0, 1030.0) * math.log(2.0),
            edges,
        ]
    )


def true_exp(x):
    return Decimal(x).exp()


def true_log(x):
    return Decimal(x).ln()


def true_expit(x):
    return 1 / (1 + (-Decimal(x)).exp())


def true_log1pexp(x):
    e = Decimal(x).exp()
    return (1 + e).ln() if x > -60.0 else e - e * e / 2


def worst_error(function, truth, points):
    """In units of the last place of the true value."""
    worst = 0.0
    with localcontext() as context:
        context.prec = 50
        context.Emin, context.Emax = -999999, 999999
        for x in points:
            true = truth(x)
            worst = max(worst, float(abs(Decimal(function(x)) - true) / Decimal(math.ulp(float(true)))))
    return worst


@pytest.mark.parametrize(
    ("function", "truth", "low", "high", "ulps"),
    [
        (exp, true_exp, -693.0, 709.7, 1.0),
        (exp, true_exp, -2.0, 2.0, 1.0),
        (log, true_log, 0.4, 2.5, 1.0),
        (log, true_log, 1e-300, 1e300, 1.0),
        (expit, true_expit, -690.0, 40.0, 3.0),
        (expit, true_expit, -4.0, 4.0, 3.0),
        (log1pexp, true_log1pexp, -690.0, 700.0, 2.0),
        (log1pexp, true_log1pexp, -4.0, 4.0, 2.0),
    ],
)
def test_errors_stay_below_the_stated_ulps(function, truth, low, high, ulps):
    rng = np.random.default_rng(7)
    points = rng.uniform(low, high, 2000).tolist()
    if function is log:
        points += (10.0 ** rng.uniform(-320.0, 308.0, 2000)).tolist()
    assert worst_error(function, truth, points) < ulps


@pytest.mark.parametrize(
    ("function", "x", "value"),
    [
        (exp, 0.0, 1.0),
        (exp, -0.0, 1.0),
        (exp, inf, inf),
        (exp, 710.0, inf),
        (exp, 1e300, inf),
        (exp, sys.float_info.max, inf),
        (exp, -inf, 0.0),
        (exp, -sys.float_info.max, 0.0),
        (exp, -693.2, 0.0),
        (exp, nan, nan),
        (log, 1.0, 0.0),
        (log, 2.0, math.log(2.0)),
        (log, 0.0, -inf),
        (log, -0.0, -inf),
        (log, -1.0, nan),
        (log, -inf, nan),
        (log, inf, inf),
        (log, nan, nan),
        (log, 5e-324, -744.4400719213812),
        (expit, 0.0, 0.5),
        (expit, inf, 1.0),
        (expit, -inf, 0.0),
        (expit, nan, nan),
        (log1pexp, 0.0, math.log(2.0)),
        (log1pexp, inf, inf),
        (log1pexp, -inf, 0.0),
        (log1pexp, 1e300, 1e300),
        (log1pexp, -60.0, math.exp(-60.0)),
        (log1pexp, nan, nan),
        (bounded, 1e300, 40.0),
        (bounded, -1e300, -40.0),
        (bounded, 3.5, 3.5),
        (bounded, nan, nan),
    ],
)
def test_values_at_the_edges(function, x, value):
    for argument in (x, np.float64(x)):
        got = function(argument)
        assert got == value or (math.isnan(got) and math.isnan(value))


def test_exp_is_never_denormal():
    x = np.linspace(-694.0, -692.0, 20001)
    found = exp_array(x)
    assert np.all((found == 0.0) | (found >= 2.0**-1001))
    assert found[0] == 0.0
    assert found[-1] > 0.0


@given(st.floats(min_value=-700.0, max_value=700.0))
def test_expit_of_x_and_of_minus_x_sum_to_one(x):
    assert expit(x) + expit(-x) == pytest.approx(1.0, abs=1e-15)


@given(st.floats(min_value=-600.0, max_value=600.0), st.floats(min_value=1e-9, max_value=10.0))
def test_exp_and_log1pexp_do_not_fall(x, step):
    assert exp(x) <= exp(x + step)
    assert log1pexp(x) <= log1pexp(x + step)


@given(st.floats(min_value=-690.0, max_value=700.0))
def test_log_undoes_exp(x):
    assert log(exp(x)) == pytest.approx(x, rel=1e-15, abs=1e-15)


@pytest.mark.parametrize(("scalar", "array"), TWINS)
def test_array_twins_give_the_bits_of_the_scalar_functions(scalar, array):
    x = inputs(20_000)
    assert same_bits(array(x), [scalar(v) for v in x.tolist()])
    few = np.resize(x[-2000:], (500, 4))  # the scalar function is called
    assert same_bits([array(line) for line in few], array(few))


@pytest.mark.parametrize(("scalar", "array"), TWINS)
def test_array_twins_keep_shape_and_input_and_do_not_warn(scalar, array):
    x = np.array([[1.0, nan, -inf], [0.0, inf, 1e300]])
    before = x.copy()
    assert array(x).shape == (2, 3)
    assert same_bits(array(x.T), array(x).T)  # not contiguous
    assert same_bits(array(x[:, ::2]), array(x)[:, ::2])
    assert same_bits(x, before)
    assert array(np.empty(0)).shape == (0,)
    assert array(0.5).shape == ()
    assert same_bits(array(np.float32([0.25, 0.5])), array(np.array([0.25, 0.5])))


@pytest.fixture(scope="module")
def compiled():
    """The functions as numba compiles them, in a loop over an array."""
    for function in elementary.SCALAR_FUNCTIONS:
        register_jitable(function)

    def loop(function):
        @numba.njit(error_model="numpy")
        def run(x, out):
            for i in range(x.size):
                out[i] = function(x[i])

        def call(x):
            out = np.empty_like(x)
            run(x, out)
            return out

        return call

    return {function.__name__: loop(function) for function, _ in TWINS}


@pytest.mark.parametrize(("scalar", "array"), TWINS)
def test_numba_gives_the_bits_of_cpython(scalar, array, compiled):
    x = inputs(2_000_000)
    found = compiled[scalar.__name__](x)
    assert same_bits(found, array(x))
    assert same_bits(found[::200], [scalar(v) for v in x[::200].tolist()])


def test_a_loop_over_exp_vectorises():
    """It is in the hottest loop; a text that no longer vectorises costs four times as much."""
    register_jitable(exp)

    @numba.njit(error_model="numpy")
    def run(x, out):
        for i in range(x.size):
            out[i] = exp(x[i])

    run(np.zeros(8), np.zeros(8))
    code = next(iter(run.inspect_llvm().values()))
    assert any(f"fmul <{width} x double>" in code for width in (2, 4, 8))


@pytest.mark.parametrize(
    ("array", "digest"),
    [
        (exp_array, "6b5213b289a810701ded5ddb2c8675f2"),
        (log_array, "86e0732fcc4cbc15939c7bda4f45e3bf"),
        (expit_array, "9781dc660b52adc87cff9f606e76fccb"),
        (log1pexp_array, "7b8cdcf0b8f409a346cc5f4520c7aee0"),
    ],
)
def test_bits_are_those_of_every_other_machine(array, digest):
    """200,000 values each: if this fails, models trained here differ from those of other machines and versions."""
    x = np.arange(-700_000, 700_000, 7) / 1024.0
    x = np.abs(x) + 2.0**-20 if array is log_array else x
    assert hashlib.sha256(array(x).astype("<f8").tobytes()).hexdigest()[:32] == digest
