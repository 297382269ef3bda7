"""Ordered target statistics of categories (Prokhorenkova et al. 2018, arXiv 1706.09516, section 3.2).

The statistic of a category is the mean target of its rows, drawn towards the mean of all rows by a prior of some rows'
weight (equation 4). A training row is given the statistic of the rows that precede it in a random permutation, so that
its own target has no part in its value (equation 5); a row to predict is given that of all training rows.

A table is of one categorical column, or of the combinations of several. Keys of combinations are numbers of a mixed
radix: the codes of the columns, a missing value being the category after the last one.

The weight of the prior that is best for means of few rows is the variance within categories over that between them
(empirical Bayes): with it the mean of each number of rows estimates the category's own. Both variances are estimated by
the method of moments (analysis of variance of one random factor).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.keys import Key, Stream

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_KEYS = 2**62
MOST_COLUMNS = 12  # that are combined: 66 pairs
LEAST_PRIOR_WEIGHT = 0.01  # that is chosen
_RADIX = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class StatisticsTable:
    """Weight and target sums of the categories of a column, or of the combinations of several columns."""

    columns: tuple[int, ...]  # increasing
    keys: Integers  # (m,) increasing
    weight: Floats  # (m,) of the training rows
    sums: Floats  # (m, k) of weight times target
    prior_weight: Floats  # (k,) above 0

    @classmethod
    def of(
        cls,
        columns: tuple[int, ...],
        keys: Integers,
        target: Floats,
        weight: Floats | None,
        prior_weight: float | None = None,
    ) -> StatisticsTable:
        """The sums over training rows. keys: (n,); target: (n, k); weight: (n,) or None; prior_weight: None: chosen."""
        distinct, group = np.unique(keys, return_inverse=True)
        mass = np.ones(len(keys)) if weight is None else weight
        listed = [np.bincount(group, mass * target[:, j], len(distinct)) for j in range(target.shape[1])]
        total = np.bincount(group, mass, len(distinct)).astype(np.float64)
        sums = np.stack(listed, axis=1).astype(np.float64)
        if prior_weight is None:
            chosen = _chosen_prior_weight(group, target, mass, total, sums)
        else:
            chosen = np.full(target.shape[1], prior_weight, np.float64)
        return cls(columns, distinct, total, sums, chosen)

    def rows_of(self, keys: Integers) -> Integers:
        """(n,) the row of the table of each key; -1 if it was not there in training."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        places = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)

    def means(self, rows: Integers, prior: Floats) -> Floats:
        """(n, k) means of all training rows, for rows to predict; the prior for -1. Equation 4."""
        weight = np.append(self.weight, 0.0)[rows, None]
        sums = np.vstack([self.sums, np.zeros(self.sums.shape[1])])[rows]
        means: Floats = (sums + self.prior_weight * prior) / (weight + self.prior_weight)
        return means

    def counts(self, rows: Integers) -> Floats:
        """(n,) weight of the training rows of the same key; 0 for -1."""
        counts: Floats = np.append(self.weight, 0.0)[rows]
        return counts


def _chosen_prior_weight(groups: Integers, target: Floats, mass: Floats, total: Floats, sums: Floats) -> Floats:
    """(k,) variance within groups over that between them, from ``LEAST_PRIOR_WEIGHT`` to 1; 1 where they are unknown.

    Trees also see the number of rows, and made no use of a larger weight (benchmarks/README.md, ``categories``).

    groups, mass: (n,) numbers and weights of the rows; target: (n, k); total: (m,) and sums: (m, k) of the groups.
    """
    n, m, k, every = np.count_nonzero(mass), np.count_nonzero(total), target.shape[1], total.sum()
    chosen = np.ones(k)
    spread = every - (total**2).sum() / every  # of the expected squares between groups, the share of their own variance
    if not 1 < m < n or not spread > 0.0:
        return chosen
    means = sums / np.maximum(total, np.finfo(np.float64).tiny)[:, None]
    for j in range(k):
        within = (mass * (target[:, j] - means[groups, j]) ** 2).sum() / (n - m)
        squares = (total * (means[:, j] - sums[:, j].sum() / every) ** 2).sum()
        between = (squares - (m - 1) * within) / spread
        if np.isfinite(within) and between > within:
            chosen[j] = max(within / between, LEAST_PRIOR_WEIGHT)
    return chosen


