"""Stumps that one call grows: which they are, and that they are the definition's at the ends of what may come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, as_sparse, assert_same_tree, grow, random_gradients
from support.examples import examples
from support.kernel_calls import noted_calls

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.sums import Scales
from gpuboost.backends.cpu.trees import histograms as cpu_histograms
from gpuboost.backends.cpu.trees import split_search as cpu_search
from gpuboost.backends.cpu.trees import stump as cpu_stump
from gpuboost.backends.cpu.trees.layout import indicator_bitmaps, laid_out
from gpuboost.backends.cpu.trees.small_stump import SmallStumps
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.numerics.fixed_point import fixed_point_scale
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise
from gpuboost.kernels.common import fixed_point as kernels
from gpuboost.kernels.growth import small_stump as kernel
from gpuboost.keys import Key
from gpuboost.types import Candidates, Cuts, DenseBins, Gradients, Limits, Target, TrainingSet

STUMP = Limits(max_leaves=2, max_depth=1)


def training_set(n: int, d: int = 4, *, bins: int = 5, categorical: bool = False) -> TrainingSet:
    codes = np.random.default_rng(n).integers(0, bins, (n, d)).astype(np.uint8)
    thresholds, of_first = np.arange(bins - 1) + 0.5, np.arange(bins) if categorical else None
    cuts = Cuts((np.empty(0) if categorical else thresholds, *[thresholds] * (d - 1)), (of_first, *[None] * (d - 1)))
    return TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(n))


def test_which_stumps_one_thread_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    data, every = training_set(100), Candidates(np.arange(4, dtype=np.int32))
    for threads in (1, 2):
        stumps, team = SmallStumps(), ThreadPool(threads)
        assert stumps.suit(data, every, None, team)
        assert not stumps.suit(data, replace(every, by_node=(2, Key(0))), None, team)
        assert not stumps.suit(data, every.disturbed(1.0, Key(0)), None, team)
        assert not stumps.suit(training_set(100, categorical=True), every, None, team)
        assert stumps.suit(data, every, None, team), "it remembers the cuts of one data set only"
    for module, name, most in (
        (cpu_stump, "CELLS_SUMMED_PER_THREAD", 200),  # 100 rows of 4 features
        (cpu_stump, "ROUTED_PER_THREAD", 50),
        (cpu_search, "CELLS_PER_THREAD", 24),  # 4 features of 5 bins and one for missing values
    ):
        monkeypatch.setattr(module, name, most)
        assert not SmallStumps().suit(data, every, None, ThreadPool(2))
        assert SmallStumps().suit(data, every, None, ThreadPool(1)), "one thread shares it with no other"
        monkeypatch.setattr(module, name, most + 1)
        assert SmallStumps().suit(data, every, None, ThreadPool(2))
    monkeypatch.setattr(cpu_histograms, "PACKED_ROWS", 99)
    assert not SmallStumps().suit(data, every, None, ThreadPool(1)), "sums of packed gradients could overflow"


def test_sparse_stumps_go_by_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    data = training_set(200)
    sparse = as_sparse(data.bins, data.cuts.n_bins, 0)
    bitmaps, every = indicator_bitmaps(sparse), Candidates(np.arange(4, dtype=np.int32))
    for more, suit in ((0, False), (1, True)):
        monkeypatch.setattr(cpu_stump, "CELLS_SUMMED_PER_THREAD", int(bitmaps.cost.sum()) // 2 + more)
        assert SmallStumps().suit(replace(data, bins=sparse), every, bitmaps, ThreadPool(2)) is suit


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each stump that one call grows."""
    return noted_calls(kernel, monkeypatch)


def test_small_data_take_one_call(calls: list[int]) -> None:
    data, gradients = training_set(100), random_gradients(np.random.default_rng(0), 100, "plain")
    Cpu(2).grow(data, Target(0, None, gradients), 0, Candidates(np.arange(4, dtype=np.int32)), STUMP)
    assert len(calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [2.0**61, 2.0**63, 1e30])
