"""Which features compete: the right number of them, uniformly, without replacement."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from math import ceil, comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.learners import AllLearners, RandomGroups

ROOT = Key.root(3) / "learners"


@pytest.mark.parametrize("t", [0, -1, 0.0, -0.5, 1.5, float("nan"), True, False])
def test_neither_a_count_nor_a_share_is_refused(t: float) -> None:
    with pytest.raises(RecipeError, match="learners: t must be a count of at least 1, or a share"):
        RandomGroups(t)


def test_all_learners_are_all_features() -> None:
    found = AllLearners().draw(5, ROOT / 0).features
    assert found.tolist() == [0, 1, 2, 3, 4]
    assert found.dtype == np.int32


@settings(max_examples=100)
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


def test_a_smaller_t_takes_some_of_a_larger_ones_features() -> None:
    draws = [RandomGroups(t).draw(40, ROOT / 1).features for t in (1, 5, 6, 39, 40)]
    assert all(np.isin(few, more).all() for few, more in pairwise(draws))


# Frequencies over fixed streams: a correct rule fails each with a chance of 1 in 10,000, and these are known to pass.

TRIALS = 6000


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
