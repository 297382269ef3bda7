"""The quick search of packed histograms finds, bit by bit, what the plain one finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from gpuboost.kernels.histograms import cells
from gpuboost.kernels.splits import cuts, monotone_split, packed_split
from gpuboost.kernels.splits.gain import NOISE, score, soft_threshold

NO_ROWS, NO_CUTS = np.empty(0, np.int64), np.empty(8, np.uint32)
seeds = st.integers(0, 2**32 - 1)
units_of = st.sampled_from([2.0**-160, 2.0**-40, 2.0**-3, 1.0, 2.0**60, 2.0**120, 0.3])  # what float32 gradients have


MANY = 1 << 20
SHARES = st.sampled_from([0.0, 1e-12, 1e-3, 0.3, 1.0, 3.0, 1e9, np.inf])


def quick(pairs: np.ndarray, units: np.ndarray, rule: np.ndarray, rows: int = MANY) -> tuple[float, list[int]]:
    """Gain, and what is found, of the histogram's one feature; its last pair is of the missing values.

    rows: with few of them, only cells that are not empty are looked at.
    """
    total, found = int(pairs.sum()), np.full(4, -7, np.int64)
    parent = score((total >> 32) * units[0], (total & 0xFFFF_FFFF) * units[1], rule[0])
    room = np.empty(packed_split.ROOM, np.int64), np.full(packed_split.ROOM, np.nan, np.float32)
    room = *room, np.full(packed_split.ROOM, -1, np.int64)
    least = packed_split.least_units(units[1], rule[1])
    own = np.concatenate([[5 << 32], pairs, [7 << 32]])  # cells of other features
    gain = packed_split.best_cut(own, 1, len(pairs) - 1, total, parent, least, units, rule, rows, *room, found)
    return gain, found.tolist()


def plain(pairs: np.ndarray, units: np.ndarray, rule: np.ndarray) -> tuple[float, list[int]]:
    total, found, size = int(pairs.sum()), np.full(4, -7, np.int64), len(pairs)
    g, h, gains = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(257)
    cells.read_running(np.concatenate([pairs, np.zeros(size, np.int64)]), True, 0, size - 1, g, h)
    sums = total >> 32, total & 0xFFFF_FFFF, 0
    gain = cuts.general_cut(g, h, NO_ROWS, size - 1, *sums, units, rule, False, NO_CUTS, gains, found)
    return gain, found.tolist()


def histogram(seed: int, n_bins: int, top: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    g, h = rng.integers(-top, top + 1, n_bins + 1), rng.integers(0, top + 1, n_bins + 1)
    if kind == "ties":
        g, h = rng.choice([-1, 0, 1], n_bins + 1) * top, np.full(n_bins + 1, top)
    elif kind == "sparse":
        empty = rng.random(n_bins + 1) < 0.7
        g[empty], h[empty] = 0, 0
    elif kind == "mirrored":
        g[:n_bins] = np.sign(np.arange(n_bins) - (n_bins - 1) / 2) * top
        h[:n_bins] = top
    elif kind == "mixed":
        h = np.where(rng.random(n_bins + 1) < 0.5, 1, h)
    if seed % 3:
        g[-1], h[-1] = 0, 0
    return (g << 32) + h


@settings(max_examples=examples(500))
@given(
    seeds, st.sampled_from([1, 2, 3, 17, 64, 65, 254, 255]), st.sampled_from([1, 50, 4_000_000]),
    st.sampled_from(["plain", "ties", "sparse", "mirrored"]), units_of, units_of,
    st.sampled_from([0.0, 1e-6, 1.0, 1e15]), st.sampled_from([0.0, 1e-3, 1.0, 40.0, 1e30, np.inf]),
    st.sampled_from([0.0, 5.0]),
)  # fmt: skip
def test_it_finds_what_the_plain_search_finds(
    seed: int, n_bins: int, top: int, kind: str, unit_g: float, unit_h: float, ridge: float, least_h: float,
    least_gain: float,
) -> None:  # fmt: skip
    if not ridge < packed_split.MOST_RIDGE * unit_h:
        ridge = 0.0
    pairs, units = histogram(seed, n_bins, top, kind), np.array([unit_g, unit_h])
    rule = np.array([ridge, least_h, least_gain, 1.0, 1.0, 0.0])
    expected_gain, expected = plain(pairs, units, rule)
    for rows in (MANY, 1):
        gain, found = quick(pairs, units, rule, rows)
        assert gain == expected_gain
        if gain > 0.0:
            assert found == expected


@settings(max_examples=examples(1500))
@given(
    seeds, st.sampled_from([1, 2, 3, 17, 64, 65, 254, 255]), st.sampled_from([1, 50, 4_000_000]),
    st.sampled_from(["plain", "ties", "sparse", "mixed"]), units_of, units_of, st.sampled_from([0.0, 1.0, 1e15]),
    st.sampled_from([0.0, 1.0, 40.0]), SHARES, SHARES, SHARES, st.booleans(), st.sampled_from([-1, 0, 1]),
    st.sampled_from([1, 3, 40]), st.sampled_from([0.0, 0.0, 1e-9, 0.5, 30.0, 1e20]),
    st.sampled_from([0.0, 1.0, -0.3, 1e-30]),
)  # fmt: skip
def test_it_finds_what_the_plain_search_finds_within_bounds(
    seed: int, n_bins: int, top: int, kind: str, unit_g: float, unit_h: float, ridge: float, least_h: float,
    alpha: float, low: float, high: float, same_sign: bool, direction: int, least_rows: int, smoothing: float,
    above: float,
) -> None:  # fmt: skip
    """alpha: in units of the largest gradient; low, high, above: of the largest value; smoothing: of the sum of h."""
    if not ridge < packed_split.MOST_RIDGE * unit_h:
        ridge = 0.0
    pairs, units = histogram(seed, n_bins, top, kind), np.array([unit_g, unit_h])
    total, size = int(pairs.sum()), len(pairs)
    value = top * unit_g / (unit_h + ridge)
    alpha = min(alpha, 1e9) * top * unit_g
    low, high = (min(low, high) * value if same_sign else -low * value), max(low, high) * value
    counts = np.random.default_rng(seed).integers(0, 4, size + 2)
    rule = np.zeros(13)
    sum_g, sum_h = total >> 32, total & 0xFFFF_FFFF
    smoothing, above = smoothing * sum_h * unit_h, float(min(max(above * value, low), high))
    rule[:4], rule[10], rule[12] = (ridge, least_h, 0.0, least_rows), alpha, smoothing
    of_node = soft_threshold(sum_g * unit_g, alpha), sum_h * unit_h, ridge, low, high, smoothing, above
    parent = monotone_split.side_score(*of_node)
    floor = max(0.0, NOISE * max(abs(parent), score(sum_g * unit_g, sum_h * unit_h, ridge)))
    within = float(alpha), float(low), float(high), direction, float(parent), float(floor), smoothing, above
    own, least = np.concatenate([[5 << 32], pairs, [7 << 32]]), packed_split.least_units(unit_h, least_h)
    g, h = np.empty(size, np.int64), np.empty(size, np.int64)
    cells.read_running(np.concatenate([pairs, np.zeros(size, np.int64)]), True, 0, size - 1, g, h)
    for n in (NO_ROWS, counts) if least_rows > 1 else (NO_ROWS,):
        of_cells, expected, found = n[1 : size + 1], np.full(4, -7, np.int64), np.full(4, -7, np.int64)
        rows = int(of_cells.sum())
        expected_gain = monotone_split.best_held_cut(
            g, h, of_cells, size - 1, (sum_g, sum_h, rows), units, rule, (low, high, above), direction, False, NO_CUTS,
            expected,
        )  # fmt: skip
        for known in (rows,) if len(n) else (MANY, 1):  # with few rows, only cells that are not empty are looked at
            room = np.empty(packed_split.ROOM, np.int64), np.full(packed_split.ROOM, np.nan, np.float32)
            places = np.full(packed_split.ROOM, -1, np.int64)
            gain = packed_split.best_counted_cut(
                own, n, 1, size - 1, total, parent, least, units, rule, known, within, *room, places, found
            )
            assert gain == expected_gain
            if gain > 0.0:
                assert found.tolist() == expected.tolist()


@settings(max_examples=examples(300))
@given(
    st.floats(1e-300, 1e250), st.floats(0.0, 1e300) | st.integers(0, 2**33).map(float) | st.just(np.inf), st.booleans()
)
def test_the_fewest_units_are_the_first_that_are_enough(unit: float, least: float, in_units: bool) -> None:
    least = least * unit if in_units else least
    found = packed_split.least_units(unit, least)
    assert 1 <= found <= 2**32
    if found < 2**32:
        assert found * unit >= least
    if found > 1:
        assert (found - 1) * unit < least


@pytest.mark.parametrize("least", [-1.0, 0.0])
def test_a_child_has_at_least_one_unit(least: float) -> None:
    assert packed_split.least_units(0.5, least) == 1
