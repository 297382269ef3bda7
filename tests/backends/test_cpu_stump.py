"""Stumps on the CPU: what they cost. That they are the definition's, tests/parity/trees/test_trees.py shows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import random as random_sparse
from support.builders import as_sparse, assert_same_tree, eager_threads, random_gradients
from support.examples import examples

import gpuboost as gb
from gpuboost.backends.cpu.trees import stump as cpu_stump
from gpuboost.backends.cpu.trees.layout import indicator_bitmaps
from gpuboost.growth import DepthWise
from gpuboost.types import Candidates, Cuts, DenseBins, Limits, SparseBins, TrainingSet


@pytest.mark.parametrize(
    ("given", "suits"),
    [
        ({}, True),
        ({"growth": "sign_stump"}, True),
        ({"max_depth": 2}, False),
        ({"max_leaves": 1}, False),
        ({"min_samples_leaf": 2}, False),
        ({"growth": "oblivious"}, False),
    ],
)
def test_which_trees_are_grown_as_stumps(given: dict[str, object], suits: bool) -> None:
    limits = Limits(**({"max_leaves": 2, "max_depth": 1} | given))  # type: ignore[arg-type]
    assert cpu_stump.suits(limits) is suits


def sparse_bins(columns: list[tuple[list[int], list[int]]], n: int) -> SparseBins:
    """Of columns' rows and bins, where the default is bin 0; what lies by row is not looked at."""
    start = np.cumsum([0, *(len(rows) for rows, _ in columns)])
    row, stored = (np.concatenate([one[i] for one in columns]) for i in (0, 1))
    by_row = np.zeros(n + 1, np.int64), np.zeros(start[-1], np.int32), np.zeros(start[-1], np.uint8)
    return SparseBins(np.zeros(len(columns), np.uint8), *by_row, start, row.astype(np.int32), stored.astype(np.uint8))


def test_columns_are_passed_if_few_of_the_entries_compete() -> None:
    sparse = sparse_bins([(list(range(m)), [1] * m) for m in (5, 1, 6)], 600)  # 12 entries: 5, 1 and 6
    marks, dense = indicator_bitmaps(sparse), DenseBins(np.zeros((2, 3), np.uint8), np.zeros((3, 2), np.uint8))
    assert len(marks.words) == 0
    for features, few in (([0], True), ([2], False), ([0, 1], False), ([1], True), ([0, 1, 2], False)):
        candidates = Candidates(np.array(features, np.int32))
        assert cpu_stump.by_columns(sparse, marks, candidates) is few
        assert cpu_stump.by_columns(dense, None, candidates)


def test_full_columns_of_one_bin_are_marked() -> None:
    n, everywhere = 130, list(range(130))
    columns = [(everywhere, [1] * 130), ([0, 64, 129], [1, 1, 1]), (everywhere, [1] * 129 + [2]), ([], [])]
    columns += [(everywhere[::2], [3] * 65)]
    marks = indicator_bitmaps(sparse_bins(columns, n))
    assert marks.of.tolist() == [0, -1, -1, -1, 1]
    assert marks.cost.tolist() == [21, 3, 130, 0, 21]
    assert marks.words.shape == (2, 3)
    bits = np.unpackbits(marks.words.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    assert bits[0].sum() == 130
    assert bits[0, :130].all()
    assert np.flatnonzero(bits[1]).tolist() == everywhere[::2]
    assert marks.use_bitmaps


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 1000), st.sampled_from([40, 64, 200, 9000]), st.booleans(), st.booleans())
def test_marked_columns_make_the_same_trees(seed: int, n: int, wide: bool, whole: bool) -> None:
    """Indicators of all frequencies, beside a column of three bins; all of the features, and some of them."""
    rng = np.random.default_rng(seed)
    codes = (rng.random((n, 6)) < rng.random(6)).astype(np.uint8)
    codes[:, 5] += rng.random(n) < 0.3
    m = rng.integers(1, 5, n).astype(np.int32) if whole else None
    cuts = Cuts((np.array([0.5]),) * 5 + (np.array([0.5, 1.5]),), (None,) * 6)
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(n), multiplicity=m)
    growth, gradients = DepthWise(Limits(max_leaves=2, max_depth=1)), random_gradients(rng, n, "plain", m)
    assert len(indicator_bitmaps(as_sparse(data.bins, cuts.n_bins, n)).words) > 0
    with eager_threads(narrow=30 if wide else None):
        assert_same_tree(data, growth, gradients)
        assert_same_tree(data, growth, gradients, features=np.array([0, 2, 5], np.int32))


@pytest.mark.slow
def test_memory_goes_by_what_is_stored() -> None:
    """As RGBM's rcv1: of 2,000 x 20,000 cells, 40 million, some 30,000 are stored."""
    x = random_sparse(2000, 20_000, density=0.00075, format="csr", random_state=np.random.default_rng(0))
    y = (np.asarray(x.sum(axis=1))[:, 0] > 7.5).astype(float)

    def fit() -> None:
        model = gb.GradientBoostingClassifier(
            n_estimators=5, max_depth=1, learners=gb.RandomGroups(200), step="constant", device="cpu"
        )
        model.fit(x, y)

    fit()  # kernels are loaded
    tracemalloc.start()
    fit()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * (x.nnz + x.shape[0]) + 600 * x.shape[1]
