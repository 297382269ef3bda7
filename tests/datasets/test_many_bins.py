"""Columns of more than 255 bins: the same splits as of one long list of thresholds, on every machine."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from emulator import emulated_runtime
from numpy.typing import NDArray
from support.builders import TEAMS

import gpuboost as gb
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious
from gpuboost.learners import RandomGroups
from gpuboost.losses import SquaredError
from gpuboost.recipe import Recipe
from gpuboost.types import Limits, TrainingSet

Array = NDArray[np.float64]


def waves(n: int, d: int = 3, seed: int = 0, missing: float = 0.05) -> tuple[Array, Array]:
    """Numbers, some of them missing, and a target that turns more often than 255 bins can follow."""
    random = np.random.default_rng(seed)
    x = random.random((n, d))
    y = np.sin(400.0 * x[:, 0]) + x[:, 1] + 0.1 * random.normal(size=n)
    x[random.random((n, d)) < missing] = np.nan
    return x, y


def best_cut(x: Array, y: Array) -> tuple[float, float]:
    """The fall of the sum of squares by the best split of x, and the values on both sides of the cut."""
    order = np.argsort(x)
    x, residual = x[order], (y - y.mean())[order]
    left, count = np.cumsum(residual)[:-1], np.arange(1.0, len(x))
    gain = left**2 / count + left**2 / (len(x) - count)
    at = int(np.argmax(gain))
    return x[at], x[at + 1]


@pytest.mark.parametrize("seed", range(5))
def test_a_stump_on_65535_bins_is_the_best_of_all_splits(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, y = random.random(1500), random.normal(size=1500)
    model = gb.GradientBoostingRegressor(
        n_estimators=1, max_depth=1, min_child_weight=0.0, reg_lambda=0.0, max_bins=65_535
    ).fit(x[:, None], y)
    low, high = best_cut(x, y)
    assert model.predict([[low]]) != model.predict([[high]])
    assert len(np.unique(model.predict(x[:, None]))) == 2


def test_more_bins_follow_a_target_that_turns_often() -> None:
    x = np.random.default_rng(0).random((6_000, 1))
    y = np.sin(1000.0 * x[:, 0])  # 318 half-waves
    scores = {}
    for bins in (255, 1017):
        model = gb.GradientBoostingRegressor(n_estimators=30, learning_rate=0.3, max_depth=10, max_bins=bins)
        scores[bins] = model.fit(x[:4000], y[:4000]).score(x[4000:], y[4000:])
    assert scores[1017] > scores[255] + 0.2


@pytest.mark.slow
@pytest.mark.parametrize("growth", [DepthWise(Limits(40, 5)), LeafWise(Limits(20, 8)), Oblivious(Limits(32, 4))])
@pytest.mark.parametrize("sparse", [False, True])
def test_all_machines_grow_the_same_trees(growth: Growth, sparse: bool) -> None:
    x, y = waves(400)
    rows = scipy.sparse.csr_matrix(np.where(x < 0.3, 0.0, x)) if sparse else x
    times = (np.arange(400) % 3 + 1).astype(np.int32)
    dataset = gb.Dataset(rows, y, weight=times, max_bins=300)
    assert dataset.cuts.n_features > dataset.cuts.n_columns == 3
    recipe = Recipe(SquaredError(), 3, growth=growth, learners=RandomGroups(2))
    models = []
    for machine in (Reference(), *TEAMS.values(), Cuda(emulated_runtime())):
        data = TrainingSet(
            machine.quantise(rows, dataset.cuts),
            dataset.cuts,
            y,
            multiplicity=(np.arange(400) % 3).astype(np.int32) + 1,
        )
        models.append(machine.collect(boost(recipe, data, machine)))
    scores = [np.asarray(Reference().predict(model, rows)) for model in models]
    assert len(np.unique(scores[0])) > 20
    for other in scores[1:]:
        np.testing.assert_array_equal(scores[0], other)


@pytest.mark.parametrize("binning", ["quantile", "greedy_log_sum"])
def test_a_column_is_one_feature_to_users_of_the_model(binning: str) -> None:
    x, y = waves(1500)
    model = gb.GradientBoostingRegressor(n_estimators=20, max_bins=1017, binning=binning).fit(x, y)
    scores = model.predict(x)
    assert model.feature_importances_.shape == (3,)
    contributions = model.predict_contributions(x)
    assert contributions.shape == (1500, 4)
    np.testing.assert_allclose(contributions.sum(axis=1), scores, atol=1e-12)
    again = gb.loads(gb.dumps(model))
    np.testing.assert_array_equal(again.predict(x), scores)
    assert gb.dumps(again) == gb.dumps(model)
    np.testing.assert_array_equal(model.predictor().predict(x), scores)


def test_columns_are_drawn_as_wholes() -> None:
    x, y = waves(1200)
    model = gb.GradientBoostingRegressor(n_estimators=30, max_depth=3, max_bins=1017, learners=1 / 3).fit(x, y)
    columns = model.ensemble_.cuts.columns
    features = [{int(columns[f]) for f in tree.nodes.feature if f >= 0} for tree in model.ensemble_.trees]
    assert all(len(of_tree) <= 1 for of_tree in features)
    several = [tree for tree in model.ensemble_.trees if len({int(f) for f in tree.nodes.feature if f >= 0}) > 1]
    assert several, "a tree may use all thresholds of its column"


def test_monotonic_and_interaction_constraints_are_of_columns() -> None:
    x, y = waves(1500, missing=0.0)
    model = gb.GradientBoostingRegressor(
        n_estimators=20, max_bins=1017, monotonic_cst=[0, 1, 0], interaction_cst=[[0], [1, 2]]
    ).fit(x, y)
    grid = np.tile(x[:1], (200, 1))
    grid[:, 1] = np.linspace(0.0, 1.0, 200)
    assert (np.diff(model.predict(grid)) >= 0.0).all()
    columns = model.ensemble_.cuts.columns
    for tree in model.ensemble_.trees:
        assert {int(columns[f]) for f in tree.nodes.feature if f >= 0} in ({0}, {1}, {2}, {1, 2}, set())


def test_given_thresholds_may_be_as_many(tmp_path) -> None:
    x, y = waves(1500)
    thresholds = np.linspace(0.0, 1.0, 800)
    data = gb.Dataset(x, y, max_bins=1017, cuts={0: thresholds})
    of_first = np.flatnonzero(data.cuts.columns == 0)
    assert [len(data.cuts.thresholds[f]) for f in of_first] == [254, 254, 254, 38]
    np.testing.assert_array_equal(np.concatenate([data.cuts.thresholds[f] for f in of_first]), thresholds)
    same = gb.Dataset(x, y, max_bins=1017, cuts=data.cuts)
    for a, b in zip(same.cuts.thresholds, data.cuts.thresholds, strict=True):
        np.testing.assert_array_equal(a, b)
    data.save(tmp_path / "rows.gbd")
    stored = gb.Dataset.load(tmp_path / "rows.gbd")
    fits = [gb.GradientBoostingRegressor(n_estimators=3, max_bins=1017).fit(rows) for rows in (data, stored)]
    assert gb.dumps(fits[0]) == gb.dumps(fits[1])
    with pytest.raises(gb.InputError, match="800 thresholds, which make 801 bins; max_bins=800"):
        gb.Dataset(x, y, max_bins=800, cuts={0: thresholds})


def test_categories_and_statistics_keep_their_255_bins() -> None:
    random = np.random.default_rng(1)
    x, y = waves(2000, 2)
    codes = random.integers(0, 400, 2000)
    rows = np.column_stack([x, codes])
    y = y + (codes % 7 == 0)
    for encoding in ("partition", "ordered"):
        model = gb.GradientBoostingRegressor(
            n_estimators=15, max_bins=1017, categorical_features=[2], categorical_encoding=encoding
        ).fit(rows, y)
        assert (model.ensemble_.cuts.n_bins <= 255).all()
        again = gb.loads(gb.dumps(model))
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


@pytest.mark.parametrize("learner", [[gb.learners.Spline()], [gb.learners.LinearTree()]])
def test_functions_of_a_column_are_refused(learner) -> None:
    x, y = waves(800, missing=0.0)
    with pytest.raises(gb.InputError, match="max_bins: functions of a column have at most 255 bins, and column 0 has"):
        gb.GradientBoostingRegressor(n_estimators=2, max_bins=1017, base_learner=learner).fit(x, y)


@pytest.mark.parametrize("value", [1, 0, 65_536, 300.5, True, "255", None])
def test_numbers_of_bins_out_of_range(value) -> None:
    x, y = waves(50)
    with pytest.raises(gb.InputError, match="max_bins: must be an integer from 2 to 65535"):
        gb.GradientBoostingRegressor(n_estimators=2, max_bins=value).fit(x, y)
