from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from gpuboost import losses, metrics
from gpuboost.errors import InputError
from gpuboost.losses import (
    AbsoluteError,
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

N = 500


def logistic_link(scores):
    return 1.0 / (1.0 + np.exp(-scores))


CUSTOM = losses.custom(lambda y, f: (y - f) ** 2, lambda y, f: 2 * (f - y), lambda y, f: 2.0, name="mine")
CUSTOM_BINARY = losses.custom(
    lambda y, f: 0.0, lambda y, f: 0.0, lambda y, f: 1.0, name="mine", inverse_link=logistic_link
)


def data(loss, seed=0):
    """y, scores that know something of y, and weights."""
    rng = np.random.default_rng(seed)
    weight = rng.gamma(2.0, 1.0, N)
    if loss.task == "multiclass":
        y = rng.integers(0, loss.n_classes, N)
        return y.astype(float), rng.normal(size=(loss.n_classes, N)) + np.eye(loss.n_classes)[y].T, weight
    if loss.task == "binary" or loss is CUSTOM_BINARY:
        y = (rng.random(N) < 0.4).astype(float)
        return y, np.round(rng.normal(size=(1, N)) + y, 1), weight  # rounded, so that there are ties
    y = rng.gamma(2.0, 2.0, N) if loss.name == "gamma" else rng.poisson(2.0, N).astype(float)
    scores = (0.3 * y + rng.normal(size=N))[None, :]
    return y, scores, weight


def pinball(alpha):
    return lambda y, p, sample_weight: sk.mean_pinball_loss(y, p, sample_weight=sample_weight, alpha=alpha)


def tweedie(power):
    return lambda y, p, sample_weight: sk.mean_tweedie_deviance(y, p, sample_weight=sample_weight, power=power)


def error(y, p, sample_weight):
    return 1.0 - sk.accuracy_score(y, p, sample_weight=sample_weight)


def huber(y, p, sample_weight):
    r = np.abs(y - p)
    return np.average(np.where(r <= 2.0, r * r / 2, 2.0 * (r - 1.0)), weights=sample_weight)


AGAINST_SKLEARN = [
    ("rmse", SquaredError(), sk.root_mean_squared_error),
    ("mse", SquaredError(), sk.mean_squared_error),
    ("mae", AbsoluteError(), sk.mean_absolute_error),
    ("r2", SquaredError(), sk.r2_score),
    ("r2", Poisson(), sk.r2_score),
    ("rmse", Tweedie(), sk.root_mean_squared_error),
    ("quantile", Quantile(0.9), pinball(0.9)),
    ("quantile:0.2", SquaredError(), pinball(0.2)),
    ("quantile:0.2", Poisson(), pinball(0.2)),
    ("huber", Huber(2.0), huber),
    ("huber:2", SquaredError(), huber),
    ("poisson_deviance", Poisson(), sk.mean_poisson_deviance),
    ("gamma_deviance", Gamma(), sk.mean_gamma_deviance),
    ("tweedie_deviance", Tweedie(1.3), tweedie(1.3)),
    ("tweedie_deviance:1.7", Poisson(), tweedie(1.7)),
    ("logloss", Logistic(), sk.log_loss),
    ("logloss", Logistic(ridge=0.5), sk.log_loss),
    ("logloss", Exponential(), sk.log_loss),
    ("logloss", LogitBoost(), sk.log_loss),
    ("logloss", CUSTOM_BINARY, sk.log_loss),
    ("auc", Logistic(), sk.roc_auc_score),
    ("auc", CUSTOM_BINARY, sk.roc_auc_score),
    ("mlogloss", Softmax(4), sk.log_loss),
    ("rmse", CUSTOM, sk.root_mean_squared_error),
]


@pytest.mark.parametrize(("name", "loss", "theirs"), AGAINST_SKLEARN)
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_scikit_learn(name, loss, theirs, weighted):
    y, scores, weight = data(loss)
    weight = weight if weighted else None
    expected = theirs(y, loss.inverse_link(scores), sample_weight=weight)
    assert metrics.get(name, loss)(y, scores, weight, loss) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), Exponential(), Softmax(4), CUSTOM_BINARY], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_accuracy_and_error(loss, weighted):
    y, scores, weight = data(loss)
    weight = weight if weighted else None
    p = loss.inverse_link(scores)
    expected = sk.accuracy_score(y, np.argmax(p, axis=1) if p.ndim == 2 else p > 0.5, sample_weight=weight)
    assert metrics.get("accuracy", loss)(y, scores, weight, loss) == pytest.approx(expected, rel=1e-14)
    assert metrics.get("error", loss)(y, scores, weight, loss) == pytest.approx(1.0 - expected, rel=1e-12)


