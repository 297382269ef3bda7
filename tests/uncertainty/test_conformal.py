"""Conformal prediction: finite-sample coverage, exact quantiles, sets of classes, files and bad input."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import gpuboost as gb
from gpuboost.model_selection.conformal_scores import CalibrationScores

Array = np.ndarray

N_CAL, REPEATS = 60, 200
FEW: dict[str, Any] = {"n_estimators": 15, "max_depth": 3, "learning_rate": 0.3, "random_state": 0}


def numbers(n: int, seed: int) -> tuple[Array, Array]:
    """Noise that grows with the second column."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, size=(n, 3))
    return x, x[:, 0] + (0.05 + x[:, 1] ** 2) * rng.normal(size=n)


def labels(n: int, seed: int) -> tuple[Array, Array]:
    """Three classes that overlap where the second column is small."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 3))
    return x, np.array(["a", "b", "c"])[np.digitize(x[:, 0] + 0.5 * rng.normal(size=n), [-0.3, 0.3])]


def regressor(loss: Any = "squared_error", **more: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(loss=loss, **FEW | more).fit(*numbers(400, 0))


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    pair = tuple(regressor(gb.losses.Quantile(level)) for level in (0.1, 0.9))
    return {
        "absolute": regressor(),
        "scaled": regressor("gaussian_nll", n_estimators=30),
        "cqr": regressor(gb.losses.Quantile([0.1, 0.5, 0.9])),
        "cqr of two models": pair,
        "lac": gb.GradientBoostingClassifier(**FEW).fit(*labels(400, 0)),
    }


class Table:
    """A model that answers rows by their number, so that many splits need no new prediction."""

    def __init__(self, model: Any, x: Array) -> None:
        self.answers = {"predict": model.predict(x)}
        for name in ("loss_", "classes_", "langevin"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        if hasattr(model, "classes_"):
            self.answers["predict_proba"] = model.predict_proba(x)
            self.predict_proba = lambda rows: self.answers["predict_proba"][rows[:, 0].astype(int)]
        elif self.loss_.name == "gaussian_nll":
            self.answers["std"] = model.predict(x, output="std")

    def predict(self, rows: Array, output: str = "predict") -> Array:
        return self.answers[output][rows[:, 0].astype(int)]


def covered(predictor: Any, rows: Array, y: Array) -> Array:
    if hasattr(predictor, "predict_set"):
        return predictor.predict_set(rows)[np.arange(len(y)), np.searchsorted(predictor.classes_, y)]
    low, high = predictor.predict_interval(rows).T
    return (low <= y) & (y <= high)


@pytest.mark.parametrize("coverage", [0.8, 0.9])
@pytest.mark.parametrize("name", ["absolute", "scaled", "cqr", "cqr of two models", "lac", "aps"])
def test_coverage_over_200_splits_lies_between_the_bounds_of_theory(
    models: dict[str, Any], name: str, coverage: float
) -> None:
    """P(covered) is coverage to coverage + 1 / (n + 1); the mean over splits has a standard error of about 0.003."""
    kind, method = ("lac", name) if name in ("lac", "aps") else (name, "auto")
    x, y = labels(3_000, 1) if kind == "lac" else numbers(3_000, 1)
    given = models[kind]
    model = tuple(Table(part, x) for part in given) if isinstance(given, tuple) else Table(given, x)
    rng, shares = np.random.default_rng(2), []
    for _ in range(REPEATS):
        drawn = rng.choice(len(y), 2 * N_CAL, replace=False)
        cal, test = drawn[:N_CAL], drawn[N_CAL:]
        predictor = gb.conformal(model, cal[:, None], y[cal], coverage, method=method)
        shares.append(covered(predictor, test[:, None], y[test]).mean())
    error = 4.0 * float(np.std(shares)) / REPEATS**0.5
    assert coverage - error <= np.mean(shares)
    if name != "aps":  # whose scores tie at 1, and which is not randomised
        assert np.mean(shares) <= coverage + 1.0 / (N_CAL + 1) + error


def test_the_quantile_is_the_score_of_rank_ceil_of_n_plus_1_times_coverage() -> None:
    scores = CalibrationScores.of(np.array([5.0, 1.0, 3.0, 2.0, 4.0, 9.0, 8.0, 7.0, 6.0]), None)
    for rank in range(1, 10):
        assert scores.quantile(rank / 10) == rank  # exactly (n + 1) coverage = rank, whatever 0.7 * 10 rounds to
        assert scores.quantile(rank / 10 - 0.05) == rank
    assert scores.quantile(0.91) == np.inf
    np.testing.assert_array_equal(scores.quantile(0.9, np.array([0.0, 1.0, 2.0])), [9.0, 9.0, np.inf])


def test_an_interval_by_hand() -> None:
    """A line through the origin; residuals 0.1 to 0.9, of which the 8th of 9 bounds (9 + 1) * 0.8."""
    line = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    x = np.arange(9.0)[:, None]
    predictor = gb.conformal(line, x, x[:, 0] + np.arange(1, 10) / 10 * (-1.0) ** np.arange(9), coverage=0.8)
    np.testing.assert_allclose(predictor.predict_interval([[2.0]]), [[1.2, 2.8]], atol=1e-12)
    np.testing.assert_allclose(predictor.predict_interval([[2.0]], coverage=0.5), [[1.5, 2.5]], atol=1e-12)
    np.testing.assert_allclose(predictor.predict([[2.0]]), [2.0])
    assert predictor.coverage == 0.8


def test_a_weight_of_three_is_three_rows(models: dict[str, Any]) -> None:
    x, y = numbers(40, 3)
    weight = np.random.default_rng(0).integers(0, 4, 40)
    by_weight = gb.conformal(models["absolute"], x, y, sample_weight=weight)
    repeated = gb.conformal(models["absolute"], np.repeat(x, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(by_weight.predict_interval(x), repeated.predict_interval(x))


def test_likelihood_ratios_correct_a_covariate_shift(models: dict[str, Any]) -> None:
    """New rows lie where the noise is large: the ratio of the densities is x1^2 (3 / 4)."""
    x, y = numbers(4_000, 4)
    rng = np.random.default_rng(5)
    x_new, y_new = numbers(20_000, 6)
    kept = rng.random(len(x_new)) < x_new[:, 1] ** 2 / 4.0
    x_new, y_new = x_new[kept], y_new[kept]
    plain = gb.conformal(models["absolute"], x, y).predict_interval(x_new)
    ratio = gb.conformal(models["absolute"], x, y, sample_weight=0.75 * x[:, 1] ** 2)
    shifted = ratio.predict_interval(x_new, sample_weight=0.75 * x_new[:, 1] ** 2)
    inside = [np.mean((low <= y_new) & (y_new <= high)) for low, high in (plain.T, shifted.T)]
    assert inside[0] < 0.85
    assert inside[1] == pytest.approx(0.9, abs=0.02)


def test_a_new_row_of_too_large_a_weight_has_an_infinite_interval(models: dict[str, Any]) -> None:
    x, y = numbers(40, 3)
    found = gb.conformal(models["cqr"], x, y).predict_interval(x[:2], sample_weight=[1.0, 100.0])
    assert np.isfinite(found[0]).all()
    np.testing.assert_array_equal(found[1], [-np.inf, np.inf])


def test_quantiles_that_are_too_far_apart_are_narrowed_to_a_point_at_least() -> None:
    class Wide:
        def __init__(self, at: float) -> None:
            self.at = at

        def predict(self, rows: Any) -> Array:
            return np.full(len(rows), self.at) + 0.001 * np.asarray(rows)[:, 0] * np.sign(self.at)

    x = np.arange(20.0)[:, None]
    predictor = gb.conformal((Wide(-5.0), Wide(5.0)), x, np.zeros(20))
    low, high = predictor.predict_interval(np.array([[-900.0], [100.0]])).T
    assert low[0] == high[0] == 0.0
    assert low[1] < 0.0 < high[1]
    np.testing.assert_array_equal(predictor.predict(x), np.zeros(20))


def test_intervals_that_know_the_noise_are_narrower(models: dict[str, Any]) -> None:
    """Heteroscedastic noise: CQR and scaled residuals against intervals of one width."""
    (x, y), (x_test, y_test) = numbers(1_000, 7), numbers(4_000, 8)
    width, by_noise = {}, {}
    for name in ("absolute", "scaled", "cqr"):
        low, high = gb.conformal(models[name], x, y, 0.8).predict_interval(x_test).T
        assert np.mean((low <= y_test) & (y_test <= high)) == pytest.approx(0.8, abs=0.04)
        width[name] = float(np.mean(high - low))
        quiet = np.abs(x_test[:, 1]) < 0.5
        by_noise[name] = float(np.mean((high - low)[quiet]) / np.mean((high - low)[~quiet]))
    assert max(width["cqr"], width["scaled"]) < 0.9 * width["absolute"]
    assert by_noise["absolute"] == pytest.approx(1.0)
    assert max(by_noise["cqr"], by_noise["scaled"]) < 0.5


def test_draws_of_a_posterior_scale_the_residuals() -> None:
    x, y = numbers(60, 9)
    chain = regressor(
        langevin=gb.Langevin(shrinkage=0.2, inverse_temperature=400.0), n_estimators=120, posterior_samples=5
    )
    predictor = gb.conformal(chain, x, y)
    assert predictor.method == "scaled"
    spread = np.sqrt(chain.predict_uncertainty(x).total)
    low, high = predictor.predict_interval(x).T
    np.testing.assert_allclose((high - low) / spread, (high - low)[0] / spread[0])


def test_sets_of_classes_by_hand() -> None:
    class Fixed:
        classes_ = np.array(["x", "y", "z"])

        def predict_proba(self, rows: Any) -> Array:
            return np.asarray(rows, dtype=float)

        def predict(self, rows: Any) -> Array:
            return self.classes_[self.predict_proba(rows).argmax(axis=1)]

    p = np.array([[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.6, 0.1, 0.3], [0.1, 0.1, 0.8]])
    y = ["x", "y", "z", "z"]  # 1 - p: 0.5, 0.3, 0.7, 0.2; probability up to the true class: 0.5, 0.7, 0.9, 0.8
    rows = [[0.5, 0.45, 0.05], [0.9, 0.06, 0.04], [0.34, 0.33, 0.33]]
    lac = gb.conformal(Fixed(), p, y, 0.6, method="lac")  # ceil(5 * 0.6) = 3rd smallest: 0.5
    np.testing.assert_array_equal(lac.predict_set(rows), [[1, 0, 0], [1, 0, 0], [0, 0, 0]])
    aps = gb.conformal(Fixed(), p, y, 0.6, method="aps")  # 3rd smallest: 0.8
    np.testing.assert_array_equal(aps.predict_set(rows), [[1, 0, 0], [0, 0, 0], [1, 1, 0]])
    np.testing.assert_array_equal(lac.predict_set(rows, 0.8), [[1, 1, 0], [1, 0, 0], [1, 1, 1]])  # 4th: 0.7
    np.testing.assert_array_equal(lac.predict(rows), ["x", "x", "x"])


@pytest.mark.parametrize("name", ["absolute", "scaled", "cqr", "cqr of two models", "lac"])
def test_files_and_pickles_give_the_same_bits(models: dict[str, Any], name: str, tmp_path: Path) -> None:
    x, y = labels(50, 3) if name == "lac" else numbers(50, 3)
    predictor = gb.conformal(models[name], x, y, 0.8, sample_weight=np.linspace(0.1, 2.0, 50))
    predictor.save(tmp_path / "calibrated.json")
    for other in (gb.load_conformal(tmp_path / "calibrated.json"), pickle.loads(pickle.dumps(predictor))):
        assert repr(other) == repr(predictor)
        answer = "predict_set" if name == "lac" else "predict_interval"
        np.testing.assert_array_equal(getattr(other, answer)(x), getattr(predictor, answer)(x))
        np.testing.assert_array_equal(other.predict(x), predictor.predict(x))


def test_what_reads_models_names_the_function_that_reads_it(models: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "conformal.json"
    model, (x, y) = models["absolute"], numbers(20, 3)
    gb.conformal(model, x, y).save(path)
    for read in (gb.load_model, gb.load_predictor, lambda path: regressor().fit(x, y, resume_from=path)):
        with pytest.raises(gb.InputError, match=r"conformal predictor, and no model file. gb.load_conformal reads it"):
            read(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "the format 'gpuboost conformal predictor' was expected"),
        ({"version": 2}, "version: 1 was expected; found 2"),
        ({"scores": [2.0, 1.0]}, "increasing scores with as many weights"),
        ({"scores": ["1"] * 20}, "a list of finite numbers was expected; found '1'"),
        ({"weights": [-1.0] * 20}, "must be finite and not negative"),
        ({"method": "cqr"}, "'cqr' needs quantiles"),
        ({"method": "auto"}, "one of absolute, scaled, cqr was expected"),
        ({"coverage": 2.0}, "coverage: must be a number between 0 and 1"),
        ({"models": []}, "one estimator, or a pair of regressors"),
        ({"more": 1}, "there is no entry of this name"),
    ],
)
def test_damaged_files_are_refused(models: dict[str, Any], change: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "calibrated.json"
    gb.conformal(models["absolute"], *numbers(20, 3)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(gb.GpuBoostError, match=words):
        gb.load_conformal(path)


def test_too_few_rows_are_refused_with_the_number_that_is_needed(models: dict[str, Any]) -> None:
    x, y = numbers(50, 3)
    with pytest.raises(gb.InputError, match=r"X_cal: 50 rows are too few for a coverage of 0.99: .* At least 99 are"):
        gb.conformal(models["absolute"], x, y, 0.99)
    gb.conformal(models["absolute"], x[:9], y[:9], 0.9)
    with pytest.raises(gb.InputError, match=r"X_cal: 8 rows are too few for a coverage of 0.9: .* At least 9 are"):
        gb.conformal(models["absolute"], x[:8], y[:8], 0.9)
    with pytest.raises(gb.InputError, match="At least 99 are"):
        gb.conformal(models["absolute"], x, y, 0.9).predict_interval(x, 0.99)


@pytest.mark.parametrize("method", ["absolute", "scaled", "cqr", "lac"])
def test_a_pipeline_has_the_method_and_the_intervals_of_its_last_step(models: dict[str, Any], method: str) -> None:
    x, y = (labels if method == "lac" else numbers)(40, 3)
    scaler = StandardScaler().fit(x)
    model = models[method]
    pipeline = Pipeline([("scaler", scaler), ("model", model)])
    plain, piped = gb.conformal(model, scaler.transform(x), y), gb.conformal(pipeline, x, y)
    assert piped.method == plain.method == method
    answer = "predict_set" if method == "lac" else "predict_interval"
    np.testing.assert_array_equal(getattr(piped, answer)(x), getattr(plain, answer)(scaler.transform(x)))


def test_a_search_has_the_method_of_its_best_pipeline() -> None:
    x, y = numbers(60, 3)
    model = make_pipeline(StandardScaler(), gb.GradientBoostingRegressor("gaussian_nll", **FEW | {"n_estimators": 3}))
    search = GridSearchCV(model, {"gradientboostingregressor__max_depth": [2]}, cv=2).fit(x, y)
    found = gb.conformal(search, x, y)
    assert found.method == "scaled"
    np.testing.assert_array_equal(
        found.predict_interval(x), gb.conformal(search.best_estimator_, x, y).predict_interval(x)
    )


def test_bad_input_is_refused(models: dict[str, Any]) -> None:
    x, y = numbers(30, 3)
    x_classes, y_classes = labels(30, 3)
    ranker = gb.GradientBoostingRanker(n_estimators=2).fit(x, np.arange(30) % 3, group=np.arange(30) // 10)
    cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((models["absolute"], x, y[:20]), {}, "y_cal: X_cal has 30 rows, and y_cal 20"),
        ((models["absolute"], x, y[:, None]), {}, "y_cal: must hold one target for each"),
        ((models["absolute"], x, [[1.0], [2.0, 3.0]]), {}, "y_cal: must hold one target for each"),
        ((models["absolute"], x, np.where(y > 0, np.nan, y)), {}, "y_cal: must hold finite numbers; row"),
        ((models["absolute"], x, y), {"coverage": 1.0}, "coverage: must be a number between 0 and 1"),
        ((models["absolute"], x, y), {"method": "lac"}, "method: must be 'auto' or one of 'absolute'"),
        ((models["absolute"], x, y), {"method": "cqr"}, "'cqr' needs quantiles"),
        ((models["absolute"], x, y), {"method": "scaled"}, "'scaled' needs a predicted spread"),
        ((models["cqr of two models"], x, y), {"method": "absolute"}, "a pair of models is for 'cqr'"),
        ((models["cqr"], x, y), {"coverage": 0.05}, "0.5 is nearest to both"),
        ((models["lac"], x_classes, ["d"] * 30), {}, "y_cal: must be labels of the training data; row 0 holds d"),
        ((models["lac"], x_classes, [pd.NA, *y_classes[1:]]), {}, "y_cal: must be labels of the training data; row 0"),
        (((models["lac"],) * 2, x_classes, y_classes), {}, "a pair must be of regressors"),
        (((), x, y), {}, "got 0 estimators"),
        ((ranker, x, y), {}, "scores of a ranker"),
        ((gb.GradientBoostingRegressor, x, y), {}, "the class GradientBoostingRegressor. Call it first"),
        ((models["absolute"], x, y), {"sample_weight": -y}, "sample_weight: must be finite and not negative"),
    ]
    for given, more, words in cases:
        with pytest.raises(gb.GpuBoostError) as error:
            gb.conformal(*given, **more)
        assert words in str(error.value)
    with pytest.raises(gb.InputError, match="sample_weight: must be a number, or one for each of 30 rows"):
        gb.conformal(models["absolute"], x, y).predict_interval(x, sample_weight=[1.0, 2.0])


@pytest.mark.parametrize("method", ["absolute", "scaled", "cqr", "cqr of two models"])
def test_offsets_are_those_of_the_rows(method: str) -> None:
    """A target that is an offset plus what is without one has the interval that is moved by the offset."""
    x, y = numbers(200, 0)
    known = np.where(np.arange(200) % 2, 1_000.0, -1_000.0)
    losses = {"absolute": ["squared_error"], "scaled": ["gaussian_nll"], "cqr": [gb.losses.Quantile([0.1, 0.9])]}
    losses["cqr of two models"] = [gb.losses.Quantile(0.1), gb.losses.Quantile(0.9)]
    plain, moved = [], []
    for loss in losses[method]:
        shift = np.column_stack([known, 0 * known]) if loss == "gaussian_nll" else known
        shift = np.column_stack([known, known]) if method == "cqr" else shift
        few = gb.GradientBoostingRegressor(loss=loss, **FEW)
        plain.append(few.fit(x, y))
        moved.append(gb.GradientBoostingRegressor(loss=loss, **FEW).fit(x, y + known, init_score=shift))
    asked = {"method": method.split(maxsplit=1)[0], "coverage": 0.8}
    without = gb.conformal(plain if len(plain) > 1 else plain[0], x, y, **asked)
    with_offsets = gb.conformal(moved if len(moved) > 1 else moved[0], x, y + known, init_score=shift, **asked)
    intervals = with_offsets.predict_interval(x, init_score=shift)
    np.testing.assert_allclose(intervals - known[:, None], without.predict_interval(x), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(with_offsets.predict(x, init_score=shift) - known, without.predict(x), atol=1e-6)
    covered = (intervals[:, 0] <= y + known) & (y + known <= intervals[:, 1])
    assert covered.mean() >= 0.8


def test_offsets_of_sets_of_classes() -> None:
    x, y = labels(300, 0)
    two, offset = np.where(y == "a", "a", "b"), np.where(np.arange(300) % 2, 2.0, -2.0)
    model = gb.GradientBoostingClassifier(**FEW).fit(x, two, init_score=offset)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of predictions without offsets
        sets = gb.conformal(model, x, two, init_score=offset)
        p = sets.predict_proba(x, init_score=offset)
        np.testing.assert_array_equal(p, model.predict_proba(x, init_score=offset))
        np.testing.assert_array_equal(sets.predict(x, init_score=offset), model.predict(x, init_score=offset))
        found = sets.predict_set(x, init_score=offset)
    np.testing.assert_array_equal(found, 1.0 - p <= sets.calibration.quantile(0.9))


def test_offsets_are_refused_where_there_are_none(models: dict[str, Any]) -> None:
    x, y = numbers(60, 1)
    with pytest.raises(gb.InputError, match="init_score: a LinearRegression takes no offsets"):
        gb.conformal(LinearRegression().fit(x, y), x, y, init_score=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short chain
        drawn = gb.GradientBoostingRegressor(**FEW, langevin=gb.Langevin()).fit(x, y)
    with pytest.raises(gb.InputError, match="init_score: a model with langevin"):
        gb.conformal(drawn, x, y, init_score=y)
    with pytest.raises(gb.InputError, match="init_score"):
        gb.conformal(models["absolute"], x, y, init_score=y[:5])
