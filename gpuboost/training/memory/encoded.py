"""Categorical columns in a dry run: the features that they become, and what a device allocates for their statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from gpuboost.backends.cuda.device.dry_run import DryRun
from gpuboost.backends.cuda.inputs.target_groups import CudaGroups
from gpuboost.data.category_groups import Floats, Grouping, Integers, Units
from gpuboost.data.columns import Columns
from gpuboost.data.cuts import FEATURE_BINS, divided, shares
from gpuboost.data.encoded_columns import TargetStatistics, training_columns
from gpuboost.data.encoding import PARTITION, OrderedTargetStatistics
from gpuboost.data.target_statistics import MOST_COLUMNS, MOST_KEYS, StatisticsTable
from gpuboost.losses.protocol import Loss, n_targets
from gpuboost.recipe import Recipe
from gpuboost.training.encoding import Encoding, chosen_policy, encoded_recipe, laid_out, one_hot
from gpuboost.types import Cuts


def encoded_features(
    params: Mapping[str, Any], recipe: Recipe, n: int, d: int, categories: tuple[int, ...], runtime: DryRun
) -> tuple[Cuts, Recipe]:
    """Cuts of n rows and d columns of as many bins as there may be, and the recipe for them.

    categories: how many each of the first columns has; the others are numeric. Statistics of categories are computed on
    ``runtime``, before the training: X is taken to be of float64, in the host's memory.
    """
    max_bins, sizes = int(params["max_bins"]), dict(enumerate(categories))
    shared = {f: shares(np.repeat(np.arange(m) * 1.0, 2), None, min(max_bins, FEATURE_BINS)) for f, m in sizes.items()}
    cuts = divided([np.arange(max_bins - 1, dtype=np.float64)] * d, shared)
    if not categories:
        return cuts, recipe
    columns = Columns(d, None, (*(tuple(range(m)) for m in categories), *(None,) * (d - len(categories))))
    policy = chosen_policy(params, columns, recipe)
    if policy == PARTITION:
        return cuts, recipe
    if not isinstance(policy, OrderedTargetStatistics):
        made = Encoding(None, columns, one_hot(cuts), None)
        return made.cuts, encoded_recipe(recipe, made, d)
    statistics = _statistics(policy, sizes, n, _targets_of(recipe.loss))
    with runtime.purpose("categories"):
        groups = _CountedGroups(runtime, statistics, sizes, n)
        for table in statistics.tables:
            groups.totals(table.columns)
        places = training_columns(statistics, d, groups)
    new = sum(not isinstance(part, int) for part in places[0])
    bins = np.arange(min(max_bins, FEATURE_BINS) - 1, dtype=np.float64)
    made = laid_out(None, replace(columns, statistics=statistics), cuts, places, divided([bins] * new))
    return made.cuts, encoded_recipe(recipe, made, d)


def _targets_of(loss: Loss) -> int:
    """Number of targets whose means are statistics: see ``training.encoding.target_values``."""
    return loss.n_outputs if loss.task == "multiclass" and loss.n_outputs > 2 else n_targets(loss)


def _statistics(policy: OrderedTargetStatistics, sizes: dict[int, int], n: int, k: int) -> TargetStatistics:
    """Statistics of as many keys as n rows may have, of k targets; see ``target_statistics.tables_of``."""

    def table(columns: tuple[int, ...]) -> StatisticsTable:
        m = _most_keys(columns, sizes, n)
        weight = np.broadcast_to(1.0, m)
        return StatisticsTable(columns, _same(m), weight, np.broadcast_to(1.0, (m, k)), np.ones(k))

    encoded = policy.columns(sizes)
    listed: list[tuple[int, ...]] = [(f,) for f in encoded]
    for count in range(2, policy.combinations + 1):
        for columns in combinations(encoded[:MOST_COLUMNS], count):
            alone = max(_most_keys((f,), sizes, n) for f in columns)
            if prod(sizes[f] + 1 for f in columns) <= MOST_KEYS and _most_keys(columns, sizes, n) > alone:
                listed.append(columns)
    return TargetStatistics(np.zeros(k), policy.counts, policy.permutations, tuple(map(table, listed)))


def _most_keys(columns: tuple[int, ...], sizes: dict[int, int], n: int) -> int:
    return min(n, prod(sizes[f] for f in columns))


def _same(m: int) -> Integers:
    """(m,) zeros that take no memory."""
    return np.broadcast_to(np.int64(0), m)


class _CountedGroups:
    """``RowGroups`` of codes that are copied from the host, with nothing computed. Columns asked for are None."""

    threads = 1

    def __init__(self, runtime: DryRun, statistics: TargetStatistics, sizes: dict[int, int], n: int) -> None:
        self._runtime, self._sizes, self._n = runtime, sizes, n
        self._answer = [[None] * len(statistics.prior)] * statistics.permutations
        units = Units(np.broadcast_to(np.int64(0), (1 + len(statistics.prior), n)), np.ones(1 + len(statistics.prior)))
        orders: Any = tuple(np.broadcast_to(np.uint32(0), n) for _ in range(statistics.permutations))
        codes = runtime.empty((n, len(sizes)), np.float64)
        self._there = CudaGroups(runtime, codes, Grouping(units, sizes, None, orders), to_host=True)

    @property
    def units(self) -> Units:
        return self._there.units

    def totals(self, columns: tuple[int, ...]) -> tuple[Integers, Integers]:
        m = _most_keys(columns, self._sizes, self._n)
        keys = [self._runtime.empty(m, dtype) for dtype in (np.uint64, np.int32, np.uint64)]  # no dry run finds any
        del keys
        return self._there.totals(columns)

    def ordered(self, columns: tuple[int, ...], prior: Floats, prior_weight: Floats) -> list[list[Any]]:
        self._there.ordered(columns, prior, prior_weight)
        return self._answer

    def looked_up(self, columns: tuple[int, ...], keys: Integers, values: Floats, absent: float) -> None:
        self._there.looked_up(columns, keys, values, absent)
