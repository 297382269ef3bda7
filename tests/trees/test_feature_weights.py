"""Feature weights: the law of the draws, columns that are never drawn, and what refuses them."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.numerics.feature_subsets import features_of, weighted_subset
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.types import Candidates

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = X @ np.array([1.0, 2.0, 0.5, 0.0]) + RNG.normal(size=200)
PLAIN: dict[str, Any] = {"n_estimators": 8, "n_jobs": 1, "random_state": 0, "device": "cpu"}


def law(weights: tuple[float, ...], count: int) -> dict[tuple[int, ...], float]:
    """Probability of each subset, drawn one after the other in proportion to weights."""
    found = dict.fromkeys(combinations(range(len(weights)), count), 0.0)
    for order in permutations(range(len(weights)), count):
        chance, left = 1.0, sum(weights)
        for item in order:
            chance, left = chance * weights[item] / left, left - weights[item]
        found[tuple(sorted(order))] += chance
    return found


@pytest.mark.parametrize(
    ("weights", "count"),
    [
        ((1.0, 2.0, 3.0, 4.0), 2),
        pytest.param((5.0, 0.25, 1.0), 1, marks=pytest.mark.slow),
        pytest.param((1.0, 1.0, 8.0), 2, marks=pytest.mark.slow),
    ],
)
def test_subsets_have_the_law_of_drawing_one_after_the_other(weights: tuple[float, ...], count: int) -> None:
    draws, expected = 20_000, law(weights, count)
    seen = dict.fromkeys(expected, 0)
    key = Key.root(1) / "feature weights"
    for i in range(draws):
        seen[tuple(weighted_subset(count, np.array(weights), key / i).tolist())] += 1
    for subset, chance in expected.items():
        assert abs(seen[subset] / draws - chance) < 4.5 * (chance * (1.0 - chance) / draws) ** 0.5, subset


def test_nodes_and_levels_draw_by_their_streams() -> None:
    weights, features = np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4, dtype=np.int32)
    key = Key.root(2)
    of_nodes = Candidates(features, by_node=(2, key), weights=weights)
    of_levels = Candidates(features, by_node=(2, key), by_level=True, weights=weights)
    for v, depth in ((0, 0), (1, 1), (5, 2)):
        assert (features_of(of_nodes, v, depth) == weighted_subset(2, weights, of_nodes.node_key(v, depth))).all()
        assert (features_of(of_levels, v, depth) == weighted_subset(2, weights, of_levels.node_key(v, depth))).all()
    drawn = {tuple(features_of(of_levels, v, 3).tolist()) for v in range(7, 15)}
    assert len(drawn) == 1


@pytest.mark.parametrize("learners", [0.5, gb.RandomByLevel(0.5), gb.RandomByNode(2)])
def test_equal_weights_are_none_and_a_column_of_weight_0_is_never_drawn(learners: Any) -> None:
    plain = gb.GradientBoostingRegressor(**PLAIN, learners=learners).fit(X, Y).predict(X)
    equal = gb.GradientBoostingRegressor(**PLAIN, learners=learners, feature_weights=[2, 2, 2, 2]).fit(X, Y)
    assert equal.predict(X).tolist() == plain.tolist()
    some = gb.GradientBoostingRegressor(**PLAIN, learners=learners, feature_weights={1: 0, 3: 5.0}).fit(X, Y)
    assert some.feature_importances_[1] == 0.0
    assert (some.feature_importances_[[0, 2, 3]] > 0.0).all()
    again = gb.loads(gb.dumps(some))
    assert again.feature_weights == {1: 0.0, 3: 5.0}
    assert again.set_params(n_jobs=1, device="cpu").fit(X, Y).predict(X).tolist() == some.predict(X).tolist()


def test_weights_are_those_of_weighted_groups_for_whole_trees() -> None:
    weights = (1.0, 2.0, 3.0, 4.0)
    ours = gb.GradientBoostingRegressor(**PLAIN, learners=2, feature_weights=np.array(weights)).fit(X, Y)
    same = gb.GradientBoostingRegressor(**PLAIN, learners=gb.WeightedGroups(2, weights)).fit(X, Y)
    assert ours.predict(X).tolist() == same.predict(X).tolist()


def test_a_wide_column_has_the_weight_of_one() -> None:
    x = np.column_stack([RNG.normal(size=2_000), RNG.normal(size=2_000)])
    weights = gb.GradientBoostingRegressor(
        **PLAIN | {"n_estimators": 300}, max_bins=1017, max_depth=1, learners=gb.RandomByNode(1), feature_weights=[1, 4]
    ).fit(x, RNG.normal(size=2_000))
    share = np.mean([tree.nodes.feature[0] >= 4 for tree in weights.ensemble_.trees])
    assert abs(share - 0.8) < 4.5 * (0.8 * 0.2 / 300) ** 0.5


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"feature_weights": [1, 2, 3, 4]},
            "feature_weights: they are chances .* learners=None draws",
        ),
        ({"feature_weights": [1, 2, 3, 4], "learners": gb.CyclicGroups(1)}, "feature_weights: they are chances"),
        (
            {"feature_weights": [1, 2, 3], "learners": 2},
            "feature_weights: must have one entry for each of the 4",
        ),
        ({"feature_weights": [1, 2, 3, -1], "learners": 2}, "feature_weights: must be .*; got -1 for column 3"),
        ({"feature_weights": [0, 0, 0, 0], "learners": 2}, "feature_weights: must be .*; got 0 for every column"),
        ({"feature_weights": "all", "learners": 2}, "feature_weights: must be .*; got 'all'"),
        ({"feature_weights": [[1, 2], [3]], "learners": 2}, "feature_weights: must be"),
        ({"feature_weights": {"a": 1}, "learners": 2}, "feature_weights: X has no column names to find 'a'"),
        (
            {"feature_weights": [1, 2, 3, 4], "learners": gb.RandomByNode(2), "growth": "oblivious"},
            "learners: .* all nodes of a level of an oblivious tree share a split",
        ),
    ],
)
def test_wrong_weights_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        gb.GradientBoostingRegressor(**PLAIN | params).fit(X, Y)
