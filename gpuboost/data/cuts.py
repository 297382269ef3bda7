"""Bin edges of each feature.

Few distinct values: one cut between each two neighbours. Many: a value heavier than a fair share gets a bin of its
own, and the rest is spread evenly over the remaining bins (the aim of LightGBM's GreedyFindBin, here in closed form).

Only the distinct values and their total weights count, and sums of weights are exact: a row of weight 3 gives the
same cuts as three equal rows, to the last bit, and a row of weight 0 is ignored.

Beyond 200,000 rows the numeric cuts come from a sample of 200,000: one row drawn from each of as many equal stretches
of rows by a fixed Philox stream, so the same rows on every machine and for every seed. (There, weights and repeated
rows agree only in distribution.) Categories are counted on all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_one_of
from gpuboost.data.borders.greedy_log_sum import greedy_ends
from gpuboost.data.borders.quantiles import Floats, Integers, between, bin_ends, whole_mass
from gpuboost.errors import InputError, shown
from gpuboost.keys import Key, Stream
from gpuboost.types import Cuts, DeviceMatrix

MOST_BINS = 65_535
DEFAULT_BINS = 255
FEATURE_BINS = 255  # of one feature: a bin is one byte, and one more bin holds what is missing
SAMPLE_ROWS = 200_000
MOST_WHOLE = 1 << 20  # whole weights are counts of rows up to here; fractions become larger numbers
_TILE = 32  # features whose sample is held at a time
_CHUNK = 4096  # rows transposed at once, in cache
_SMALL = 500_000  # values for which threads cost more than they gain

Ends = Callable[[Integers, int], Integers]
"""(mass, max_bins) -> index of the last distinct value of each bin but the last one"""

QUANTILE = "quantile"
BINNINGS: dict[str, Ends] = {QUANTILE: bin_ends, "greedy_log_sum": greedy_ends}

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


def choose_cuts(
    x: Any,
    weight: NDArray[Any] | None = None,
    max_bins: int = DEFAULT_BINS,
    is_categorical: NDArray[np.bool_] | None = None,
    *,
    n_threads: int = 1,
    binning: str = QUANTILE,
) -> Cuts:
    """Cuts for every column, of at most ``max_bins`` value bins each; beyond 255 it is read by several features.

    x: (n, d) float32 or float64, scipy CSR in canonical form, or DeviceMatrix; NaN is missing; categorical columns
    hold codes 0, 1, 2, ... weight: (n,) not negative, or None. is_categorical: (d,), or None for none. binning: one of
    ``BINNINGS``.

    Raises
    ------
    InputError
        If ``max_bins`` is not an integer from 2 to 65,535, or there is no such binning.
    """
    check_max_bins(max_bins)
    ends = BINNINGS[check_binning(binning)]
    mass = None if weight is None else whole_mass(np.asarray(weight))
    rows = sample_rows(x.shape[0], None if mass is None or mass.all() else np.flatnonzero(mass))
    sampled_mass = mass if mass is None or rows is None else mass[rows]
    d = x.shape[1]
    whole = x
    if isinstance(x, DeviceMatrix):
        x, rows = x.host_rows(rows), None
    if not isinstance(x, np.ndarray):
        return divided(list(_sparse_thresholds(x if rows is None else x[rows], sampled_mass, max_bins, ends)))

    thresholds = [np.empty(0)] * d
    listed = np.zeros(d, dtype=np.bool_) if is_categorical is None else np.asarray(is_categorical)
    with _mapper(n_threads if x.size > _SMALL else 1) as each:
        for start, tile in _tiles(x, rows, each):
            numeric = np.flatnonzero(~listed[start : start + len(tile)])
            if sampled_mass is None:
                list(each(np.ndarray.sort, (tile[f] for f in numeric)))
            # here and not by ``each``: memory that other threads free is not reused
            made = _thresholds([tile[f] for f in numeric], sampled_mass, max_bins, ends)
            for f, cuts in zip(numeric.tolist(), made, strict=True):
                thresholds[start + f] = cuts
        columns = (_column(whole, f) for f in np.flatnonzero(listed).tolist())
        share = partial(shares, mass=mass, size=min(max_bins, FEATURE_BINS))
        shared = dict(zip(np.flatnonzero(listed), each(share, columns), strict=True))
    return divided(thresholds, shared)


def _column(x: Any, f: int) -> NDArray[Any]:
    """All rows of column f, on the host."""
    values: NDArray[Any] = x.host_column(f) if isinstance(x, DeviceMatrix) else x[:, f]
    return values


def check_max_bins(max_bins: Any) -> None:
    """Raise InputError unless it is an integer from 2 to 65,535."""
    whole = isinstance(max_bins, (int, np.integer)) and not isinstance(max_bins, bool)
    if not whole or not 2 <= max_bins <= MOST_BINS:
        raise InputError(f"max_bins: must be an integer from 2 to {MOST_BINS}; got {max_bins!r}.")


def check_binning(binning: Any) -> str:
    """The name of a way to choose cuts. Raises InputError if there is none of this name."""
    if not is_one_of(binning, tuple(BINNINGS)):
        raise InputError(f"binning: must be one of {', '.join(map(repr, BINNINGS))}; got {shown(binning)}.")
    name: str = binning
    return name


def sample_rows(n_rows: int, present: Integers | None = None) -> Integers | None:
    """Increasing row numbers to choose cuts from, among ``present``; None for all n_rows rows."""
    n = n_rows if present is None else len(present)
    if n <= SAMPLE_ROWS:
        return present
    edges = np.arange(SAMPLE_ROWS + 1) * n // SAMPLE_ROWS
    low, high, iteration, stream = (Key.root(0) / Stream.CUTS).words
    random = np.random.Philox(key=low | high << 32 | iteration << 64 | stream << 96).random_raw(SAMPLE_ROWS)
    drawn = edges[:-1] + (random % np.diff(edges).astype(np.uint64)).astype(np.int64)
    return drawn if present is None else present[drawn]


def shares(codes: NDArray[Any], mass: Integers | None, size: int) -> list[Integers]:
    """The category codes by decreasing weight, ties by code, divided into shares of ``size``; [[0]] if all are missing.

    codes: (n,) whole numbers from 0 in a float dtype, NaN for missing. Beyond the first share, a category that fewer
    than two rows hold (two average rows, where weights are not whole) is left out: no split can learn from it.
    """
    present = ~np.isnan(codes)
    total = np.bincount(codes[present].astype(np.int64), None if mass is None else mass[present].astype(np.float64))
    order = np.argsort(-total, kind="stable")
    order = order[total[order] > 0]
    if not len(order):
        return [np.zeros(1, dtype=np.int64)]
    row = 1.0 if mass is None or int(mass.max()) <= MOST_WHOLE else float(mass.mean())
    stop = max(min(size, len(order)), int(np.searchsorted(-total[order], -2.0 * row, side="right")))
    return [order[begin : min(begin + size, stop)].astype(np.int64) for begin in range(0, stop, size)]


def divided(thresholds: Sequence[Floats], shared: Mapping[int, Sequence[Integers]] = MappingProxyType({})) -> Cuts:
    """Cuts in which a column has a feature for each 254 of its thresholds, or for each share of its categories.

    thresholds: of each column, any number of them. shared: column -> shares of its categories, if it is categorical.
    """
    features: list[tuple[Floats, Integers | None, int]] = []
    for column, cuts in enumerate(thresholds):
        if column in shared:
            features += [(np.empty(0), codes, column) for codes in shared[column]]
        else:
            begins = range(0, max(len(cuts), 1), FEATURE_BINS - 1)
            features += [(cuts[begin : begin + FEATURE_BINS - 1], None, column) for begin in begins]
    values, categories, source = zip(*features, strict=True)
    return Cuts(values, categories, None if len(source) == len(thresholds) else np.array(source, dtype=np.int32))


def by_column(cuts: Cuts) -> tuple[list[Floats], dict[int, list[Integers]]]:
    """The thresholds of each column, and the shares of categories of those that have them, for ``divided``."""
    thresholds: list[list[Floats]] = [[] for _ in range(cuts.n_columns)]
    shared: dict[int, list[Integers]] = {}
    for column, values, codes in zip(cuts.columns.tolist(), cuts.thresholds, cuts.categories, strict=True):
        thresholds[column].append(values)
        if codes is not None:
            shared.setdefault(column, []).append(codes)
    return [parts[0] if len(parts) == 1 else np.concatenate(parts) for parts in thresholds], shared


@contextmanager
def _mapper(n_threads: int) -> Iterator[Map]:
    """``map``, on several threads: numpy sorts and copies without the GIL."""
    if n_threads == 1:
        yield map
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield pool.map


def _tiles(x: NDArray[Any], rows: Integers | None, each: Map) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (first feature, sampled values by column), some features at a time. The values may be written to."""
    n, d = x.shape[0] if rows is None else len(rows), x.shape[1]
    buffer = np.empty((min(_TILE, d), n), dtype=x.dtype)

    def transpose(top: int) -> None:
        chosen = slice(top, top + _CHUNK)
        tile[:, chosen] = x[chosen if rows is None else rows[chosen], start:stop].T

    def copy(f: int) -> None:
        tile[f - start] = x[:, f] if rows is None else x[:, f][rows]

    for start in range(0, d, _TILE):
        stop = min(start + _TILE, d)
        tile = buffer[: stop - start]
        if x.flags.f_contiguous:
            list(each(copy, range(start, stop)))
        else:
            list(each(transpose, range(0, n, _CHUNK)))
        yield start, tile


