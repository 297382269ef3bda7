from __future__ import annotations

import copy
import math
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.extending import register_jitable

from gpuboost import GradientBoostingRegressor, elementary, losses, metrics
from gpuboost.errors import InputError, RecipeError
from gpuboost.losses import (
    AbsoluteError,
    Expectile,
    Exponential,
    Gamma,
    Huber,
    Logistic,
    LogitBoost,
    Poisson,
    Quantile,
    Softmax,
    SquaredError,
    Tweedie,
)
from gpuboost.losses.averages import exact_sum, lower_quantile, rising_root, weighted_mean
from gpuboost.losses.base import FOREIGN, facts_of

ANY = [
    SquaredError(),
    Expectile(),
    Expectile(alpha=0.9),
    Huber(),
    Huber(delta=0.3),
    AbsoluteError(),
    Quantile(),
    Quantile(alpha=0.9),
]
POSITIVE = [Poisson(), Gamma(), Tweedie(), Tweedie(power=1.1), Tweedie(power=1.9)]
BINARY = [Logistic(), Logistic(ridge=0.5), Exponential(), LogitBoost()]
SCALAR = ANY + POSITIVE + BINARY
MULTI = [Softmax(n_classes=2), Softmax(n_classes=5)]
EVERY = SCALAR + MULTI


def targets(loss, n=200, seed=3):
    """n targets that the loss accepts."""
    rng = np.random.default_rng(seed)
    if loss.task == "binary":
        return (rng.random(n) < 0.3).astype(np.float64)
    if loss.task == "multiclass":
        return rng.integers(0, loss.n_classes, n).astype(np.float64)
    if loss.name == "poisson":
        return rng.poisson(2.0, n).astype(np.float64)
    if loss.name == "gamma":
        return rng.gamma(2.0, 3.0, n)
    if loss.name == "tweedie":
        return rng.gamma(2.0, 3.0, n) * (rng.random(n) < 0.5)
    return rng.normal(size=n) * 3.0 + 1.0


def value(loss, y, f):
    """The value of scalar f, or of (k,) f."""
    if loss.n_outputs > 1:
        return loss.row_value(y, f, loss.parameter)
    return loss.value(y, f, loss.parameter)


def row_derivatives(loss, y, f):
    g, h = np.empty(len(f)), np.empty(len(f))
    loss.row_derivatives(y, f, g, h, loss.parameter)
    return g, h


# derivatives


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@given(f=st.floats(-1e300, 1e300) | st.floats(-800.0, 800.0))
def test_derivatives_are_finite_for_every_finite_score(loss, f):
    largest = 1.0 if loss.task == "binary" else 1e17 if loss in POSITIVE else 1e30
    smallest = {"regression": -largest, "binary": 0.0}[loss.task]
    if loss in POSITIVE:
        smallest = 1e-17 if loss.name == "gamma" else 0.0
    for y in (smallest, largest):
        loss.check_target(np.array([y, largest]))
        g, h = loss.derivatives(y, f, loss.parameter)
        assert math.isfinite(g)
        assert math.isfinite(h)
        assert h >= 0.0
        if loss not in ANY and loss != Logistic(ridge=0.5):  # their gradient is bounded, or grows with f itself
            assert all(x == 0.0 or 1e-37 < abs(x) < 1e37 for x in (g, h)), "not a normal float32 number"


@pytest.mark.parametrize("loss", MULTI, ids=repr)
@pytest.mark.parametrize("size", [0.0, 1.0, 50.0, 800.0, 1e30, 1e300])
def test_softmax_is_finite_for_every_finite_score(loss, size):
    f = size * np.linspace(-1.0, 1.0, loss.n_classes)
    for y in (0, loss.n_classes - 1):
        g, h = row_derivatives(loss, float(y), f)
        assert np.all(np.isfinite(g))
        assert np.all(np.isfinite(h))
        assert np.all(h >= 0.0)
        assert math.isfinite(loss.row_value(float(y), f, 0.0))
        assert np.sum(g) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("loss", [*POSITIVE, Exponential()], ids=repr)
@pytest.mark.parametrize("bend", [-40.0, 40.0])
def test_beyond_40_a_loss_goes_on_as_its_tangent(loss, bend):
    y, a = (1.0, loss.parameter)
    at, g = loss.value(y, bend, a), loss.derivatives(y, bend, a)[0]
    beyond = bend * 1.5
    assert loss.value(y, beyond, a) == pytest.approx(at + g * (beyond - bend), rel=1e-12)
    assert loss.derivatives(y, beyond, a) == loss.derivatives(y, bend, a)