def joined(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> Integers:
    """(n,) key of the combination of each row. codes: (n,) for each column, NaN if missing; sizes: of the columns."""
    keys = np.zeros(len(codes[0]), np.int64)
    for values, size in zip(codes, sizes, strict=True):
        keys = keys * (size + 1) + np.where(np.isnan(values), size, values).astype(np.int64)
    return keys


def permutation(n_rows: int, seed: int, number: int) -> Integers:
    """(n,) a random order of the rows: a function of the seed and the number of the permutation."""
    low, high, iteration, stream = (Key.root(seed) / Stream.PERMUTATIONS / number).words
    random = np.random.Philox(key=low | high << 32 | iteration << 64 | stream << 96).random_raw(n_rows)
    return np.argsort(random, kind="stable").astype(np.int64)


def ordered_means(
    groups: Integers, target: Floats, weight: Floats | None, order: Integers, prior: Floats, prior_weight: Floats
) -> Floats:
    """(n, k) mean target of the rows of the same group that precede each row in the order. Equation 5.

    groups: (n,) numbers from 0; target: (n, k); order: (n,) a permutation of the rows; prior, prior_weight: (k,).
    Sums are made in the order of the rows, so they are the same on every machine.
    """
    rows = order[_sorted_by(groups[order])]
    group = groups[rows]
    first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    start = np.repeat(first, np.diff(first, append=len(rows)))
    mass = np.ones(len(rows)) if weight is None else weight[rows]
    count = _before(mass, start)
    out = np.empty(target.shape)
    for j in range(target.shape[1]):
        a = prior_weight[j]
        out[rows, j] = (_before(mass * target[rows, j], start) + a * prior[j]) / (count + a)
    return out


def _before(values: Floats, start: Integers) -> Floats:
    """(n,) sum of the values from ``start`` of each row up to the row before it."""
    total = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    before: Floats = total - total[start]
    return before


def _sorted_by(groups: Integers) -> Integers:
    """Stable order of the rows by group: one radix pass of 16 bits, or as many as the numbers need."""
    order = np.argsort((groups & (_RADIX - 1)).astype(np.uint16), kind="stable")
    rest, largest = groups >> 16, int(groups.max(initial=0)) >> 16
    while largest:
        order = order[np.argsort((rest[order] & (_RADIX - 1)).astype(np.uint16), kind="stable")]
        rest, largest = rest >> 16, largest >> 16
    return order


def joined_columns(
    codes: dict[int, NDArray[Any]],
    sizes: dict[int, int],
    most: int,
    target: Floats,
    weight: Floats | None,
) -> list[tuple[tuple[int, ...], Integers]]:
    """The combinations that tables are made of, each with its (n,) keys: each column, and up to ``most`` together.

    Of more than 12 columns those 12 are combined whose means explain most of the target's variance. Left out are
    combinations of no more keys than one of their columns has categories, as that column determines them, and those
    whose keys an int64 cannot hold.

    codes: column -> (n,) codes of the training rows; target: (n, k).
    """
    found: list[tuple[tuple[int, ...], Integers]] = [((f,), joined([codes[f]], [sizes[f]])) for f in codes]
    present = {columns[0]: len(np.unique(keys)) for columns, keys in found}
    chosen = sorted(codes)
    if len(chosen) > MOST_COLUMNS and most > 1:
        explained = {columns[0]: _explained(keys, target, weight) for columns, keys in found}
        chosen = sorted(sorted(chosen, key=lambda f: (-explained[f], f))[:MOST_COLUMNS])
    for count in range(2, most + 1):
        for columns in combinations(chosen, count):
            if np.prod([float(sizes[f] + 1) for f in columns]) > MOST_KEYS:
                continue
            keys = joined([codes[f] for f in columns], [sizes[f] for f in columns])
            if len(np.unique(keys)) > max(present[f] for f in columns):
                found.append((columns, keys))
    return found


def _explained(keys: Integers, target: Floats, weight: Floats | None) -> float:
    """Variance of the target that the means of the keys explain, less what as many means of random groups would."""
    table = StatisticsTable.of((0,), keys, target, weight)
    total = table.weight.sum()
    mean = table.sums.sum(axis=0) / total
    between = ((table.sums - table.weight[:, None] * mean) ** 2 / np.maximum(table.weight, 1e-300)[:, None]).sum()
    mass = np.ones(len(keys)) if weight is None else weight
    variance = (mass[:, None] * (target - mean) ** 2).sum() / total
    return float(between - len(table.keys) * variance)
