"""Offsets of scores: ``init_score`` in fits, predictions, Datasets, cross-validation and files."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu

import gpuboost as gb
from gpuboost.backends.cuda.device.gpus import open_gpu

SETTINGS: dict[str, Any] = {"n_estimators": 6, "max_depth": 3, "n_jobs": 2}


@pytest.fixture(scope="module")
def claims() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, counts, and logarithms of exposures that differ by a factor of 20."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 4))
    exposure = rng.uniform(0.1, 2.0, 600)
    return x, rng.poisson(3.0 * exposure * np.exp(0.5 * x[:, 0])).astype(float), np.log(exposure)


@pytest.fixture(scope="module")
def model(claims: Any) -> gb.GradientBoostingRegressor:
    x, y, offset = claims
    return gb.GradientBoostingRegressor("poisson", **SETTINGS).fit(x, y, init_score=offset)


def bytes_of(model: Any) -> str:
    return gb.dumps(model)


def test_exposures_make_rates_of_counts(claims: Any, model: Any) -> None:
    x, y, offset = claims
    rate = np.exp(model.ensemble_.bias[0])
    assert rate == pytest.approx(y.sum() / np.exp(offset).sum(), rel=1e-6)
    np.testing.assert_allclose(model.predict(x, init_score=offset), np.exp(offset) * model.predict(x, init_score=0))
    without = gb.GradientBoostingRegressor("poisson", **SETTINGS).fit(x, y)
    beside = model.score(x, y, init_score=offset)
    assert beside > without.score(x, y) + 0.1


def test_squared_error_with_offsets_is_a_fit_of_residuals(regression_data: Any) -> None:
    x, y = regression_data
    offset = np.round(x[:, 1] * 8) / 8
    y = np.round(y * 64) / 64
    fitted = gb.GradientBoostingRegressor(**SETTINGS).fit(x, y, init_score=offset)
    residual = gb.GradientBoostingRegressor(**SETTINGS).fit(x, y - offset)
    np.testing.assert_allclose(fitted.predict(x, init_score=offset), residual.predict(x) + offset, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("loss", "low"),
    [("huber", -9.0), ("absolute_error", -9.0), ("gamma", 0.5), ("tweedie", 0.0), ("gaussian_nll", -9.0)],
)
def test_the_start_is_the_best_constant_beside_offsets(regression_data: Any, loss: str, low: float) -> None:
    x, y = regression_data
    y, offset = np.maximum(y + 2.0, low), 0.3 * x[:, 0]
    offsets = np.column_stack([offset, 0 * offset]) if loss == "gaussian_nll" else offset
    model = gb.GradientBoostingRegressor(loss, n_estimators=1).fit(x, y, init_score=offsets)
    start, formula = model.ensemble_.bias[0], model.loss_

    def mean_loss(c: float) -> float:
        if loss == "gaussian_nll":
            return float(np.square(y - offset - c).mean())
        return float(np.mean([formula.value(a, c + b, formula.parameter) for a, b in zip(y, offset, strict=True)]))

    slack = 0.05 if loss == "huber" else 1e-6
    assert mean_loss(start) <= min(mean_loss(start - 0.05), mean_loss(start + 0.05)) + slack


def test_the_start_of_a_custom_loss_holds_beside_offsets(regression_data: Any) -> None:
    x, y = regression_data
    y, offset = y[:100], np.linspace(-1.0, 1.0, 100)

    def squares(start: Any) -> Any:
        return gb.losses.custom(lambda y, f: (y - f) ** 2, lambda y, f: 2 * (f - y), lambda y, f: 2.0, start=start)

    arrays = gb.losses.custom_arrays(lambda y, f: (f - y, np.ones_like(y)), start=2.5)
    for loss, start in (
        (squares("minimise"), np.mean(y - offset)),
        (squares(3.0), 3.0),
        (squares(lambda y, weight: np.mean(y)), np.mean(y)),
        (arrays, 2.5),
    ):
        model = gb.GradientBoostingRegressor(loss, n_estimators=0).fit(x[:100], y, init_score=offset)
        assert model.ensemble_.bias[0] == pytest.approx(start, rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "logitboost"])
def test_the_start_of_classes_makes_the_mean_gradient_zero(binary_data: Any, loss: str) -> None:
    x, y = binary_data
    offset = 0.7 * np.nan_to_num(x[:, 0])
    model = gb.GradientBoostingClassifier(loss, **SETTINGS).fit(x, y, init_score=offset)
    formula, start = model.loss_, model.ensemble_.bias[0]
    codes = (y == model.classes_[1]).astype(float)
    gradients = np.array([formula.derivatives(a, start + b, 0.0)[0] for a, b in zip(codes, offset, strict=True)])
    assert abs(gradients.mean()) < 1e-6
    logits = model.decision_function(x, init_score=0) + offset
    np.testing.assert_array_equal(model.decision_function(x, init_score=offset), logits)


def test_classes_take_an_offset_for_each_score(multiclass_data: Any) -> None:
    x, y = multiclass_data
    offset = np.random.default_rng(0).normal(size=(len(x), 3))
    model = gb.GradientBoostingClassifier(**SETTINGS).fit(x, y, init_score=offset)
    scores = model.decision_function(x, init_score=offset)
    np.testing.assert_array_equal(scores, model.decision_function(x, init_score=0.0) + offset)
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(x, init_score=offset), probabilities)
    np.testing.assert_array_equal(model.predict(x, init_score=offset), model.classes_[scores.argmax(axis=1)])
    staged = list(model.staged_predict_proba(x, init_score=offset))
    np.testing.assert_array_equal(staged[-1], model.predict_proba(x, init_score=offset))
    with pytest.raises(gb.InputError, match=r"init_score: the loss has 3 scores .* got \(300, 1\)"):
        model.fit(x, y, init_score=offset[:, 0])


@pytest.mark.parametrize(
    "execution",
    [
        pytest.param({"execution": gb.DataParallel(3, engine="threads")}, id="shards"),
        pytest.param({"execution": gb.Asynchronous(2, allow_unproven=True)}, id="asynchronous", marks=pytest.mark.slow),
        pytest.param({"n_jobs": 1}, id="one thread"),
    ],
)
def test_every_way_to_run_gives_one_model(claims: Any, model: Any, execution: dict[str, Any]) -> None:
    x, y, offset = claims
    fitted = gb.GradientBoostingRegressor("poisson", **SETTINGS | execution).fit(x, y, init_score=offset)
    assert np.isfinite(fitted.predict(x, init_score=offset)).all()
    if "asynchronous" not in str(execution).lower():
        assert bytes_of(fitted) == bytes_of(model)


@pytest.mark.slow
def test_a_gpu_and_shards_on_gpus_give_the_same_bytes(claims: Any, model: Any) -> None:
    x, y, offset = claims
    watched = {"eval_set": (x[:50], y[:50], None, offset[:50])}
    host = gb.GradientBoostingRegressor("poisson", **SETTINGS).fit(x, y, init_score=offset, **watched)
    with emulated_gpu():
        for execution in (None, gb.DataParallel(1)):
            other = gb.GradientBoostingRegressor("poisson", **SETTINGS, device="cuda", execution=execution)
            other.fit(x, y, init_score=offset, **watched)
            assert bytes_of(other) == bytes_of(model)
            assert other.evals_result_ == host.evals_result_
        other.set_params(execution=None)
        there = open_gpu("cuda:0").upload
        answer = other.predict(there(x), init_score=there(offset))
        np.testing.assert_array_equal(answer.get(), host.predict(x, init_score=offset))
        values = other.predict_contributions(there(x), init_score=there(offset)).get()
        np.testing.assert_array_equal(values, host.predict_contributions(x, init_score=offset))


def test_rows_are_judged_beside_their_offsets(claims: Any) -> None:
    x, y, offset = claims
    model = gb.GradientBoostingRegressor("poisson", **SETTINGS, eval_metric="rmse")
    model.fit(x, y, init_score=offset, eval_set={"same": gb.Dataset(x, y, init_score=offset)})
    rmse = float(np.sqrt(np.mean((y - model.predict(x, init_score=offset)) ** 2)))
    assert model.evals_result_["same"]["rmse"][-1] == pytest.approx(rmse, rel=1e-12)
    with pytest.raises(gb.InputError, match="eval_set: validation_0: init_score: the training rows have offsets"):
        model.fit(x, y, init_score=offset, eval_set=(x, y))
    set_aside = gb.GradientBoostingRegressor("poisson", **SETTINGS, validation_fraction=0.2, random_state=0)
    weight, last = np.arange(600) % 3, []
    for offsets in (offset, None):
        set_aside.fit(x, y, init_score=offsets, sample_weight=weight)
        last.append(set_aside.evals_result_["validation_0"]["poisson_deviance"][-1])
    assert last[0] < 0.8 * last[1]


def test_rows_of_weight_zero_lose_their_offsets_too(claims: Any) -> None:
    x, y, offset = claims
    weight = (np.arange(600) % 3 > 0).astype(float)
    kept = weight > 0
    one = gb.GradientBoostingRegressor("poisson", **SETTINGS).fit(gb.Dataset(x, y, weight=weight), init_score=offset)
    other = gb.GradientBoostingRegressor("poisson", **SETTINGS).fit(x[kept], y[kept], init_score=offset[kept])
    assert bytes_of(one) == bytes_of(other)


def test_a_dataset_brings_its_offsets(claims: Any, model: Any) -> None:
    x, y, offset = claims
    rows = gb.Dataset(x, y, init_score=offset)
    assert "init_score" in repr(rows)
    fitted = gb.GradientBoostingRegressor("poisson", **SETTINGS).fit(rows)
    assert bytes_of(fitted) == bytes_of(model)
    np.testing.assert_array_equal(fitted.predict(rows), model.predict(x, init_score=offset))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows)).init_score, offset)
    with pytest.raises(gb.InputError, match="init_score: the Dataset holds one already"):
        fitted.fit(rows, init_score=offset)


def test_contributions_add_up_beside_offsets(claims: Any, model: Any) -> None:
    x, y, offset = claims
    raw = np.log(model.predict(x, init_score=offset))
    values = model.predict_contributions(x, init_score=offset)
    np.testing.assert_allclose(values.sum(axis=1), raw, atol=1e-9)
    pairs = model.predict_interactions(x, init_score=offset)
    np.testing.assert_allclose(pairs.sum(axis=2), values, atol=1e-9)
    data = gb.Dataset(x, y, init_score=offset)
    np.testing.assert_array_equal(model.predict_contributions(data), values)
    np.testing.assert_array_equal(model.predict_interactions(data), pairs)
    without = model.predict_contributions(x)
    np.testing.assert_array_equal(without[:, :-1], values[:, :-1])
    np.testing.assert_array_equal(without[:, -1] + offset, values[:, -1])
    with pytest.raises(gb.InputError, match="init_score"):
        model.predict_contributions(x, init_score=offset[:5])


def test_contributions_to_classes_add_up_beside_offsets(multiclass_data: Any) -> None:
    x, y = multiclass_data
    offset = np.random.default_rng(0).normal(size=(len(y), 3))
    fitted = gb.GradientBoostingClassifier(**SETTINGS).fit(x, y, init_score=offset)
    raw = fitted.decision_function(x, init_score=offset)
    np.testing.assert_allclose(fitted.predict_contributions(x, init_score=offset).sum(axis=2), raw, atol=1e-9)
    pairs = fitted.predict_interactions(x, init_score=offset)
    np.testing.assert_allclose(pairs.sum(axis=(2, 3)), raw, atol=1e-9)


def test_cross_validation_takes_offsets(claims: Any) -> None:
    x, y, offset = claims
    estimator = gb.GradientBoostingRegressor("poisson", **SETTINGS, eval_metric="rmse")
    result = gb.cv(estimator, x, y, init_score=offset, folds=3, refit=True)
    for number, fold_model in enumerate(result.models):
        own = result.fold == number
        np.testing.assert_array_equal(result.predictions[own], fold_model.predict(x[own], init_score=offset[own]))


def test_a_model_remembers_that_it_has_offsets(claims: Any, model: Any, tmp_path: Any) -> None:
    x, y, offset = claims
    model.save_model(tmp_path / "model.json")
    for again in (gb.load_model(tmp_path / "model.json"), pickle.loads(pickle.dumps(model)), model[:3]):
        with pytest.warns(UserWarning, match="init_score: the model was fitted with offsets, and predicts without"):
            again.predict(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again.predict(x, init_score=offset)
            again.predict(x, init_score=0)
        with pytest.raises(gb.InputError, match="model: it was fitted with init_score"):
            gb.export.to_onnx(again)
    with pytest.raises(gb.InputError, match="init_score: the model to continue was fitted with offsets"):
        gb.GradientBoostingRegressor("poisson", **SETTINGS).fit(x, y, init_model=model)
    plain = gb.GradientBoostingRegressor("poisson", **SETTINGS).fit(x, y)
    np.testing.assert_allclose(plain.predict(x, init_score=offset), plain.predict(x) * np.exp(offset))


def test_continued_and_resumed_fits_are_those_of_one_run(claims: Any, model: Any, tmp_path: Any) -> None:
    x, y, offset = claims
    path = tmp_path / "checkpoint.json"
    saving = SETTINGS | {"callbacks": [gb.callbacks.Checkpoint(path, every=4)], "random_state": 0}
    uninterrupted = gb.GradientBoostingRegressor("poisson", **saving).fit(x, y, init_score=offset)
    resumed = gb.GradientBoostingRegressor("poisson", **SETTINGS, random_state=0)
    resumed.fit(x, y, init_score=offset, resume_from=path)
    assert bytes_of(resumed) == bytes_of(uninterrupted)
    with pytest.raises(gb.InputError, match="resume_from: these are not the data"):
        resumed.fit(x, y, init_score=offset + 1.0, resume_from=path)
    first = gb.GradientBoostingRegressor("poisson", **SETTINGS | {"n_estimators": 4}).fit(x, y, init_score=offset)
    rest = gb.GradientBoostingRegressor("poisson", **SETTINGS | {"n_estimators": 2})
    rest.fit(x, y, init_score=offset, init_model=first)
    np.testing.assert_array_equal(rest.predict(x, init_score=0), model.predict(x, init_score=0))


def test_queries_take_offsets(rng: np.random.Generator) -> None:
    x, group = rng.normal(size=(120, 3)), np.repeat(np.arange(20), 6)
    y, offset = rng.integers(0, 3, 120), rng.normal(size=120)
    model = gb.GradientBoostingRanker(n_estimators=3)
    model.fit(x, y, group=group, init_score=offset, eval_set=(x, y, group, None, offset))
    without = gb.GradientBoostingRanker(n_estimators=3).fit(x, y, group=group)
    assert model.predict(x, init_score=0).tobytes() != without.predict(x).tobytes()
    np.testing.assert_array_equal(model.predict(x, init_score=offset), model.predict(x, init_score=0) + offset)


def test_a_ranking_is_scored_beside_its_offsets(rng: np.random.Generator) -> None:
    x, offset, group = rng.normal(size=(200, 3)), rng.normal(size=200), np.repeat(np.arange(20), 10)
    grade = np.digitize(x[:, 0] + 2.0 * offset, [-1.0, 1.0])
    model = gb.GradientBoostingRanker(n_estimators=3, n_jobs=1).fit(x, grade, group=group, init_score=offset)
    beside = model.score(x, grade, group=group, init_score=offset)
    assert beside == model.score(gb.Dataset(x, grade, group=group, init_score=offset))
    assert beside > model.score(x, grade, group=group, init_score=0) + 0.02


def test_intervals_take_offsets(regression_data: Any) -> None:
    x, y = regression_data
    offset = np.linspace(-1.0, 1.0, len(y))
    quantiles = gb.GradientBoostingRegressor(gb.losses.Quantile([0.05, 0.95]), **SETTINGS)
    quantiles.fit(x, y, init_score=np.column_stack([offset, offset]))
    each = np.column_stack([offset, offset])
    found = quantiles.predict_interval(x, 0.9, init_score=each)
    np.testing.assert_array_equal(found, quantiles.predict(x, init_score=each))
    both = np.column_stack([offset, np.zeros(len(y))])
    normal = gb.GradientBoostingRegressor("gaussian_nll", **SETTINGS).fit(x, y, init_score=both)
    mean, std = normal.predict(x, "all", init_score=both).T
    expected = np.column_stack([mean - 1.959964 * std, mean + 1.959964 * std])
    np.testing.assert_allclose(normal.predict_interval(x, 0.95, init_score=both), expected, rtol=1e-5, atol=1e-5)
    with pytest.warns(UserWarning, match="init_score: the model was fitted with offsets"):
        normal.predict_interval(x)


def test_intervals_of_draws_refuse_offsets(regression_data: Any) -> None:
    chain = gb.GradientBoostingRegressor(langevin=gb.Langevin(), random_state=0, **SETTINGS).fit(*regression_data)
    with pytest.raises(gb.InputError, match="init_score: intervals of draws have no offsets"):
        chain.predict_interval(regression_data[0], init_score=0.0)


def test_langevin_boosting_refuses_offsets(claims: Any) -> None:
    x, y, offset = claims
    with pytest.raises(gb.RecipeError, match="init_score: Langevin boosting shrinks"):
        gb.GradientBoostingRegressor(langevin=gb.Langevin()).fit(x, y, init_score=offset)


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (np.zeros(3), r"init_score: needs one number, or one for each of 300 rows.* got shape \(3,\)"),
        (np.full(300, np.nan), "init_score: must be finite, between -1e.* row 0 holds nan"),
        (["a"] * 300, "init_score: must hold numbers"),
        (np.zeros((300, 2)) + np.arange(2), r"init_score: the loss has 1 scores .* got \(300, 2\)"),
    ],
)
def test_wrong_offsets_are_refused(regression_data: Any, offset: Any, words: str) -> None:
    with pytest.raises(gb.InputError, match=words):
        gb.GradientBoostingRegressor().fit(*regression_data, init_score=offset)
