"""The pictures, by what is drawn in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import gpuboost as gb

matplotlib = pytest.importorskip("matplotlib")

Data = tuple[np.ndarray, np.ndarray]

pytestmark = pytest.mark.filterwarnings("ignore:n_estimators. the chain forgets:gpuboost.errors.OutsideTheoryWarning")


@pytest.fixture(autouse=True)
def off_screen() -> Iterator[None]:
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


@pytest.fixture
def model(regression_data: Data) -> gb.GradientBoostingRegressor:
    x, y = regression_data
    stopping = gb.GradientBoostingRegressor(n_estimators=60, max_depth=2, early_stopping_rounds=2, learning_rate=0.7)
    return stopping.fit(x[:200], y[:200], eval_set={"new": (x[200:], y[200:]), "last": (x[200:], y[200:])})


def texts(ax: object) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_importance_has_the_greatest_on_top(model: gb.GradientBoostingRegressor) -> None:
    ax = gb.plot.importance(model, top=3)
    order = np.argsort(-model.feature_importances_)[:3]
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"x{f}" for f in order[::-1]]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], model.feature_importances_[order[::-1]])
    assert "split" in gb.plot.importance(model, "split", ax=ax).get_xlabel()


def test_metrics_are_a_line_for_each_set_and_the_best_round(model: gb.GradientBoostingRegressor) -> None:
    ax = gb.plot.metrics(model)
    new, last, best = ax.get_lines()
    np.testing.assert_array_equal(new.get_ydata(), model.evals_result_["new"]["rmse"])
    assert [new.get_label(), last.get_label()] == ["new", "last"]
    assert best.get_xdata()[0] == model.best_iteration_ + 1
    assert ax.get_ylabel() == "rmse"
    assert len(gb.plot.metrics(model.evals_result_).get_lines()) == 2


def test_metrics_of_cross_validation_have_a_band(regression_data: Data) -> None:
    result = gb.cv(gb.GradientBoostingRegressor(n_estimators=5, max_depth=2), *regression_data, folds=2)
    ax = gb.plot.metrics(result)
    assert len(ax.collections) == 1
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), result.mean["rmse"])


def test_a_tree_shows_its_splits_and_leaves(model: gb.GradientBoostingRegressor) -> None:
    shown = texts(gb.plot.tree(model))
    tree = model.ensemble_.trees[0]
    split = int(tree.nodes.feature[0])
    threshold = model.ensemble_.cuts.thresholds[split][tree.nodes.bin[0]]
    assert f"x{split} <= {threshold:.6g}" in shown[-len(tree.value)] or any(
        text.startswith(f"x{split} <= {threshold:.6g}") for text in shown
    )
    for value, count in zip(tree.value[tree.nodes.is_leaf], tree.nodes.count[tree.nodes.is_leaf], strict=True):
        assert f"{0.7 * value:.4g}\n{count} rows" in shown


def test_only_a_fitted_model_of_trees_has_one(regression_data: Data) -> None:
    additive = gb.GradientBoostingRegressor(n_estimators=2, base_learner=gb.learners.Linear())
    with pytest.raises(NotFittedError):
        gb.plot.tree(additive)
    with pytest.raises(
        gb.InputError, match=r"model: trees are drawn, .*base_learner=Linear\(columns=None\). See gb.plot"
    ):
        gb.plot.tree(additive.fit(*regression_data))


def test_a_tree_names_missing_values_and_categories(rng: np.random.Generator) -> None:
    number = np.where(rng.random(200) < 0.3, np.nan, 1.0)
    town = rng.choice(["Bath", "Ely"], 200)
    frame = pd.DataFrame({"n": number, "town": pd.Categorical(town)})
    y = 3.0 * np.isnan(number) + (town == "Ely")
    model = gb.GradientBoostingRegressor(n_estimators=1, max_depth=2).fit(frame, y)
    shown = "\n".join(texts(gb.plot.tree(model)))
    assert "n is known" in shown or "n is missing" in shown
    assert "town in {Ely}" in shown or "town in {Bath}" in shown


def test_what_is_not_there_is_refused(model: gb.GradientBoostingRegressor) -> None:
    with pytest.raises(gb.InputError, match=f"{model.n_iter_} rounds"):
        gb.plot.tree(model, round=model.n_iter_)
    with pytest.raises(gb.InputError, match="metric"):
        gb.plot.metrics(model, metric="auc")
    with pytest.raises(gb.InputError, match="no eval set"):
        gb.plot.metrics({})
    both, other = {"mae": [0.3], "rmse": [0.5]}, {"rmse": [0.6]}
    assert gb.plot.metrics({"a": both, "b": other}).get_ylabel() == "rmse"
    for curves in ({"a": {"mae": [0.3]}, "b": other}, {"a": {"rmse": 0.5}, "b": other}):
        with pytest.raises(gb.InputError, match="results: no metric has a curve in each of 'a', 'b'"):
            gb.plot.metrics(curves)
    with pytest.raises(gb.RecipeError, match="top"):
        gb.plot.importance(model, top=0)
    with pytest.raises(gb.InputError, match="kind"):
        gb.plot.importance(model, "weight")


def chain(**params: object) -> dict[str, object]:
    return {"n_estimators": 60, "max_depth": 2, "langevin": gb.Langevin(shrinkage=0.1), "random_state": 0, **params}


def test_uncertainty_has_a_band_for_the_mean_and_a_wider_one_for_observations(regression_data: Data) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(**chain()).fit(x, y)
    ax = gb.plot.uncertainty(model, x, feature=1, coverage=0.8)
    _, labels = ax.get_legend_handles_labels()
    assert labels == ["mean", "80% interval of the observation", "80% interval of the mean"]
    outer, inner = (np.ptp(band.get_paths()[0].vertices[:, 1]) for band in ax.collections)
    assert outer > inner
    assert ax.get_xlabel() == "x1"
    drawn = ax.lines[0]
    order = np.argsort(x[:, 1], kind="stable")
    np.testing.assert_array_equal(drawn.get_xdata(), x[order, 1])
    np.testing.assert_array_equal(drawn.get_ydata(), model.predict_uncertainty(x).mean[order])
    robust = gb.GradientBoostingRegressor("huber", **chain()).fit(x, y)
    assert len(gb.plot.uncertainty(robust, x).collections) == 1


def test_uncertainty_of_a_classifier_is_beside_its_probability(binary_data: Data) -> None:
    x, y = np.nan_to_num(binary_data[0]), binary_data[1]
    model = gb.GradientBoostingClassifier(**chain()).fit(x, y)
    _, labels = gb.plot.uncertainty(model, x).get_legend_handles_labels()
    assert labels == ["P(1)", "knowledge uncertainty (nats)"]


def test_trace_has_a_line_for_each_chain_and_says_whether_they_mixed(regression_data: Data) -> None:
    x, y = regression_data
    chains = gb.chains(gb.GradientBoostingRegressor(**chain()), x, y, n_chains=3)
    ax = gb.plot.trace(chains.traces(x[:2]), burn_in=0.25)
    assert len(ax.lines) == 4
    assert ax.lines[3].get_xdata()[0] == 15
    assert ax.get_title().startswith("R-hat ")
    np.testing.assert_array_equal(
        ax.lines[1].get_ydata(), [float(one[0]) for one in chains.models[1].staged_predict(x)]
    )
    assert len(gb.plot.trace(chains.models[0].trace(x[:1])).lines) == 2
    with pytest.raises(gb.InputError, match="traces: must be"):
        gb.plot.trace(np.zeros((5, 2)))


def test_autocorrelation_ends_where_it_is_asked_to_and_marks_its_time(regression_data: Data) -> None:
    x, y = regression_data
    traces = gb.chains(gb.GradientBoostingRegressor(**chain()), x, y, n_chains=2).traces(x[:1])
    ax = gb.plot.autocorrelation(traces, lags=5)
    drawn = ax.lines[0].get_ydata()
    np.testing.assert_array_equal(drawn, gb.posterior.autocorrelations(traces[:, 30:, 0, 0])[:6])
    time = float(gb.posterior.autocorrelation_time(traces[:, 30:, 0, 0]))
    assert ax.lines[2].get_xdata()[0] == time
    assert len(gb.plot.autocorrelation(traces[0]).lines) == 3
    with pytest.raises(gb.InputError, match="traces: must be"):
        gb.plot.autocorrelation(np.zeros((5, 2)))


def test_calibration_is_drawn_against_the_diagonal(regression_data: Data) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(**chain()).fit(x, y)
    found = gb.posterior.calibration(model.predict_uncertainty(x), y)
    ax = gb.plot.calibration(found)
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), found.promised)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), found.found)


def test_staleness_is_a_bar_for_each_and_a_line_at_the_mean(regression_data: Data) -> None:
    execution = gb.SimulatedWorkers(4, build_time=1.0, server_time=0.1, failures=0.1)
    model = gb.GradientBoostingRegressor(n_estimators=20, execution=execution).fit(*regression_data)
    ax = gb.plot.staleness(model)
    assert sum(bar.get_height() for bar in ax.patches) == 20
    assert ax.lines[0].get_xdata()[0] == model.log_.mean_staleness
    assert "4 workers" in ax.get_xlabel()
    assert len(gb.plot.staleness(model.log_).patches) == len(ax.patches)
    with pytest.raises(gb.InputError, match=r"fitted asynchronously.* or a gb\.Log with rounds"):
        gb.plot.staleness(gb.Log(()))


def test_timeline_has_a_bar_for_each_tree_where_its_worker_is(regression_data: Data) -> None:
    execution = gb.SimulatedWorkers(4, build_time=1.0, server_time=0.1, failures=0.2)
    model = gb.GradientBoostingRegressor(n_estimators=20, execution=execution).fit(*regression_data)
    ax = gb.plot.timeline(model, last=None)
    bars = sorted((bar.get_y() + bar.get_height() / 2, bar.get_x(), bar.get_width()) for bar in ax.patches)
    expected = sorted((line.worker, line.began, line.built - line.began) for line in model.log_.lines)
    np.testing.assert_allclose(bars, expected)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["applied", "failed"]
    assert ax.get_xlabel() == "simulated seconds"
    assert len(gb.plot.timeline(model.log_, last=5).patches) == 5


def test_dollar_signs_of_names_and_categories_are_no_formulas(rng: np.random.Generator) -> None:
    size = rng.choice(["$0-$50", "$50-$"], 200)
    frame = pd.DataFrame({"$x^$": rng.normal(size=200), "size": pd.Categorical(size)})
    target = frame["$x^$"] + (size == "$50-$")
    tree = gb.GradientBoostingRegressor(n_estimators=3, max_depth=2).fit(
        frame, target, eval_set={"$^$": (frame, target)}
    )
    stumps = gb.GradientBoostingRegressor(n_estimators=30, max_depth=1).fit(frame, target)
    for ax in (
        gb.plot.importance(tree),
        gb.plot.metrics(tree),
        gb.plot.tree(tree),
        gb.plot.shap_summary(tree, frame),
        gb.plot.dependence(tree, frame, "size", colour_by="$x^$"),
        gb.plot.dependence(tree, frame, "$x^$"),
        gb.plot.partial_effect(stumps, "$x^$"),
        gb.plot.partial_effect(stumps, "size"),
    ):
        ax.figure.canvas.draw()
    assert sorted(label.get_text() for label in ax.get_yticklabels()) == [r"\$0-\$50", r"\$50-\$"]


def test_noise_that_is_not_normal_has_no_outer_band_and_several_numbers_are_refused() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))
    settings = {"n_estimators": 20, "langevin": gb.Langevin(), "n_jobs": 1, "random_state": 0}
    counts = gb.GradientBoostingRegressor("poisson", **settings).fit(x, np.round(np.exp(x[:, 0])))
    ax = gb.plot.uncertainty(counts, x, 0)
    assert [band.get_label() for band in ax.collections] == ["90% interval of the mean"]
    several = gb.GradientBoostingRegressor(**settings).fit(x, x)
    labels = gb.GradientBoostingClassifier(**settings).fit(x, (x > 0).astype(int))
    for model in (several, labels):
        with pytest.raises(gb.InputError, match="this one predicts 2 numbers or labels of a row"):
            gb.plot.uncertainty(model, x, 0)
    with pytest.raises(gb.InputError, match="one interval of a row is drawn, and this model has 2"):
        gb.plot.intervals(several, x)
