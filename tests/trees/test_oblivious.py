"""Models of oblivious trees: all that can be done with a model can be done with these, empty leaves or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb

Data = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def model(regression_data: Data) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(n_estimators=15, growth="oblivious", max_depth=5).fit(*regression_data)


def test_some_leaves_are_empty(model: gb.GradientBoostingRegressor) -> None:
    """Or the tests below would show nothing."""
    trees = model.ensemble_.trees
    empty = [tree.nodes.is_leaf & (tree.nodes.count == 0) for tree in trees]
    assert sum(found.sum() for found in empty) > 10
    assert all((tree.value[found] == 0.0).all() for tree, found in zip(trees, empty, strict=True))


def test_a_file_keeps_every_bit(model: gb.GradientBoostingRegressor, regression_data: Data, tmp_path: Path) -> None:
    x = regression_data[0]
    model.save_model(tmp_path / "one.json")
    loaded = gb.load_model(tmp_path / "one.json")
    assert loaded.get_params()["growth"] == "oblivious"
    assert loaded.predict(x).tobytes() == model.predict(x).tobytes()
    loaded.save_model(tmp_path / "two.json")
    assert (tmp_path / "two.json").read_bytes() == (tmp_path / "one.json").read_bytes()


def test_any_number_of_threads_and_the_sparse_path_give_one_model(regression_data: Data, tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix

    x, y = regression_data
    x = np.where(np.abs(x) < 0.8, 0.0, x)
    texts = set()
    for threads in (1, 2, 3):
        for rows in (x, csr_matrix(x)):
            settings: dict[str, Any] = {"sampling": 0.7, "learners": 3, "random_state": 4, "n_jobs": threads}
            found = gb.GradientBoostingRegressor(n_estimators=8, growth="oblivious", **settings).fit(rows, y)
            found.set_params(n_jobs=None).save_model(tmp_path / "model.json")
            texts.add((tmp_path / "model.json").read_bytes())
    assert len(texts) == 1


def test_contributions_sum_to_the_score(model: gb.GradientBoostingRegressor, regression_data: Data) -> None:
    x = regression_data[0]
    values = model.predict_contributions(x)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values.sum(axis=1), model.predict(x), atol=1e-9)
    assert (model.feature_importances_ >= 0.0).all()


def test_rows_never_seen_may_reach_an_empty_leaf(model: gb.GradientBoostingRegressor, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2_000, 5)) * 2.0
    x[rng.random(x.shape) < 0.1] = np.nan
    reached = model.apply(x)
    nodes = [tree.nodes for tree in model.ensemble_.trees]
    assert any((one.count[reached[:, i]] == 0).any() for i, one in enumerate(nodes))
    assert np.isfinite(model.predict(x)).all()


def test_a_heavy_row_is_several_rows(regression_data: Data) -> None:
    x, y = regression_data
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    x_new = np.random.default_rng(1).normal(size=(500, 5))
    estimator = gb.GradientBoostingRegressor(n_estimators=10, growth="oblivious", max_depth=7)
    weighted = estimator.fit(x, y, sample_weight=weight).predict(x_new)
    assert np.array_equal(estimator.fit(np.repeat(x, weight, axis=0), np.repeat(y, weight)).predict(x_new), weighted)


def test_a_limit_is_needed(regression_data: Data) -> None:
    with pytest.raises(gb.RecipeError, match="max_depth: a tree needs a limit"):
        gb.GradientBoostingRegressor(growth="oblivious", max_depth=None).fit(*regression_data)
    with pytest.raises(gb.RecipeError, match="growth: must be one of 'depthwise', 'leafwise', 'oblivious'"):
        gb.GradientBoostingRegressor(growth="symmetric").fit(*regression_data)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["california", "higgs7k"])
def test_as_good_as_catboost_on_real_data(name: str, data_dir: Path) -> None:
    """Equal depth, rate and rounds. CatBoost's own seeds move its score by about 1 %."""
    catboost = pytest.importorskip("catboost")
    from gpuboost.benchmarks.data import real
    from gpuboost.benchmarks.harness.scores import score

    data = getattr(real, name)()
    ours = {"n_estimators": 200, "growth": "oblivious", "max_depth": 6}
    theirs = {"iterations": 200, "learning_rate": 0.1, "depth": 6, "verbose": 0, "allow_writing_files": False}
    if data.task == "regression":
        model = gb.GradientBoostingRegressor(**ours).fit(data.X, data.y)
        found, metric = model.predict(data.X_test), "rmse"
        columns = [c for c in data.X.columns if data.X[c].dtype.name == "category"]
        texts = {c: str for c in columns}
        peer = catboost.CatBoostRegressor(cat_features=columns, **theirs).fit(data.X.astype(texts), data.y)
        expected = peer.predict(data.X_test.astype(texts))
    else:
        model = gb.GradientBoostingClassifier(**ours).fit(data.X, data.y)
        found, metric = model.predict_proba(data.X_test)[:, 1], "logloss"
        expected = catboost.CatBoostClassifier(**theirs).fit(data.X, data.y).predict_proba(data.X_test)[:, 1]
    assert score(data, found)[metric] < 1.02 * score(data, expected)[metric]
