"""quantise: the numba kernels against the definition, number of thresholds below x."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from gpuboost.backends.host.threads import ThreadPool
from gpuboost.kernels.binning import binning
from gpuboost.kernels.binning.binning import dense_bins, rounded_down
from gpuboost.kernels.binning.binning_sparse import sparse_bins

Arrays = tuple[np.ndarray, ...]
QUICK = settings(max_examples=examples(50))
LOOK_UP = binning.CELLS  # as many rows make look-up tables worth while


def defined(x: np.ndarray, thresholds: Arrays, categories: tuple[np.ndarray | None, ...]) -> np.ndarray:
    """(d, n) bins, in float64 and without haste."""
    columns = []
    for values, cuts, codes in zip(x.T.astype(np.float64), thresholds, categories, strict=True):
        if codes is None:
            bins, n_bins = np.searchsorted(cuts, values, side="left"), len(cuts) + 1
        else:
            bin_of = {float(code): place for place, code in enumerate(codes)}
            n_bins = len(codes)
            bins = np.array([bin_of.get(value, n_bins) for value in values.tolist()])
        columns.append(np.where(np.isnan(values), n_bins, bins))
    return np.array(columns).astype(np.uint8)


def alone(work: Callable[[int], object]) -> None:
    work(0)


def check(x: np.ndarray, thresholds: Arrays, categories: tuple[np.ndarray | None, ...] | None = None) -> None:
    """Both orders of memory, one thread and three."""
    categories = categories or (None,) * len(thresholds)
    expected = defined(x, thresholds, categories)
    for order in "CF":
        for run, parts in ((alone, 1), (ThreadPool(3).run, 3)):
            rows, columns = dense_bins(np.asarray(x, order=order), thresholds, categories, run, parts)
            np.testing.assert_array_equal(columns, expected)
            np.testing.assert_array_equal(rows, expected.T)
            assert rows.flags.c_contiguous
            assert columns.flags.c_contiguous


def around(thresholds: np.ndarray, dtype: type) -> np.ndarray:
    """Values on, just below and just above each threshold, and far from all."""
    near = thresholds.astype(dtype)
    sides = [np.nextafter(near, dtype(side)) for side in (-np.inf, np.inf)]
    tiny, top = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    far = np.array([0.0, -0.0, np.nan, tiny, -tiny, top, -top], dtype=dtype)
    return np.concatenate([near, *sides, far])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [200, LOOK_UP + 7])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: np.exp(2 * rng.normal(size=n)),
        lambda rng, n: 1000 + rng.random(n),
        lambda rng, n: -1e30 * rng.random(n),
        lambda rng, n: rng.standard_cauchy(n) ** 5,
        lambda rng, n: np.where(rng.random(n) < 0.5, 1e30, 1e-30) * rng.normal(size=n),
        lambda rng, n: rng.integers(-3, 3, n) / 4,
        lambda rng, n: 1e-44 * rng.integers(-9, 9, n),
    ],
    ids=["normal", "lognormal", "offset", "negative", "heavy tails", "two scales", "few", "denormal"],
)
def test_bins_are_the_number_of_thresholds_below(
    draw: Callable[[np.random.Generator, int], np.ndarray], n: int, dtype: type, rng: np.random.Generator
) -> None:
    cuts = tuple(np.unique(draw(rng, most)) for most in (0, 1, 2, 9, 254))
    with np.errstate(over="ignore"):
        x = np.column_stack([rng.choice(np.append(around(t, dtype), draw(rng, 99).astype(dtype)), n) for t in cuts])
    check(x[np.isfinite(x).all(axis=1) | np.isnan(x).any(axis=1)], cuts)


def test_thresholds_in_one_cell_are_searched(rng: np.random.Generator) -> None:
    """An outlier leaves all other thresholds in one cell of any look-up table."""
    crowd = np.append(np.sort(1e10 + rng.random(253)), 1e300)
    made = binning.tables((crowd, crowd[:5]), (None, None), np.float64)
    assert made.kind.tolist() == [binning.SEARCH, binning.LOOK_UP]
    x = np.repeat(rng.choice(np.append(around(crowd, np.float64), 1e10 + rng.random(99)), LOOK_UP)[:, None], 2, axis=1)
    check(x[~np.isinf(x).any(axis=1)], (crowd, crowd[:5]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_categories_are_looked_up(dtype: type, rng: np.random.Generator) -> None:
    codes = (rng.permutation(300)[:255], np.array([4]), None, np.array([0]))
    x = rng.integers(-1, 320, (500, 4)).astype(dtype)
    x[rng.random(x.shape) < 0.1] = np.nan
    empty = np.empty(0)
    check(x, (empty, empty, np.array([7.5]), empty), codes)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (31, 40), (600, 2), (65, 1100)])
def test_shapes_that_are_no_multiple_of_a_block(shape: tuple[int, int], rng: np.random.Generator) -> None:
    cuts = tuple(np.sort(rng.normal(size=f % 7)) for f in range(shape[1]))
    check(rng.normal(size=shape).astype(np.float32), cuts)


def test_no_writing_to_what_may_only_be_read(rng: np.random.Generator) -> None:
    x = rng.normal(size=(50, 2))
    x.flags.writeable = False
    check(x, (np.array([0.0]), np.array([-1.0, 1.0])))


finite = st.floats(allow_nan=False, allow_infinity=False)
narrow = st.floats(width=32, allow_nan=False, allow_infinity=False)


@QUICK
@given(st.lists(finite, min_size=1, max_size=20, unique=True), st.lists(narrow, min_size=1, max_size=20))
def test_a_decision_by_bin_is_the_decision_by_value(cuts: list[float], values: list[float]) -> None:
    thresholds = np.unique(np.array(cuts) + 0.0)
    with np.errstate(over="ignore"):
        near = around(thresholds, np.float32)
    x32 = np.concatenate([np.array(values, dtype=np.float32), near[np.isfinite(near)]])
    for x in (x32, np.concatenate([x32.astype(np.float64), thresholds])):
        for table in (x, np.resize(x, LOOK_UP)):
            _, columns = dense_bins(np.ascontiguousarray(table[:, None]), (thresholds,), (None,), alone, 1)
            bins = columns[0][: len(x)]
            for c, t in enumerate(thresholds):
                np.testing.assert_array_equal(bins <= c, x.astype(np.float64) <= t)
            order = np.argsort(x, kind="stable")
            assert (np.diff(bins[order].astype(int)) >= 0).all()


@QUICK
@given(finite, narrow)
def test_rounding_a_threshold_down_keeps_the_decision(t: float, x: float) -> None:
    low = float(rounded_down(np.array([t]), np.float32)[0])
    assert low <= t
    assert (x <= low) == (x <= t)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_sparse_bins_are_the_dense_ones(dtype: type, parts: int, rng: np.random.Generator) -> None:
    shape = (120, 30)
    x = rng.normal(size=shape).round(1)
    x[rng.random(shape) < 0.7] = 0.0
    x[rng.random(shape) < 0.05] = np.nan
    x[:, 3], x[17] = 0.0, 0.0
    cuts = tuple(np.unique(rng.normal(size=f % 6).round(1)) + 0.0 for f in range(30))
    expected = defined(x.astype(dtype), cuts, (None,) * 30)
    matrix = sp.csr_matrix(x.astype(dtype))
    matrix.data[5] = 0.0  # stored, yet zero
    expected[matrix.indices[5], int(np.searchsorted(matrix.indptr, 5, side="right")) - 1] = np.searchsorted(
        cuts[matrix.indices[5]], 0.0
    )
    for index in (np.int32, np.int64):
        arrays = matrix.indptr.astype(index), matrix.indices.astype(index), matrix.data
        run = alone if parts == 1 else ThreadPool(parts).run
        default, row_start, feature, row_bin, column_start, row, column_bin = sparse_bins(*arrays, cuts, run, parts)
        by_row = np.repeat(default[:, None], 120, axis=1)
        by_column = by_row.copy()
        for i in range(120):
            inside = slice(row_start[i], row_start[i + 1])
            assert (np.diff(feature[inside]) > 0).all()
            by_row[feature[inside], i] = row_bin[inside]
        for f in range(30):
            inside = slice(column_start[f], column_start[f + 1])
            assert (np.diff(row[inside]) > 0).all()
            by_column[f, row[inside]] = column_bin[inside]
        np.testing.assert_array_equal(by_row, expected)
        np.testing.assert_array_equal(by_column, expected)
        assert (row_bin != default[feature]).all()
        assert (feature.dtype, row.dtype, row_start.dtype) == (np.int32, np.int32, np.int64)
        assert column_start[-1] == row_start[-1] == len(column_bin)


def test_a_sparse_matrix_without_entries() -> None:
    empty = sp.csr_matrix((4, 3), dtype=np.float32)
    cuts = (np.empty(0), np.array([-1.0]), np.array([0.0]))
    default, row_start, feature, _, column_start, *_ = sparse_bins(
        empty.indptr, empty.indices, empty.data, cuts, alone, 1
    )
    assert default.tolist() == [0, 1, 0]
    assert (len(feature), row_start.tolist(), column_start.tolist()) == (0, [0] * 5, [0] * 4)
