"""The best split of a node, found exactly in small whole numbers: the definition is right, and ties go to the first."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, assert_same_tree, grow, random_case
from support.examples import examples

from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise, LeafWise
from gpuboost.types import Cuts, DenseBins, Gradients, Limits, Structure, TrainingSet

Array = np.ndarray
QUICK = settings(max_examples=examples(60))
seeds = st.integers(0, 2**32 - 1)
BOTH = [Reference(), TEAMS[1]]


def whole_gradients(rng: np.random.Generator, n: int) -> Gradients:
    g, h = rng.integers(-3, 4, (1, n)), rng.integers(1, 3, (1, n))
    return Gradients(g.astype(np.float32), h.astype(np.float32))


def exact_gain(left: tuple[int, int], total: tuple[int, int], ridge: int) -> Fraction:
    right = total[0] - left[0], total[1] - left[1]
    parts = [Fraction(g * g, h + ridge) for g, h in (left, right, total)]
    return parts[0] + parts[1] - parts[2]


@QUICK
@given(seeds, st.integers(2, 40), st.integers(1, 4), st.sampled_from([0.0, 0.2, 0.5]))
def test_a_numeric_split_is_the_best_of_all_cuts(seed: int, n: int, d: int, missing: float) -> None:
    """Every feature, cut and side of the missing values, in exact arithmetic; of equals the first."""
    data = random_case(seed, n, d, categorical=0.0, missing=missing, most_cuts=6).data
    rng = np.random.default_rng(seed)
    gradients = whole_gradients(rng, n)
    g, h = gradients.g[0].astype(int), gradients.h[0].astype(int)
    codes, total = dense_rows(data.bins), (int(g.sum()), int(h.sum()))
    gains: dict[tuple[int, int, bool], tuple[Fraction, tuple[int, int]]] = {}
    for f, b in enumerate(data.cuts.n_bins.tolist()):
        absent = codes[:, f] == b
        for cut in range(b):
            for missing_left in (False, True) if absent.any() else (False,):
                left = (codes[:, f] <= cut) | (absent & missing_left)
                if left.any() and not left.all():
                    sums = int(g[left].sum()), int(h[left].sum())
                    gains[f, cut, missing_left] = exact_gain(sums, total, 1), sums
    best = max((gain for gain, _ in gains.values()), default=Fraction(0))
    for backend in BOTH:
        found = grow(backend, DepthWise(Limits(2, 1, 1, 0.0, 1.0)), data, gradients)
        nodes = found.nodes
        if best <= Fraction(1, 10**9):
            assert nodes.feature.tolist() == [-1]
            continue
        f, cut = int(nodes.feature[0]), int(nodes.bin[0])
        sees_missing = bool((codes[:, f] == data.cuts.n_bins[f]).any())
        chosen = f, cut, bool(nodes.missing_left[0]) and sees_missing
        gain, sums = gains[chosen]
        assert gain == best
        assert nodes.gain[0] == pytest.approx(float(best), rel=1e-12)
        assert chosen == next(key for key, (_, same) in gains.items() if same == sums or key == chosen)
        assert (found.sums[0][1], found.sums[1][1]) == sums
        if not sees_missing:
            assert bool(nodes.missing_left[0]) == (sums[1] > total[1] - sums[1])


def categorical_set(codes: Array, listed: int) -> TrainingSet:
    codes = np.ascontiguousarray(codes, dtype=np.uint8)[:, None]
    cuts = Cuts((np.empty(0),), (np.arange(listed),))
    return TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(len(codes)))


def left_categories(structure: Structure) -> set[int]:
    words = structure.nodes.left_set[0]
    return {c for c in range(256) if words[c // 32] >> (c % 32) & 1}


@QUICK
@given(seeds, st.integers(2, 4), st.integers(2, 30))
def test_few_categories_are_tried_one_against_the_rest(seed: int, m: int, n: int) -> None:
    """Up to four categories in a node, one of which may be "missing or never seen"."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(6)[:m][rng.integers(0, m, n)]  # 5 is what is missing
    gradients = whole_gradients(rng, n)
    g, h = gradients.g[0].astype(int), gradients.h[0].astype(int)
    total = int(g.sum()), int(h.sum())
    used = sorted(set(codes.tolist()))
    assume(len(used) > 1)
    gains = [exact_gain((int(g[codes == c].sum()), int(h[codes == c].sum())), total, 1) for c in used]
    best = max(gains)
    for backend in BOTH:
        found = grow(backend, DepthWise(Limits(2, 1, 1, 0.0, 1.0)), categorical_set(codes, 5), gradients)
        if best <= Fraction(1, 10**9):
            assert found.nodes.feature.tolist() == [-1]
            continue
        left = left_categories(found) & set(used)
        chosen = left if len(left) == 1 and 5 not in left else set(used) - left  # what is missing never goes left alone
        assert len(chosen) == 1
        assert gains[used.index(chosen.pop())] == best
        assert found.nodes.gain[0] == pytest.approx(float(best), rel=1e-12)


