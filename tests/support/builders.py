"""Tools to grow trees on the cases of ``gpuboost.testing.cases``, and to compare what was grown, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.trees import histograms as cpu_histograms
from gpuboost.backends.cpu.trees import partition as cpu_partition
from gpuboost.backends.cpu.trees import small_trees as cpu_small_trees
from gpuboost.backends.cpu.trees import split_search as cpu_search
from gpuboost.backends.cpu.trees import stump as cpu_stump
from gpuboost.backends.host import threads as host_threads
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import Growth
from gpuboost.testing.cases import (
    GRADIENT_KINDS,
    Case,
    as_sparse,
    model_bytes,
    node_bytes,
    random_case,
    random_gradients,
    sparse,
    structure_bytes,
    weighted,
)
from gpuboost.types import Candidates, Cuts, DenseBins, Gradients, SplitCosts, Structure, Target, TrainingSet

__all__ = [
    "GRADIENT_KINDS",
    "TEAMS",
    "Case",
    "as_sparse",
    "assert_same_tree",
    "constrained",
    "eager_threads",
    "grow",
    "listed",
    "model_bytes",
    "node_bytes",
    "random_case",
    "random_gradients",
    "ranking_case",
    "sparse",
    "structure_bytes",
    "take",
    "weighted",
]

Array = np.ndarray


def take(data: TrainingSet, rows: Array) -> TrainingSet:
    """Some rows, in any order and as often as they are named, as a dense set."""
    codes = np.ascontiguousarray(dense_rows(data.bins)[rows])
    weight = None if data.weight is None else data.weight[rows]
    m = None if data.multiplicity is None else data.multiplicity[rows]
    return TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), data.cuts, data.y[rows], weight, m)


def grow(
    backend: Backend, growth: Growth, data: TrainingSet, gradients: Gradients, rows: Array | None = None,
    features: Array | None = None, costs: SplitCosts | None = None,
) -> Structure:  # fmt: skip
    """One structure, fitted to the given gradients of all rows, or of some."""
    if features is None:
        features = np.arange(data.cuts.n_features, dtype=np.int32)
    if rows is not None:
        m = gradients.multiplicity
        gradients = Gradients(gradients.g[:, rows], gradients.h[:, rows], None if m is None else m[rows])
    return growth.structure(backend, data, Target(0, rows, gradients), 0, Candidates(features, costs=costs))


def constrained(growth: Growth, cuts: Cuts, seed: int) -> Growth:
    """With a direction for every other numeric feature, and for one at least if there is any."""
    rng, numeric = np.random.default_rng(seed), np.flatnonzero(~cuts.is_categorical)
    directions = np.zeros(cuts.n_features, np.int64)
    directions[numeric] = rng.choice([-1, 0, 1], len(numeric))
    directions[numeric[:1]] = rng.choice([-1, 1])
    return type(growth)(replace(growth.limits, directions=tuple(directions.tolist())))


@contextmanager
def eager_threads(rows: int = 16, cells: int = 16, narrow: int | None = 40) -> Iterator[None]:
    """Small data is shared out as large data is, and nodes of more than ``narrow`` rows have unpacked histograms.

    None: the nodes that have them in everyday use.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_threads, "SMALL", rows)
        patch.setattr(cpu_histograms, "ROWS_PER_THREAD", rows)
        patch.setattr(cpu_partition, "SORTED_PER_THREAD", rows)
        patch.setattr(cpu_search, "CELLS_PER_THREAD", cells)
        patch.setattr(cpu_stump, "CELLS_SUMMED_PER_THREAD", cells)
        patch.setattr(cpu_stump, "ROUTED_PER_THREAD", rows)
        patch.setattr(cpu_small_trees, "WORK_PER_THREAD", rows)
        patch.setattr(cpu_small_trees, "LEAST_TOGETHER", rows)
        patch.setattr(cpu_histograms, "PACKED_ROWS", cpu_histograms.PACKED_ROWS if narrow is None else narrow)
        yield


TEAMS = {threads: Cpu(threads) for threads in (1, 2, 3, 4)}
"""One backend per number of threads, used by test after test: nothing of one run may be seen in the next."""


def assert_same_tree(
    data: TrainingSet, growth: Growth, gradients: Gradients, rows: Array | None = None, features: Array | None = None,
    costs: SplitCosts | None = None,
) -> Structure:  # fmt: skip
    """Reference, and Cpu with 1 to 4 threads on dense and sparse bins: the same bytes. Returns the structure."""
    expected = grow(Reference(), growth, data, gradients, rows, features, costs)
    for bins in (data, sparse(data, seed=data.n_rows)):
        for threads, backend in TEAMS.items():
            found = grow(backend, growth, bins, gradients, rows, features, costs)
            assert structure_bytes(found) == structure_bytes(expected), (threads, type(bins.bins).__name__)
    return expected


def listed(sizes: list[int], seed: int, spread: float) -> tuple[TrainingSet, Array]:
    """Labels 0 to 4 of queries of these sizes, and scores (1, n), of which many are equal."""
    rng, n = np.random.default_rng(seed), sum(sizes)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    data = TrainingSet(None, None, rng.integers(0, 5, n).astype(np.float64), query_start=start)  # type: ignore[arg-type]
    return data, np.round(rng.normal(size=(1, n)), 1) * spread


def ranking_case() -> TrainingSet:
    """200 rows to train on, in six queries, one of a single row."""
    case = random_case(11, 200, 4, target="5")
    return replace(case.data, query_start=np.array([0, 3, 40, 41, 90, 150, 200]))