def test_smoothness_of_the_logistic_loss_is_attained_at_zero():
    assert Logistic().derivatives(1.0, 0.0, 0.0)[1] == 0.25 == Logistic().smoothness
    assert Logistic(ridge=0.5).derivatives(1.0, 0.0, 0.5)[1] == 0.75 == Logistic(ridge=0.5).smoothness
    assert Logistic(ridge=0.5).strong_convexity == 0.5


def test_smoothness_of_softmax_bounds_the_joint_hessian():
    rng = np.random.default_rng(0)
    top = 0.0
    for _ in range(500):
        p = rng.dirichlet(np.full(4, 0.3))
        top = max(top, float(np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1]))
    assert 0.45 < top <= Softmax(4).smoothness


def test_constants_are_those_of_the_table():
    table = {
        loss.name: (loss.smoothness, loss.strong_convexity, loss.has_curvature, loss.leaf_quantile) for loss in EVERY
    }
    assert table == {
        "squared_error": (1.0, 1.0, True, None),
        "expectile": (1.8, pytest.approx(0.2), True, None),
        "huber": (1.0, 0.0, False, None),
        "absolute_error": (None, 0.0, False, 0.5),
        "quantile": (None, 0.0, False, 0.9),
        "poisson": (None, 0.0, True, None),
        "gamma": (None, 0.0, True, None),
        "tweedie": (None, 0.0, True, None),
        "logistic": (0.75, 0.5, True, None),
        "exponential": (None, 0.0, True, None),
        "logitboost": (1.0, 0.0, True, None),
        "softmax": (0.5, 0.0, True, None),
    }


@pytest.mark.parametrize("loss", BINARY, ids=repr)
@given(f=st.floats(-1e3, 1e3))
def test_exchanging_the_classes_mirrors_the_gradient_to_the_last_bit(loss, f):
    g, h = loss.derivatives(1.0, f, loss.parameter)
    assert (-g, h) == loss.derivatives(0.0, -f, loss.parameter)
    assert loss.value(1.0, f, loss.parameter) == loss.value(0.0, -f, loss.parameter)


@given(seed=st.integers(0, 10_000))
def test_softmax_of_two_classes_takes_the_newton_step_of_logistic(seed):
    f = np.random.default_rng(seed).normal(size=2)
    g, h = row_derivatives(Softmax(2), 1.0, f)
    one, two = Logistic().derivatives(1.0, float(f[1] - f[0]), 0.0)
    assert -g[1] / h[1] + g[0] / h[0] == pytest.approx(-one / two, rel=1e-12)


@given(seed=st.integers(0, 10_000), shift=st.sampled_from([-1024.0, 0.5, 4096.0]))
def test_softmax_does_not_change_with_a_shift_of_all_scores(seed, shift):
    f = np.round(np.random.default_rng(seed).normal(size=4) * 1024.0) / 1024.0  # the shift is exact
    for one, two in zip(row_derivatives(Softmax(4), 2.0, f), row_derivatives(Softmax(4), 2.0, f + shift), strict=True):
        np.testing.assert_array_equal(one, two)


def test_subgradients_at_the_kink_are_zero():
    assert AbsoluteError().derivatives(2.0, 2.0, 0.0) == (0.0, 0.0)
    assert Quantile(0.9).derivatives(2.0, 2.0, 0.9) == (0.0, 0.0)
    assert Huber(1.5).derivatives(0.0, 1.5, 1.5) == (1.5, 1.0)


# compiled


def compiled_derivatives(loss):
    for function in elementary.SCALAR_FUNCTIONS:
        register_jitable(function)
    formula = register_jitable(loss.derivatives)

    @numba.njit(error_model="numpy")
    def run(y, f, a, g, h):
        for i in range(y.size):
            g[i], h[i] = formula(y[i], f[i], a)

    return run


# the start


def test_start_of_huber_is_the_lower_median():
    assert Huber().start(np.array([5.0, 1.0, 100.0, 2.0]), np.ones(4)) == [2.0]


