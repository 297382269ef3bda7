"""Stumps on the CPU: what they cost. That they are the definition's, tests/parity/test_trees.py shows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import random as random_sparse

import gpuboost as gb
from gpuboost.backends import cpu_stump
from gpuboost.types import Candidates, DenseBins, Limits, SparseBins


@pytest.mark.parametrize(
    ("given", "suits"),
    [
        ({}, True),
        ({"signed": True}, True),
        ({"max_depth": 2}, False),
        ({"max_leaves": 1}, False),
        ({"min_samples_leaf": 2}, False),
        ({"symmetric": True}, False),
    ],
)
def test_which_trees_are_grown_as_stumps(given: dict[str, object], suits: bool) -> None:
    limits = Limits(**({"max_leaves": 2, "max_depth": 1} | given))  # type: ignore[arg-type]
    assert cpu_stump.suits(limits) is suits


def test_columns_are_passed_if_few_of_the_entries_compete() -> None:
    entries = np.array([0, 5, 6, 12], np.int64)  # of three columns: 5, 1 and 6
    rows, stored = np.zeros(12, np.int32), np.zeros(12, np.uint8)
    sparse = SparseBins(np.zeros(3, np.uint8), np.array([0, 12]), rows, stored, entries, rows, stored)
    dense = DenseBins(np.zeros((2, 3), np.uint8), np.zeros((3, 2), np.uint8))
    for features, few in (([0], True), ([2], False), ([0, 1], False), ([1], True), ([0, 1, 2], False)):
        candidates = Candidates(np.array(features, np.int32))
        assert cpu_stump.by_columns(sparse, candidates) is few
        assert cpu_stump.by_columns(dense, candidates)


def test_memory_goes_by_what_is_stored() -> None:
    """RGBM's rcv1: of 3,000 x 40,000 cells, 120 million, some 90,000 are stored."""
    x = random_sparse(3000, 40_000, density=0.00075, format="csr", random_state=np.random.default_rng(0))
    y = (np.asarray(x.sum(axis=1))[:, 0] > 15.0).astype(float)

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