def test_a_ridge_that_the_quick_search_cannot_take(ridge: float) -> None:
    """Units of h are 1 here, so 2**62 is where it ends."""
    data, gradients = training_set(60), random_gradients(np.random.default_rng(1), 60, "plain")
    scale = kernels.scale(gradients.h[0], np.empty(0, np.int32), 60, 32)
    limits = replace(STUMP, reg_lambda=ridge / scale)
    assert len(assert_same_tree(data, DepthWise(limits), gradients).nodes.feature) == 3


@pytest.mark.parametrize("limits", [STUMP, replace(STUMP, growth="sign_stump"), replace(STUMP, min_child_weight=1e9)])
@pytest.mark.parametrize("n", [1, 2, 3, 65, 5000])
def test_few_rows_and_many(n: int, limits: Limits) -> None:
    rng = np.random.default_rng(n)
    m = rng.integers(1, 9, n).astype(np.int32)
    for times in (None, m):
        data = replace(training_set(n), multiplicity=times)
        assert_same_tree(data, DepthWise(limits), random_gradients(rng, n, "plain", times))


def test_columns_of_few_entries_are_not_laid_out(calls: list[int]) -> None:
    rng, n, thresholds = np.random.default_rng(3), 4000, np.array([0.5, 1.5])
    codes = (rng.integers(1, 4, (n, 3)) * (rng.random((n, 3)) < [0.001, 0.004, 0.01])).astype(np.uint8)
    data = TrainingSet(
        DenseBins(codes, np.ascontiguousarray(codes.T)), Cuts((thresholds,) * 3, (None,) * 3), np.zeros(n)
    )
    sparse = as_sparse(data.bins, data.cuts.n_bins, 0)
    assert laid_out(sparse) is None
    gradients, some = random_gradients(rng, n, "plain"), np.arange(2, dtype=np.int32)
    Cpu(1).grow(replace(data, bins=sparse), Target(0, None, gradients), 0, Candidates(some), STUMP)
    assert len(calls) == 1
    assert len(assert_same_tree(data, DepthWise(STUMP), gradients, features=some).nodes.feature) == 3


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("which", ["g", "h"])
def test_a_gradient_that_is_no_number(bad: float, which: str) -> None:
    data, gradients = training_set(50), random_gradients(np.random.default_rng(2), 50, "plain")
    getattr(gradients, which)[0, 17] = bad
    for backend in TEAMS.values():
        with pytest.raises(InputError, match="gradients must be finite"):
            grow(backend, DepthWise(STUMP), data, gradients)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.integers(1, 300), st.sampled_from([0, 1, 7, 4096]), st.floats(1e-40, 1e38), st.sampled_from([0.0, 1.0, 60.0]),
    st.sampled_from([31, 32]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_the_kernel_has_the_same_scale(n: int, most: int, top: float, spread: float, bits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = (top * np.exp(-spread * rng.random(n)) * rng.choice([-1.0, 1.0], n)).astype(np.float32)
    m = rng.integers(1, most + 1, n).astype(np.int32) if most else np.empty(0, np.int32)
    weight, out = int(m.sum()) if most else n, np.empty(3)
    kernels.extent(values, m, 0, n, out)
    assert kernels.scale(values, m, weight, bits) == fixed_point_scale(*out.tolist(), weight, bits)


def test_the_scale_of_nothing_and_of_no_number() -> None:
    none = np.empty(0, np.int32)
    assert kernels.scale(np.zeros(5, np.float32), none, 5, 31) == 1.0
    for bad in (np.inf, -np.inf, np.nan):
        assert np.isnan(kernels.scale(np.array([1.0, bad], np.float32), none, 2, 31))


def test_scales_and_weights_are_remembered_for_the_same_arrays_only() -> None:
    g, h, m = np.ones((1, 3), np.float32), np.ones((1, 3), np.float32), np.array([1, 2, 3], np.int32)
    scales = Scales()
    _, weight, known = scales.remembered(Gradients(g, h))
    known[0] = 4.0
    assert weight == 3
    assert scales.remembered(Gradients(g + 1, h))[1:] == (3, {0: 4.0})
    assert scales.remembered(Gradients(g, h, m))[1:] == (6, {}), "other multiplicities, another scale"
    assert scales.remembered(Gradients(g, h.copy(), m))[1:] == (6, {})
    assert scales.remembered(Gradients(g[:, :2], h[:, :2]))[1:] == (2, {})