def _thresholds(columns: Sequence[NDArray[Any]], mass: Integers | None, max_bins: int, ends: Ends) -> Iterator[Floats]:
    """The cuts of some features, whose arithmetic is one call for all: of few rows, calls take longer than it."""
    sides = [_sides(column, mass, max_bins, ends) for column in columns]
    low, high = (np.concatenate([np.empty(0), *of_all]) for of_all in ([a for a, _ in sides], [b for _, b in sides]))
    cuts, begin = between(low, high), 0
    for of_feature, _ in sides:
        yield cuts[begin : begin + len(of_feature)].copy()
        begin += len(of_feature)


def _sides(column: NDArray[Any], mass: Integers | None, max_bins: int, ends: Ends) -> tuple[Floats, Floats]:
    """The values of a feature next to its cuts, below and above. column: (m,), sorted if there is no mass."""
    if mass is not None:
        order = np.argsort(column)
        column, mass = column[order], mass[order]
    m = int(np.searchsorted(column, np.nan))  # missing values sort last
    if m == 0:
        return np.empty(0), np.empty(0)
    first = np.flatnonzero(np.concatenate([[True], column[1:m] != column[: m - 1]]))
    if len(first) <= max_bins:
        last = np.arange(len(first) - 1)
    elif mass is None and len(first) == m:
        last = _ends_of_distinct(ends, m, max_bins)
    elif mass is None:
        last = ends(np.diff(first, append=m), max_bins)
    else:
        last = ends(np.add.reduceat(mass[:m], first), max_bins)
    return column[first[last]].astype(np.float64), column[first[last + 1]].astype(np.float64)


