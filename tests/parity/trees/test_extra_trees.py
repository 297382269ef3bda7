"""extra_trees: the same random cuts on every backend, byte for byte, and of the cuts that a node has."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.builders import random_case
from support.examples import crossed, examples
from support.training import MACHINES, assert_parity, target_of

from gpuboost import losses
from gpuboost.backends.numerics.extra_trees import place_of, random_cut, word_of
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious, SignStump
from gpuboost.keys import Key
from gpuboost.learners import AllLearners, RandomByLevel, RandomByNode, Selection
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, Sampling, UniformSampling
from gpuboost.types import Limits

EXTRA = Limits(16, 4, extra_trees=True)
GROWTHS: list[Growth] = [
    DepthWise(EXTRA),
    DepthWise(replace(EXTRA, min_samples_leaf=4)),
    DepthWise(replace(EXTRA, max_leaves=2, max_depth=1)),
    DepthWise(replace(EXTRA, reg_alpha=0.3)),
    LeafWise(replace(EXTRA, max_leaves=9, max_depth=7)),
    LeafWise(replace(EXTRA, max_leaves=9, max_delta_step=0.2, random_strength=1.0)),
    Oblivious(EXTRA),
    Oblivious(replace(EXTRA, min_samples_leaf=4, max_delta_step=0.2)),
    SignStump(Limits(2, 1, extra_trees=True)),
]
"""Every kernel that searches splits."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "growth", "categorical", "loss"),
    crossed(MACHINES, GROWTHS, [0.0, 0.6], [losses.SquaredError(), losses.Softmax(3)]),
)
def test_every_growth(machine: str, growth: Growth, categorical: float, loss: Loss) -> None:
    data = random_case(5, 260, 5, most_cuts=40, categorical=categorical, target=target_of(loss)).data
    found = assert_parity(Recipe(loss, 4, 0.5, growth), data, machine, order="random")
    assert any(len(tree.value) > 1 for tree in found.trees)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([3, 60, 400]),
    st.sampled_from([1, 6, 100]),
    st.sampled_from(GROWTHS[:-1]),
    st.sampled_from([AllLearners(), RandomByLevel(0.6), RandomByNode(0.6)]),
    st.sampled_from([EveryRow(), UniformSampling(0.6)]),
    st.sampled_from(MACHINES),
)
def test_random_trees(
    seed: int, n: int, most_cuts: int, growth: Growth, learners: Selection, sampling: Sampling, machine: str
) -> None:
    if growth.limits.symmetric and isinstance(learners, RandomByNode):
        learners = AllLearners()
    case = random_case(seed, n, 5, most_cuts=most_cuts, categorical=0.4, target="binary", weights="whole")
    recipe = Recipe(losses.Logistic(), 3, 0.5, growth, sampling, learners)
    assert_parity(recipe, case.data, machine, seed=seed % 1000, order="random")


def test_every_cut_between_the_bins_of_a_node_is_as_likely() -> None:
    key, used = Key.root(1) / "extra trees" / 3, [2, 3, 7, 20]
    drawn = Counter(random_cut(used, 20, word_of((i, 5), 1, key)) for i in range(6_000))
    assert sorted(drawn) == [2, 3, 4, 5, 6, 7]  # with missing values, all others may go left
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-4
    assert {random_cut([2, 3, 7], 20, word_of((i, 5), 1, key)) for i in range(200)} == {2, 3, 4, 5, 6}
    assert random_cut([4], 20, 2**31) == random_cut([20], 20, 0) == random_cut([], 20, 0) == -1
    assert random_cut([4, 20], 20, 2**32 - 1) == 4
    assert [place_of(word, 3) for word in (0, 2**32 - 1)] == [0, 2]


def test_other_features_nodes_and_trees_draw_other_cuts() -> None:
    key = Key.root(1) / "extra trees"
    words = [word_of(sums, f, key / tree) for sums in ((1, 2), (2, 1)) for f in (0, 1) for tree in (0, 1)]
    assert len(set(words)) == len(words)
