"""Sums of integers: the scale keeps its bounds, and sums at the very edge of them are still exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, eager_threads, grow, random_gradients, sparse, structure_bytes
from support.examples import examples

from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.numerics.fixed_point import fixed_point_scale
from gpuboost.backends.reference.backend import Reference
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise
from gpuboost.kernels.common import fixed_point as kernels
from gpuboost.types import Cuts, DenseBins, Gradients, Limits, Structure, TrainingSet

Array = np.ndarray
TILE = 65_535  # rows whose packed sums must fit
BITS = {"g": 31, "h": 32}

magnitudes = st.floats(1e-40, 1e38)


@settings(max_examples=examples(300))
@given(
    st.integers(1, 300), st.sampled_from([1, 2, 7, 4096]), magnitudes, st.sampled_from([0.0, 1.0, 6.0]),
    st.sampled_from([31, 32]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_no_sum_leaves_its_bits(n: int, most: int, top: float, spread: float, bits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (top * np.exp(-spread * rng.random(n))).astype(np.float32).astype(np.float64)
    times = rng.integers(1, most + 1, n)
    size = x * times
    scale = fixed_point_scale(size.max(), size.sum(), float(times.max()), float(times.sum()), bits)
    assert math.frexp(scale)[0] == 0.5  # a power of two
    rows = [int(q) * int(m) for q, m in zip(np.rint(x * scale), times, strict=True)]
    by_row, by_sum = max(rows) < 2 ** (bits - 15 - 1), sum(rows) < 2**bits
    assert by_sum or (by_row and TILE * max(rows) < 2**bits)


@settings(max_examples=examples(200))
@given(st.integers(1, 10**7), magnitudes, st.floats(0.0, 1.0), st.sampled_from([31, 32]))
def test_the_scale_is_the_finest_that_one_of_the_bounds_allows(n: int, top: float, share: float, bits: int) -> None:
    total = top * (1.0 + share * (n - 1))
    finer = 2.0 * fixed_point_scale(top, total, 1.0, float(n), bits)
    assert top * finer > 2.0 ** (bits - 16) - 1.5
    assert total * (1.0 + 2.0**-19) * finer > 2.0**bits - 1.0 - 0.5 * n


def test_zeros_have_a_scale_too() -> None:
    assert fixed_point_scale(0.0, 0.0, 1.0, 100.0, 31) == 1.0


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("which", ["g", "h"])
@pytest.mark.parametrize("place", [0, 20, 99])
def test_gradients_that_are_not_finite_are_refused(bad: float, which: str, place: int) -> None:
    gradients = random_gradients(np.random.default_rng(0), 100, "plain")
    getattr(gradients, which)[0, place] = bad
    for backend in (Reference(), TEAMS[2]):
        with pytest.raises(InputError, match="finite"), np.errstate(invalid="ignore"):
            grow(backend, DepthWise(Limits(4, 2)), one_feature(np.arange(100) % 5), gradients)


# Large training sets. Every row's bins and gradients are known, so every sum can be found in 64 bits.


def one_feature(codes: Array, multiplicity: Array | None = None) -> TrainingSet:
    """Two features: the given codes, of 7 bins and one for missing values, and one that only ever has bin 0."""
    columns = np.stack([codes.astype(np.uint8), np.zeros(len(codes), np.uint8)])
    cuts = Cuts((np.arange(6.0), np.arange(2.0)), (None, None))
    return TrainingSet(
        DenseBins(np.ascontiguousarray(columns.T), columns), cuts, np.zeros(len(codes)), None, multiplicity
    )


def largest(bits: int, most: int = 1) -> np.float32:
    """The largest gradient that the rule by row still takes at scale 1."""
    x = np.float32((2.0 ** (bits - 16) - 1.0 - 0.5 * most) / most)
    return x if float(x) * most <= 2.0 ** (bits - 16) - 1.0 - 0.5 * most else np.nextafter(x, np.float32(0.0))


def assert_exact(data: TrainingSet, gradients: Gradients) -> Structure:
    """All backends agree on a tree of depth 2, and each of its sums is that of its rows, in 64 bits."""
    growth = DepthWise(Limits(4, 2, 1, 0.0, 1.0))
    expected = grow(Reference(), growth, data, gradients)
    for bins in (data, sparse(data)):
        for threads in (1, 3):
            assert structure_bytes(grow(TEAMS[threads], growth, bins, gradients)) == structure_bytes(expected)
    *rows_of, units = integers(gradients, 0)
    nodes, every = expected.nodes, range(len(expected.nodes.feature))
    for sums, rows, unit in zip(expected.sums, rows_of, units, strict=True):
        exact = [int(rows[expected.leaf_of_row == v].sum()) for v in every]
        for v in reversed(every):  # children come after their parent
            if nodes.feature[v] >= 0:
                exact[v] = exact[nodes.left[v]] + exact[nodes.right[v]]
        assert sums.tolist() == [total * unit for total in exact]
    return expected


@pytest.mark.parametrize("signs", ["up", "down", "by bin", "in every bin"])
@pytest.mark.parametrize("narrow", [40, None])
def test_three_tiles_of_rows_at_the_bound_by_row(signs: str, narrow: int | None) -> None:
    """All in one or two bins, so that one cell's packed sum comes to 32,766 * 65,535, and 65,534 * 65,535, a tile."""
    n = 3 * TILE + 11
    codes = np.where(np.arange(n) < TILE + 5, 2, 5)
    codes[::1000] = 7  # missing
    sign = {
        "up": 1.0,
        "down": -1.0,
        "by bin": np.where(codes == 2, 1.0, -1.0),
        "in every bin": 1.0 - 2.0 * (np.arange(n) % 2),
    }
    g = np.full((1, n), largest(31)) * np.asarray(sign[signs], np.float32)
    gradients = Gradients(g.astype(np.float32), np.full((1, n), largest(32)))
    assert integers(gradients, 0)[2] == (1.0, 1.0)
    assert np.abs(integers(gradients, 0)[0]).max() == 32766
    assert integers(gradients, 0)[1].max() == 65534
    with eager_threads(rows=5000, narrow=narrow):
        found = assert_exact(one_feature(codes), gradients)
    assert signs != "by bin" or len(found.nodes.feature) >= 3


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_2_to_the_15_rows_at_the_bound_by_sum(sign: float) -> None:
    """Few rows have a finer scale: a cell's sums come to 65,535 * 2**15 and 131,071 * 2**15, just within their bits."""
    n = 1 << 15
    gradients = Gradients(np.full((1, n), sign * 65535.0, np.float32), np.full((1, n), 131071.0, np.float32))
    assert integers(gradients, 0)[2] == (1.0, 1.0)
    codes = np.full(n, 3)
    with eager_threads(rows=1000, narrow=None):
        assert_exact(one_feature(codes), gradients)
        codes[: n // 2] = 1
        gradients.g[0, : n // 2] *= -1.0
        assert len(assert_exact(one_feature(codes), gradients).nodes.feature) == 3


@pytest.mark.slow
@pytest.mark.parametrize("most", [3, 4095, 4096])
def test_multiplicities_up_to_4096(most: int) -> None:
    n = 2 * TILE + 100
    codes = np.arange(n) % 7
    multiplicity = np.full(n, most, np.int32)
    multiplicity[::9] = 1
    g = np.full((1, n), largest(31, most)) * np.where(codes < 3, 1, -1).astype(np.float32)
    gradients = Gradients(g, np.full((1, n), largest(32, most)), multiplicity)
    rows_g, rows_h, _ = integers(gradients, 0)
    assert np.abs(rows_g).max() * TILE < 2**31
    assert rows_h.max() * TILE < 2**32
    assert rows_h.max() > 2**15  # close to the bound: half of what fits is used, or more
    with eager_threads(rows=5000, narrow=None):
        assert len(assert_exact(one_feature(codes, multiplicity), gradients).nodes.feature) >= 3


@pytest.mark.parametrize("kind", ["plain", "heavy", "spike", "huge", "tiny"])
def test_more_rows_than_two_tiles(kind: str) -> None:
    n, rng = 2 * TILE + 77, np.random.default_rng(3)
    gradients = random_gradients(rng, n, kind)
    with eager_threads(rows=5000, narrow=None):
        assert_exact(one_feature(rng.integers(0, 8, n)), gradients)


# The kernels by themselves, against Python's integers.


@settings(max_examples=examples(60))
@given(
    st.integers(0, 80),
    st.sampled_from(["plain", "heavy", "huge", "tiny", "ties"]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_leaf_sums_are_those_of_python(n: int, kind: str, whole: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 4097, n).astype(np.int32) if whole else np.empty(0, np.int32)
    gradients = random_gradients(rng, n, kind, m if whole else None)
    g, h, units = integers(gradients, 0)
    leaf = rng.integers(0, 3, n).astype(np.int32)
    sums, split = np.zeros((3, 2), np.int64), n // 3
    for start, stop in ((0, split), (split, n)):
        kernels.leaf_sums(gradients.g[0], gradients.h[0], m, 1.0 / units[0], 1.0 / units[1], leaf, start, stop, sums)
    assert sums.tolist() == [[sum(g[leaf == v].tolist()), sum(h[leaf == v].tolist())] for v in range(3)]


@settings(max_examples=examples(200))
@given(st.integers(1, 90), st.floats(1e-45, 3e38), st.sampled_from([0.0, 3.0, 80.0]), st.integers(0, 2**32 - 1))
def test_float32_says_the_integers_that_float64_does(n: int, top: float, spread: float, seed: int) -> None:
    """Subnormal gradients need a scale beyond float32's largest number, and beside huge ones small ones are 0."""
    rng = np.random.default_rng(seed)
    g, h = (top * np.exp(-spread * rng.random((2, n)))).astype(np.float32)
    g *= rng.choice(np.array([-1.0, 1.0], np.float32), n)
    g[0], scales = top, []
    for values, bits in ((g, 31), (h, 32)):
        size = np.abs(values.astype(np.float64))
        scales.append(fixed_point_scale(float(size.max()), float(size.sum()), 1.0, float(n), bits))
    packed, totals = np.empty(n, np.int64), np.zeros(2, np.int64)
    kernels.pack(g, h, np.empty(0, np.int32), *scales, 0, n, packed, totals)
    expected = [np.rint(x.astype(np.float64) * scale).astype(np.int64) for x, scale in zip((g, h), scales, strict=True)]
    assert packed.tolist() == ((expected[0] << 32) + expected[1]).tolist()
    assert totals.tolist() == [expected[0].sum(), expected[1].sum()]


def test_packed_pairs_add_lane_by_lane() -> None:
    rng = np.random.default_rng(1)
    g, h = rng.normal(size=5000).astype(np.float32), rng.random(5000).astype(np.float32)
    packed, totals = np.empty(5000, np.int64), np.zeros(2, np.int64)
    kernels.pack(g, h, np.empty(0, np.int32), 1024.0, 4096.0, 0, 5000, packed, totals)
    expected_g, expected_h = np.rint(g * 1024.0).astype(int), np.rint(h * 4096.0).astype(int)
    assert totals.tolist() == [expected_g.sum(), expected_h.sum()]
    for take in (slice(0, 1), slice(10, 4000), slice(None)):
        pair = int(packed[take].sum())
        assert (pair >> 32, pair & 0xFFFF_FFFF) == (expected_g[take].sum(), expected_h[take].sum())