def test_start_is_finite_where_a_class_is_absent():
    for loss in BINARY:
        for label in (0.0, 1.0):
            (found,) = loss.start(np.full(5, label), np.ones(5))
            assert math.isfinite(found)
            assert (found > 0) == (label == 1.0)
    assert np.all(np.isfinite(Softmax(3).start(np.array([0.0, 2.0, 2.0]), np.ones(3))))


def test_known_starts():
    y = np.array([0.0, 1.0, 1.0, 1.0])
    assert Logistic().start(y, np.ones(4))[0] == pytest.approx(math.log(3.0), rel=1e-7)
    assert Exponential().start(y, np.ones(4))[0] == pytest.approx(0.5 * math.log(3.0), rel=1e-7)
    assert LogitBoost().start(y, np.ones(4)) == Exponential().start(y, np.ones(4))
    assert Poisson().start(np.array([1.0, 3.0]), np.ones(2))[0] == pytest.approx(math.log(2.0), rel=1e-7)
    assert Quantile(0.75).start(np.array([4.0, 3.0, 2.0, 1.0]), np.ones(4)) == [3.0]
    assert SquaredError().start(np.array([1.0, 2.0]), np.array([1.0, 3.0])) == [1.75]


# sums and quantiles


@given(st.lists(st.floats(-1e12, 1e12), max_size=60), st.randoms())
def test_exact_sum_is_rounded_once_and_has_no_order(numbers, random):
    shuffled = numbers.copy()
    random.shuffle(shuffled)
    assert exact_sum(numbers) == exact_sum(shuffled)
    assert exact_sum(numbers) == pytest.approx(math.fsum(numbers), rel=1e-15, abs=1e-14)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([], 0.0),
        ([0.0, -0.0], 0.0),
        ([1.0, 2.0**-60, -1.0], 2.0**-60),
        ([1e300, 1e300, -1e300], 1e300),
        ([2e-300, 1e-300], 3e-300),
        ([0.1] * 10, 1.0),
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
    ],
)
def test_exact_sum_of(numbers, expected):
    assert exact_sum(numbers) == pytest.approx(expected, rel=0.0, abs=0.0, nan_ok=True)


def test_exact_sum_of_many_blocks():
    x = np.random.default_rng(0).normal(size=50_000) * 1e6
    assert exact_sum(x) == math.fsum(x)


@given(st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(1, 50)), min_size=1, max_size=30))
def test_weighted_mean_counts_a_row_as_often_as_its_weight_says(rows):
    y, weight = np.array([t / 997.0 for t, _ in rows]), np.array([w for _, w in rows])
    repeated = np.repeat(y, weight)
    assert weighted_mean(y, weight) == weighted_mean(repeated, np.ones(len(repeated)))


def test_weighted_mean_of_extremes():
    assert weighted_mean([math.inf, 1.0], [2.0, 3.0]) == math.inf
    assert math.isnan(weighted_mean([math.nan, 1.0], [2.0, 3.0]))
    assert weighted_mean([1e305, -1e305, 1e305], [0.5, 0.5, 1.0]) == 5e304
    assert weighted_mean([1e-310], [2.0]) == pytest.approx(1e-310)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 9)), min_size=1, max_size=30),
    st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]),
)
def test_lower_quantile_reaches_alpha_and_no_smaller_value_does(rows, alpha):
    y, weight = np.array([t for t, _ in rows], float), np.array([w for _, w in rows], float)
    found = lower_quantile(y, weight, alpha)
    assert weight[y <= found].sum() >= alpha * weight.sum()
    assert not weight[y < found].sum() >= alpha * weight.sum()
    repeated = np.repeat(y, weight.astype(int))
    assert found == lower_quantile(repeated, np.ones(len(repeated)), alpha)


def test_rising_root():
    assert rising_root(lambda x: x * x * x - 2.0, 0.0, 2.0) == pytest.approx(2.0 ** (1 / 3), rel=1e-15)
    assert rising_root(lambda x: x, -1.0, 1.0) == pytest.approx(0.0, abs=1e-300)


# the domain


