"""Cases whose rows are shared out to shards in this process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse as scipy_sparse
from support.builders import TEAMS, Case, model_bytes

from gpuboost.backends.sharded.backend import Sharded
from gpuboost.backends.sharded.shard import Shard
from gpuboost.backends.sharded.shard_data import ShardData
from gpuboost.backends.sharded.worker_group import LocalWorkerGroup
from gpuboost.boosting import boost
from gpuboost.recipe import Recipe
from gpuboost.types import TrainingSet

Array = np.ndarray


def shards(count: int, threads: int = 1) -> Sharded:
    """A backend of so many shards, which have no rows yet."""
    return Sharded(LocalWorkerGroup(lambda: Shard(threads), count), threads)


def hand_out(backend: Sharded, case: Case, ends: Sequence[int], x: object = None) -> TrainingSet:
    """Give the shards the rows up to each of ``ends``. Returns the data set that is all of them."""
    data, x = case.data, case.x if x is None else x
    lists = data.query_start
    pieces = []
    for a, b in zip([0, *ends[:-1]], ends, strict=True):
        weight, times = (None if held is None else held[a:b] for held in (data.weight, data.multiplicity))
        inside = None if lists is None else lists[(lists >= a) & (lists <= b)] - a
        pieces.append(ShardData(x[a:b], data.y[a:b], weight, times, inside))
    sizes = np.diff([0, *ends]).tolist()
    return backend.place(pieces, data.cuts, data.y, data.weight, data.multiplicity, lists, sizes)


def place(case: Case, ends: Sequence[int], x: object = None, threads: int = 1) -> tuple[Sharded, TrainingSet]:
    """A backend whose shards hold the rows up to each of ``ends``, and the data set that is all of them."""
    backend = shards(len(ends), threads)
    return backend, hand_out(backend, case, ends, x)


def assert_shard_parity(recipe: Recipe, case: Case, seed: int = 3) -> bytes:
    """One shard and three make the model of one machine, which comes back."""
    expected, n = model_bytes(boost(recipe, case.data, TEAMS[1], seed=seed)), case.data.n_rows
    for ends in ([n], even(n, 3)):
        backend, data = place(case, ends)
        assert model_bytes(boost(recipe, data, backend, seed=seed)) == expected
    return expected


def even(n: int, shards: int) -> list[int]:
    return [n * (i + 1) // shards for i in range(shards)]


def csr(x: Array) -> object:
    """With every zero left out."""
    return scipy_sparse.csr_array(x)
