"""Metrics of scores on a device have the bits of those on the host, and copy no scores."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu
from sklearn import metrics as sk
from support.builders import random_case
from support.examples import daily
from support.training import device

import gpuboost as gb
from gpuboost import losses, metrics
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device import radix_sort
from gpuboost.backends.reference.backend import Reference
from gpuboost.errors import InputError
from gpuboost.losses.averages import exact_sum
from gpuboost.losses.per_output import PerOutput
from gpuboost.scoring import curves
from gpuboost.training import train
from gpuboost.training.measures import measure
from gpuboost.types import TrainingSet

Array = np.ndarray
WEIGHTS = ("none", "ones", "whole", "real", "uneven")
BINARY, THREE = losses.Logistic(), losses.Softmax(3)


@cache
def cuda() -> Cuda:
    return Cuda(device())


def weights_of(kind: str, n: int, rng: np.random.Generator) -> Array | None:
    drawn = {"ones": np.ones(n), "whole": rng.integers(1, 6, n) * 1.0, "real": rng.gamma(1.0, size=n)}
    drawn["uneven"] = np.exp(rng.normal(scale=9.0, size=n))  # of very different sizes
    return drawn.get(kind)


def scores_of(k: int, n: int, rng: np.random.Generator) -> Array:
    """Scores of which many are equal, zeros of both signs among them."""
    scores = np.round(rng.normal(size=(k, n)), 1)
    scores[:, rng.random(n) < 0.1] *= -0.0
    return np.where(rng.random((k, n)) < 0.3, rng.normal(size=(k, n)) * 1e-3, scores)


def rows(y: Array, weight: Array | None, start: Array | None = None) -> TrainingSet:
    return replace(random_case(1, len(y), 1).data, y=y, weight=weight, query_start=start)


def values(name: Any, loss: Any, data: TrainingSet, scores: Array) -> tuple[float, float]:
    """The metric on the device, by its second and later calls, and on the host."""
    metric = metrics.get(name, loss)
    on_device = measure(metric, loss, cuda())
    there = device().upload(np.zeros_like(scores))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cuda(), "to_host", lambda _: pytest.fail("the scores were copied to the host"))
        of_zeros = on_device.of(there, data)
        device().copy(there, device().upload(scores))
        found = on_device.of(there, data)
        assert on_device.of(there, data) == found
    assert of_zeros == value_on_host(metric, loss, data, np.zeros_like(scores))
    return found, metric(data.y, scores, data.weight, loss, data.query_start)


@pytest.mark.parametrize(
    ("n", "weight"), [(2, "none"), (255, "real"), (300, "uneven"), (4_099, "whole"), (4_099, "ones"), (9_000, "real")]
)
def test_areas_of_two_classes(n: int, weight: str) -> None:
    rng = np.random.default_rng(n)
    y = np.append([0.0, 1.0], (rng.random(n - 2) < 0.3) * 1.0)
    scores = scores_of(1, n, rng) + 0.4 * y
    data = rows(y, weights_of(weight, n, rng))
    for name, theirs in (("auc", sk.roc_auc_score), ("average_precision", sk.average_precision_score)):
        found, expected = values(name, BINARY, data, scores)
        assert found == expected, name
        assert found == pytest.approx(theirs(y, scores[0], sample_weight=data.weight), rel=1e-12)


def test_areas_of_so_many_rows_that_a_block_adds_up_a_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(radix_sort, "FEW_CHUNKS", 0)
    rng = np.random.default_rng(9)
    data = rows((rng.random(300) < 0.4) * 1.0, None)
    found, expected = values("auc", BINARY, data, scores_of(1, 300, rng))
    assert found == expected


CONFUSED = ("f1_macro", "balanced_accuracy", "mcc")


@pytest.mark.parametrize("weight", WEIGHTS)
def test_shares_of_rows_of_the_right_class(weight: str) -> None:
    rng = np.random.default_rng(3)
    of_two, of_three = ("accuracy", "error", "f1", *CONFUSED), ("accuracy", "error", "top_k_accuracy@2", *CONFUSED)
    for loss, k, names in ((BINARY, 1, of_two), (THREE, 3, of_three)):
        n = 700
        data = rows(rng.integers(0, max(k, 2), n) * 1.0, weights_of(weight, n, rng))
        scores = scores_of(k, n, rng)
        for name in names:
            found, expected = values(name, loss, data, scores)
            assert found == expected, name
            assert -1.0 < found < 1.0
            assert found != 0.0


@pytest.mark.parametrize("k", [2, 5])
def test_classes_that_do_not_occur(k: int) -> None:
    """Classes of no row, of no prediction and of no weight."""
    rng, n, loss = np.random.default_rng(6), 260, losses.Softmax(k)
    scores, y = rng.normal(size=(k, n)).round(1), np.minimum(rng.integers(0, k, n), k // 2) * 1.0
    scores[k - 1] = -9.0
    for name in CONFUSED:
        for weight in (None, np.zeros(n), np.where(y > 0.0, 0.0, 0.3)):
            if name == "balanced_accuracy" and weight is not None and not weight.any():
                continue  # which no fit asks for: rows of weight 0 are left out
            found, expected = values(name, loss, rows(y, weight), scores)
            assert found == expected, name


OF_TERMS = (
    (
        losses.Poisson(),
        ("rmse", "mse", "mae", "r2", "mape", "smape", "rmsle", "poisson_deviance", "tweedie_deviance:1.3"),
    ),
    (losses.Gamma(), ("gamma_deviance", "quantile:0.7", "expectile:0.3", "huber:1.5")),
    (losses.SquaredError(), ("r2", "mape", "smape", "rmsle")),
    (losses.GaussianNLL(), ("r2", "mape")),
    (losses.Quantiles((0.1, 0.5, 0.9)), ("coverage", "interval_width")),
    *((loss, ("brier",)) for loss in (BINARY, losses.Exponential(), losses.LogitBoost(), THREE)),
)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_means_of_terms(weight: str) -> None:
    rng, n = np.random.default_rng(1), 300
    for loss, names in OF_TERMS:
        classes = loss.n_outputs if loss.task == "multiclass" else 2
        y = rng.gamma(1.0, size=n) if loss.task == "regression" else rng.integers(0, classes, n) * 1.0
        y = np.where(rng.random(n) < 0.1, 0.0, y) if isinstance(loss, losses.Poisson) else y
        data, scores = rows(y, weights_of(weight, n, rng)), scores_of(loss.n_outputs, n, rng)
        for name in names:
            found, expected = values(name, loss, data, scores)
            assert found == expected, (loss, name)
            assert np.isfinite(found)


def test_means_of_no_number_and_of_constant_targets() -> None:
    n, square, poisson = 40, losses.SquaredError(), losses.Poisson()
    data, scores = rows(np.ones(n), np.linspace(0.5, 2.0, n)), np.ones((1, n))
    assert values("r2", square, data, scores) == (1.0, 1.0)
    assert values("r2", square, data, 2.0 * scores) == (0.0, 0.0)
    far = np.where(np.arange(n) == 7, 800.0, scores)
    with np.errstate(over="ignore"):
        assert values("mse", poisson, data, far) == (np.inf, np.inf)
    mape, nothing = metrics.get("mape", square), np.where(far > 9.0, np.nan, far)
    assert np.isnan(value_on_host(mape, square, data, nothing))
    assert np.isnan(measure(mape, square, cuda()).of(device().upload(nothing), data))
    with pytest.raises(InputError, match="gamma_deviance needs positive numbers"):
        measure(metrics.get("gamma_deviance", poisson), poisson, cuda()).of(
            device().upload(scores), rows(0 * data.y, None)
        )


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (losses.Poisson(), "poisson_deviance"),
        (losses.Gamma(), "gamma_deviance"),
        (losses.Tweedie(1.3), "tweedie_deviance"),
    ],
)
def test_a_deviance_of_far_scores_is_a_number(loss: Any, name: str) -> None:
    """The exponential of such a score is 0, and a prediction is not."""
    data, scores = rows(np.array([1.0, 5.0, 2.0]), None), np.array([[-800.0, 0.5, -1e30]])
    found, expected = values(name, loss, data, scores)
    assert found == expected
    assert np.isfinite(found)
    assert found > 100.0


def value_on_host(metric: Any, loss: Any, data: TrainingSet, scores: Array) -> float:
    return measure(metric, loss, Reference()).of(scores, data)


@pytest.mark.parametrize("weight", daily(["real", "none", "whole"], 1))
def test_several_targets(weight: str) -> None:
    """The mean over the columns of y, each computed where the scores are; of a loss's mean as of one target."""
    rng, n, k = np.random.default_rng(4), 300, 3
    labels = (rng.random((n, k)) < 0.4) * 1.0
    for loss, y, names in (
        (PerOutput(BINARY, k), labels, ("error", "auc", "average_precision", "mcc", "f1", "logloss")),
        (PerOutput(losses.SquaredError(), k), rng.normal(size=(n, k)), ("rmse", "mae")),
    ):
        data, scores = rows(y, weights_of(weight, n, rng)), scores_of(k, n, rng)
        for name in names:
            found, expected = values(name, loss, data, scores)
            one = [values(name, loss.loss, rows(y[:, c], data.weight), scores[c : c + 1])[0] for c in range(k)]
            assert found == value_on_host(metrics.get(name, loss), loss, data, scores) == exact_sum(one) / k, name
            assert found == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("weight", ["none", "whole", "uneven"])