@pytest.mark.parametrize(
    ("loss", "y", "words"),
    [
        (SquaredError(), [1.0, math.nan], ["y: SquaredError needs finite numbers", "row 1 holds nan"]),
        (Huber(), [math.inf, 1.0], ["y: Huber needs finite numbers", "row 0 holds inf"]),
        (AbsoluteError(), [1.0, 2.0, 1e31], ["AbsoluteError", "at most 1e+30", "row 2 holds 1e+31", "Rescale"]),
        (Quantile(), [], ["y: must hold one number per row, at least one", "(0,)"]),
        (Quantile(), [[1.0], [2.0]], ["one number per row", "(2, 1)"]),
        (Poisson(), [1.0, -2.0, -3.0], ["Poisson", "not negative", "row 1 holds -2.0", "(2 such rows)"]),
        (Poisson(), [0.0, 0.0], ["Poisson needs a positive mean", "all 2 values are 0"]),
        (Poisson(), [1e18], ["Poisson", "at most 1e+17", "Rescale"]),
        (Gamma(), [1.0, 0.0], ["Gamma needs positive numbers", "row 1 holds 0.0", "Tweedie"]),
        (Gamma(), [1.0, 1e-20], ["Gamma", "at least 1e-17", "row 1 holds 1e-20"]),
        (Tweedie(), [1.0, 2.0, -0.5], ["Tweedie", "row 2 holds -0.5"]),
        (Tweedie(), [0.0], ["Tweedie needs a positive mean"]),
        (Logistic(), [0.0, 1.0, 2.0], ["Logistic needs labels 0 and 1", "row 2 holds 2.0", "Softmax(n_classes=3)"]),
        (Logistic(), [-1.0, 1.0], ["Logistic needs labels 0 and 1", "row 0 holds -1.0", "Code the classes as 0 and 1"]),
        (Exponential(), [0.0, 0.5], ["Exponential needs labels 0 and 1", "row 1 holds 0.5"]),
        (Exponential(), [0.0, math.nan], ["Exponential needs finite numbers", "row 1 holds nan"]),
        (Logistic(), [], ["at least one"]),
        (Softmax(3), [0.0, 3.0], ["Softmax(n_classes=3) needs labels 0 to 2", "row 1 holds 3.0", "n_classes=4"]),
        (Softmax(3), [0.0, 1.5], ["Softmax(n_classes=3) needs labels 0 to 2", "row 1 holds 1.5", "Code the classes"]),
        (Softmax(3), [0.0, -1.0], ["row 1 holds -1.0"]),
    ],
)
def test_targets_outside_the_domain_are_refused(loss, y, words):
    with pytest.raises(InputError) as error:
        loss.check_target(np.array(y))
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Huber(delta=0.0), "delta: Huber needs a positive number; got 0.0"),
        (lambda: Huber(delta=math.nan), "delta: Huber needs a finite number; got nan"),
        (lambda: Huber(delta="1"), "delta: Huber needs a finite number; got '1'"),
        (lambda: Huber(delta=True), "delta: Huber needs a finite number; got True"),
        (lambda: Quantile(alpha=1.0), "alpha: Quantile needs a number between 0 and 1; got 1.0"),
        (lambda: Tweedie(power=2.0), "power: Tweedie needs a number between 1 and 2; got 2.0. For 1 use Poisson"),
        (lambda: Logistic(ridge=-1.0), "ridge: Logistic needs a number that is not negative; got -1.0"),
        (lambda: Softmax(n_classes=1), "n_classes: Softmax needs a whole number, 2 or more; got 1"),
        (lambda: Softmax(n_classes=3.0), "n_classes: Softmax needs a whole number, 2 or more; got 3.0"),
    ],
)
def test_parameters_out_of_range_are_refused(make, words):
    with pytest.raises(RecipeError) as error:
        make()
    assert words in str(error.value)


# predictions


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_predictions_have_the_right_shape_and_are_finite(loss):
    scores = np.random.default_rng(0).normal(size=(loss.n_outputs, 50)) * 3.0
    scores[:, 0], scores[0, 1] = 1e300, -1e300
    found = loss.inverse_link(scores)
    assert found.shape == ((50,) if loss.n_outputs == 1 else (50, loss.n_outputs))
    assert np.all(np.isfinite(found))


@pytest.mark.parametrize("loss", [*POSITIVE, Logistic(), Exponential(), LogitBoost()], ids=repr)
def test_the_best_constant_predicts_the_mean(loss):
    y = targets(loss)
    found = loss.inverse_link(loss.start(y, np.ones(len(y)))[:, None])
    assert found[0] == pytest.approx(y.mean(), rel=1e-6)


