"""Metrics of classes, shares and logarithms against scikit-learn's; of places in rankings by their definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

import gpuboost as gb
from gpuboost import metrics
from gpuboost.errors import InputError
from gpuboost.losses import LambdaMART, Logistic, Poisson, Softmax, SquaredError

N = 300


def rows(loss, seed=0):
    """y, scores with ties, and weights."""
    rng = np.random.default_rng(seed)
    weight = rng.gamma(2.0, 1.0, N)
    if loss.task == "multiclass":
        y = rng.integers(0, loss.n_classes, N)
        return y.astype(float), np.round(rng.normal(size=(loss.n_classes, N)) + np.eye(loss.n_classes)[y].T, 1), weight
    if loss.task == "binary":
        y = (rng.random(N) < 0.3).astype(float)
        return y, np.round(rng.normal(size=(1, N)) + y - 0.5, 1), weight
    y = rng.poisson(2.0, N).astype(float)
    return y, (0.3 * y + rng.uniform(size=N))[None, :], weight


def by_class(function, **more):
    def judge(y, p, sample_weight):
        return function(y, p.argmax(axis=1) if p.ndim == 2 else p > 0.5, sample_weight=sample_weight, **more)

    return judge


def of_class_probabilities(function, **more):
    return lambda y, p, sample_weight: function(y, p, sample_weight=sample_weight, **more)


def weighted_areas(y, p, sample_weight):
    return sk.roc_auc_score(y, p, multi_class="ovr", average="weighted", sample_weight=sample_weight)


def smape(y, p, sample_weight):
    return np.average(2.0 * np.abs(p - y) / (np.abs(p) + np.abs(y)), weights=sample_weight)


def several_brier(y, p, sample_weight):
    return np.average(np.sum((p - np.eye(p.shape[1])[y.astype(int)]) ** 2, axis=1), weights=sample_weight)


AGAINST_SKLEARN = [
    ("average_precision", Logistic(), sk.average_precision_score),
    ("f1", Logistic(), by_class(sk.f1_score)),
    ("f1_macro", Logistic(), by_class(sk.f1_score, average="macro")),
    ("f1_macro", Softmax(4), by_class(sk.f1_score, average="macro")),
    ("balanced_accuracy", Logistic(), by_class(sk.balanced_accuracy_score)),
    ("balanced_accuracy", Softmax(4), by_class(sk.balanced_accuracy_score)),
    ("mcc", Logistic(), by_class(sk.matthews_corrcoef)),
    ("mcc", Softmax(4), by_class(sk.matthews_corrcoef)),
    ("brier", Logistic(), sk.brier_score_loss),
    ("brier", Softmax(4), several_brier),
    ("auc_ovr_weighted", Softmax(4), weighted_areas),
    ("top_k_accuracy@2", Softmax(4), of_class_probabilities(sk.top_k_accuracy_score, k=2)),
    ("top_k_accuracy@3", Softmax(4), of_class_probabilities(sk.top_k_accuracy_score, k=3)),
    ("mape", SquaredError(), sk.mean_absolute_percentage_error),
    ("mape", Poisson(), sk.mean_absolute_percentage_error),
    ("smape", SquaredError(), smape),
    ("rmsle", SquaredError(), sk.root_mean_squared_log_error),
    ("rmsle", Poisson(), sk.root_mean_squared_log_error),
]


@pytest.mark.parametrize(
    ("name", "loss", "theirs"), AGAINST_SKLEARN, ids=lambda value: value if isinstance(value, str) else ""
)
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_scikit_learn(name, loss, theirs, weighted):
    y, scores, weight = rows(loss)
    weight = weight if weighted else None
    expected = theirs(y, loss.inverse_link(scores), sample_weight=weight)
    assert metrics.get(name, loss)(y, scores, weight, loss) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_auc_ovr_is_the_mean_of_the_areas_of_each_class(weighted):
    loss = Softmax(4)
    y, scores, weight = rows(loss)
    weight, p = weight if weighted else None, loss.inverse_link(scores)
    expected = np.mean([sk.roc_auc_score(y == c, p[:, c], sample_weight=weight) for c in range(4)])
    assert metrics.get("auc_ovr", loss)(y, scores, weight, loss) == pytest.approx(expected, rel=1e-12)


def test_values_do_not_depend_on_the_order_of_rows():
    order = np.random.default_rng(1).permutation(N)
    for name, loss, _ in AGAINST_SKLEARN:
        y, scores, weight = rows(loss)
        metric = metrics.get(name, loss)
        assert metric(y[order], scores[:, order], weight[order], loss) == metric(y, scores, weight, loss), name


def test_edge_cases():
    y, nothing = np.array([0.0, 0.0]), np.array([[-1.0, -2.0]])
    loss = Logistic()
    assert metrics.get("f1", loss)(y, nothing, None, loss) == 0.0
    assert metrics.get("mcc", loss)(y, nothing, None, loss) == 0.0
    assert metrics.get("balanced_accuracy", loss)(y, nothing, None, loss) == 1.0
    square = SquaredError()
    assert metrics.get("smape", square)(np.zeros(2), np.zeros((1, 2)), None, square) == 0.0
    assert np.isfinite(metrics.get("rmsle", square)(np.zeros(2), np.full((1, 2), -3.0), None, square))
    with pytest.raises(InputError, match="rows of class 1"):
        metrics.get("average_precision", loss)(y, nothing, None, loss)
    with pytest.raises(InputError, match="rmsle needs numbers that are not negative"):
        metrics.get("rmsle", square)(np.array([-0.5]), np.zeros((1, 1)), None, square)
    several = Softmax(3)
    with pytest.raises(InputError, match="class 2 has none"):
        metrics.get("auc_ovr", several)(np.array([0.0, 1.0]), np.zeros((3, 2)), None, several)


@pytest.mark.parametrize("text", ["top_k_accuracy", "top_k_accuracy@", "top_k_accuracy@0", "top_k_accuracy@a"])
def test_top_k_needs_its_number(text):
    with pytest.raises(InputError, match="top_k_accuracy needs a number of classes"):
        metrics.get(text, Softmax(3))


@pytest.mark.parametrize(
    ("theirs", "ours"), [("aucpr", "average_precision"), ("matthews_corrcoef", "mcc"), ("roc_auc_ovr", "auc_ovr")]
)
def test_names_of_other_libraries_lead_to_ours(theirs, ours):
    with pytest.raises(InputError, match=f"Did you mean '{ours}'"):
        metrics.get(theirs, Logistic())


def test_precision_and_recall_of_the_first_places():
    loss = LambdaMART()
    y = np.array([1.0, 0.0, 2.0, 0.0, 0.0, 1.0])
    scores, start = np.array([[3.0, 2.0, 1.0, 1.0, 0.0, 5.0]]), np.array([0, 3, 5, 6])

    def value(name):
        return metrics.get(name, loss)(y, scores, None, loss, start)

    assert value("precision@2:skip") == pytest.approx((1 / 2 + 1 / 2) / 2)  # of a list of one document, too, over 2
    assert value("recall@2:skip") == pytest.approx((1 / 2 + 1.0) / 2)
    assert value("precision:0") == pytest.approx((2 / 3 + 0.0 + 1.0) / 3)
    assert value("recall@2") == pytest.approx((1 / 2 + 1.0 + 1.0) / 3)
    assert metrics.precision(2, empty=None)(y, scores, None, loss, start) == value("precision@2:skip")
    assert metrics.recall(2)(y, scores, None, loss, start) == value("recall@2")


def test_a_fit_stops_early_by_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + rng.normal(size=200) > 1.0).astype(int)
    model = gb.GradientBoostingClassifier(
        n_estimators=60, early_stopping_rounds=5, validation_fraction=0.3, eval_metric="average_precision"
    ).fit(X, y)
    history = model.evals_result_["validation_0"]["average_precision"]
    assert model.n_iter_ == 1 + int(np.argmax(history)) < 60
