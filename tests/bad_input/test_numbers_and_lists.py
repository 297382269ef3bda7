"""Integers beyond every float, ragged lists and arrays for words: refused by an error that names the argument."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb

HUGE = 10**400
RAGGED = [[1, 2], [3]]
X = np.arange(24.0).reshape(12, 2)
Y = X[:, 0]
WORDS = np.array(["a", "b"])


def fit(kind: str = "Regressor", *, y: Any = Y, weight: Any = None, **parameters: Any) -> object:
    group = {"group": np.repeat([0, 1], 6)} if kind == "Ranker" else {}
    model = getattr(gb, f"GradientBoosting{kind}")(n_estimators=1, n_jobs=1, **parameters)
    return model.fit(X, y, sample_weight=weight, **group)


def cv(folds: Any = 2, group: Any = None) -> object:
    return gb.cv(gb.GradientBoostingRegressor(n_estimators=1, n_jobs=1), X, Y, folds=folds, group=group)


CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "start": (lambda: fit(start=HUGE), "start: must be"),
    "sampling": (lambda: gb.UniformSampling(HUGE), "sampling: "),
    "temperature": (lambda: gb.Langevin(temperature=HUGE), "temperature"),
    "schedule": (lambda: gb.GeometricAnnealing(HUGE, 3), "factor above 0"),
    "schedule, an array": (lambda: fit(langevin=gb.Langevin(schedule=WORDS)), "schedule: must be"),
    "categorical_splits": (lambda: gb.CategoricalSplits(smoothing=HUGE), "smoothing must be"),
    "seconds": (lambda: gb.times.Constant(HUGE), "value"),
    "probabilities": (lambda: gb.RowProbabilities(RAGGED), "sampling: p must be"),
    "rounds": (lambda: gb.posterior.member_rounds(HUGE, 2), "rounds: must be at most"),
    "traces": (lambda: gb.posterior.r_hat(HUGE), "traces: must be"),
    "device": (lambda: fit(device=WORDS), "device"),
    "a preset": (lambda: gb.presets.smart_paper(order=WORDS), "order: must be"),
    "y, complex": (lambda: fit(y=1j), "y: must hold real numbers"),
    "y, ragged": (lambda: fit("Classifier", y=RAGGED), "y: needs one value"),
    "y of a Dataset, ragged": (lambda: gb.Dataset(X, RAGGED), "y: needs one value"),
    "weights of queries, ragged": (lambda: fit("Ranker", y=np.arange(12) % 3, weight=RAGGED), "sample_weight: must"),
    "group, ragged": (lambda: cv(group=RAGGED), "group: needs one query"),
    "folds, numbers": (lambda: cv(folds=[1, 2]), "folds: must be .* fold 0 is no such pair"),
    "folds, ragged": (lambda: cv(folds=RAGGED), "folds: must be"),
    "folds, tables": (lambda: cv(folds=[(np.zeros((2, 2), int), [3])]), "folds: row numbers are whole"),
    "kinds": (lambda: gb.warm_up(3), "kinds: must be"),  # type: ignore[arg-type]
    "kinds, lists": (lambda: gb.warm_up(RAGGED), "kinds: unknown"),  # type: ignore[arg-type]
    "n_jobs": (lambda: gb.warm_up([], n_jobs=0), "n_jobs: must be"),
    "masked": (lambda: gb.theory.sign_stumps(np.ma.masked_greater(X, 20.0)), "X: .* without NaN"),
}


@pytest.mark.parametrize("case", CALLS)
def test_it_is_refused_by_name(case: str) -> None:
    call, message = CALLS[case]
    with pytest.raises(gb.GpuBoostError, match=message):
        call()


@pytest.mark.parametrize("model", [None, 3, "x", gb.GradientBoostingRegressor, object()])
def test_dumps_is_of_an_estimator(model: Any) -> None:
    with pytest.raises(TypeError, match="model: a fitted estimator"):
        gb.dumps(model)


@pytest.mark.parametrize("kind", [[], {}, WORDS, ""])
def test_an_interval_is_of_a_known_kind(kind: Any) -> None:
    chain: Any = gb.GradientBoostingRegressor(n_estimators=80, n_jobs=1, langevin=gb.Langevin(), posterior_samples=2)
    with pytest.raises(gb.InputError, match="kind: must be"):
        chain.fit(X, Y).predict_interval(X, kind=kind)


@pytest.mark.filterwarnings("ignore:learners")
def test_a_count_of_any_size_is_all_learners() -> None:
    most = fit(learners=gb.RandomGroups(HUGE), random_state=0)
    assert np.array_equal(most.predict(X), fit(random_state=0).predict(X))  # type: ignore[attr-defined]


def test_a_burn_in_of_almost_nothing_is_warned_of_with_a_number_of_rounds() -> None:
    chain: Any = gb.GradientBoostingRegressor(n_estimators=20, n_jobs=1, langevin=gb.Langevin()).fit(X, Y)
    with pytest.warns(gb.OutsideTheoryWarning, match=r"57 rounds with burn_in=0\.5 would do"):
        chain.predict_interval(X, samples=2, burn_in=1e-320)


@pytest.mark.parametrize("loss", [False, None, 1e308, {}, "x"])
def test_a_model_file_whose_parameter_loss_is_none_is_refused(loss: Any) -> None:
    document = json.loads(gb.dumps(fit()))
    document["parameters"]["loss"] = loss
    with pytest.raises(gb.InputError, match=r"model file: parameters(\.|: )loss"):
        gb.loads(json.dumps(document))


def test_a_log_with_an_integer_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "log.json"
    place.write_text('{"seed": ' + "7" * 5000 + "}")
    with pytest.raises(gb.InputError, match=r"log: .* is not JSON"):
        gb.Replay(place)


def test_targets_and_weights_to_judge_by() -> None:
    """``score`` refuses what ``fit`` refuses, and takes a column as scikit-learn's metrics do."""
    x = np.arange(20.0)[:, None]
    few: dict[str, Any] = {"n_estimators": 2, "n_jobs": 1}
    for model in (
        gb.GradientBoostingRegressor(**few).fit(x, x[:, 0]),
        gb.GradientBoostingClassifier(**few).fit(x, x[:, 0] > 9),
    ):
        y = model.predict(x)
        assert model.score(x, y[:, None]) == 1.0
        for wrong in ("x", None, y[:3], np.full(20, np.nan)):
            with pytest.raises(gb.InputError, match=r"^y: "):
                model.score(x, wrong)
        with pytest.raises(gb.InputError, match="sample_weight: must be finite and not negative"):
            model.score(x, y, sample_weight=np.full(20, -1.0))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: gb.Dataset(X, Y).take(0.5), "rows"),
        (lambda: gb.Dataset(X, Y).take([99]), "rows"),
        (lambda: gb.Dataset.from_parquet(3), "paths"),
        (lambda: gb.Log(()).before("3"), "rounds"),
        (lambda: gb.export.trees_to_table("x"), "model"),
        (lambda: gb.export.to_xgboost(gb.GradientBoostingRegressor(), 3), "path"),
        (lambda: gb.losses.to_json("x"), "loss"),
        (lambda: gb.losses.custom(lambda y, f: y, lambda y, f: f, {}), "hessian"),
        (lambda: gb.metrics.default_metric("x"), "loss"),
        (lambda: gb.metrics.ndcg(gain=True), "gain"),
        (lambda: gb.metrics.mean(3), "term"),
        (lambda: gb.posterior.uncertainty("x", X), "loss"),
        (lambda: gb.posterior.uncertainty(gb.losses.SquaredError(), None), "members"),
        (lambda: gb.posterior.interval_outputs("x", 0.9, None), "loss"),
        (lambda: gb.posterior.calibration("x", Y), "found"),
        (lambda: gb.plot.calibration("x"), "found"),
        (lambda: gb.theory.SelectionNorm(0.5), "t"),
        (lambda: gb.theory.minimal_cosine_angle(np.eye(2), "x"), "norm"),
        (lambda: gb.theory.huber_distance(1.0, 1.0, 0), "n"),
        (lambda: gb.theory.sign_stumps(3), "X"),
    ],
)
def test_what_had_foreign_errors(call: Callable[[], object], name: str) -> None:
    with pytest.raises(gb.GpuBoostError, match=f"^{name}: "):
        call()