@pytest.mark.parametrize(
    "loss", [SquaredError(), Huber(2.0), Tweedie(), Logistic(ridge=0.1), Softmax(4), CUSTOM], ids=repr
)
@pytest.mark.parametrize("weighted", [False, True])
def test_loss_is_the_mean_of_the_training_loss(loss, weighted):
    y, scores, weight = data(loss)
    a = loss.parameter
    if loss.n_outputs > 1:
        each = [loss.row_value(t, f, a) for t, f in zip(y, scores.T, strict=True)]
    else:
        each = [loss.value(t, f, a) for t, f in zip(y.tolist(), scores[0].tolist(), strict=True)]
    found = metrics.get("loss", loss)(y, scores, weight if weighted else None, loss)
    assert found == pytest.approx(np.average(each, weights=weight if weighted else None), rel=1e-13)


def names_for(loss):
    def fits(name):
        try:
            return bool(metrics.get(name, loss))
        except InputError:
            return False

    return [name for name in metrics.NAMES if fits(name)]


EVERY = [
    SquaredError(),
    Huber(),
    AbsoluteError(),
    Quantile(0.3),
    Poisson(),
    Gamma(),
    Tweedie(),
    Logistic(),
    Logistic(ridge=0.5),
    Exponential(),
    Softmax(3),
]


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_where_mean_of_is_given_it_is_the_same_number(loss):
    y, scores, weight = data(loss)
    checked = 0
    for name in names_for(loss):
        metric = metrics.get(name, loss)
        if metric.mean_of is None:
            continue
        mean = metrics.get("loss", metric.mean_of)(y, scores, weight, metric.mean_of)
        assert metric.finish(mean) == pytest.approx(metric(y, scores, weight, loss), rel=1e-12)
        checked += 1
    assert checked >= 1


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_the_order_of_rows_does_not_matter_and_weights_are_repetitions(loss):
    y, scores, _ = data(loss)
    if loss.name == "squared_error":
        y = (y > 2.0).astype(float)  # so that auc fits, too
    elif loss.task == "regression":
        y = y + 1.0  # so that gamma_deviance fits, too
    weight = np.random.default_rng(1).integers(1, 5, N)
    order = np.random.default_rng(2).permutation(N)
    repeated = np.repeat(np.arange(N), weight)
    for name in names_for(loss):
        if name in ("auc", "average_precision") and not np.isin(y, (0.0, 1.0)).all():
            continue
        metric = metrics.get(name, loss)
        found = metric(y, scores, weight.astype(float), loss)
        assert found == metric(y[order], scores[:, order], weight[order].astype(float), loss), name
        assert found == metric(y[repeated], scores[:, repeated], None, loss), name


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(1, 3)), min_size=2, max_size=25))
def test_auc_counts_pairs(rows):
    y, score, weight = (np.array(column, float) for column in zip(*rows, strict=True))
    if y.min() == y.max():
        return
    won = all_pairs = 0.0
    for i in np.flatnonzero(y == 1.0):
        for j in np.flatnonzero(y == 0.0):
            pair = weight[i] * weight[j]
            won += pair * (1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0)
            all_pairs += pair
    loss = Logistic()
    assert metrics.get("auc", loss)(y, score[None, :], weight, loss) == pytest.approx(won / all_pairs, rel=1e-14)


