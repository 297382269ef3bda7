"""Where features are cut: literal cases, then what must hold for any data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from gpuboost.data import cuts as cuts_module
from gpuboost.data.borders.quantiles import between, bin_ends, whole_mass
from gpuboost.data.cuts import choose_cuts, sample_rows, shares
from gpuboost.types import Cuts

nan = np.nan


def one(values: list[float], **kwargs: object) -> list[float]:
    """The thresholds of a single column."""
    return choose_cuts(np.array(values, dtype=np.float64)[:, None], **kwargs).thresholds[0].tolist()


def assert_same_cuts(left: Cuts, right: Cuts) -> None:
    for a, b in zip(left.thresholds, right.thresholds, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(left.categories, right.categories, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("values", "thresholds"),
    [
        ([3.0, 1.0, 2.0, 1.0], [1.5, 2.5]),
        ([5.0, 5.0, 5.0], []),
        ([nan, nan], []),
        ([nan, 7.0], []),
        ([nan, 7.0, 9.0, nan], [8.0]),
        ([-0.0, 0.0], []),
        ([-1.0, -0.0, 0.0, 1.0], [-0.5, 0.5]),
        ([-3.0, 3.0], [0.0]),
        ([0.1, 0.2], [float(np.float32(0.15))]),
        ([-1.7e308, 1.7e308], [0.0]),
        ([2.0**1023, 1.5 * 2.0**1023], [1.25 * 2.0**1023]),
        ([0.0, 5e-324], [0.0]),
        ([1.0, np.nextafter(1.0, 2.0)], [1.0]),
    ],
)
def test_few_values_are_cut_between_each_two(values: list[float], thresholds: list[float]) -> None:
    assert one(values) == thresholds
    assert not any(np.signbit(t) and t == 0 for t in one(values))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_values_are_spread_evenly(dtype: type, rng: np.random.Generator) -> None:
    x = rng.permutation(10_000).astype(dtype)[:, None]
    assert choose_cuts(x, max_bins=4).thresholds[0].tolist() == [2499.5, 4999.5, 7499.5]
    counts = np.bincount(np.searchsorted(choose_cuts(x).thresholds[0], x[:, 0]))
    assert len(counts) == 255
    assert counts.max() - counts.min() <= 1


def test_a_heavy_value_has_a_bin_of_its_own() -> None:
    x = np.concatenate([np.zeros(1000), np.linspace(1, 2, 90), np.linspace(-3, -2, 10)])
    thresholds = one(x.tolist(), max_bins=11)
    bins = np.searchsorted(thresholds, x)
    assert len(set(bins[:1000])) == 1
    assert np.bincount(bins).tolist() == [10, 1000, *[10] * 9]


@pytest.mark.parametrize(
    ("mass", "ends"),
    [
        ([50, 1, 50, 50, 50, 50, 2], [0, 2, 3, 4, 5]),  # one bin is left for the light: the heavier stretch gets it,
        ([1, 50, 50, 50, 50, 2, 50], [1, 2, 3, 4, 5]),  # the other joins the heavy value to its right,
        ([50, 2, 50, 50, 50, 50, 1], [0, 1, 2, 3, 4]),  # or to its left if it is the last
        ([9, 9, 1, 1, 1, 1], [0, 1, 3]),
        ([1, 1, 1, 1, 1, 1, 1], [1, 2, 4]),
    ],
)
def test_light_values_share_what_heavy_ones_leave(mass: list[int], ends: list[int]) -> None:
    assert bin_ends(np.array(mass, dtype=np.int64), 6 if max(mass) == 50 else 4).tolist() == ends


masses = st.lists(st.integers(1, 1000) | st.sampled_from([1, 1, 1, 10**6]), min_size=3, max_size=60)


@given(masses, st.integers(2, 20))
def test_bins_of_any_masses(mass: list[int], most: int) -> None:
    weights = np.array(mass, dtype=np.int64)
    if len(mass) <= most:
        return
    ends = bin_ends(weights, most)
    assert len(ends) <= most - 1
    assert (np.diff(ends) > 0).all()
    assert ends.min(initial=0) >= 0
    assert ends.max(initial=0) < len(mass) - 1
    bins = np.split(weights, ends + 1)
    fair = weights.sum() / most
    for inside in bins:  # what is not heavy is never piled up
        if len(inside) > 1 and inside.max() < fair:
            assert inside.sum() < 3 * fair


@given(masses, st.integers(2, 20), st.integers(0, 40))
def test_bins_do_not_depend_on_the_unit_of_weight(mass: list[int], most: int, shift: int) -> None:
    weights = np.array(mass, dtype=np.int64)
    if len(mass) > most and int(weights.sum()) << shift < 2**53:
        assert bin_ends(weights, most).tolist() == bin_ends(weights << shift, most).tolist()


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite)
def test_a_threshold_lies_between_its_neighbours(a: float, b: float) -> None:
    a, b = min(a, b) + 0.0, max(a, b) + 0.0
    if a == b:
        return
    t = between(np.array([a]), np.array([b]))[0]
    assert a <= t < b
    assert not (t == 0.0 and np.signbit(t))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(1, 5))
def test_a_threshold_between_float32_numbers_is_one(a: float, steps: int) -> None:
    b = np.float32(a)
    with np.errstate(over="ignore"):
        for _ in range(steps):
            b = np.nextafter(b, np.float32(np.inf))
    if np.isfinite(b):
        t = between(np.array([a], dtype=np.float64), np.array([b], dtype=np.float64))[0]
        assert t == np.float32(t)
        assert a <= t < b


@st.composite
def weighted_tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    n = draw(st.integers(1, 40))
    values = st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.25, 1.0, 3.0, 1e30, nan]) | st.floats(-5, 5, width=32)
    x = np.array(draw(st.lists(values, min_size=2 * n, max_size=2 * n))).reshape(n, 2)
    codes = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, nan]), min_size=n, max_size=n))
    weight = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any))
    return np.column_stack([x, codes]), np.array(weight), draw(st.integers(2, 8))


@given(weighted_tables())
def test_a_whole_weight_is_a_repeated_row(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    x, weight, most = case
    categorical = np.array([False, False, True])
    repeated = choose_cuts(np.repeat(x, weight, axis=0), None, most, categorical)
    assert_same_cuts(choose_cuts(x, weight, most, categorical), repeated)
    numbers = choose_cuts(x[:, :2], weight * 0.25, most)  # of fractions only the proportions are known, not the rows
    assert_same_cuts(numbers, choose_cuts(np.repeat(x[:, :2], weight, axis=0), None, most))


@given(weighted_tables(), st.booleans())
def test_sparse_is_dense(case: tuple[np.ndarray, np.ndarray, int], weighted: bool) -> None:
    x, weight, most = case
    weights = weight if weighted else None
    assert_same_cuts(choose_cuts(sp.csr_matrix(x), weights, most), choose_cuts(x, weights, most))


@pytest.mark.parametrize("weighted", [False, True])
def test_memory_order_threads_and_sampling_do_not_matter_otherwise(
    weighted: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuts_module, "_SMALL", 0)
    monkeypatch.setattr(cuts_module, "_CHUNK", 64)
    monkeypatch.setattr(cuts_module, "SAMPLE_ROWS", 300)
    x = np.round(rng.normal(size=(1000, 70)), 2).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = 0.0
    weight = rng.random(1000) * (rng.random(1000) < 0.8) if weighted else None
    expected = choose_cuts(x, weight, 16)
    rows = sample_rows(1000, np.flatnonzero(weight) if weighted else None)
    assert len(rows) == 300
    assert_same_cuts(choose_cuts(x[rows], weight[rows] if weighted else None, 16), expected)
    for other in (np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], sp.csr_matrix(x)):
        assert_same_cuts(choose_cuts(other, weight, 16, n_threads=3), expected)
    assert_same_cuts(choose_cuts(x.astype(np.float64), weight, 16), expected)


def test_the_input_is_left_alone(rng: np.random.Generator) -> None:
    x = rng.normal(size=(50, 3))
    sparse = sp.csr_matrix(np.where(x > 0, x, 0))
    before, data = x.copy(), sparse.data.copy()
    for order in "CF":
        choose_cuts(np.asarray(x, order=order), max_bins=5)
    choose_cuts(sparse, np.arange(50), max_bins=5)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(sparse.data, data)


def test_rows_are_sampled_one_from_each_stretch() -> None:
    assert sample_rows(200_000) is None
    rows = sample_rows(1_000_000)
    assert len(rows) == 200_000
    assert (rows // 5).tolist() == list(range(200_000))
    assert rows[:8].tolist() == sample_rows(1_000_000)[:8].tolist()
    present = np.arange(0, 900_000, 3)
    chosen = sample_rows(900_000, present)
    assert (np.diff(chosen) > 0).all()
    assert np.isin(chosen, present).all()


@pytest.mark.parametrize(
    ("weight", "mass"),
    [
        ([1.0, 2.0, 0.0], [1, 2, 0]),
        ([0.5, 1.0, 0.0], [2**48, 2**49, 0]),
        ([1e-300, 1.0], [1, 2**50]),
        ([5e-324, 5e-324], [2**50, 2**50]),
        ([1e308, 1e308], [1e308 * 2.0**-973] * 2),
    ],
)
def test_weights_become_whole(weight: list[float], mass: list[int]) -> None:
    found = whole_mass(np.array(weight))
    assert found.tolist() == [int(m) for m in mass]
    assert int(found.sum()) < 2**53


@pytest.mark.parametrize(
    ("codes", "weight", "most", "kept"),
    [
        ([2.0, 0.0, 2.0, 1.0, nan], None, 255, [2, 0, 1]),
        ([2.0, 0.0, 2.0, 1.0], [1, 5, 1, 0], 255, [0, 2]),
        ([3.0, 1.0, 2.0, 3.0], None, 2, [3, 1]),
        ([nan, nan], None, 255, [0]),
    ],
)
def test_categories_are_listed_by_weight(
    codes: list[float], weight: list[int] | None, most: int, kept: list[int]
) -> None:
    mass = None if weight is None else np.array(weight, dtype=np.int64)
    assert [share.tolist() for share in shares(np.array(codes), mass, most)] == [kept]
    cuts = choose_cuts(np.array(codes, dtype=np.float32)[:, None], weight, most, np.array([True]))
    assert cuts.categories[0].tolist() == kept
    assert cuts.thresholds[0].size == 0


def test_many_categories_are_spread_over_several_features() -> None:
    codes = np.repeat(np.arange(7.0), [9, 8, 7, 3, 2, 1, 1])
    numbers = np.linspace(0.0, 1.0, len(codes))
    x = np.stack([numbers, codes, numbers], axis=1)
    cuts = choose_cuts(x, None, 3, np.array([False, True, False]))
    assert cuts.columns.tolist() == [0, 1, 1, 2]
    assert [None if c is None else c.tolist() for c in cuts.categories] == [None, [0, 1, 2], [3, 4], None]
    assert (cuts.n_features, cuts.n_columns) == (4, 3)


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=40))
def test_spreading_counts_a_weight_as_that_many_rows(rows: list[tuple[int, int]]) -> None:
    codes, weight = (np.array(column) for column in zip(*rows, strict=True))
    repeated = np.repeat(codes, weight).astype(float)
    given_weight = shares(codes.astype(float), weight.astype(np.int64), 4)
    given_rows = shares(repeated, None, 4)
    assert [a.tolist() for a in given_weight] == [b.tolist() for b in given_rows]
