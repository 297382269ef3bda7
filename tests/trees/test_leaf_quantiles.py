"""Quantiles of residuals in leaves: the kernel that halves ranges gives the numbers of the definition, which sorts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from gpuboost.backends.cpu import quantiles
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.numerics.leaf_values import weighted_quantile
from gpuboost.testing.cases import stump
from gpuboost.types import Nodes

Array = np.ndarray
POOL = ThreadPool(3)
LARGEST = float(np.finfo(np.float64).max)
NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 5e-324, -5e-324, LARGEST, -LARGEST, np.inf, np.nan, -np.nan]) | st.floats()
ALPHAS = st.sampled_from([0.5, 0.1, 0.9, 1e-300, 1.0 - 2.0**-53]) | st.floats(0.0, 1.0, exclude_min=True)


def nodes_of(n_leaves: int) -> Nodes:
    """Nodes of which every second one is a leaf; only that is read."""
    feature = np.where(np.arange(2 * n_leaves) % 2 == 1, -1, 0).astype(np.int32)
    return replace(stump(0, 0, False, (1.0, 1.0)).nodes, feature=feature)


def assert_as_defined(leaves: Array, residual: Array, weight: Array, alpha: float, n_leaves: int) -> None:
    nodes, leaf_of_row = nodes_of(n_leaves), (2 * leaves + 1).astype(np.int32)
    found = quantiles.leaf_quantiles(nodes, leaf_of_row, residual, weight, alpha, POOL)
    expected = np.zeros(2 * n_leaves)
    for leaf in range(n_leaves):
        rows = leaves == leaf
        expected[2 * leaf + 1] = weighted_quantile(residual[rows], weight[rows], alpha)
    assert np.array_equal(found, expected, equal_nan=True)
    assert not np.signbit(found[found == 0.0]).any()


@settings(max_examples=examples(300))
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), NUMBERS, st.integers(1, 3) | st.integers(1, 2**31)), max_size=60),
    alpha=ALPHAS,
)
def test_any_numbers_and_weights(rows: list[tuple[int, float, int]], alpha: float) -> None:
    leaves, residual, weight = (np.array(column) for column in zip(*rows, strict=True)) if rows else 3 * [np.empty(0)]
    assert_as_defined(leaves.astype(np.int32), residual.astype(float) + 0.0, weight.astype(np.int64), alpha, 3)


@pytest.mark.parametrize("n_leaves", [1, 2, 40])
@pytest.mark.parametrize("alpha", [0.5, 0.05])
def test_threads_share_the_leaves(monkeypatch: pytest.MonkeyPatch, n_leaves: int, alpha: float) -> None:
    monkeypatch.setattr(quantiles, "SMALL", 16)
    rng = np.random.default_rng(n_leaves)
    leaves = rng.integers(0, n_leaves, 5_000)
    for residual in (rng.normal(size=5_000), np.round(rng.standard_cauchy(5_000)) + 0.0):
        assert_as_defined(leaves, residual, rng.integers(1, 2**30, 5_000), alpha, n_leaves)