def test_auc_of_a_regression_needs_labels():
    loss = SquaredError()
    metric = metrics.get("auc", loss)
    assert metric(np.array([0.0, 1.0]), np.array([[0.1, 0.7]]), None, loss) == 1.0
    with pytest.raises(InputError, match=r"auc needs labels 0 and 1.*row 1 holds 0.5"):
        metric(np.array([0.0, 0.5]), np.array([[0.1, 0.7]]), None, loss)
    with pytest.raises(InputError, match=r"auc needs rows of both classes; all hold 1\.0"):
        metric(np.array([1.0, 1.0]), np.array([[0.1, 0.7]]), None, loss)


def test_extreme_scores_give_numbers():
    y, scores = np.array([0.0, 1.0, 1.0]), np.array([[800.0, -800.0, 1e5]])
    loss = Logistic()
    assert metrics.get("logloss", loss)(y, scores, None, loss) == pytest.approx(1600.0 / 3.0)
    assert metrics.get("logloss", CUSTOM_BINARY)(y, np.array([[40.0, -40.0, 1.0]]), None, CUSTOM_BINARY) > 20.0
    loss = Softmax(3)
    wide = np.array([[1e5, -1e5, 0.0], [0.0, 0.0, 1.0], [0.0, 1e5, 0.0]])
    assert metrics.get("mlogloss", loss)(np.array([0.0, 0.0, 1.0]), wide, None, loss) > 6e4


def test_r2_of_a_constant_target_is_1_or_0():
    loss = SquaredError()
    assert metrics.get("r2", loss)(np.ones(3), np.zeros((1, 3)), None, loss) == 0.0  # as scikit-learn's r2_score
    assert metrics.get("r2", loss)(np.ones(3), np.ones((1, 3)), None, loss) == 1.0


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (SquaredError(), "rmse"),
        (Huber(2.0), "huber"),
        (AbsoluteError(), "mae"),
        (Quantile(0.9), "quantile"),
        (Poisson(), "poisson_deviance"),
        (Gamma(), "gamma_deviance"),
        (Tweedie(), "tweedie_deviance"),
        (Logistic(), "logloss"),
        (Exponential(), "logloss"),
        (LogitBoost(), "logloss"),
        (Softmax(3), "mlogloss"),
        (CUSTOM, "loss"),
        (losses.custom(*CUSTOM.functions, name="huber"), "loss"),
    ],
)
def test_default_metric(loss, name):
    assert metrics.default_metric(loss).name == name


LOWER = {
    *("error", "logloss", "mlogloss", "loss", "brier", "rmse", "mse", "mae", "mape", "smape", "rmsle"),
    *("quantile", "expectile", "huber"),
    *("poisson_deviance", "gamma_deviance", "tweedie_deviance"),
}


OF_OTHER_LOSSES = {*metrics.RANKINGS, "top_k_accuracy", "interval_width", "coverage"}  # than those of ``EVERY``


def test_direction():
    better_if_higher = {
        name
        for name in metrics.NAMES
        for loss in EVERY
        if name in names_for(loss) and metrics.get(name, loss).higher_is_better
    }
    assert better_if_higher == set(metrics.NAMES) - LOWER - OF_OTHER_LOSSES, (
        "metrics of which less is better are listed in LOWER"
    )


