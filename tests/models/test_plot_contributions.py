"""Pictures of contributions, by what is drawn in them; and permutation importance of held-out rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

import gpuboost as gb

matplotlib = pytest.importorskip("matplotlib")

Data = tuple[np.ndarray, np.ndarray]


@pytest.fixture(autouse=True)
def off_screen() -> Iterator[None]:
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


@pytest.fixture
def model(regression_data: Data) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(n_estimators=10, max_depth=2, n_jobs=1).fit(*regression_data)


def test_a_summary_has_a_point_for_each_row_at_its_contribution(
    model: gb.GradientBoostingRegressor, regression_data: Data
) -> None:
    x = regression_data[0][:80].copy()
    x[:5, 0] = np.nan
    contributions = model.predict_contributions(x)[:, :-1]
    ax = gb.plot.shap_summary(model, x, top=3)
    order = np.argsort(-np.abs(contributions).mean(axis=0))[:3][::-1]
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"x{f}" for f in order]
    points = np.concatenate([part.get_offsets() for part in ax.collections])
    assert len(points) == 3 * 80
    for line, column in enumerate(order):
        drawn = np.sort(points[np.abs(points[:, 1] - line) <= 0.45][:, 0])
        np.testing.assert_allclose(drawn, np.sort(contributions[:, column]))
    assert sorted(len(part.get_offsets()) for part in ax.collections)[0] == 5  # grey: missing


def test_a_dependence_is_the_contribution_by_the_value(
    model: gb.GradientBoostingRegressor, regression_data: Data
) -> None:
    x = regression_data[0][:80].copy()
    x[:5, 1] = np.nan
    contributions = model.predict_contributions(x)[:, 1]
    ax = gb.plot.dependence(model, x, 1, colour_by="x2")
    points, missing = ax.collections
    np.testing.assert_allclose(points.get_offsets(), np.column_stack([x[5:, 1], contributions[5:]]))
    np.testing.assert_allclose(np.asarray(missing.get_offsets())[:, 1], contributions[:5])
    shades = np.argsort(np.argsort(x[:, 2]))[5:] / 79
    np.testing.assert_allclose(points.get_array(), shades)
    assert ax.get_xlabel() == "x1"


@pytest.mark.filterwarnings("ignore:n_estimators. the chain forgets:gpuboost.errors.OutsideTheoryWarning")
def test_rows_of_a_stream_are_read_once(regression_data: Data) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    x = pd.DataFrame(np.nan_to_num(regression_data[0][:80])).rename(columns=str)
    settings = {"n_estimators": 20, "langevin": gb.Langevin(), "n_jobs": 1, "random_state": 0}
    model = gb.GradientBoostingRegressor(**settings).fit(x, x["0"])
    rows = pyarrow.Table.from_pandas(x)
    points = gb.plot.dependence(model, rows.to_reader(), 0, colour_by="strongest").collections[0].get_offsets()
    np.testing.assert_allclose(points[:, 1], model.predict_contributions(x)[:, 0])
    line = gb.plot.uncertainty(model, rows.to_reader(), 0).lines[0]
    np.testing.assert_array_equal(line.get_xdata(), np.sort(x["0"]))


def test_a_pair_is_drawn_at_its_interaction_and_the_strongest_partner_is_found(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = rng.normal(size=(400, 4))
    x[:5, 0] = np.nan
    y = np.nan_to_num(x[:, 0]) * x[:, 2] + 0.1 * x[:, 1]
    model = gb.GradientBoostingRegressor(n_estimators=10, max_depth=3, n_jobs=1).fit(x, y)
    pairs = model.predict_interactions(x)
    monkeypatch.setattr("gpuboost.plot.explained.MOST_BYTES", 20_000)  # a hundred rows at a time
    ax = gb.plot.dependence(model, x, (0, "x2"))
    np.testing.assert_allclose(np.asarray(ax.collections[0].get_offsets())[:, 1], 2 * pairs[5:, 0, 2])
    assert ax.get_ylabel() == "interaction of x0 and x2"
    alone = gb.plot.dependence(model, gb.Dataset(x), (1, 1))
    np.testing.assert_allclose(np.asarray(alone.collections[0].get_offsets())[:, 1], pairs[:, 1, 1])
    found = gb.plot.dependence(model, x, 0, colour_by="strongest")
    assert found.figure.axes[-1].get_ylabel() == "x2"
    assert found.get_ylabel() == "contribution of x0"


def test_categories_and_classes_have_their_names(rng: np.random.Generator) -> None:
    frame = pd.DataFrame({"c": pd.Categorical(rng.choice(["red", "blue"], 120)), "x": rng.normal(size=120)})
    labels = np.digitize(frame["x"] + (frame["c"] == "red"), [0.0, 1.0])
    model = gb.GradientBoostingClassifier(n_estimators=4, n_jobs=1).fit(frame, labels)
    ax = gb.plot.dependence(model, frame, "c", output=2)
    assert {text.get_text() for text in ax.get_xticklabels()} == {"red", "blue"}
    heights = np.asarray(ax.collections[0].get_offsets())[:, 1]
    np.testing.assert_allclose(heights, model.predict_contributions(frame)[:, 2, 0])
    assert gb.plot.shap_summary(model, gb.Dataset(frame), output=1, ax=ax) is ax


def test_what_cannot_be_drawn_is_named(model: gb.GradientBoostingRegressor, regression_data: Data) -> None:
    x, y = regression_data
    with pytest.raises(gb.RecipeError, match="top: must be an integer of at least 1; got 0"):
        gb.plot.shap_summary(model, x, top=0)
    for output in (1, -1, "x", True):
        with pytest.raises(gb.InputError, match="output: must be from 0 to 0"):
            gb.plot.shap_summary(model, x, output=output)
    with pytest.raises(gb.InputError, match="feature: must be one of x0, x1"):
        gb.plot.dependence(model, x, "age")
    with pytest.raises(gb.InputError, match="colour_by: must be one of x0, x1"):
        gb.plot.dependence(model, x, 0, colour_by=5)
    with pytest.raises(gb.InputError, match="X: rows to draw must be in the host's memory; got OnGpu"):
        gb.plot.shap_summary(model, type("OnGpu", (), {"__cuda_array_interface__": {}})())
    lines = gb.GradientBoostingRegressor(n_estimators=2, base_learner=gb.learners.Linear()).fit(x, y)
    with pytest.raises(gb.InputError, match="predict_contributions: it is for models of trees"):
        gb.plot.shap_summary(lines, x)


def test_permutation_importance_of_scikit_learn_takes_held_out_rows(regression_data: Data) -> None:
    from sklearn.inspection import permutation_importance

    x, y = regression_data
    model = gb.GradientBoostingRegressor(n_estimators=30, n_jobs=1).fit(x[:200], y[:200])
    found = permutation_importance(model, x[200:], y[200:], n_repeats=3, random_state=0)
    assert found.importances_mean[4] < 0.05 < found.importances_mean[0]  # the last column is noise
