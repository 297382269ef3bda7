"""A worker of the sharded machine on a GPU. Every worker makes all decisions itself, from the same sums."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.collective import Alone, HostCollective, NcclCollective, Rendezvous, nccl_of
from gpuboost.backends.cuda.device.gpus import own_runtime
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.cuda.trees.all_reduce import Collective, RowsOfGpu
from gpuboost.backends.cuda.trees.tree_ring import DeviceTree
from gpuboost.backends.devices import choose, devices
from gpuboost.backends.sharded.object_store import ObjectStore
from gpuboost.backends.sharded.shard_data import ShardSource
from gpuboost.backends.sharded.worker_group import Kept, Message
from gpuboost.losses.protocol import Loss
from gpuboost.types import (
    Array,
    Candidates,
    Cuts,
    Ensemble,
    FittedTree,
    Gradients,
    Limits,
    Structure,
    Target,
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A shard's GPU, and its support of NCCL."""

    gpu: str  # the same for two shards if they share one
    nccl: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """Facts about all rows that every shard needs."""

    rows: int
    weight: int  # sum of multiplicities
    most: int  # the largest
    unit: float  # see ``leaf_values.weight_scale``


def first_gpu() -> CupyRuntime:
    """The runtime of the one GPU that is visible to a worker."""
    return own_runtime("cuda:0")


def gpus_in_turn() -> Iterator[Callable[[], CupyRuntime]]:
    """Functions that open this machine's usable GPUs, in a cycle without end.

    Raises:
        DeviceError: if there is none.
    """
    choose("cuda")
    names = [device.name for device in devices() if device.kind == "cuda" and device.usable]
    return (partial(own_runtime, name) for name in cycle(names))


class GpuShard:
    """Verbs of ``Cuda`` on this shard's rows. All shards get the same calls in the same order."""

    def __init__(self, open_runtime: Callable[[], CupyRuntime]) -> None:
        self._objects = ObjectStore()
        self._runtime = open_runtime()
        self._collective: Collective = Alone()
        self._rank = 0
        self._round: Any = None

    def do(self, message: Message) -> Any:
        """See ``AnyShard``."""
        return self._objects.call(self, message)

    def run(self, messages: Sequence[Message]) -> Any:
        """Execute several messages; return the answer of the last one."""
        answer = None
        for message in messages:
            answer = self.do(message)
        return answer

    def abort(self) -> None:
        self._collective.abort()

    def receive(self, *objects: Any) -> tuple[Kept, None]:
        """See ``AnyShard``."""
        return objects, None

    def fetch(self, kept: Any) -> Any:
        """See ``AnyShard``."""
        return self._cuda.to_host(kept)

    # membership of the group

    def offer(self) -> Offer:
        bus = self._runtime.cp.cuda.Device(self._runtime.index).pci_bus_id
        return Offer(f"{socket.gethostname()}/{bus}", nccl_of(self._runtime.cp) is not None)

    def unique_id(self) -> tuple[int, ...] | None:
        """Unique id of a new NCCL group, which one shard creates for all; None without NCCL."""
        nccl = nccl_of(self._runtime.cp)
        return None if nccl is None else nccl.get_unique_id()

    def join(self, size: int, rank: int, unique_id: tuple[int, ...] | None, rendezvous: Rendezvous | None) -> None:
        """Join a group of ``size`` shards: by NCCL if there is an id, by a rendezvous on the host, or alone."""
        self._rank = rank
        if unique_id is not None:
            self._collective = NcclCollective(self._runtime, unique_id, size, rank)
        elif rendezvous is not None:
            self._collective = HostCollective(self._runtime, rendezvous, size, rank)

    # the data, once

    def hold(self, source: ShardSource, cuts: Cuts, first: int, totals: Totals) -> None:
        """Bin the rows, on the device."""
        data = source()
        rows = RowsOfGpu(self._collective, first, totals.rows, totals.weight, totals.most, totals.unit)
        self._cuda = Cuda(self._runtime, rows)
        bins = self._cuda.quantise(data.x, cuts)
        self._data = data.binned(bins, cuts)
        weighted = data.weight is not None or data.multiplicity is not None
        self._row_weight = self._data.row_weight() if weighted else None

    # the round

    def open_round(self, step: int, sequence: int) -> None:
        self._round = self._cuda.recorded(step, sequence)
        self._round.__enter__()

    def close_round(self) -> None:
        self._round.__exit__(None, None, None)

    def begin(self, bias: Array) -> tuple[tuple[Array], None]:
        return (self._cuda.start(self._data, bias),), None

    def differentiate(self, loss: Loss, scores: Array, curvature: float | None) -> tuple[tuple[Gradients], None]:
        return (self._cuda.gradients(loss, scores, self._data, curvature),), None

    def loss_total(self, loss: Loss, scores: Array, weighted: bool) -> float:
        """The sum of the losses of all shards' rows."""
        return self._cuda.loss_total(loss, scores, self._data.y, self._row_weight if weighted else None)

    # the tree

    def grow(
        self, gradients: Gradients, version: int, output: int, candidates: Candidates, limits: Limits
    ) -> tuple[tuple[Structure], None]:
        return (self._cuda.grow(self._data, Target(version, None, gradients), output, candidates, limits),), None

    def grow_together(
        self, gradients: Gradients, version: int, searched: Gradients, candidates: Candidates, limits: Limits
    ) -> tuple[tuple[Structure, ...], None]:
        target = Target(version, None, gradients)
        return self._cuda.grow_together(self._data, target, searched, candidates, limits), None

    def squared_norms(self, gradients: Gradients) -> Array:
        return self._cuda.squared_norms(gradients)

    def chosen_outputs(self, gradients: Gradients, outputs: Array, factors: Array) -> tuple[tuple[Gradients], None]:
        return (self._cuda.chosen_outputs(gradients, outputs, factors),), None

    def projected_outputs(self, gradients: Gradients, matrix: Array) -> tuple[tuple[Gradients], None]:
        return (self._cuda.projected_outputs(gradients, matrix),), None

    def leaf_values(
        self, structure: Structure, gradients: Gradients, limits: Limits, version: int
    ) -> tuple[tuple[FittedTree, Array], None]:
        return self._cuda.leaf_values(structure, gradients, self._data, limits, version), None

    def leaf_quantiles(self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array) -> None:
        self._cuda.leaf_quantiles(tree, leaf_of_row, loss, scores, self._data)

    def bound_leaves(self, tree: FittedTree, leaf_of_row: Array, limits: Limits, refined: bool) -> None:
        self._cuda.bound_leaves(tree, leaf_of_row, self._data, limits, refined=refined)

    # the model

    def add_leaves(self, scores: Array, tree: FittedTree, factor: float, leaf_of_row: Array) -> None:
        self._cuda.add_leaves(scores, tree, factor, leaf_of_row)

    def add_tree(self, scores: Array, tree: FittedTree, factor: float) -> None:
        self._cuda.add_tree(scores, tree, factor, self._data.bins, self._data.cuts)

    def show(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        self._cuda.scores(sums, bias, scale, out)

    def trees(self, trees: tuple[DeviceTree, ...]) -> tuple[FittedTree, ...]:
        """The trees on the host; (), except for the first shard, as all have the same. Waits and raises GPU errors."""
        ensemble = Ensemble(np.empty(0), self._data.cuts, tuple(tree.as_tree() for tree in trees), (1.0,) * len(trees))
        host_trees = self._cuda.collect(ensemble).trees
        return host_trees if self._rank == 0 else ()