@pytest.mark.parametrize(
    ("name", "loss", "words"),
    [
        ("aucc", Logistic(), ["unknown name 'aucc'", "Did you mean 'auc'?", "logloss"]),
        ("multi_logloss", Softmax(3), ["Did you mean 'mlogloss'?"]),
        ("logloss", Softmax(3), ["'logloss' does not fit loss 'softmax'", "use 'mlogloss'"]),
        ("logloss", SquaredError(), ["'logloss' does not fit loss 'squared_error'", "binary"]),
        ("mlogloss", Logistic(), ["judges multiclass targets", "binary"]),
        ("rmse", Logistic(), ["'rmse' does not fit loss 'logistic'", "judges regression targets"]),
        ("auc", Softmax(3), ["judges binary and regression targets"]),
        ("poisson_deviance", SquaredError(), ["needs positive predictions", "poisson, gamma, tweedie"]),
        ("tweedie_deviance:1.5", Huber(), ["needs positive predictions"]),
        ("quantile", SquaredError(), ["has no parameter with loss 'squared_error'", "'quantile:0.9'"]),
        ("tweedie_deviance", Poisson(), ["has no parameter with loss 'poisson'", "'tweedie_deviance:1.5'"]),
        ("quantile:2", SquaredError(), ["in quantile:2", "alpha: Quantile needs a number between 0 and 1"]),
        ("quantile:x", SquaredError(), ["in quantile:x"]),
        ("rmse:2", SquaredError(), ["'rmse' takes no parameter; got 'rmse:2'"]),
        ("logloss", CUSTOM, ["'logloss' does not fit loss 'mine'", "inverse_link"]),
        ("mlogloss", CUSTOM, ["a custom loss has one output"]),
        (3, Logistic(), ["a name or a function is needed; got 3"]),
        (dict, Logistic(), ["a name or a function is needed"]),
        (lambda y: 0.0, Logistic(), ["a function of (y_true, prediction, sample_weight) is needed"]),
        (lambda y, p, w, z: 0.0, Logistic(), ["a function of (y_true, prediction, sample_weight) is needed"]),
    ],
)
def test_metrics_that_do_not_fit_are_refused(name, loss, words):
    with pytest.raises(InputError) as error:
        metrics.get(name, loss)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("name", "loss", "y", "words"),
    [
        ("gamma_deviance", Poisson(), [1.0, 0.0], "gamma_deviance needs positive numbers; row 1 holds 0.0"),
        ("poisson_deviance", Poisson(), [1.0, -1.0], "poisson_deviance needs numbers that are not negative; row 1"),
        ("tweedie_deviance", Tweedie(), [-1.0, 1.0], "tweedie_deviance needs numbers that are not negative; row 0"),
        ("logloss", Logistic(), [0.0, 2.0], "logloss needs labels 0 and 1; row 1 holds 2.0"),
        ("logloss", CUSTOM_BINARY, [0.0, 2.0], "logloss needs labels 0 and 1; row 1 holds 2.0"),
        ("poisson_deviance", CUSTOM, [1.0, 2.0], "inverse_link of mine: poisson_deviance needs positive predictions"),
        (
            "logloss",
            losses.custom(*CUSTOM.functions, name="mine", inverse_link=np.exp),
            [0.0, 1.0],
            "inverse_link of mine: probabilities lie between 0 and 1; row 1 holds 2.7",
        ),
    ],
)
def test_targets_outside_the_domain_are_refused(name, loss, y, words):
    with pytest.raises(InputError) as error:
        metrics.get(name, loss)(np.array(y), np.array([[-1.0, 1.0]]), None, loss)
    assert words in str(error.value)


# a user's function


def mean_prediction(y_true, prediction, sample_weight):
    return np.average(prediction, weights=sample_weight)


def third(y_true, prediction, w):
    return 1.0 if w is None else float(w.sum())


def two(y_true, prediction):
    return float(np.sum(y_true * prediction))