def test_areas_of_several_classes(weight: str) -> None:
    """Equal probabilities are those of equal scores, and of scores so far below the largest that they round to 0."""
    rng, n = np.random.default_rng(2), 500
    data = rows(rng.integers(0, 3, n) * 1.0, weights_of(weight, n, rng))
    scores = scores_of(3, n, rng) * np.where(rng.random(n) < 0.2, 900.0, 1.0)
    for name in ("auc_ovr", "auc_ovr_weighted"):
        found, expected = values(name, THREE, data, scores)
        assert found == expected
        assert 0.0 < found < 1.0
    with pytest.raises(InputError, match="auc_ovr needs rows of every class; class 2 has none"):
        measure(metrics.get("auc_ovr", THREE), THREE, cuda()).of(device().upload(scores), rows(data.y % 2, None))


RANKINGS = ("ndcg", "ndcg@5", "map", "map@3:0", "mrr@2:skip", "precision@4", "precision", "recall@4:skip")


@pytest.mark.parametrize("weighted", [False, True])
def test_rankings(weighted: bool) -> None:
    rng = np.random.default_rng(5)
    lengths = np.array([1, 0, 300, 31, 32, 33, 7, 0, 64, 2])  # longer than a run of the sort, and none at all
    start, n = np.append(0, np.cumsum(lengths)), int(lengths.sum())
    y = rng.integers(0, 4, n) * (rng.random(n) < 0.3) * 1.0
    y[start[3] : start[4]] = 0.0  # a list without relevant documents
    weight = np.repeat(rng.gamma(1.0, size=len(lengths)), lengths)
    weight = np.append(weight, 1.0)[:n] if weighted else None
    data, scores = rows(y, weight, start), scores_of(1, n, rng)
    for loss in (losses.LambdaMART(), losses.LambdaMART(gain=(0.0, 1.0, 2.5, 6.0))):
        for name in RANKINGS if loss.gain is None else ("ndcg@5",):
            found, expected = values(name, loss, data, scores)
            assert found == expected, name
            assert 0.0 < found < 1.0


