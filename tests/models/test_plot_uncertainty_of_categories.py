"""Uncertainty along a feature of a frame that has categories."""

from __future__ import annotations

import numpy as np
import pytest

import gpuboost as gb

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib").use("Agg")
rng = np.random.default_rng(0)
TOWN = pd.Categorical(rng.choice(["Ashford", "Bath", "Crewe"], 90))
X = pd.DataFrame({"area": rng.normal(size=90), "town": TOWN})
Y = X["area"].to_numpy() + (TOWN == "Bath")


@pytest.mark.filterwarnings("ignore")
def test_numbers_and_categories_of_a_regression() -> None:
    model = gb.GradientBoostingRegressor(n_estimators=20, langevin=gb.Langevin(), n_jobs=1, random_state=0).fit(X, Y)
    line = gb.plot.uncertainty(model, X, 0).lines[0]
    np.testing.assert_array_equal(line.get_xdata(), np.sort(X["area"]))
    asked = X.head(30).copy()
    asked.loc[[2, 5], "town"] = None
    ax = gb.plot.uncertainty(model, asked, 1)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["Ashford", "Bath", "Crewe"]
    assert ax.get_xlabel() == "town"
    by_town = asked.dropna().sort_values("town", kind="stable")
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), by_town["town"].cat.codes)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.predict_uncertainty(by_town).mean)
    assert len(ax.collections) == 2


@pytest.mark.filterwarnings("ignore")
def test_categories_of_a_classification() -> None:
    model = gb.GradientBoostingClassifier(n_estimators=20, langevin=gb.Langevin(), n_jobs=1).fit(X, Y > 0)
    assert len(gb.plot.uncertainty(model, X, 1).lines) == 2


@pytest.mark.filterwarnings("ignore")
def test_target_statistics_and_datasets_are_drawn_at_their_categories() -> None:
    encoding = gb.OrderedTargetStatistics(permutations=1)
    model = gb.GradientBoostingRegressor(
        n_estimators=20, langevin=gb.Langevin(), categorical_encoding=encoding, n_jobs=1, random_state=0
    ).fit(X, Y)
    for rows in (X, gb.Dataset(X, Y)):
        np.testing.assert_array_equal(gb.plot.uncertainty(model, rows, 0).lines[0].get_xdata(), np.sort(X["area"]))
        np.testing.assert_array_equal(gb.plot.uncertainty(model, rows, 1).lines[0].get_xdata(), np.sort(TOWN.codes))
