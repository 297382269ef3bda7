"""Levels that are grown in one call: the same tree, wherever a call ends."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, assert_same_tree, eager_threads, grow, random_case, random_gradients
from support.examples import examples

import gpuboost as gb
from gpuboost.growth import DepthWise
from gpuboost.kernels.growth import small_trees as kernel
from gpuboost.types import Limits

SIZES = st.sampled_from([1, 8, 50, 200, 10**9])


@settings(max_examples=examples(60))
@given(
    st.integers(0, 10**6), st.sampled_from([20, 90, 400]), SIZES, SIZES, st.integers(1, 7),
    st.sampled_from([3, 11, 1000]), st.sampled_from(["plain", "ties", "flat"]),
)  # fmt: skip
def test_a_call_may_end_after_any_step(
    seed: int, n: int, rows: int, cells: int, depth: int, leaves: int, kind: str
) -> None:
    data = random_case(seed, n).data
    with eager_threads(rows=rows, cells=cells, narrow=None):
        assert_same_tree(data, DepthWise(Limits(leaves, depth)), random_gradients(np.random.default_rng(seed), n, kind))


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4, 5])
def test_levels_end_with_the_limits(depth: int) -> None:
    data, gradients = random_case(11, 500, 6).data, random_gradients(np.random.default_rng(2), 500, "plain")
    found = assert_same_tree(data, DepthWise(Limits(1000, depth)), gradients)
    assert found.nodes.is_leaf.sum() > depth


def test_a_small_tree_is_grown_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    compiled = kernel.grow
    monkeypatch.setattr(kernel, "grow", lambda *given: calls.append(1) or compiled(*given))
    data = random_case(12, 300, 6).data
    gradients = random_gradients(np.random.default_rng(3), 300, "plain")
    found = grow(TEAMS[2], DepthWise(Limits(1000, 5)), data, gradients)
    assert found.nodes.is_leaf.sum() > 8
    assert len(calls) == 1


def test_no_array_is_returned() -> None:
    """numba runs Python code to make one; an interrupt that comes meanwhile would end in a SystemError."""
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    gb.GradientBoostingRegressor(n_estimators=1).fit(x, y)
    for signature in kernel.grow.nopython_signatures:
        assert all(isinstance(kind, numba.types.Integer) for kind in signature.return_type)
