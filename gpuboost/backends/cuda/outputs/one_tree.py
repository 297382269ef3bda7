"""One tree for several outputs on a device. The host decides, level by level, from what the device has summed.

    begin_tree, vector_sums              gradients to integers, sums of all rows
    for every level:
        vector_histograms, vector_search   best split of every node and feature -> host: which nodes are split
        divide_rows, vector_sums           rows to children, sums of the left ones -> host
    finish_outputs                       the tree, once for each output

So every level waits for the device twice. A histogram is of one node, one feature and one output; they are made in
batches of nodes and features that ``HISTOGRAM_BYTES`` have room for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.bins import DeviceBins
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.leaves import Grown, Leaves
from gpuboost.backends.cuda.target import DeviceGradients, Targets
from gpuboost.backends.cuda.trees.all_reduce import AllReduce
from gpuboost.backends.cuda.trees.tree import NODE, STATE, as_bytes, as_records, empty_records
from gpuboost.backends.cuda.trees.tree_ring import host_nodes
from gpuboost.backends.numerics.one_tree import NOISE, Division, VectorNode, VectorSplit, VectorTree, best_of
from gpuboost.types import Array, Candidates, Cuts, Limits, Nodes, TrainingSet

HISTOGRAM_BYTES = 256 << 20
OF_GROUP, PART, CODES, THREADS = 4, 4096, 256, 256  # as in the kernels
_FILES = ("common/common.cuh", "common/blocks.cuh", "common/tree.cuh", "splits/vector_split.cu")

VECTOR_NODE = np.dtype(
    [
        (name, np.int32)
        for name in ("begin", "count", "list", "feature", "bin", "missing_left", "all_but", "left")
    ]
)  # fmt: skip


class Stretch(NamedTuple):
    """The rows of a node on this device: at ``begin`` of one of the two lists."""

    begin: int
    size: int
    list: int


@dataclass(frozen=True, slots=True, eq=False)
class _Room:
    """Device memory for trees of one shape."""

    pairs: Array  # (groups of outputs, n, OF_GROUP, 2) uint32
    lists: Array  # (2, n) int32 rows
    leaf_of_row: Array  # (n,) int32
    histograms: Array  # (lines, outputs, 2, CODES) uint64, sums of int64
    counts: Array  # (lines, CODES) uint32
    nodes: Array  # (outputs of the target, most nodes) NODE, as bytes
    lines: int


def sizes(
    n: int, k: int, s: int, candidates: Candidates, limits: Limits, all_rows: int
) -> dict[str, tuple[int, np.dtype[Any]]]:
    """Length and dtype of the arrays of ``_Room``, for n rows, k outputs and s that are searched.

    all_rows: of all GPUs that share them, which make batches of one size.
    """
    u32, i32 = np.dtype(np.uint32), np.dtype(np.int32)
    most_leaves = max(1, min(limits.max_leaves, 2 ** min(limits.max_depth, 31), all_rows))
    features = len(candidates.features) if candidates.by_node is None else candidates.by_node[0]
    lines = max(1, min(most_leaves * features, HISTOGRAM_BYTES // (2 * 8 * CODES * s)))
    return {
        "pairs": (2 * -(-s // OF_GROUP) * OF_GROUP * n, u32), "lists": (2 * n, i32), "leaf_of_row": (n, i32),
        "histograms": (2 * CODES * s * lines, np.dtype(np.uint64)), "counts": (CODES * lines, u32),
        "nodes": (k * (2 * most_leaves - 1), NODE),
    }  # fmt: skip


class OneTreeOnDevice:
    """The verb ``grow_together``."""

    def __init__(
        self, runtime: Runtime, arrays: ArrayCache, rounds: RecordedRound, targets: Targets, leaves: Leaves,
        all_reduce: AllReduce | None = None,
    ) -> None:  # fmt: skip
        self._runtime, self._arrays, self._rounds, self._targets = runtime, arrays, rounds, targets
        self._leaves, self._kernel, self._all_reduce = leaves, Kernels(runtime, *_FILES), all_reduce

    @recorded_verb()
    def grow(
        self, data: TrainingSet, target: DeviceGradients, searched: DeviceGradients, candidates: Candidates,
        limits: Limits, own_sums: bool,
    ) -> tuple[Grown, ...]:  # fmt: skip
        """The tree, once for each output of the target. It waits, so it is never replayed.

        own_sums: leaf values are computed from the sums of the target's rows.
        """
        bins: DeviceBins = self._arrays.bins(data.bins)
        if target.sample is not None:
            bins = self._targets.gather(bins, target.sample)
        room = self._room(bins, target, searched, candidates, limits)
        on = self._runtime, self._kernel, self._arrays, self._all_reduce
        rows = _Rows(*on, room, bins, data.cuts, searched, limits)
        tree = VectorTree(rows, data.cuts.n_bins, data.cuts.is_categorical, rows.units, candidates, limits)
        tree.grow()
        nodes = tree.as_arrays()
        self._finish(nodes, room, target)
        if own_sums:
            self._sum_own(room, target)
        k, capacity = target.g.shape[0], room.nodes.shape[0] // target.g.shape[0]

        def grown(output: int, leaf_of_row: Array | None) -> Grown:
            table, state = room.nodes[output * capacity : (output + 1) * capacity], target.states[output : output + 1]
            return Grown(table, state, target, leaf_of_row, output, own_sums, shape=nodes)

        leaf_of_row = room.leaf_of_row
        if target.sample is not None:
            leaf_of_row = self._leaves.find(grown(0, None), data, capacity)
        return tuple(grown(output, leaf_of_row) for output in range(k))

    # parts of the above

    def _finish(self, nodes: Nodes, room: _Room, target: DeviceGradients) -> None:
        k, n_nodes = target.g.shape[0], len(nodes.feature)
        records = host_nodes(nodes, np.zeros(n_nodes))
        records["gain"], records["count"] = nodes.gain, nodes.count
        self._kernel("finish_outputs")(
            (-(-n_nodes // THREADS), k), (THREADS,),
            tree=self._runtime.upload(as_bytes(records)), n_nodes=n_nodes, capacity=room.nodes.shape[0] // k,
            nodes=room.nodes, states=target.states,
        )  # fmt: skip

    def _sum_own(self, room: _Room, target: DeviceGradients) -> None:
        k, n = target.g.shape
        self._kernel("own_leaf_sums")(
            (self._blocks(-(-n // THREADS)), k), (THREADS,),
            g=target.g, h=target.h, **self._arrays.times(target.multiplicity), room=n, states=target.states,
            leaf_of_row=room.leaf_of_row, capacity=room.nodes.shape[0] // k, nodes=room.nodes,
        )  # fmt: skip

    def _room(
        self, bins: DeviceBins, target: DeviceGradients, searched: DeviceGradients, candidates: Candidates,
        limits: Limits,
    ) -> _Room:  # fmt: skip
        every = bins.n if self._all_reduce is None else self._all_reduce.shard.rows
        of = sizes(bins.n, target.g.shape[0], searched.g.shape[0], candidates, limits, every)

        def make() -> _Room:
            empty = self._runtime.empty
            arrays = {name: empty(length, dtype) for name, (length, dtype) in of.items() if name != "nodes"}
            return _Room(**arrays, nodes=empty_records(self._runtime, *of["nodes"]), lines=of["counts"][0] // CODES)

        return self._rounds.buffer(("one tree", *(length for length, _ in of.values())), make)

    def _blocks(self, max_blocks: int) -> int:
        return block_count(self._runtime, max_blocks)


class _Rows:
    """The rows of one tree: see ``TreeRows``."""

    def __init__(
        self, runtime: Runtime, kernel: Kernels, arrays: ArrayCache, all_reduce: AllReduce | None, room: _Room,
        bins: DeviceBins, cuts: Cuts, searched: DeviceGradients, limits: Limits,
    ) -> None:  # fmt: skip
        self._all_reduce = all_reduce
        self._runtime, self._kernel, self._room, self._limits, self._searched = runtime, kernel, room, limits, searched
        self._times, self._s, self._n = arrays.times(searched.multiplicity), searched.g.shape[0], bins.n
        states = as_records(runtime.download(searched.states), STATE)
        self._m = int(states["m"][0])
        self.units = np.stack([states["unit_g"], states["unit_h"]], axis=1)
        self._units = runtime.upload(self.units)
        n_bins, categorical = arrays.kinds(cuts)
        self._kinds = {"n_bins": n_bins, "categorical": categorical}
        self._bins = {"columns": bins.columns, "room": bins.n, "lists": room.lists}

    def every(self) -> tuple[Stretch, int, Array]:
        groups, blocks = -(-self._s // OF_GROUP), self._blocks(-(-self._m // THREADS))
        self._kernel("begin_tree")(
            (blocks, groups), (THREADS,),
            g=self._searched.g, h=self._searched.h, **self._times, room=self._n, s=self._s,
            states=self._searched.states, pairs=self._room.pairs, lists=self._room.lists,
            leaf_of_row=self._room.leaf_of_row,
        )  # fmt: skip
        root = np.zeros(1, VECTOR_NODE)
        root["count"] = self._m
        every = self._m if self._all_reduce is None else self._all_reduce.shard.rows
        return Stretch(0, self._m, 0), every, self._sums(root, None)[0]

    def search(self, nodes: list[VectorNode]) -> list[VectorSplit | None]:
        s, limits, room = self._s, self._limits, self._room
        records, lines = _records(nodes), [len(node.features) for node in nodes]
        pairs = np.empty((sum(lines), 2), np.int32)
        pairs[:, 0] = np.repeat(np.arange(len(nodes)), lines)
        pairs[:, 1] = np.concatenate([node.features for node in nodes])
        cuts = self._runtime.zeros(4 * len(pairs), np.float64)
        parts = max(1, -(-int(records["count"].max()) // PART))
        line_inputs = {"lines": self._runtime.upload(pairs)}
        here, counted = self._upload(records), limits.min_samples_leaf > 1
        records["count"] = [node.count for node in nodes]
        everywhere = self._upload(records)
        sums = {"histograms": room.histograms, "counts": room.counts, "s": s}
        totals = self._runtime.upload(np.stack([node.sums for node in nodes]))
        for first in range(0, len(pairs), room.lines):
            last = min(first + room.lines, len(pairs))
            self._runtime.fill(room.histograms[: (last - first) * s * 2 * CODES], 0)
            self._runtime.fill(room.counts[: (last - first) * CODES], 0)
            units = (last - first) * -(-s // OF_GROUP) * parts
            self._kernel("vector_histograms")(
                (self._blocks(units),), (THREADS,),
                nodes=here, **line_inputs, **self._bins, **sums, first=first, last=last, parts=parts, pairs=room.pairs,
                counted=counted,
            )  # fmt: skip
            self._add_up(room.histograms[: (last - first) * s * 2 * CODES])
            if counted:
                self._add_up(room.counts[: (last - first) * CODES])
            self._kernel("vector_search")(
                (self._blocks(last - first),), (THREADS,),
                nodes=everywhere, **line_inputs, **self._kinds, **sums, first=first, last=last, totals=totals,
                units=self._units, ridge=limits.reg_lambda, least_h=limits.min_child_weight,
                least_rows=min(limits.min_samples_leaf, 2**30), least_gain=limits.min_split_gain, noise=NOISE,
                found=cuts,
            )  # fmt: skip
        ends, best = np.cumsum(lines), self._runtime.download(cuts).reshape(-1, 4)
        return [
            best_of(best[end - len(node.features) : end], node.features) for node, end in zip(nodes, ends, strict=True)
        ]

    def divide(self, nodes: list[VectorNode], first: int) -> list[Division]:
        records = _records(nodes)
        for i, node in enumerate(nodes):
            split = cast(VectorSplit, node.split)
            records[i]["feature"], records[i]["bin"] = split.feature, split.bin
            records[i]["missing_left"], records[i]["all_but"] = split.missing_left, split.all_but
        records["left"] = first + 2 * np.arange(len(nodes))
        parts = max(1, -(-int(records["count"].max()) // PART))
        cursors = self._runtime.zeros(2 * len(nodes), np.int32)
        self._kernel("divide_rows")(
            (self._blocks(len(nodes) * parts),), (THREADS,),
            nodes=self._upload(records), n_nodes=len(nodes), parts=parts, **self._kinds, **self._bins,
            cursors=cursors, leaf_of_row=self._room.leaf_of_row,
        )  # fmt: skip
        sums, here = self._sums(records, cursors), self._runtime.download(cursors)[::2].tolist()
        self._add_up(cursors)
        counts = here if self._all_reduce is None else self._runtime.download(cursors)[::2].tolist()
        return [_divided(*arguments) for arguments in zip(nodes, here, counts, sums, strict=True)]

    def _sums(self, records: Array, cursors: Array | None) -> Array:
        """(nodes, s, 2) int64 sums of the rows of these nodes, or of their left children."""
        sums = self._runtime.zeros((len(records), self._s, 2), np.uint64)
        parts = max(1, -(-int(records["count"].max()) // PART))
        self._kernel("vector_sums")(
            (self._blocks(len(records) * -(-self._s // OF_GROUP) * parts),), (THREADS,),
            nodes=self._upload(records), n_nodes=len(records), parts=parts,
            cursors=self._room.leaf_of_row if cursors is None else cursors, divided=cursors is not None,
            lists=self._room.lists, room=self._n, pairs=self._room.pairs, s=self._s, sums=sums,
        )  # fmt: skip
        self._add_up(sums)
        return self._runtime.download(sums).view(np.int64)

    def _add_up(self, sums: Array) -> None:
        """Add up what all GPUs have, where they share the rows."""
        if self._all_reduce is not None:
            self._all_reduce.sum(sums)

    def _upload(self, records: Array) -> Array:
        return self._runtime.upload(as_bytes(records))

    def _blocks(self, max_blocks: int) -> int:
        return block_count(self._runtime, max_blocks)


def _divided(node: VectorNode, here: int, count: int, sums: Array) -> Division:
    """here: rows on this device that go left; count: of all devices."""
    begin, size, other = node.rows.begin, node.rows.size, 1 - node.rows.list
    return Division(Stretch(begin, here, other), Stretch(begin + here, size - here, other), count, sums)


def _records(nodes: list[VectorNode]) -> Array:
    """(nodes,) VECTOR_NODE, without splits."""
    records = np.zeros(len(nodes), VECTOR_NODE)
    for i, node in enumerate(nodes):
        records[i]["begin"], records[i]["count"], records[i]["list"] = node.rows
    return records