@settings(max_examples=examples(25))
@given(seeds, st.integers(5, 9))
def test_many_categories_part_as_well_as_any_subset_would(seed: int, m: int) -> None:
    """With equal curvature in each category the best set of them all is a prefix (Fisher 1958). None is small."""
    rng, size = np.random.default_rng(seed), 128
    codes = np.repeat(rng.permutation(12)[:m], size)
    g = rng.integers(-9, 10, (1, size * m))
    gradients = Gradients(g.astype(np.float32), np.ones((1, size * m), np.float32))
    by_category = {int(c): int(g[0, codes == c].sum()) for c in set(codes)}
    total = int(g.sum()), size * m
    subsets = (s for count in range(1, m) for s in combinations(by_category, count))
    best = max(exact_gain((sum(by_category[c] for c in s), size * len(s)), total, 11) for s in subsets)
    for backend in BOTH:
        nodes = grow(backend, DepthWise(Limits(2, 1, 1, 0.0, 1.0)), categorical_set(codes, 12), gradients).nodes
        assert nodes.gain[0] == pytest.approx(float(max(best, Fraction(0))), rel=1e-12, abs=1e-12)


def test_equal_features_and_equal_cuts_go_to_the_first() -> None:
    """Copies of a feature gain the same: the first copy is split on, at the lowest of the bins that part alike."""
    codes = np.repeat([[2], [2], [7], [7]], 3, axis=1).astype(np.uint8)
    cuts = Cuts((np.arange(9.0),) * 3, (None,) * 3)
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(4))
    gradients = Gradients(np.array([[-1, -1, 1, 1]], np.float32), np.ones((1, 4), np.float32))
    for features, first in (([0, 1, 2], 0), ([1, 2], 1)):
        nodes = assert_same_tree(data, DepthWise(Limits(2, 1)), gradients, None, np.array(features, np.int32)).nodes
        assert (nodes.feature[0], nodes.bin[0], nodes.missing_left[0]) == (first, 2, False)


def test_missing_values_that_fit_either_side_go_right() -> None:
    """Their gradient is 0, and the two sides mirror each other: both ways gain the same, to the last bit."""
    codes = np.repeat([0, 1, 2], 3).astype(np.uint8)[:, None]  # 2 is what is missing
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), Cuts((np.array([0.5]),), (None,)), np.zeros(9))
    g = np.repeat([-1.0, 1.0, 0.0], 3).astype(np.float32)[None]
    for least in (1, 3):
        growth = DepthWise(Limits(2, 1, least))
        nodes = assert_same_tree(data, growth, Gradients(g, np.ones((1, 9), np.float32))).nodes
        assert nodes.count.tolist() == [9, 3, 6]
        assert not nodes.missing_left[0]


def test_of_equal_nodes_the_older_one_is_split_first() -> None:
    """Two halves of the rows that are alike: where leaves run out, the left one has the split."""
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, np.uint8)
    data = TrainingSet(
        DenseBins(codes, np.ascontiguousarray(codes.T)), Cuts((np.array([0.5]),) * 2, (None,) * 2), np.zeros(20)
    )
    g = np.where(codes[:, 0] == 0, -8.0, 8.0) + np.where(codes[:, 1] == codes[:, 0], -5.0, 5.0)
    gradients = Gradients(g.astype(np.float32)[None], np.ones((1, 20), np.float32))
    for growth in (DepthWise(Limits(3, 2)), LeafWise(Limits(3, 2))):
        nodes = assert_same_tree(data, growth, gradients).nodes
        whole = assert_same_tree(data, replace(growth, limits=Limits(4, 2)), gradients).nodes
        assert whole.gain[1] == whole.gain[2] > 0.0
        assert nodes.feature.tolist() == [0, 1, -1, -1, -1]


@pytest.mark.parametrize("categorical", [False, True])
def test_missing_values_that_add_to_no_sum_still_count_as_rows(categorical: bool) -> None:
    """Their side is judged with them: else they would leave the lighter child with fewer rows than a leaf must have."""
    codes = np.repeat([0, 1, 2], [9, 1, 4]).astype(np.uint8)[:, None]  # 2 is what is missing
    cuts = Cuts((np.empty(0) if categorical else np.array([0.5]),), (np.arange(2) if categorical else None,))
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(14))
    g, h = np.zeros((2, 1, 14), np.float32)
    g[0, :10], h[0, :10] = [1.0] * 9 + [-9.0], 1.0
    for least, counts in ((5, [14, 9, 5]), (6, [14])):
        nodes = assert_same_tree(data, DepthWise(Limits(2, 1, least)), Gradients(g, h)).nodes
        assert nodes.count[0] == 14
        assert sorted(nodes.count[1:]) == sorted(counts[1:])


def test_categories_that_add_to_no_sum_still_count_as_rows() -> None:
    """Missing values (2) against the others: category 1 goes where it was counted."""
    codes = np.repeat([0, 1, 2], [3, 4, 9])
    g, h = np.zeros((2, 1, 16), np.float32)
    g[0, codes == 0], g[0, codes == 2], h[0, codes != 1] = -9.0, 3.0, 1.0
    for least, counts in ((5, {7, 9}), (8, set())):
        growth = DepthWise(Limits(2, 1, least))
        nodes = assert_same_tree(categorical_set(codes, 2), growth, Gradients(g, h)).nodes
        assert set(nodes.count[1:].tolist()) == counts