@lru_cache(maxsize=16)  # the same for every column of continuous values
def _ends_of_distinct(ends: Ends, rows: int, max_bins: int) -> Integers:
    """The ends of the bins of a feature whose rows all have values of their own."""
    return ends(np.ones(rows, np.int64), max_bins)


def _sparse_thresholds(x: Any, mass: Integers | None, max_bins: int, ends: Ends) -> Iterator[Floats]:
    """The cuts of each feature of a CSR matrix, for all features at once but where there are many values."""
    values, mass, start = _columns(x, mass)
    for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        order = np.argsort(values[a:b])
        values[a:b], mass[a:b] = values[a:b][order], mass[a:b][order]
    is_first = np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]
    is_first[start[:-1][np.diff(start) > 0]] = True
    first = np.flatnonzero(is_first)
    edge = np.searchsorted(first, start)  # the distinct values of feature f: edge[f] .. edge[f + 1] - 1
    values, mass = values[first].astype(np.float64), np.add.reduceat(mass, first) if len(first) else mass
    with np.errstate(invalid="ignore"):
        cuts = between(values[:-1], values[1:])  # those from one feature to the next are not used
    for a, b in zip(edge[:-1].tolist(), edge[1:].tolist(), strict=True):
        if b - a > max_bins:
            yield cuts[a + ends(mass[a:b], max_bins)]
        else:
            yield cuts[a : max(a, b - 1)]


def _columns(x: Any, mass: Integers | None) -> tuple[NDArray[Any], Integers, Integers]:
    """(values, mass, start) by column, without missing values; the zeros that are not stored are one entry."""
    x = x.tocsc()
    values, start = x.data, x.indptr.astype(np.int64)
    of_entry = np.ones(len(values), dtype=np.int64) if mass is None else mass[x.indices]
    running = np.concatenate([[0], np.cumsum(of_entry)])
    absent = (x.shape[0] if mass is None else int(mass.sum())) - np.diff(running[start])
    present = ~np.isnan(values)
    if not present.all():
        start = np.concatenate([[0], np.cumsum(present)])[start]
        values, of_entry = values[present], of_entry[present]
    has_zero = absent > 0
    zero_at = start[1:][has_zero]
    values, of_entry = np.insert(values, zero_at, 0.0), np.insert(of_entry, zero_at, absent[has_zero])
    return values, of_entry, start + np.concatenate([[0], np.cumsum(has_zero)])
