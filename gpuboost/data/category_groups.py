"""Training rows by their categories: what tables of target statistics and their training columns are made of.

Weights and weighted targets are whole numbers of a unit, so their sums are exact: they do not depend on the order in
which rows are added up, and a device that adds many at a time gets the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import DeviceError, InputError
from gpuboost.keys import Key, Stream
from gpuboost.records import dataclass
from gpuboost.types import DeviceMatrix

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_RADIX = 1 << 16
_BITS = 62  # of the sum of all magnitudes; the rounding of each row adds half a unit at most
_LEAST = -1000  # exponent of a unit, so that it is a normal number


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Weight of each training row, and its weighted targets, as whole numbers."""

    values: Integers  # (1 + k, n)
    scales: Floats  # (1 + k,) what a unit of each is worth, powers of two

    @classmethod
    def of(cls, target: Floats, weight: Floats | None) -> Units:
        """target: (n, k); weight: (n,) or None. Raises InputError if sums of the target are beyond float64."""
        mass = np.ones(len(target)) if weight is None else weight
        with np.errstate(over="ignore", invalid="ignore"):
            amounts = np.vstack([mass, (mass[:, None] * target).T])
            bounds = np.abs(amounts).sum(axis=1)
        if not np.isfinite(bounds.sum()):
            raise InputError("y: sums of the target by category are beyond float64. Scale it: y / abs(y).max().")
        _, exponents = np.frexp(bounds)
        exponents = np.maximum(exponents - _BITS, _LEAST)
        values = np.rint(np.ldexp(amounts, -exponents[:, None])).astype(np.int64)
        return cls(values, np.ldexp(1.0, exponents))


class RowGroups(Protocol):
    """The training rows of one matrix. A column is (n,) for ``arranged``, of float32 values."""

    threads: int  # that may call the methods at the same time

    @property
    def units(self) -> Units: ...

    def totals(self, columns: tuple[int, ...]) -> tuple[Integers, Integers]:
        """(m,) keys of the categories, increasing, and (1 + k, m) sums of the units of their rows."""
        ...

    def ordered(self, columns: tuple[int, ...], prior: Floats, prior_weight: Floats) -> list[list[Any]]:
        """Mean targets of the rows of the same category that come before each row: [permutation][target]."""
        ...

    def looked_up(self, columns: tuple[int, ...], keys: Integers, values: Floats, absent: float) -> Any:
        """The value of each row's key; ``absent`` if it is not listed. keys: (m,) increasing; values: (m,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Arguments of ``RowGroups``, wherever X lives."""

    units: Units
    sizes: dict[int, int]  # categories of each categorical column
    kept: Integers | None  # (n,) numbers of the training rows in X; None: all
    orders: tuple[Integers, ...]  # (n,) permutations of the training rows


def grouped(
    x: Any,
    target: Floats,
    weight: Floats | None,
    sizes: dict[int, int],
    kept: Integers | None,
    *,
    permutations: int,
    seed: int,
    threads: int,
    upload: Callable[[NDArray[Any]], DeviceMatrix] | None = None,
) -> RowGroups:
    """The training rows of x (n, d), which has codes of categories. target, weight: of the kept rows.

    upload: to the device that groups the rows of an x on the host.

    Raises
    ------
    InputError
        If sums of the target are beyond float64.
    """
    orders = tuple(permutation(len(target), seed, number) for number in range(permutations))
    grouping = Grouping(Units.of(target, weight), sizes, kept, orders)
    if isinstance(x, DeviceMatrix):
        on_device: RowGroups = x.groups(grouping, to_host=False)
        return on_device
    if upload is not None:
        with suppress(DeviceError):  # no room on the device, of which training may need less: the host gets the same
            return UploadedGroups(x, grouping, upload)
    return HostGroups(x, grouping, threads)


class HostGroups:
    """``RowGroups`` of a NumPy array."""

    def __init__(self, x: NDArray[Any], grouping: Grouping, threads: int) -> None:
        self._x, self._of, self.threads = x, grouping, threads

    @property
    def units(self) -> Units:
        return self._of.units

    def totals(self, columns: tuple[int, ...]) -> tuple[Integers, Integers]:
        keys, group = np.unique(self._keys(columns), return_inverse=True)
        rows = _sorted_by(group)
        first = np.searchsorted(group[rows], np.arange(len(keys)))
        return keys, np.add.reduceat(self._of.units.values[:, rows], first, axis=1)

    def ordered(self, columns: tuple[int, ...], prior: Floats, prior_weight: Floats) -> list[list[Any]]:
        group = np.unique(self._keys(columns), return_inverse=True)[1].astype(np.int64)

        def means(order: Integers) -> list[Any]:
            made = ordered_means(group, self._of.units, order, prior, prior_weight)
            return [self._spread(column) for column in made.T.astype(np.float32)]

        return [means(order) for order in self._of.orders]

    def looked_up(self, columns: tuple[int, ...], keys: Integers, values: Floats, absent: float) -> Any:
        row_keys = joined([self._x[:, f] for f in columns], [self._of.sizes[f] for f in columns])
        return values_of(row_keys, keys, values, absent).astype(np.float32)

    def _keys(self, columns: tuple[int, ...]) -> Integers:
        kept = slice(None) if self._of.kept is None else self._of.kept
        return joined([self._x[kept, f] for f in columns], [self._of.sizes[f] for f in columns])

    def _spread(self, part: NDArray[np.float32]) -> NDArray[np.float32]:
        """Values of the kept rows at their places among all rows; the others are not read."""
        if self._of.kept is None:
            return part
        out = np.zeros(len(self._x), part.dtype)
        out[self._of.kept] = part
        return out