def test_probabilities():
    scores = np.array([[-1.0, 0.0, 2.0]])
    np.testing.assert_allclose(Logistic().inverse_link(scores), 1 / (1 + np.exp(-scores[0])), rtol=1e-15)
    for half in (Exponential(), LogitBoost()):
        np.testing.assert_allclose(half.inverse_link(scores), 1 / (1 + np.exp(-2 * scores[0])), rtol=1e-15)
    scores = np.random.default_rng(0).normal(size=(3, 40)) * 5.0
    p = Softmax(3).inverse_link(scores)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(p, (np.exp(scores) / np.exp(scores).sum(axis=0)).T, rtol=1e-13)
    assert p.flags.c_contiguous


# as objects


def test_losses_that_differ_are_not_equal():
    assert len(set(EVERY)) == len(EVERY)
    assert Huber(1) == Huber(1.0)
    assert isinstance(Huber(1).delta, float)
    assert losses.to_json(Huber(2)) == {"name": "huber", "delta": 2.0}
    assert losses.to_json(SquaredError()) == {"name": "squared_error"}
    assert losses.to_json(Softmax(np.int64(4))) == {"name": "softmax", "n_classes": 4}


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (None, "must be an object with a name"),
        ([], "must be an object with a name"),
        ({}, "must be an object with a name"),
        ({"name": 3}, "must be an object with a name"),
        (
            {"name": "hubr", "delta": 1.0},
            "unknown loss 'hubr'. It may come from a newer version. Did you mean 'huber'?",
        ),
        ({"name": "huber"}, "loss 'huber' holds ['delta']; found []"),
        ({"name": "huber", "delta": 1.0, "x": 2.0}, "found ['delta', 'x']"),
        ({"name": "huber", "delta": "1"}, "parameters of loss 'huber' are numbers"),
        ({"name": "huber", "delta": True}, "parameters of loss 'huber' are numbers"),
        ({"name": "huber", "delta": None}, "parameters of loss 'huber' are numbers"),
        ({"name": "huber", "delta": -1.0}, "model file: delta: Huber needs a positive number"),
        ({"name": "huber", "delta": 10**400}, "model file: delta: Huber needs a finite number"),
        ({"name": "softmax", "n_classes": 2.5}, "n_classes: Softmax needs a whole number"),
        ({"name": "custom"}, "a custom loss holds name and function"),
        ({"name": "custom", "function": 1}, "a custom loss holds name and function"),
        ({"name": 1, 2: 3}, "must be an object with a name"),
    ],
)
def test_damaged_json_is_refused(stored, words):
    with pytest.raises(InputError) as error:
        losses.from_json(stored)
    assert words in str(error.value)


# by name


def test_every_name_gives_its_loss():
    for name in losses.NAMES:
        assert losses.get(name, n_classes=3).name == name
    assert losses.get("huber") == Huber()
    given = Tweedie(1.2)
    assert losses.get(given) is given
    assert losses.get("softmax", n_classes=7) == Softmax(7)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hubber", ["unknown name 'hubber'", "Did you mean 'huber'?", "squared_error, huber"]),
        ("mse", ["unknown name 'mse'", "Did you mean 'squared_error'?"]),
        ("binary:logistic", ["Did you mean 'logistic'?"]),
        ("zzz", ["unknown name 'zzz'. Names: squared_error"]),
        ("softmax", ["'softmax' needs the number of classes"]),
        (Huber, ["got the class Huber. Call it first."]),
        (3.0, ["a loss object or a name is needed; 3.0 has no name"]),
        (None, ["None has no name"]),
    ],
)
def test_unknown_losses_are_refused(name, words):
    with pytest.raises(InputError) as error:
        losses.get(name)
    for word in words:
        assert word in str(error.value)


# custom losses


def asymmetric(y, f):
    return (f - y) ** 2 if f > y else 3.0 * (f - y) ** 2


def asymmetric_gradient(y, f):
    return 2.0 * (f - y) if f > y else 6.0 * (f - y)


def asymmetric_hessian(y, f):
    return 2.0 if f > y else 6.0


def doubled(scores):
    return 2.0 * scores


def make(**more):
    return losses.custom(asymmetric, asymmetric_gradient, asymmetric_hessian, **more)


