"""Which features compete: the right number of them, uniformly, without replacement."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import ceil, comb
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.examples import examples

from gpuboost.backends.numerics.feature_subsets import fractions, subset
from gpuboost.backends.numerics.random_numbers import uniform_bits
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.learners import (
    AllLearners,
    CyclicGroups,
    RandomByLevel,
    RandomByNode,
    RandomGroups,
    RandomLearners,
    WeightedGroups,
    prepared,
)
from gpuboost.types import Cuts

ROOT = Key.root(3) / "learners"
TRIALS = 6000


@pytest.mark.parametrize("t", [0, -1, 0.0, -0.5, 1.5, float("nan"), True, False])
def test_neither_a_count_nor_a_share_is_refused(t: float) -> None:
    with pytest.raises(RecipeError, match="learners: t must be a count of at least 1, or a share"):
        RandomGroups(t)


def test_all_learners_are_all_features() -> None:
    found = AllLearners().draw(5, ROOT / 0).features
    assert found.tolist() == [0, 1, 2, 3, 4]
    assert found.dtype == np.int32


@settings(max_examples=examples(100))
@given(st.integers(1, 200), st.one_of(st.integers(1, 250), st.floats(0.001, 1.0)), st.integers(0, 2**31 - 1))
def test_t_features_without_repetition_in_order(d: int, t: float, step: int) -> None:
    found = RandomGroups(t).draw(d, ROOT / step).features
    assert found.dtype == np.int32
    assert len(found) == (ceil(t * d) if isinstance(t, float) else min(t, d))
    assert len(found) >= 1
    assert np.array_equal(found, np.unique(found))
    assert found[0] >= 0
    assert found[-1] < d
    assert np.array_equal(found, RandomGroups(t).draw(d, ROOT / step).features)


@settings(max_examples=examples(60))
@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**31 - 1))
def test_the_compiled_draw_is_floyds(d: int, t: int, step: int) -> None:
    """Item d - t + i, or the one that fraction i names; a fraction is 53 bits of two numbers of the stream."""
    key, t = Key.root(11) / "learners" / step, min(t, d)
    words = uniform_bits(2 * t, key)
    taken: set[int] = set()
    for i, last in enumerate(range(d - t, d)):
        fraction = float(int(words[2 * i]) << 21 | int(words[2 * i + 1]) >> 11) * 2.0**-53
        item = int(fraction * (last + 1))
        taken.add(last if item in taken else item)
    expected = list(range(d)) if t == d else sorted(taken)
    assert subset(t, d, key).tolist() == expected
    assert fractions(1, key)[0] == float(int(words[0]) << 21 | int(words[1]) >> 11) * 2.0**-53


def test_a_draw_from_47_000_features_takes_no_longer_than_one_from_47() -> None:
    """In steps: words of the bit set that are cleared apart, it is the same work."""
    started = process_time()
    for step in range(2000):
        RandomGroups(217).draw(47_000, ROOT / step)
    assert process_time() - started < 1.0  # 10 us each as measured; 47,000 hashes took 30 ms each


CUTS = Cuts((np.arange(3.0), np.empty(0), np.arange(1.0)), (None,) * 3)  # 4, 1 and 2 bins
SHARED = Cuts((np.arange(2.0),) * 4, (None,) * 4, np.array([0, 1, 1, 2], np.int32))  # column 1 is two features


def test_groups_are_of_columns_or_labels() -> None:
    for rule in (RandomGroups(1), RandomGroups(1, ("a", "b", "c")), CyclicGroups(1)):
        drawn = {tuple(prepared(rule, SHARED, 4).draw(4, ROOT / step).features.tolist()) for step in range(40)}
        assert drawn == {(0,), (1, 2), (3,)}
    two = prepared(RandomGroups(1, (7, 5, 7)), SHARED, 4)
    assert {tuple(two.draw(4, ROOT / step).features.tolist()) for step in range(40)} == {(0, 3), (1, 2)}


def test_a_root_group_restricts_the_root_alone() -> None:
    found = prepared(RandomGroups(2, "root"), CUTS, 3).draw(3, ROOT / 0)
    assert found.features.tolist() == [0, 1, 2]
    free = [f for f in range(3) if (found.root[f] == 0xFFFF_FFFF).all()]
    assert free == RandomGroups(2).draw(3, ROOT / 0).features.tolist()
    assert not found.root[[f for f in range(3) if f not in free]].any()
    assert prepared(RandomGroups(3, "root"), CUTS, 3).draw(3, ROOT / 0).root is None


def test_pairs_are_counted_with_one_constant() -> None:
    rule = prepared(RandomLearners(0.5), CUTS, 3)
    assert rule.n_learners == 3 + 1 + 1 + 1  # a feature of one bin asks only whether the value is missing
    for step in range(50):
        found = rule.draw(3, ROOT / step)
        assert 1 <= len(found.features) <= 3
        assert found.root.shape == (len(found.features), 8)
    alone = [prepared(RandomLearners(1), CUTS, 3).draw(3, ROOT / step) for step in range(200)]
    constant = [one for one in alone if not one.root.any()]
    assert all(one.features.tolist() == [0] for one in constant)
    assert 10 < len(constant) < 70


def test_cycles_go_round() -> None:
    drawn = [CyclicGroups(2).draw(5, ROOT / step).features.tolist() for step in range(5)]
    assert drawn == [[0, 1], [2, 3], [0, 4], [1, 2], [3, 4]]


def test_by_node_the_root_draws_what_a_tree_would() -> None:
    found = RandomByNode(3).draw(9, ROOT / 4)
    assert found.features.tolist() == list(range(9))
    of_tree = RandomGroups(3).draw(9, ROOT / 4).features
    assert subset(found.by_node[0], 9, found.node_key(0, 0)).tolist() == of_tree.tolist()
    assert found.node_key(1, 1) != found.node_key(2, 1)
    assert RandomByNode(9).draw(9, ROOT / 4).by_node is None


def test_by_level_nodes_of_one_depth_draw_the_same() -> None:
    found = RandomByLevel(3).draw(9, ROOT / 4)
    assert found.node_key(0, 0) == RandomByNode(3).draw(9, ROOT / 4).node_key(0, 0)
    assert found.node_key(1, 1) == found.node_key(2, 1) != found.node_key(3, 2)
    assert RandomByLevel(1.0).draw(9, ROOT / 4).by_node is None


def test_weighted_draws_follow_their_weights() -> None:
    """The first group in proportion to its weight, the second among the rest."""
    weights = (4.0, 1.0, 0.0, 3.0)
    rule = prepared(WeightedGroups(1, weights), Cuts((np.arange(2.0),) * 4, (None,) * 4), 4)
    counts = Counter(int(rule.draw(4, ROOT / step).features[0]) for step in range(TRIALS))
    assert counts[2] == 0
    assert stats.chisquare([counts[f] for f in (0, 1, 3)], [TRIALS * w / 8.0 for w in (4.0, 1.0, 3.0)]).pvalue > 1e-4
    pairs = Counter(tuple(WeightedGroups(2, weights).draw(4, ROOT / s).features.tolist()) for s in range(TRIALS))
    expected = {(0, 1): 4 / 8 * 1 / 4 + 1 / 8 * 4 / 7, (0, 3): 4 / 8 * 3 / 4 + 3 / 8 * 4 / 5}
    expected[1, 3] = 1.0 - sum(expected.values())
    assert stats.chisquare([pairs[p] for p in expected], [TRIALS * q for q in expected.values()]).pvalue > 1e-4
    assert len(WeightedGroups(4, weights).draw(4, ROOT / 0).features) == 3


# Frequencies over fixed streams: a correct rule fails each with a chance of 1 in 10,000, and these are known to pass.


def test_every_subset_is_as_likely_as_any_other() -> None:
    drawn = Counter(tuple(RandomGroups(3).draw(6, ROOT / step).features.tolist()) for step in range(TRIALS))
    counts = [drawn[subset] for subset in combinations(range(6), 3)]
    assert sum(counts) == TRIALS
    assert stats.chisquare(counts).pvalue > 1e-4


def test_the_best_of_a_draw_has_the_ranks_of_the_theory() -> None:
    """TR-3: if features are ranked, the best of t drawn from G has rank j with C(G - j, t - 1) / C(G, t)."""
    groups, t = 9, 4
    rank = np.random.default_rng(0).permutation(groups)  # the rank of each feature
    best = Counter(int(rank[RandomGroups(t).draw(groups, ROOT / step).features].min()) for step in range(TRIALS))
    gamma = np.array([comb(groups - j, t - 1) / comb(groups, t) for j in range(1, groups + 1)])
    possible = gamma > 0.0
    assert gamma.sum() == pytest.approx(1.0)
    assert possible.sum() == groups - t + 1
    counts = np.array([best[j] for j in range(groups)])
    assert counts[~possible].sum() == 0
    assert stats.chisquare(counts[possible], TRIALS * gamma[possible]).pvalue > 1e-4


def test_rounds_and_seeds_draw_independently() -> None:
    for other in (lambda step: ROOT / (step + 100_000), lambda step: Key.root(4) / "learners" / step):
        pairs = Counter(
            (
                int(RandomGroups(1).draw(4, ROOT / step).features[0]),
                int(RandomGroups(1).draw(4, other(step)).features[0]),
            )
            for step in range(TRIALS)
        )
        assert stats.chisquare([pairs[a, b] for a in range(4) for b in range(4)]).pvalue > 1e-4
