"""Trees whose shape is drawn at random: the law of what is drawn, its limits, and what a model keeps of it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.builders import TEAMS, model_bytes, random_case

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.numerics.random_trees import random_nodes
from gpuboost.backends.prediction.routing import route
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.langevin import Langevin
from gpuboost.recipe import Recipe
from gpuboost.sampling import UniformSampling
from gpuboost.steps import GradientStep
from gpuboost.types import Candidates, Cuts, Limits, Nodes

KEY = Key.root(5) / "random structure"
NUMERIC = Cuts(tuple(np.arange(1.0, k) for k in (5, 1, 3, 2)), (None,) * 4)  # of 5, 1, 3 and 2 bins
MIXED = Cuts((np.empty(0), np.arange(3.0)), (np.arange(40), None))

pytestmark = pytest.mark.filterwarnings("ignore:n_estimators. the chain forgets:gpuboost.errors.OutsideTheoryWarning")


def every(cuts: Cuts) -> Candidates:
    return Candidates(np.arange(cuts.n_features, dtype=np.int32))


def drawn(limits: Limits, rounds: int, cuts: Cuts = NUMERIC) -> list[Nodes]:
    return [random_nodes(cuts, every(cuts), limits, KEY / i) for i in range(rounds)]


def test_features_are_drawn_evenly_and_so_are_the_cuts_of_each() -> None:
    roots = [(int(one.feature[0]), int(one.bin[0]), bool(one.missing_left[0])) for one in drawn(Limits(2, 1), 3000)]
    expected = {(0, c): 1000 / 4 for c in range(4)} | {(2, c): 1000 / 2 for c in range(2)} | {(3, 0): 1000.0}
    found = [sum(one[:2] == cut for one in roots) for cut in expected]
    assert sum(found) == 3000, "a feature of one bin has no cut"
    assert stats.chisquare(found, list(expected.values())).pvalue > 1e-3
    assert abs(sum(one[2] for one in roots) - 1500) < 4 * np.sqrt(750)


def test_nodes_of_a_tree_are_drawn_apart_unless_their_level_shares_a_split() -> None:
    for one in drawn(Limits(8, 3), 20):
        assert len(one.feature) == 15
        assert (one.left[:7] == 2 * np.arange(7) + 1).all()
        assert (one.right[:7] == one.left[:7] + 1).all()
        assert (one.feature[7:] == -1).all()
    apart = [len(set(zip(one.feature[3:7], one.bin[3:7], strict=True))) for one in drawn(Limits(8, 3), 50)]
    shared = [len(set(zip(one.feature[3:7], one.bin[3:7], strict=True))) for one in drawn(symmetric(8, 3), 50)]
    assert np.mean(apart) > 2.0
    assert shared == [1] * 50


def symmetric(leaves: int, depth: int) -> Limits:
    return Limits(leaves, depth, growth="oblivious")


@pytest.mark.parametrize(
    ("limits", "leaves"),
    [(Limits(64, 6), 64), (Limits(5, 6), 5), (Limits(31, 10**6), 31), (Limits(64, 2), 4), (symmetric(31, 9), 16)],
)
def test_a_tree_is_filled_to_its_limits(limits: Limits, leaves: int) -> None:
    (one,) = drawn(limits, 1)
    assert one.is_leaf.sum() == leaves


def test_without_a_feature_to_cut_the_tree_is_a_leaf() -> None:
    only = Candidates(np.array([1], np.int32))
    assert random_nodes(NUMERIC, only, Limits(8, 3), KEY).feature.tolist() == [-1]
    assert random_nodes(NUMERIC, only, symmetric(8, 3), KEY).feature.tolist() == [-1]


def test_a_set_of_categories_has_both_sides_and_no_other_bits() -> None:
    sets = [one.left_set[0] for one in drawn(Limits(2, 1), 400, MIXED) if one.feature[0] == 0]
    bits = np.array([[int(words[c // 32]) >> (c % 32) & 1 for c in range(256)] for words in sets])
    assert 150 < len(bits) < 250
    assert not bits[:, 40:].any()
    assert (bits[:, :40].sum(axis=1) > 0).all()
    assert (bits[:, :40].sum(axis=1) < 40).all()
    assert np.abs(bits[:, :40].mean(axis=0) - 0.5).max() < 4.5 * 0.5 / np.sqrt(len(bits))


@pytest.mark.parametrize("weights", ["none", "real", "whole"])
def test_a_model_keeps_what_came_to_each_node(weights: str) -> None:
    case = random_case(3, 400, 5, weights=weights)
    recipe = Recipe(losses.SquaredError(), 3, 0.3, step=GradientStep(), langevin=Langevin(random_from=0))
    recipe = replace(recipe, sampling=UniformSampling(0.4))  # only a search would need the sample
    ensemble = boost(recipe, case.data, Reference(), seed=1)
    rows = Reference().quantise(case.x, case.data.cuts).rows
    for tree in ensemble.trees:
        leaf = route(tree.nodes, rows, case.data.cuts)
        weight = case.data.row_weight()
        assert tree.nodes.count[0] == 400
        assert tree.nodes.cover[0] == pytest.approx(weight.sum(), rel=1e-4)
        for v in np.flatnonzero(tree.nodes.is_leaf):
            assert tree.nodes.count[v] == (leaf == v).sum()
            assert tree.nodes.cover[v] == pytest.approx(weight[leaf == v].sum(), rel=1e-4, abs=1e-4)
        inner = ~tree.nodes.is_leaf
        for part in (tree.nodes.count, tree.nodes.cover):
            assert (part[inner] == part[tree.nodes.left[inner]] + part[tree.nodes.right[inner]]).all()
        assert (tree.nodes.gain == 0.0).all()
        assert (tree.value[tree.nodes.is_leaf & (tree.nodes.count == 0)] == 0.0).all(), "an empty leaf has no noise"


def test_the_search_ends_where_it_was_told_to_and_what_came_before_does_not_change() -> None:
    case = random_case(4, 300, 4)
    recipe = Recipe(losses.SquaredError(), 6, 0.3, step=GradientStep(), langevin=Langevin(shrinkage=0.1))
    searched = boost(recipe, case.data, TEAMS[1], seed=2)
    mixed = boost(replace(recipe, langevin=Langevin(shrinkage=0.1, random_from=4)), case.data, TEAMS[1], seed=2)
    assert model_bytes(mixed.first(4)) == model_bytes(searched.first(4))
    assert model_bytes(mixed.first(5)) != model_bytes(searched.first(5))
    assert [bool(tree.nodes.gain.any()) for tree in mixed.trees] == [True] * 4 + [False] * 2
    carried_on = boost(
        replace(recipe, rounds=3, langevin=Langevin(shrinkage=0.1, random_from=4)), case.data, TEAMS[1], seed=2,
        resume=mixed.first(3),
    )  # fmt: skip
    assert model_bytes(carried_on) == model_bytes(mixed), "rounds are counted from the first of all"


def test_an_estimator_is_saved_explained_and_asked_for_its_uncertainty(tmp_path: Any) -> None:
    case = random_case(6, 300, 4)
    model = gb.GradientBoostingRegressor(
        n_estimators=40, growth="oblivious", langevin=gb.Langevin(shrinkage=0.1, random_from=10), posterior_samples=5,
        random_state=0,
    ).fit(case.x, case.data.y)  # fmt: skip
    model.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert loaded.langevin == model.langevin
    assert (
        loaded.predict_uncertainty(case.x).knowledge.tobytes() == model.predict_uncertainty(case.x).knowledge.tobytes()
    )
    np.testing.assert_allclose(model.predict_contributions(case.x).sum(axis=1), model.predict(case.x), rtol=1e-9)
    assert np.isfinite(model.feature_importances_).all()


@pytest.mark.parametrize("value", [-1, 0.5, True, "late"])
def test_a_round_is_a_whole_number(value: object) -> None:
    with pytest.raises(RecipeError, match="random_from: Langevin needs None or a round, an integer of 0 or more; got"):
        Langevin(random_from=value)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_round_of_random_shapes_is_cheaper_than_a_plain_one() -> None:
    """CPU time of one thread; measured: a quarter."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60_000, 20))
    bins = gb.Dataset(x, x[:, 0] + rng.normal(size=len(x)), n_jobs=1)

    def seconds(langevin: gb.Langevin | None) -> float:
        model = gb.GradientBoostingRegressor(
            n_estimators=20, step="gradient", reg_lambda=0.0, langevin=langevin, random_state=0, n_jobs=1
        )
        model.fit(bins)
        least = np.inf
        for _ in range(3):
            begin = time.thread_time()
            model.fit(bins)
            least = min(least, time.thread_time() - begin)
        return least

    assert seconds(gb.Langevin(random_from=0)) < 0.6 * seconds(None)