def test_a_custom_loss_is_a_loss():
    loss = make()
    assert losses.get(loss) is loss
    assert (loss.name, loss.task, loss.n_outputs, loss.parameter) == ("asymmetric", "any", 1, 0.0)
    assert loss.value(1.0, 3.0, 0.0) == 4.0
    assert loss.derivatives(1.0, 3.0, 0.0) == (4.0, 2.0)
    assert loss.functions == (asymmetric, asymmetric_gradient, asymmetric_hessian)
    assert loss.has_curvature
    assert repr(loss) == "custom('asymmetric')"
    np.testing.assert_array_equal(loss.start(np.array([5.0]), np.ones(1)), [0.0])
    np.testing.assert_array_equal(loss.inverse_link(np.array([[1.0, 2.0]])), [1.0, 2.0])
    loss.check_target(np.array([1.0, -3.0]))
    with pytest.raises(InputError, match="asymmetric needs finite numbers; row 0 holds nan"):
        loss.check_target(np.array([math.nan]))


def test_a_custom_loss_is_a_value():
    loss = make(name="mine", inverse_link=doubled, start=2.5, smoothness=6.0, convex=True)
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert copy.deepcopy(loss) == loss
    assert loss != make(name="mine")
    assert loss.derivatives is loss.derivatives, "a backend would compile it anew each time"
    assert loss.derivatives is make().derivatives
    np.testing.assert_array_equal(loss.inverse_link(np.array([[1.0, 2.0]])), [2.0, 4.0])
    np.testing.assert_array_equal(loss.start(np.array([5.0]), np.ones(1)), [2.5])


def test_a_custom_loss_without_curvature():
    loss = losses.custom(asymmetric, asymmetric_gradient, None)
    assert not loss.has_curvature
    assert loss.derivatives(1.0, 3.0, 0.0) == (4.0, 0.0)


def test_the_start_of_a_custom_loss_can_be_searched_for():
    rng = np.random.default_rng(0)
    y, weight = rng.normal(size=500) * 10.0 + 1000.0, rng.gamma(1.0, 1.0, 500)
    (found,) = make(start="minimise").start(y, weight)
    assert math.fsum(weight * [asymmetric_gradient(t, found) for t in y]) == pytest.approx(0.0, abs=0.1)
    squared = losses.custom(lambda y, f: (y - f) ** 2, lambda y, f: f - y, lambda y, f: 1.0, start="minimise")
    for shift in (-70.0, 0.0, 0.3, 12345.0):
        (found,) = squared.start(y - y.mean() + shift, np.ones(500))
        assert found == pytest.approx(shift, abs=1e-4 + 1e-6 * abs(shift))
    assert make(start=lambda y, weight: y.max()).start(y, weight)[0] == np.float32(y.max())


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda y, f: math.nan, "is not a number at the score"),
        (lambda y, f: -f, "falls without end as the score goes to"),
    ],
)
def test_a_search_that_finds_no_start_says_so(value, words):
    loss = losses.custom(value, value, value, name="odd", start="minimise")
    with pytest.raises(RecipeError, match=f"start: odd {words}"):
        loss.start(np.array([1.0, 2.0]), np.ones(2))


@pytest.mark.parametrize(
    ("arguments", "more", "words"),
    [
        ((3, asymmetric, asymmetric), {}, "value: must be a function of (y, f)"),
        ((asymmetric, lambda y: 0.0, asymmetric), {}, "gradient: must be a function of (y, f)"),
        ((asymmetric, asymmetric, lambda y, f, a: 0.0), {}, "hessian: must be a function of (y, f)"),
        ((asymmetric, asymmetric, asymmetric), {"inverse_link": 3}, "inverse_link: must be a function"),
        ((asymmetric, asymmetric, asymmetric), {"start": "mean"}, "start: must be a number, 'minimise' or a function"),
        ((asymmetric, asymmetric, asymmetric), {"start": math.nan}, "start: must be a number"),
    ],
)
def test_custom_losses_are_checked(arguments, more, words):
    with pytest.raises(RecipeError) as error:
        losses.custom(*arguments, **more)
    assert words in str(error.value)


def test_a_custom_loss_is_kept_by_name_only():
    stored = losses.to_json(make(name="mine"))
    assert stored == {"name": "custom", "function": "mine"}
    back = losses.from_json(stored)
    assert back == losses.SavedCustom("mine")
    assert losses.to_json(back) == stored
    np.testing.assert_array_equal(back.inverse_link(np.array([[1.0, 2.0]])), [1.0, 2.0])
    y = np.ones(2)
    for use in (
        lambda: back.check_target(y),
        lambda: back.start(y, y),
        lambda: back.value(1.0, 1.0, 0.0),
        lambda: back.derivatives(1.0, 1.0, 0.0),
    ):
        with pytest.raises(RecipeError, match="'mine' was read from a model file"):
            use()


