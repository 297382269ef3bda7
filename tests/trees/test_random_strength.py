"""random_strength: what the noise on gains does to the choice of features, and what it leaves alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.builders import TEAMS, eager_threads, model_bytes, random_case, sparse
from support.examples import examples

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.numerics.random_strength import winner
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import RecipeError
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious
from gpuboost.keys import Key
from gpuboost.langevin import Langevin
from gpuboost.learners import RandomGroups
from gpuboost.recipe import Recipe
from gpuboost.steps import GradientStep
from gpuboost.types import Limits, Noise

NOISE = Noise(1.0, Key.root(3) / "random strength" / 4)


@settings(max_examples=examples(25))
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([2, 9, 60, 300]),
    st.sampled_from([1, 4, 40]),
    st.sampled_from(["none", "real", "whole"]),
    st.sampled_from(["real", "3"]),
    st.sampled_from([DepthWise, LeafWise, Oblivious]),
    st.sampled_from([0.1, 1.0, 20.0]),
)
def test_one_model_whatever_the_backend_the_layout_and_the_threads(
    seed: int, n: int, d: int, weights: str, target: str, growth: Callable[[Limits], Growth], strength: float
) -> None:
    case = random_case(seed, n, d, target=target, weights=weights)
    loss = losses.Softmax(3) if target == "3" else losses.SquaredError()
    learners = RandomGroups(0.7)
    recipe = Recipe(loss, 3, 0.5, growth(Limits(9, 4, random_strength=strength)), learners=learners)
    expected = model_bytes(boost(recipe, case.data, Reference(), seed=seed))
    with eager_threads(rows=8, narrow=30):
        for threads in (1, 2):
            for data in (case.data, sparse(case.data, seed)):
                assert model_bytes(boost(recipe, data, TEAMS[threads], seed=seed)) == expected


def features(strength: float, seeds: int, x: Any, y: Any, **params: Any) -> Any:
    """The feature of the first split of each seed's first tree."""
    bins = gb.Dataset(x, y, n_jobs=1)
    given = {"n_estimators": 1, "max_depth": 1, "random_strength": strength, "n_jobs": 1, **params}
    models = (gb.GradientBoostingRegressor(**given, random_state=seed).fit(bins) for seed in range(seeds))
    return np.array([model.ensemble_.trees[0].nodes.feature[0] for model in models])


@pytest.mark.slow
def test_a_little_noise_changes_nothing_and_much_of_it_decides_alone() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4))
    y = x[:, 2] + 0.5 * x[:, 1] + rng.normal(size=400)
    assert (features(0.0, 5, x, y) == 2).all()
    assert (features(0.01, 50, x, y) == 2).all()
    hot = np.bincount(features(1e6, 400, x, y), minlength=4)
    assert stats.chisquare(hot).pvalue > 1e-3
    warm = np.bincount(features(1.0, 200, x, y), minlength=4)
    assert warm[2] > warm[1] > max(warm[0], warm[3])


@pytest.mark.parametrize("growth", ["depthwise", "oblivious"])
def test_the_split_that_wins_keeps_its_own_gain_and_its_best_cut(growth: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 3))
    y = x @ np.array([1.0, 0.9, 0.8])
    one = {"n_estimators": 1, "max_depth": 1, "growth": growth, "n_jobs": 1}
    alone = [gb.GradientBoostingRegressor(**one).fit(x[:, [f]], y).ensemble_.trees[0].nodes for f in range(3)]
    seen = set()
    for seed in range(30):
        model = gb.GradientBoostingRegressor(**one, random_strength=2.0, random_state=seed).fit(x, y)
        nodes = model.ensemble_.trees[0].nodes
        f = int(nodes.feature[0])
        seen.add(f)
        assert nodes.gain[0] == alone[f].gain[0]
        assert nodes.bin[0] == alone[f].bin[0]
    assert seen == {0, 1, 2}


def test_the_choice_does_not_know_the_size_of_the_gradients() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(300, 5)), rng.normal(size=300)
    for growth in ("depthwise", "oblivious"):
        params = {"n_estimators": 5, "random_strength": 1.0, "growth": growth, "reg_lambda": 0.0, "random_state": 1}
        one, other = (gb.GradientBoostingRegressor(**params).fit(x, by * y).ensemble_ for by in (1.0, 1024.0))
        for tree, same in zip(one.trees, other.trees, strict=True):
            np.testing.assert_array_equal(tree.nodes.feature, same.nodes.feature)
            np.testing.assert_array_equal(tree.nodes.bin, same.nodes.bin)


def test_a_row_of_weight_two_is_two_rows_to_the_last_bit() -> None:
    rng = np.random.default_rng(3)
    x, y, w = rng.normal(size=(200, 4)), rng.normal(size=200), rng.integers(1, 4, 200)
    params = {"n_estimators": 4, "random_strength": 1.0, "random_state": 1, "max_bins": 16}
    bins = gb.Dataset(x, y, weight=w, max_bins=16)
    one = gb.GradientBoostingRegressor(**params).fit(bins)
    other = gb.GradientBoostingRegressor(**params).fit(np.repeat(x, w, axis=0), np.repeat(y, w))
    for tree, same in zip(one.ensemble_.trees, other.ensemble_.trees, strict=True):
        np.testing.assert_array_equal(tree.nodes.feature, same.nodes.feature)


def test_the_noise_has_the_stated_deviation_and_is_drawn_anew_for_every_node_and_feature() -> None:
    """Of two gains 1 + d and 1 the lower wins where z1 - z2 is below -d / mean: a normal number of variance 2."""
    gains, wins = {3: 1.2, 8: 1.0}, 0
    for g in range(4000):
        wins += winner(gains, (g, 7), NOISE) == 8
    expected = stats.norm.cdf(-0.2 / (1.1 * math.sqrt(2.0)))
    assert abs(wins / 4000 - expected) < 4.0 * math.sqrt(expected * (1.0 - expected) / 4000)
    assert winner({3: 0.0, 8: 1e-9}, (0, 0), NOISE) == 8, "what gains nothing does not compete"
    assert winner({3: 0.0, 8: 0.0}, (0, 0), NOISE) is None
    assert winner({3: 2.0, 8: 2.0}, (0, 0), None) == 3


def test_langevin_boosting_stays_sound_with_it() -> None:
    recipe = Recipe(losses.Logistic(), 5, step=GradientStep(), langevin=Langevin(shrinkage=0.01))
    growth = Oblivious(Limits(8, 3, reg_lambda=0.0, random_strength=1.0))
    assert replace(recipe, growth=growth).findings == ()


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "1", True, None])
def test_a_strength_is_a_number_of_0_or_more(value: object) -> None:
    with pytest.raises(RecipeError, match="random_strength: must be a finite number, 0 or more; got"):
        gb.GradientBoostingClassifier(random_strength=value).fit(np.eye(4), [0, 1, 0, 1])  # type: ignore[arg-type]