class UploadedGroups:
    """``RowGroups`` of a NumPy array whose categorical columns are copied to a device, which does the work."""

    threads = 1

    def __init__(self, x: NDArray[Any], grouping: Grouping, upload: Callable[[NDArray[Any]], DeviceMatrix]) -> None:
        self._places = {f: place for place, f in enumerate(sorted(grouping.sizes))}
        sizes = {place: grouping.sizes[f] for f, place in self._places.items()}
        codes = upload(np.ascontiguousarray(x[:, sorted(grouping.sizes)]))
        self._there: RowGroups = codes.groups(replace(grouping, sizes=sizes), to_host=True)

    @property
    def units(self) -> Units:
        return self._there.units

    def totals(self, columns: tuple[int, ...]) -> tuple[Integers, Integers]:
        return self._there.totals(self._moved(columns))

    def ordered(self, columns: tuple[int, ...], prior: Floats, prior_weight: Floats) -> list[list[Any]]:
        return self._there.ordered(self._moved(columns), prior, prior_weight)

    def looked_up(self, columns: tuple[int, ...], keys: Integers, values: Floats, absent: float) -> Any:
        return self._there.looked_up(self._moved(columns), keys, values, absent)

    def _moved(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._places[f] for f in columns)


def joined(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> Integers:
    """(n,) key of the combination of each row. codes: (n,) for each column, NaN if missing; sizes: of the columns."""
    keys = np.zeros(len(codes[0]), np.int64)
    for values, size in zip(codes, sizes, strict=True):
        keys = keys * (size + 1) + np.where(np.isnan(values), size, values).astype(np.int64)
    return keys


def values_of(own: Integers, keys: Integers, values: NDArray[Any], absent: Any) -> NDArray[Any]:
    """(n,) or (n, k) the value of each key; ``absent`` if it is not listed. keys: (m,) increasing; values: (m,) ..."""
    places = np.searchsorted(keys, own).clip(max=max(len(keys) - 1, 0))
    there = keys[places] == own if len(keys) else np.zeros(len(own), np.bool_)
    out = np.empty((len(own), *values.shape[1:]))
    out[:] = absent
    out[there] = values[places[there]]
    return out


def permutation(n_rows: int, seed: int, number: int) -> Integers:
    """(n,) a random order of the rows: a function of the seed and the number of the permutation."""
    low, high, iteration, stream = (Key.root(seed) / Stream.PERMUTATIONS / number).words
    random = np.random.Philox(key=low | high << 32 | iteration << 64 | stream << 96).random_raw(n_rows)
    return np.argsort(random, kind="stable").astype(np.int64)


def ordered_means(groups: Integers, units: Units, order: Integers, prior: Floats, prior_weight: Floats) -> Floats:
    """(n, k) mean target of the rows of the same group that precede each row in the order. Equation 5.

    groups: (n,) numbers from 0; order: (n,) a permutation of the rows; prior, prior_weight: (k,).
    """
    rows = order[_sorted_by(groups[order])]
    group = groups[rows]
    first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    start = np.repeat(first, np.diff(first, append=len(rows)))
    count = _before(units.values[0, rows], start) * units.scales[0]
    out = np.empty((len(rows), len(prior)))
    for j, a in enumerate(prior_weight):
        total = _before(units.values[1 + j, rows], start) * units.scales[1 + j]
        out[rows, j] = (total + a * prior[j]) / (count + a)
    return out


def _before(values: Integers, start: Integers) -> Floats:
    """(n,) sum of the values from ``start`` of each row up to the row before it."""
    total = np.concatenate([[0], np.cumsum(values)[:-1]])
    before: Floats = (total - total[start]).astype(np.float64)
    return before


def _sorted_by(groups: Integers) -> Integers:
    """Stable order of the rows by group: one radix pass of 16 bits, or as many as the numbers need."""
    order = np.argsort((groups & (_RADIX - 1)).astype(np.uint16), kind="stable")
    rest, largest = groups >> 16, int(groups.max(initial=0)) >> 16
    while largest:
        order = order[np.argsort((rest[order] & (_RADIX - 1)).astype(np.uint16), kind="stable")]
        rest, largest = rest >> 16, largest >> 16
    return order