def test_a_stranger_cannot_be_written_to_a_model_file():
    class Mine:
        name = "mine"

    with pytest.raises(InputError, match="cannot be written to a model file"):
        losses.to_json(Mine())


def test_numba_compiles_a_custom_loss():
    loss = make()
    for function in loss.functions:
        register_jitable(function)
    y, f = targets(SquaredError()), np.zeros(200)
    g, h = np.empty(200), np.empty(200)
    compiled_derivatives(loss)(y, f, 0.0, g, h)
    np.testing.assert_array_equal(g, [asymmetric_gradient(t, 0.0) for t in y])
    np.testing.assert_array_equal(h, [asymmetric_hessian(t, 0.0) for t in y])


@pytest.mark.parametrize("name", losses.NAMES)
def test_facts_agree_with_the_formulas(name):
    loss = losses.get(name, n_classes=3)
    assert metrics.default_metric(loss).name == loss.facts.default_metric
    scores = np.random.default_rng(5).normal(size=(loss.n_outputs, 50))
    predicted, scaled = loss.inverse_link(scores), loss.link_scale * scores
    if loss.facts.link == "identity":
        np.testing.assert_array_equal(predicted, scores[0])
    elif loss.facts.link == "logistic":
        np.testing.assert_allclose(predicted, elementary.expit_array(scaled[0]), rtol=1e-13)
    elif loss.facts.link == "log":
        np.testing.assert_array_equal(predicted, elementary.exp_array(scaled[0]))
    elif loss.facts.link == "softmax":
        np.testing.assert_allclose(predicted.T, np.exp(scaled) / np.exp(scaled).sum(axis=0))
    if loss.task == "binary":
        np.testing.assert_array_equal(predicted, elementary.expit_array(loss.log_odds(scores[0])))


@pytest.mark.parametrize("name", losses.NAMES)
def test_a_log_loss_is_minus_the_log_of_the_probability(name):
    loss = losses.get(name, n_classes=3)
    if loss.log_loss is None:
        return
    scores = np.random.default_rng(6).normal(size=(loss.n_outputs, 20))
    p = loss.inverse_link(scores)
    p = p if p.ndim == 2 else np.column_stack([1.0 - p, p])
    for row, y in enumerate(np.arange(20) % p.shape[1]):
        cost = value(loss.log_loss, float(y), scores[:, row] if loss.n_outputs > 1 else scores[0, row])
        assert cost == pytest.approx(-math.log(p[row, y]))


def test_a_loss_of_a_user_has_no_facts_to_rely_on():
    class Mine:
        name, task, n_outputs, parameter = "poisson", "regression", 1, 0.0

    assert facts_of(Mine()) is FOREIGN
    assert metrics.default_metric(Mine()).name == "loss"


def test_a_loss_needs_no_more_than_facts_and_formulas():
    @dataclass(frozen=True, slots=True)
    class LogCosh(losses.BaseLoss):
        name: ClassVar[str] = "log_cosh"
        facts: ClassVar[losses.LossFacts] = losses.LossFacts(task="regression", smoothness=1.0, lipschitz=1.0)

        @staticmethod
        def value(y, f, a):
            return elementary.log1pexp(2.0 * (f - y)) - (f - y) - 0.6931471805599453

        @staticmethod
        def derivatives(y, f, a):
            p = elementary.expit(2.0 * (f - y))
            return 2.0 * p - 1.0, 4.0 * p * (1.0 - p)

        def check_target(self, y):
            pass

        def start(self, y, weight):
            return np.array([lower_quantile(y, weight, 0.5)])

    loss = LogCosh()
    assert losses.get(loss) is loss
    assert (loss.parameter, loss.convex, loss.strong_convexity, loss.leaf_quantile) == (0.0, True, 0.0, None)
    with pytest.raises(TypeError, match="a loss of one output has value and derivatives"):
        loss.row_value(0.0, np.zeros(1), 0.0)
    x = np.random.default_rng(7).normal(size=(60, 2))
    model = GradientBoostingRegressor(loss=loss, n_estimators=5, max_depth=2, device="cpu").fit(x, x[:, 0])
    assert np.mean((model.predict(x) - x[:, 0]) ** 2) < np.var(x[:, 0])