def fitted(name: str, **given: Any) -> gb.GradientBoostingClassifier:
    """A fit that stops early by one of three metrics of two eval sets."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(150, 3))
    y = (x[:, 0] + 1.0 * rng.normal(size=150) > 0.0) * 1
    model = gb.GradientBoostingClassifier(
        device=name, n_estimators=30, max_depth=2, learning_rate=0.2, random_state=0,
        eval_metric=["auc", "average_precision", "error", "logloss"], **given,
    )  # fmt: skip
    return model.fit(x[:90], y[:90], eval_set=[(x[:90], y[:90], np.linspace(0.5, 2.0, 90)), (x[90:], y[90:])])


def facts(model: gb.GradientBoostingClassifier) -> tuple[Any, ...]:
    report = model.fit_report_
    rounds = report.rounds, report.rounds_kept, report.rounds_without_split
    return gb.dumps(model), model.evals_result_, model.best_iteration_, model.best_score_, rounds


@pytest.mark.parametrize("together", daily([3, 1, 8], 1))
def test_a_fit_that_is_shown_several_rounds_at_a_time_is_the_hosts(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "SHOWN_TOGETHER", together)
    host = fitted("cpu", early_stopping_rounds=4)
    rounds = host.fit_report_.rounds
    assert 5 < rounds < 22
    assert rounds % 8
    with emulated_gpu() as cp:
        assert facts(fitted("cuda", early_stopping_rounds=4)) == facts(host)
    assert cp.counts["kernel sum_hits"] == 2 * 3  # of two sets: twice one by one, once into the round's graph
    assert cp.counts["kernel sum_terms"] == 2 * 6
    done = -(-rounds // together) * together  # rounds, some of them after the stop
    assert cp.counts["graph"] == done - 2  # trees, scores of eval sets, and metrics in one


@pytest.mark.slow
@pytest.mark.parametrize("of", ["classes", "labels", "targets"])
def test_fits_that_stop_by_metrics_of_several_scores_are_the_hosts(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(150, 3))
    y = x[:, :2] + 0.8 * rng.normal(size=(150, 2))
    y = {"classes": np.digitize(y[:, 0], [-0.5, 0.5]), "labels": (y > 0.3) * 1, "targets": y}[of]
    kind = gb.GradientBoostingRegressor if of == "targets" else gb.GradientBoostingClassifier
    metric = {"classes": ["mcc", "auc_ovr_weighted", "balanced_accuracy"], "labels": ["f1", "auc"]}.get(of)

    def stopped(name: str) -> Any:
        model = kind(device=name, n_estimators=40, max_depth=2, eval_metric=metric, early_stopping_rounds=3)
        return model.fit(x[:90], y[:90], eval_set=[(x[90:], y[90:], np.linspace(0.5, 2.0, 60)), (x[90:], y[90:])])

    host = stopped("cpu")
    assert 3 < host.fit_report_.rounds < 40
    monkeypatch.setattr(Cuda, "to_host", lambda *_: pytest.fail("the scores were copied to the host"))
    with emulated_gpu():
        assert facts(stopped("cuda")) == facts(host)


def test_a_callback_of_a_users_own_sees_each_round_when_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look(record: gb.callbacks.Round) -> bool:
        seen.append(record.n_rounds)
        assert record.ensemble.n_rounds == record.n_rounds
        return record.n_rounds == 3

    with emulated_gpu() as cp:
        model = fitted("cuda", callbacks=[look])
    assert seen == [1, 2, 3]
    assert len(model.evals_result_["validation_0"]["auc"]) == 3
    assert model.fit_report_.rounds == 3
    assert cp.counts["graph"] == 1


def test_what_a_metric_refuses_is_refused_before_a_launch() -> None:
    n = 20
    scores = device().upload(np.zeros((1, n)))
    for y, name, words in (
        (np.zeros(n), "auc", "needs rows of both classes"),
        (np.zeros(n), "average_precision", "needs rows of class 1"),
        (np.arange(n) * 1.0, "auc", "needs labels 0 and 1"),
    ):
        with pytest.raises(InputError, match=words):
            measure(metrics.get(name, losses.SquaredError()), losses.SquaredError(), cuda()).of(scores, rows(y, None))


def test_units_of_weights_sum_to_less_than_two_to_the_61() -> None:
    rng = np.random.default_rng(8)
    for kind in WEIGHTS[1:]:
        for scale in (1.0, 1e-300, 1e250):
            weight = weights_of(kind, 500, rng) * scale
            units = curves.weight_units(weight, 500)
            assert 2**59 < int(units.sum()) <= 2**61
            np.testing.assert_allclose(units / units.sum(), weight / np.sum(weight / scale) / scale, rtol=0, atol=2e-16)
    assert curves.weight_units(None, 3).tolist() == [1, 1, 1]
    assert curves.weight_units(np.zeros(2), 2).tolist() == [0, 0]
