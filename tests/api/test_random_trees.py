"""Trees whose splits are drawn in part, through the estimators: features by level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb

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
