"""Splits of categorical columns: used on small data, limited as asked, independent of the order of a dtype."""

import numpy as np
import pandas as pd
import pytest

import gpuboost as gb
from gpuboost.kernels.splits.categories import rank_categories


def frame(codes, categories):
    return pd.DataFrame({"c": pd.Categorical(codes, categories=categories)})


def test_a_column_of_few_rows_is_used():
    codes = np.tile(np.arange(5), 40)
    y = (codes % 2).astype(float)
    assert gb.GradientBoostingRegressor().fit(frame(codes, range(5)), y).score(frame(codes, range(5)), y) > 0.99


@pytest.mark.parametrize(("categories", "rows"), [(7, 200), (12, 200), (50, 500), (300, 3000)])
def test_held_out_error_is_that_of_smoothed_means(categories, rows):
    differences = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        effects = rng.normal(size=categories)
        codes, held_out = rng.integers(0, categories, rows), rng.integers(0, categories, 5000)
        y, truth = effects[codes] + 0.3 * rng.normal(size=rows), effects[held_out]
        model = gb.GradientBoostingRegressor().fit(frame(codes, range(categories)), y)
        sums, counts = np.bincount(codes, y, categories), np.bincount(codes, minlength=categories)
        means = ((sums + y.mean()) / (counts + 1))[held_out]
        predicted = model.predict(frame(held_out, range(categories)))
        differences.append((np.mean((means - truth) ** 2) - np.mean((predicted - truth) ** 2)) / truth.var())
    assert np.mean(differences) > -0.01  # as a share of the variance: a difference of R2


def test_the_order_of_a_dtype_does_not_change_the_model():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 12, 400)
    y = np.round(np.sin(codes) + rng.normal(size=400))
    by_order = [
        gb.GradientBoostingRegressor(n_estimators=20).fit(frame(codes, order), y).predict(frame(codes, order))
        for order in (range(12), range(11, -1, -1), rng.permutation(12))
    ]
    assert by_order[0].tobytes() == by_order[1].tobytes() == by_order[2].tobytes()


@pytest.mark.parametrize("categories", [5, 6, 33, 255])
@pytest.mark.parametrize("counted", [False, True])
def test_categories_are_sorted_by_ratio_then_bin(categories, counted):
    rng = np.random.default_rng(categories)
    g, h = rng.integers(-3, 4, categories + 1), rng.integers(0, 4, categories + 1)  # many of equal ratios
    rows = np.ones(categories + 1, np.int64) if counted else np.empty(0, np.int64)
    rule = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.0, 1.0, 1.0])  # smoothing 0.5; a row of each category
    order, single = rank_categories(g, h, rows, categories, (1.0, 1.0), rule)
    large = [c for c in range(categories) if h[c] >= 1]
    assert not single
    assert order.tolist() == sorted(large, key=lambda c: (g[c] / (h[c] + 0.5), c))


def test_a_node_without_rows_for_two_groups_has_no_candidates():
    g, h = np.arange(8), np.ones(8, np.int64)
    rule = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.0, 1.0, 4.0])
    for groups, found in ((4.0, 7), (5.0, 0)):
        rule[9] = groups
        order, single = rank_categories(g, h, np.empty(0, np.int64), 7, (1.0, 1.0), rule)
        assert (len(order), single) == (found, False)


def test_limits_of_rows_grow_with_the_training_rows_up_to_lightgbms():
    default = gb.CategoricalSplits()
    assert default.limits(200) == (10.0, 10.0, 0.2, 2.0)
    assert default.limits(10_000) == default.limits(10**8) == (10.0, 10.0, 10.0, 100.0)
    assert gb.CategoricalSplits(1.0, 2.0, 3.0, 4.0).limits(200) == (1.0, 2.0, 3.0, 4.0)


@pytest.mark.slow
@pytest.mark.parametrize("growth", ["depthwise", "leafwise", "oblivious"])
def test_the_limits_are_obeyed(growth, tmp_path):
    codes = np.repeat(np.arange(10), 30)
    y = (codes == 9).astype(float)

    def leaves(**limits):
        model = gb.GradientBoostingRegressor(
            n_estimators=1,
            growth=growth,
            max_depth=3,
            max_leaves=None,
            categorical_splits=gb.CategoricalSplits(**limits),
        ).fit(frame(codes, range(10)), y)
        model.save_model(tmp_path / "model.json")
        again = gb.load_model(tmp_path / "model.json")
        assert again.categorical_splits == model.categorical_splits
        return model.ensemble_.trees[0].nodes.is_leaf.sum()

    assert leaves() > 1
    assert leaves(min_group_rows=31.0) > 1
    assert leaves(min_group_rows=271.0) == leaves(min_category_rows=31.0) == 1


@pytest.mark.parametrize("name", ["smoothing", "reg_lambda", "min_category_rows", "min_group_rows"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "10", True])
def test_wrong_limits_are_refused(name, value):
    with pytest.raises(gb.RecipeError, match=f"categorical_splits: {name} must be"):
        gb.CategoricalSplits(**{name: value})


def test_something_else_is_refused():
    with pytest.raises(gb.RecipeError, match=r"categorical_splits: must be None or a gb\.CategoricalSplits; got 10"):
        gb.GradientBoostingRegressor(categorical_splits=10).fit([[0.0], [1.0]], [0.0, 1.0])