def test_functions_see_predictions_and_weights():
    y, scores, weight = np.array([0.0, 1.0]), np.array([[0.0, 2.0]]), np.array([1.0, 3.0])
    loss = Logistic()
    p = loss.inverse_link(scores)
    metric = metrics.get(mean_prediction, loss)
    assert metric.name == "mean_prediction"
    assert not metric.higher_is_better
    assert metric(y, scores, weight, loss) == pytest.approx((p * weight).sum() / 4.0)
    assert metric(y, scores, None, loss) == pytest.approx(p.mean())
    assert metrics.get(third, loss)(y, scores, weight, loss) == 4.0
    assert metrics.get(third, loss)(y, scores, None, loss) == 1.0
    assert metrics.get(two, loss)(y, scores, weight, loss) == p[1]
    seen = []
    metrics.get(lambda y, p: seen.append(p.shape) or 0.0, Softmax(3))(y, np.zeros((3, 2)), None, Softmax(3))
    assert seen == [(2, 3)]


def test_direction_of_functions():
    loss = Logistic()
    assert metrics.get(sk.roc_auc_score, loss).higher_is_better
    assert not metrics.get(sk.log_loss, loss).higher_is_better
    assert metrics.get(sk.brier_score_loss, loss).name == "brier_score_loss"

    def mine(y, p):
        return 0.0

    assert not metrics.get(mine, loss).higher_is_better
    mine.higher_is_better = True
    assert metrics.get(mine, loss).higher_is_better
    assert metrics.get(lambda y, p: 0.0, loss).name == "lambda"


def test_scikit_learns_functions_can_be_used():
    y, scores, weight = data(Logistic())
    for theirs, ours in ((sk.roc_auc_score, "auc"), (sk.log_loss, "logloss")):
        one, two = metrics.get(theirs, Logistic()), metrics.get(ours, Logistic())
        assert one(y, scores, weight, Logistic()) == pytest.approx(two(y, scores, weight, Logistic()), rel=1e-12)


def test_a_function_that_returns_no_number_is_named():
    metric = metrics.get(lambda y, p: "good", Logistic())
    with pytest.raises(InputError, match="must return a number; it returned 'good'"):
        metric(np.zeros(1), np.zeros((1, 1)), None, Logistic())


@pytest.mark.parametrize("result", [None, "0.5", np.ones(3), ("mine", 1.0, True), 1j])
@pytest.mark.parametrize("several", [False, True])
def test_a_metric_made_by_hand_that_returns_no_number_is_named(result, several):
    loss = losses.per_output.PerOutput(SquaredError(), 2) if several else SquaredError()
    metric = metrics.get(metrics.Metric("mine", False, lambda y, scores, weight, loss: result), loss)
    y = np.zeros((1, 2)) if several else np.zeros(1)
    with pytest.raises(InputError, match="eval_metric: 'mine' must return a number; it returned"):
        metric(y, np.zeros((1 + several, 1)), None, loss)


def test_numbers_of_metrics_are_floats():
    for result in (np.float32(0.5), np.array(0.5)):
        value = metrics.Metric("mine", False, lambda *rest, result=result: result)(
            np.zeros(1), np.zeros((1, 1)), None, SquaredError()
        )
        assert type(value) is float
        assert value == 0.5


@pytest.mark.parametrize(
    ("name", "higher", "function", "wrong"),
    [(None, False, max, "name"), ("mine", None, max, "higher_is_better"), ("mine", False, None, "function")],
)
def test_parts_of_a_metric_are_checked(name, higher, function, wrong):
    with pytest.raises(InputError, match=f"^{wrong}: .*; got None"):
        metrics.Metric(name, higher, function)


@pytest.mark.parametrize("name", ["logloss", "accuracy", mean_prediction])
def test_metrics_can_be_pickled_and_passed_on(name):
    loss = Logistic()
    metric = metrics.get(name, loss)
    y, scores, weight = data(loss)
    again = pickle.loads(pickle.dumps(metric))
    assert again(y, scores, weight, loss) == metric(y, scores, weight, loss)
    assert metrics.get(metric, loss) is metric
    assert repr(metric) == f"Metric(name={metric.name!r}, higher_is_better={metric.higher_is_better})"
