"""Trees whose splits are drawn in part, through the estimators: features by level, random cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import gpuboost as gb
from gpuboost.errors import RecipeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 6))
Y = X @ np.arange(1.0, 7.0) + RNG.normal(size=600)
GROWTHS: list[dict[str, Any]] = [
    {"growth": "depthwise", "max_depth": 4},
    {"growth": "leafwise", "max_leaves": 12, "max_depth": None},
    {"growth": "oblivious", "max_depth": 4},
]


def features_by_depth(tree: Any) -> dict[int, set[int]]:
    """The features of the splits of each level."""
    nodes, depth, found = tree.nodes, {0: 0}, dict[int, set[int]]()
    for v in np.flatnonzero(nodes.feature >= 0):
        found.setdefault(depth[int(v)], set()).add(int(nodes.feature[v]))
        depth |= {int(child): depth[int(v)] + 1 for child in (nodes.left[v], nodes.right[v])}
    return found


@pytest.mark.parametrize("growth", GROWTHS, ids=lambda growth: growth["growth"])
def test_the_nodes_of_a_level_have_the_same_features(growth: dict[str, Any]) -> None:
    model = gb.GradientBoostingRegressor(
        n_estimators=6, learners=gb.RandomByLevel(1), random_state=0, n_jobs=1, **growth
    ).fit(X, Y)
    levels = [features_by_depth(tree) for tree in model.ensemble_.trees]
    assert all(len(features) == 1 for tree in levels for features in tree.values())
    assert any(len(set.union(*tree.values())) > 1 for tree in levels)
    assert {feature for tree in levels for feature in tree[0]} > {5}


@pytest.mark.parametrize("growth", GROWTHS, ids=lambda growth: growth["growth"])
def test_a_random_cut_lies_between_the_values_of_a_node(growth: dict[str, Any]) -> None:
    """Other cuts in other trees, none of which leaves a side empty; noise then has more trees to average over."""
    model = gb.GradientBoostingRegressor(n_estimators=8, extra_trees=True, random_state=0, n_jobs=1, **growth)
    trees = model.fit(X, Y).ensemble_.trees
    assert all((tree.nodes.count[tree.nodes.is_leaf] > 0).all() for tree in trees) or growth["growth"] == "oblivious"
    assert len({(tree.nodes.feature[0], tree.nodes.bin[0]) for tree in trees}) > 4
    greedy = gb.GradientBoostingRegressor(n_estimators=8, n_jobs=1, **growth).fit(X, Y)
    assert greedy.score(X, Y) > model.score(X, Y) > 0.3


def test_the_cuts_of_a_stump_are_uniform_between_the_values() -> None:
    """With one column, every round takes the cut that is drawn; the best one would be taken time and again."""
    x = np.repeat(np.arange(8.0), 30)[:, None]
    model = gb.GradientBoostingRegressor(
        n_estimators=700, max_depth=1, learning_rate=1e-6, extra_trees=True, random_state=0, n_jobs=1
    ).fit(x, x[:, 0])
    counts = np.bincount([tree.nodes.bin[0] for tree in model.ensemble_.trees], minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_one_category_or_a_number_of_them_goes_left() -> None:
    few, many = RNG.integers(4, size=600), RNG.integers(30, size=600)
    x, y = np.column_stack([few, many]).astype(float), np.sin(many) + few
    model = gb.GradientBoostingRegressor(
        n_estimators=40, max_depth=1, extra_trees=True, categorical_features=[0, 1], random_state=0, n_jobs=1
    ).fit(x, y)
    sizes = [(int(tree.nodes.feature[0]), bits(tree.nodes.left_set[0])) for tree in model.ensemble_.trees]
    assert {size for feature, size in sizes if feature == 0} <= {1}
    assert len({size for feature, size in sizes if feature == 1}) > 3


def bits(words: np.ndarray) -> int:
    """How many bins go left."""
    return int(np.unpackbits(words.view(np.uint8)).sum())


def test_extra_trees_are_part_of_the_model_file() -> None:
    """And a file without them is that of a release that does not know them."""
    loaded = gb.loads(gb.dumps(gb.GradientBoostingRegressor(n_estimators=2, extra_trees=True).fit(X, Y)))
    assert loaded.extra_trees is True
    assert "extra_trees" not in gb.dumps(gb.GradientBoostingRegressor(n_estimators=1).fit(X, Y))


def test_no_theorem_is_claimed() -> None:
    params: dict[str, Any] = {"loss": gb.losses.Logistic(0.01), "step": "constant", "reg_lambda": 0.0, "max_depth": 1}
    params |= {"learning_rate": 0.5, "min_child_weight": 0.0, "n_estimators": 2}
    y = Y > 0.0
    greedy = gb.GradientBoostingClassifier(**params)
    assert greedy.check(X, y).kind == "sound"
    assert greedy.fit(X, y).guarantee_.kind == "linear rate"
    drawn = gb.GradientBoostingClassifier(**params, extra_trees=True)
    assert drawn.check(X, y).kind == "heuristic"
    assert "extra_trees" in str(drawn.fit(X, y).guarantee_.missing)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"extra_trees": 1}, "extra_trees: must be True or False; got 1."),
        (
            {"extra_trees": True, "learners": gb.RandomLearners(5), "max_depth": 1},
            "learners: RandomLearners(t=5) draws the cuts of the root, and so does extra_trees. Use RandomGroups(t)",
        ),
        (
            {"extra_trees": True, "learners": gb.RandomGroups(2, "root")},
            "learners: RandomGroups(t=2, groups='root') draws the cuts of the root, and so does extra_trees.",
        ),
    ],
)
def test_what_is_refused(params: dict[str, Any], text: str) -> None:
    with pytest.raises(RecipeError) as caught:
        gb.GradientBoostingRegressor(**params).fit(X, Y)
    assert text in str(caught.value)
