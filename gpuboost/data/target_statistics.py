"""Ordered target statistics of categories (Prokhorenkova et al. 2018, arXiv 1706.09516, section 3.2).

The statistic of a category is the mean target of its rows, drawn towards the mean of all rows by a prior of some rows'
weight (equation 4). A training row is given the statistic of the rows that precede it in a random permutation, so that
its own target has no part in its value (equation 5); a row to predict is given that of all training rows.

A table is of one categorical column, or of the combinations of several. Keys of combinations are numbers of a mixed
radix: the codes of the columns, a missing value being the category after the last one. Rows are added up where they
live (``category_groups``).

The weight of the prior that is best for means of few rows is the variance within categories over that between them
(empirical Bayes): with it the mean of each number of rows estimates the category's own. Both variances are estimated by
the method of moments (analysis of variance of one random factor).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np

from gpuboost.data.category_groups import Floats, Integers, RowGroups, values_of
from gpuboost.records import dataclass

MOST_KEYS = 2**62
MOST_COLUMNS = 12  # that are combined: 66 pairs
LEAST_PRIOR_WEIGHT = 0.01  # that is chosen


@dataclass(frozen=True, slots=True, eq=False)
class TargetMoments:
    """The target of all training rows."""

    n_rows: int  # of a weight above 0
    weight: float
    mean: Floats  # (k,)
    squares: Floats  # (k,) weighted sum of squares about the mean

    @classmethod
    def of(cls, target: Floats, weight: Floats | None) -> TargetMoments:
        """target: (n, k); weight: (n,) or None. Infinite where sums are beyond float64."""
        mass = np.ones(len(target)) if weight is None else weight
        total = float(mass.sum())
        with np.errstate(over="ignore", invalid="ignore"):
            mean = (mass[:, None] * target).sum(axis=0) / total
            squares = (mass[:, None] * (target - mean) ** 2).sum(axis=0)
        return cls(int(np.count_nonzero(mass)), total, mean, squares)


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
        cls, columns: tuple[int, ...], groups: RowGroups, moments: TargetMoments, prior_weight: float | None
    ) -> StatisticsTable:
        """The sums over training rows. prior_weight: None: chosen for each target."""
        keys, totals = groups.totals(columns)
        weight, *sums = totals * groups.units.scales[:, None]
        stacked = np.stack(sums, axis=1)
        if prior_weight is None:
            chosen = _chosen_prior_weight(weight, stacked, moments)
        else:
            chosen = np.full(len(sums), prior_weight, np.float64)
        return cls(columns, keys, weight, stacked, chosen)

    def means(self, prior: Floats) -> Floats:
        """(m, k) means of all training rows of each key, for rows to predict. Equation 4."""
        means: Floats = (self.sums + self.prior_weight * prior) / (self.weight[:, None] + self.prior_weight)
        return means

    def means_of(self, keys: Integers, prior: Floats) -> Floats:
        """(n, k) means of these keys; the prior for a key without training rows."""
        return values_of(keys, self.keys, self.means(prior), prior)

    def counts_of(self, keys: Integers) -> Floats:
        """(n,) weights of the training rows of these keys; 0 for a key without any."""
        return values_of(keys, self.keys, self.weight, 0.0)


def _chosen_prior_weight(weight: Floats, sums: Floats, moments: TargetMoments) -> Floats:
    """(k,) variance within categories over that between them, from ``LEAST_PRIOR_WEIGHT`` to 1; 1 if they are unknown.

    Trees also see the number of rows, and made no use of a larger weight (benchmarks/README.md, ``categories``).

    weight: (m,) and sums: (m, k) of the categories.
    """
    m, every = np.count_nonzero(weight), moments.weight
    chosen = np.ones(sums.shape[1])
    # the factor of the variance between categories in the expectation of ``explained``
    spread = every - (weight**2).sum() / every
    if not 1 < m < moments.n_rows or not spread > 0.0:
        return chosen
    explained = _explained(weight, sums, moments)
    with np.errstate(over="ignore", invalid="ignore"):  # squares of targets beyond 1e154 are infinite
        within = np.maximum(moments.squares - explained, 0.0) / (moments.n_rows - m)
        between = (explained - (m - 1) * within) / spread
        better = between > within
    chosen[better] = np.maximum(within[better] / between[better], LEAST_PRIOR_WEIGHT)
    return chosen


def _explained(weight: Floats, sums: Floats, moments: TargetMoments) -> Floats:
    """(k,) weighted sum of squares of the categories' means about the mean of all rows."""
    some = weight > 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        off: Floats = (sums[some] - weight[some, None] * moments.mean) ** 2 / weight[some, None]
        squares: Floats = off.sum(axis=0)
        return squares


def tables_of(
    columns: tuple[int, ...],
    sizes: dict[int, int],
    groups: RowGroups,
    moments: TargetMoments,
    *,
    most: int,
    prior_weight: float | None,
) -> tuple[StatisticsTable, ...]:
    """A table of each column, and of the combinations of up to ``most`` of them.

    Of more than 12 columns those 12 are combined whose means explain most of the target's variance. Left out are
    combinations of no more keys than one of their columns has categories, as that column determines them, and those
    whose keys an int64 cannot hold.

    sizes: column -> number of its categories.
    """

    def table(of: tuple[int, ...]) -> StatisticsTable:
        return StatisticsTable.of(of, groups, moments, prior_weight)

    with ThreadPoolExecutor(groups.threads) as pool:  # numpy sorts without the GIL
        single = dict(zip(columns, pool.map(table, ((f,) for f in columns)), strict=True))
        chosen = list(columns)
        if len(chosen) > MOST_COLUMNS and most > 1:
            worth = {f: _worth(statistics, moments) for f, statistics in single.items()}
            chosen = sorted(sorted(chosen, key=lambda f: (-worth[f], f))[:MOST_COLUMNS])
        asked = [of for count in range(2, most + 1) for of in combinations(chosen, count)]
        asked = [of for of in asked if np.prod([float(sizes[f] + 1) for f in of]) <= MOST_KEYS]
        joint = [
            statistics
            for statistics in pool.map(table, asked)
            if len(statistics.keys) > max(len(single[f].keys) for f in statistics.columns)
        ]
    return (*single.values(), *joint)


def _worth(table: StatisticsTable, moments: TargetMoments) -> float:
    """Variance of the target that the means of the keys explain, less what as many means of random groups would."""
    variance = moments.squares.sum() / moments.weight
    return float(_explained(table.weight, table.sums, moments).sum() - len(table.keys) * variance)
