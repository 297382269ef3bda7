"""One model of several quantiles, and expectiles."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import mean_pinball_loss

import gpuboost as gb
from gpuboost import losses, metrics
from gpuboost.cli import main

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
Array = np.ndarray


def noisy(n: int = 300, seed: int = 0) -> tuple[Array, Array]:
    """Noise that grows with the second column."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, size=(n, 3))
    return x, x[:, 0] ** 2 + (0.1 + np.abs(x[:, 1])) * rng.normal(size=n)


def regressor(loss: Any, **more: Any) -> gb.GradientBoostingRegressor:
    given: dict[str, Any] = {"n_estimators": 25, "max_depth": 3, "learning_rate": 0.3, "random_state": 0} | more
    return gb.GradientBoostingRegressor(loss=loss, **given)


@pytest.fixture(scope="module")
def model() -> gb.GradientBoostingRegressor:
    return regressor(losses.Quantile(LEVELS)).fit(*noisy())


def raw(model: gb.GradientBoostingRegressor, x: Array) -> Array:
    """(q, n) scores before they are put in order."""
    return model.predict_contributions(x).sum(axis=-1).T


def test_each_level_is_trained_as_by_a_model_of_its_own(model: gb.GradientBoostingRegressor) -> None:
    x, y = noisy()
    for output, level in enumerate(LEVELS):
        alone = regressor(losses.Quantile(level)).fit(x, y)
        ours = [tree for tree in model.ensemble_.trees if tree.output == output]
        assert model.ensemble_.bias[output] == alone.ensemble_.bias[0]
        for tree, theirs in zip(ours, alone.ensemble_.trees, strict=True):
            np.testing.assert_array_equal(tree.value, theirs.value)
            np.testing.assert_array_equal(tree.nodes.feature, theirs.nodes.feature)


def test_quantiles_do_not_cross_though_their_scores_do(model: gb.GradientBoostingRegressor) -> None:
    x = np.random.default_rng(1).uniform(-3.0, 3.0, size=(2_000, 3))
    predicted = model.predict(x)
    assert predicted.shape == (2_000, len(LEVELS))
    assert (np.diff(predicted, axis=1) >= 0.0).all()
    scores = raw(model, x)
    assert (np.diff(scores, axis=0) < 0.0).any()
    np.testing.assert_allclose(np.sort(scores, axis=0).T, predicted, rtol=0, atol=1e-9)


def test_sorting_never_raises_the_pinball_loss_of_a_row() -> None:
    loss = losses.Quantiles(tuple(LEVELS))
    rng = np.random.default_rng(2)
    for f, y in zip(rng.normal(size=(300, len(LEVELS))), rng.normal(size=300), strict=True):
        assert loss.row_value(y, np.sort(f), 0.0) <= loss.row_value(y, f, 0.0) + 1e-12


def test_shares_below_the_quantiles_are_the_levels() -> None:
    x, y = noisy(4_000, 3)
    x_test, y_test = noisy(4_000, 4)
    fitted = regressor(losses.Quantile([0.1, 0.5, 0.9]), n_estimators=60, learning_rate=0.1, min_samples_leaf=50)
    shares = (y_test[:, None] <= fitted.fit(x, y).predict(x_test)).mean(axis=0)
    np.testing.assert_allclose(shares, [0.1, 0.5, 0.9], atol=0.03)
    low, high = fitted.predict_interval(x_test, 0.8).T
    np.testing.assert_array_equal(np.column_stack([low, high]), fitted.predict(x_test)[:, [0, 2]])


def test_early_stopping_is_by_the_mean_pinball_loss_of_what_is_predicted() -> None:
    x, y = noisy()
    x_eval, y_eval = noisy(200, 5)
    fitted = regressor(losses.Quantile(LEVELS), n_estimators=200, early_stopping_rounds=5)
    fitted.fit(x, y, eval_set=[(x_eval, y_eval)])
    found = fitted.evals_result_["validation_0"]["quantile"]
    assert len(found) < 200
    each = [
        mean_pinball_loss(y_eval, column, alpha=level)
        for level, column in zip(LEVELS, fitted.predict(x_eval).T, strict=True)
    ]
    assert min(found) == pytest.approx(np.mean(each), rel=1e-12)


def test_metrics_of_intervals() -> None:
    loss, y = losses.Quantiles((0.1, 0.9)), np.array([0.0, 1.0, 2.0, 3.0])
    scores = np.array([[3.0, 0.0, 2.0, 5.0], [-1.0, 0.5, 2.0, 1.0]])  # two of them in the wrong order
    weight = np.array([1.0, 2.0, 1.0, 4.0])
    assert metrics.get("coverage", loss)(y, scores, None, loss) == 0.75
    assert metrics.get("coverage", loss)(y, scores, weight, loss) == 0.75
    assert metrics.get("interval_width", loss)(y, scores, None, loss) == (4.0 + 0.5 + 0.0 + 4.0) / 4
    of_one = losses.Quantile(0.1)
    expected = metrics.get("quantile", of_one)(y, np.sort(scores, axis=0)[:1], weight, of_one)
    assert metrics.get("quantile:0.1", loss)(y, scores, weight, loss) == expected
    with pytest.raises(gb.InputError, match=r"'quantile:0.3' is none of the levels of the loss, 0.1, 0.9"):
        metrics.get("quantile:0.3", loss)
    with pytest.raises(gb.InputError, match="'rmse' does not fit loss 'quantiles': it judges one prediction a row"):
        metrics.get("rmse", loss)
    with pytest.raises(gb.InputError, match="'coverage' does not fit loss 'squared_error'"):
        metrics.get("coverage", losses.SquaredError())


