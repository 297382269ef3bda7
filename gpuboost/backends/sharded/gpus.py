"""The sharded machine on GPUs: every shard grows the whole tree from its rows and the sums over all shards.

The driver makes no decision: it sends the same verbs to all shards, a round in one message, and fetches the trees of
the first one. Histograms are summed over the GPUs before the split search (``cuda.trees.all_reduce``), by NCCL if every
shard has it and a GPU of its own, else through the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.numerics.leaf_values import weight_scale
from gpuboost.backends.protocol import GPU_SHARDS
from gpuboost.backends.sharded.arrays import Distributed, Driver
from gpuboost.backends.sharded.command_queue import CommandQueue, RemoteStructure, RemoteTree
from gpuboost.backends.sharded.gpu_shard import GpuShard, Totals
from gpuboost.backends.sharded.machine import Machine
from gpuboost.backends.sharded.shard_data import ShardSource
from gpuboost.backends.sharded.worker_group import WorkerGroup
from gpuboost.keys import Key
from gpuboost.losses.protocol import DrawnLoss, Loss
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    DenseBins,
    Ensemble,
    FittedTree,
    Gradients,
    Limits,
    Noise,
    Sample,
    Structure,
    Target,
    TrainingSet,
)

UNIT = 4096  # rows: a shard begins where a stretch of the fixed order of summation does


class ShardedGpus(Machine):
    """See ``Backend``. The shards hold the training rows (``place``); the driver holds other rows, on its CPU.

    ``by``: the way to sum over GPUs, "nccl", "host" or "alone"; ``why``: the reason, for the report.
    """

    offers = GPU_SHARDS
    whole = True  # shards begin where stretches do
    _shard = GpuShard

    def __init__(self, workers: WorkerGroup, threads: int = 1) -> None:
        driver = Driver(workers)
        self._queue = CommandQueue(driver, GpuShard.run)
        super().__init__(driver, self._queue, threads)
        self.by, self.why = _way(self._calls.ask(GpuShard.offer))

    # the data, once

    def place(
        self, sources: Sequence[ShardSource], cuts: Cuts, y: Array, weight: Array | None, multiplicity: Array | None,
        query_start: Array | None, sizes: Sequence[int],
    ) -> TrainingSet:  # fmt: skip
        """See ``Sharded.place``. All sizes but the last are multiples of ``UNIT``."""
        if any(size % UNIT for size in sizes[:-1]):
            raise ValueError(f"sizes: all but the last must be multiples of {UNIT}; got {tuple(sizes)}.")
        driver, firsts = self._driver, self._sized(sizes, len(y))
        driver.workers.keep_first(len(sources))
        self.by = "alone" if self.shards == 1 else self.by
        name = self._calls.ask(GpuShard.unique_id)[0] if self.by == "nccl" else None
        rendezvous = driver.workers.rendezvous() if self.by == "host" else None
        driver.ask_each(GpuShard.join, [(self.shards, rank, name, rendezvous) for rank in range(self.shards)])
        total = len(y) if multiplicity is None else int(multiplicity.sum(dtype=np.int64))
        max_multiplicity = 1 if multiplicity is None else int(multiplicity.max(initial=1))
        totals = Totals(len(y), total, max_multiplicity, 1.0 if weight is None else weight_scale(weight))
        driver.ask_each(GpuShard.hold, [(source, cuts, a, totals) for source, a in zip(sources, firsts, strict=True)])
        bins = self._array(self._calls.keep(1, GpuShard.receive, 0)[0], (len(y), cuts.n_features))
        return TrainingSet(DenseBins(bins, bins), cuts, y, weight, multiplicity, query_start)

    # the round

    @contextmanager
    def recorded(self, step: int, sequence: int = 0) -> Iterator[None]:
        queue = self._queue
        queue.is_open = True
        self._calls.tell(GpuShard.open_round, step, sequence)
        try:
            yield
        except BaseException:
            queue.queue.clear()
            raise
        finally:
            queue.is_open = False
        self._calls.tell(GpuShard.close_round)

    def collect(self, ensemble: Ensemble) -> Ensemble:
        trees: tuple[Any, ...] = ensemble.trees
        waiting = [tree for tree in trees if isinstance(tree, RemoteTree) and tree.host is None]
        self._fetch(waiting)
        return replace(ensemble, trees=tuple(tree.fetched if isinstance(tree, RemoteTree) else tree for tree in trees))

    # the target, once a round

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        (number,) = self._calls.keep(1, GpuShard.differentiate, self._remote_loss(loss), scores, curvature)
        both = self._array(number, scores.shape)
        return Gradients(both, both)

    def drawn_gradients(
        self, loss: DrawnLoss, scores: Array, data: TrainingSet, curvature: float | None, key: Key
    ) -> Gradients:
        raise AssertionError("losses of lists are not offered")

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        assert sample.rows is None, "sampling is not offered"
        return gradients

    # the tree

    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        assert key is None, "random shapes are not offered"
        (number,) = self._calls.keep(1, GpuShard.grow, target.gradients.g, target.version, output, candidates, limits)
        return cast(Structure, RemoteStructure(self._array(number, ()), output, target.version))

    def grow_together(
        self, data: TrainingSet, target: Target, searched: Gradients, candidates: Candidates, limits: Limits
    ) -> tuple[Structure, ...]:
        k, g = target.gradients.g.shape[0], target.gradients.g
        numbers = self._calls.keep(k, GpuShard.grow_together, g, target.version, searched.g, candidates, limits)
        trees: list[RemoteTree] = []
        made = (RemoteStructure(self._array(number, ()), j, target.version, trees) for j, number in enumerate(numbers))
        return tuple(cast(Structure, structure) for structure in made)

    def squared_norms(self, gradients: Gradients) -> NDArray[np.float64]:
        return np.asarray(self._calls.ask(GpuShard.squared_norms, gradients.g)[0])

    def chosen_outputs(self, gradients: Gradients, outputs: Array, factors: Array) -> Gradients:
        (number,) = self._calls.keep(1, GpuShard.chosen_outputs, gradients.g, outputs, factors)
        both = self._array(number, (len(outputs), gradients.g.shape[1]))
        return Gradients(both, both)

    def projected_outputs(self, gradients: Gradients, matrix: Array) -> Gradients:
        (number,) = self._calls.keep(1, GpuShard.projected_outputs, gradients.g, matrix)
        both = self._array(number, (matrix.shape[1], gradients.g.shape[1]))
        return Gradients(both, both)

    def leaf_values(
        self, structure: Structure, gradients: Gradients, data: TrainingSet, limits: Limits, version: int,
        noise: Noise | None = None,
    ) -> tuple[FittedTree, Array]:  # fmt: skip
        assert noise is None, "noise is not offered"
        grown = cast(RemoteStructure, structure)
        tree, leaf_of_row = self._calls.keep(2, GpuShard.leaf_values, grown.ref, gradients.g, limits, version)
        made = RemoteTree(self._array(tree, ()), grown.output, grown.version, together=grown.trees)
        grown.trees.append(made)
        return cast(FittedTree, made), self._array(leaf_of_row, (data.n_rows,))

    def leaf_quantiles(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        self._calls.tell(GpuShard.leaf_quantiles, cast(Any, tree).ref, leaf_of_row, self._remote_loss(loss), scores)
        return tree

    def bound_leaves(
        self, tree: FittedTree, leaf_of_row: Array, data: TrainingSet, limits: Limits, *, refined: bool = False
    ) -> FittedTree:
        self._calls.tell(GpuShard.bound_leaves, cast(Any, tree).ref, leaf_of_row, limits, refined)
        return tree

    # the model

    def add_leaves(self, scores: Array, tree: FittedTree, factor: float, leaf_of_row: Array) -> None:
        self._calls.tell(GpuShard.add_leaves, scores, cast(Any, tree).ref, factor, leaf_of_row)

    def add_tree(self, scores: Array, tree: FittedTree, factor: float, bins: Bins, cuts: Cuts) -> None:
        if isinstance(scores, Distributed):
            new_tree: Any = tree
            known = new_tree.host or new_tree.ref if isinstance(new_tree, RemoteTree) else new_tree
            self._calls.tell(GpuShard.add_tree, scores, known, factor)
            return
        seen: Any = tree
        if isinstance(seen, RemoteTree):
            self._fetch(seen.together)
            seen = seen.fetched
        self._local.add_tree(scores, seen, factor, bins, cuts)

    # parts of the above

    def _sum_of_losses(self, loss: Loss, scores: Array, *, weighted: bool) -> float:
        return float(self._calls.ask(GpuShard.loss_total, self._remote_loss(loss), scores, weighted)[0])

    def _fetch(self, trees: Sequence[RemoteTree]) -> None:
        """Copy these trees to the host. Raises InputError if a gradient of one was not a finite number."""
        waiting = [tree for tree in trees if tree.host is None]
        if not waiting:
            return
        host_trees = self._calls.ask(GpuShard.trees, tuple(tree.ref for tree in waiting))[0]
        for tree, host in zip(waiting, host_trees, strict=True):
            tree.host, tree.ref = host, None


def _way(offers: Sequence[Any]) -> tuple[str, str]:
    """The way to sum over shards with these offers, and the reason."""
    if len(offers) == 1:
        return "alone", "one shard has all the rows"
    without = sum(not offer.nccl for offer in offers)
    if without:
        return "host", (
            f"CuPy of {without} of {len(offers)} shards has no NCCL (pip install nvidia-nccl-cu13, or -cu12), so what "
            "they add up goes through the memory of the host, which takes longer"
        )
    if len({offer.gpu for offer in offers}) < len(offers):
        return "host", "some share a GPU, which NCCL does not do, so what they add up goes through the host's memory"
    return "nccl", "what they add up goes by NCCL"