def test_files_pickles_and_clones(model: gb.GradientBoostingRegressor, tmp_path: Path) -> None:
    x, y = noisy()
    model.save_model(tmp_path / "model.json")
    for other in (gb.load_model(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        assert other.loss_ == losses.Quantile(LEVELS)
        np.testing.assert_array_equal(other.predict(x), model.predict(x))
    assert gb.to_dict(model)["loss"] == {"name": "quantiles", "alpha": LEVELS}
    assert gb.dumps(clone(model).fit(x, y)) == gb.dumps(model)


@pytest.mark.parametrize(
    "more",
    [
        {"growth": "leafwise", "max_leaves": 6},
        {"growth": "oblivious"},
        {"sampling": 0.5},
        {"sampling": gb.MVS(0.5)},
        {"step": "line_search"},
        {"base_learner": [gb.learners.Spline()], "max_depth": 6},
        {"execution": gb.DataParallel(2)},
    ],
    ids=str,
)
def test_it_goes_with_the_other_pieces(more: dict[str, Any]) -> None:
    x, y = noisy()
    fitted = regressor(losses.Quantile([0.2, 0.8]), **more).fit(x, y, sample_weight=np.linspace(0.5, 2.0, len(y)))
    low, high = fitted.predict(x).T
    assert (low <= high).all()
    assert fitted.score(x, y) > 0.1


@pytest.mark.slow
def test_quantiles_can_be_monotone() -> None:
    x, y = noisy()
    fitted = regressor(losses.Quantile([0.2, 0.8]), monotonic_cst=[0, 1, 0]).fit(x, y)
    row = np.tile(x[:40, None], (1, 50, 1))
    row[:, :, 1] = np.linspace(-3.0, 3.0, 50)
    assert (np.diff(fitted.predict(row.reshape(-1, 3)).reshape(40, 50, 2), axis=1) >= 0.0).all()


def test_the_score_is_relative_to_constant_quantiles(model: gb.GradientBoostingRegressor) -> None:
    x, y = noisy()
    assert 0.2 < model.score(x, y) < 1.0
    flat = regressor(losses.Quantile(LEVELS), n_estimators=1, learning_rate=1e-9).fit(x, y)
    assert flat.score(x, y) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("alpha", "words"),
    [
        ([0.5], r"two or more increasing numbers between 0 and 1; got \[0.5\]. For one use Quantile\(0.5\)"),
        ([1.2], r"two or more increasing numbers between 0 and 1; got \[1.2\]\.$"),
        ([0.9, 0.1], "increasing"),
        ([0.1, 0.1], "increasing"),
        ([0.0, 0.5], "between 0 and 1"),
        ([0.5, np.nan], "Quantile needs a finite number"),
        ([[0.1, 0.9]], "increasing"),
        ([], "two or more"),
    ],
)
def test_wrong_levels_are_refused(alpha: Any, words: str) -> None:
    with pytest.raises(gb.RecipeError, match=f"alpha: .*{words}"):
        losses.Quantile(alpha)


def test_intervals_of_other_coverages_are_refused(model: gb.GradientBoostingRegressor) -> None:
    x, _ = noisy(5)
    with pytest.raises(gb.InputError, match=r"the model has 0.05, 0.25, .* Coverages of this model: 0.9, 0.5"):
        model.predict_interval(x, 0.8)
    with pytest.raises(gb.InputError, match="kind: quantiles are of new targets"):
        model.predict_interval(x, 0.9, "mean")


def test_formats_without_sorting_refuse_the_model(model: gb.GradientBoostingRegressor, tmp_path: Path) -> None:
    with pytest.raises(gb.InputError, match="'quantiles' are made by a function of its own"):
        gb.export.to_c(model, tmp_path / "model.c")


def test_the_command_line_takes_levels(tmp_path: Path) -> None:
    x, y = noisy(200)
    table = tmp_path / "rows.csv"
    np.savetxt(table, np.column_stack([x, y]), delimiter=",", header="a,b,c,y", comments="")
    saved, out = str(tmp_path / "model.json"), tmp_path / "out.csv"
    told = ["--target", "y", "--loss", "quantile:0.1,0.9", "--n-estimators", "5", "--eval", "0.2", "--model", saved]
    assert main(["train", str(table), *told]) == 0
    assert main(["predict", "--model", saved, str(table), "--output", str(out)]) == 0
    assert out.read_text().splitlines()[0] == "prediction(0.1),prediction(0.9)"


def test_expectiles_balance_the_mean_excess_on_both_sides() -> None:
    x, y = noisy(2_000, 6)
    fitted = regressor(losses.Expectile(0.9), n_estimators=150).fit(x, y)
    r = y - fitted.predict(x)
    assert 0.9 * np.maximum(r, 0.0).mean() == pytest.approx(0.1 * np.maximum(-r, 0.0).mean(), rel=0.02)
    mean = regressor("squared_error").fit(x, y)
    half = regressor(losses.Expectile(0.5)).fit(x, y)
    np.testing.assert_array_equal(half.predict(x), mean.predict(x))
