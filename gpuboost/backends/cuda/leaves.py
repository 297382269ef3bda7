"""The end of a tree on a device: its leaves' values, the scores that take the step, and its record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gpuboost.backends.cuda.bins import DeviceBins
from gpuboost.backends.cuda.device.resident import Resident
from gpuboost.backends.cuda.device.round import Round
from gpuboost.backends.cuda.device.runtime import Kernel, Runtime, source
from gpuboost.backends.cuda.ending import Ending
from gpuboost.backends.cuda.random_shape import RandomShapes
from gpuboost.backends.cuda.shares import Shares
from gpuboost.backends.cuda.store import DeviceTree, TreeStore, host_nodes
from gpuboost.backends.cuda.target import DeviceGradients
from gpuboost.backends.cuda.tree import STATE
from gpuboost.backends.numerics.leaf_values import weight_scale
from gpuboost.backends.numerics.monotone import of_features
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.types import Array, Cuts, Limits, Noise, TrainingSet, Tree

THREADS, DIGITS = 256, 256  # as in the kernels
NEAR_BYTES = 48 << 10  # of shared memory that need no opt-in
FACTOR, SCALE, PLACE, ITERATION = 4, 6, 8, 10  # among the round's inputs; PLACE: in the store, of output 0's tree
STEP_BYTES, KEPT_BYTES = 16, 48
_LEAVES = (
    "common/common.cuh",
    "common/philox.cuh",
    "common/normal.cuh",
    "common/tree.cuh",
    "growth/record.cuh",
    "prediction/walk.cuh",
    "leaves/leaves.cu",
)
_BOUNDS = ("common/common.cuh", "common/tree.cuh", "splits/bounds.cuh", "leaves/bounds.cu")
_QUANTILES = ("common/common.cuh", "common/tree.cuh", "common/ordered_float.cuh", "leaves/quantiles.cu")


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """What is known of a tree when it has its shape. ``leaf_of_row`` is None if only drawn rows took part."""

    nodes: Array  # (most nodes,) NODE, as bytes
    state: Array  # (1,) STATE, as bytes
    target: DeviceGradients
    leaf_of_row: Array | None
    output: int
    own_sums: bool  # leaf values are made of the tree's own sums
    blind: bool = False  # the shape was drawn, and what comes to each node is still to be counted


@dataclass(frozen=True, slots=True, eq=False)
class DeviceStructure:
    """Stands for a Structure."""

    grown: Grown
    version: int  # of the target it was fitted to

    @property
    def output(self) -> int:
        return self.grown.output


@dataclass(frozen=True, slots=True, eq=False)
class LeafOfRow:
    """(n,) int32 leaf of every row, with the values of the nodes side by side."""

    leaf_of_row: Array
    values: Array  # (v,) float64
    grown: Grown
    gradients: DeviceGradients


class Leaves:
    """The verbs after growth."""

    def __init__(
        self, runtime: Runtime, resident: Resident, rounds: Round, shapes: RandomShapes, shares: Shares | None = None
    ) -> None:
        self._runtime, self._resident, self._rounds, self._shapes = runtime, resident, rounds, shapes
        self._shares = shares
        self._kernels: dict[str, Kernel] = {}

    def values(
        self,
        grown: Grown,
        gradients: DeviceGradients,
        data: TrainingSet,
        limits: Limits,
        stale: bool,
        store: TreeStore,
        noise: Noise | None,
    ) -> LeafOfRow:
        """Exact values of the leaves. The tree is recorded at the place among the round's inputs."""
        n, capacity = data.n_rows, store.capacity
        leaf_of_row, output = grown.leaf_of_row, grown.output
        ending = cast("Ending | None", self._rounds.take())
        if ending is not None and (stale or noise is not None or not ending.fits(capacity, limits)):
            ending.launch()
            ending = None
        if leaf_of_row is None:
            leaf_of_row = self._find_leaves(grown, self._resident.bins(data.bins), data.cuts, capacity)
        values = self._room("values", capacity, np.float64, output)
        sums, all_rows = self._room("sums", 2 * capacity, np.uint64, output), gradients.states[output : output + 1]
        other = stale or not grown.own_sums
        if other:
            self._leaf_sums(gradients, output, leaf_of_row, n, capacity, sums)
        if grown.blind:
            self._shapes.count(grown.state, all_rows, grown.nodes, leaf_of_row, n, sums)
        arguments = grown.state, all_rows, grown.nodes, sums, np.int32(other)
        rule = np.float64(limits.reg_lambda), np.int32(limits.signed)
        drawn = np.float64(0.0 if noise is None else noise.deviation), *self._stream(noise, output)
        kernel, record = self._kernel("leaf_values"), self._record(grown, store)

        def worth() -> None:
            kernel(self._by_nodes(capacity), (THREADS,), (*arguments, *rule, *drawn, values, *record))

        if ending is not None:
            self._rounds.postpone(replace(ending, values=values, record=record, worth=worth))
        else:
            worth()
        return LeafOfRow(leaf_of_row, values, grown, gradients)

    def quantiles(self, found: LeafOfRow, alpha: float, scores: Array, data: TrainingSet, store: TreeStore) -> None:
        """The quantile of the residuals in each leaf takes the place of its value."""
        grown, capacity, n = found.grown, store.capacity, data.n_rows
        counts = self._room("counts", capacity * DIGITS, np.uint64, 0)  # 0 before and after
        prefix, needed = (self._room(name, capacity, np.uint64, 0) for name in ("prefix", "needed"))
        weight, times, resident = data.weight, data.multiplicity, self._resident
        unit = 1.0 if weight is None else self._rounds.buffer(("unit", id(data)), lambda: self._unit(weight))
        rows = (
            resident.array(data.y, np.float64), scores[grown.output],
            resident.nothing if weight is None else resident.array(weight, np.float64), np.int32(weight is not None),
            np.float64(unit), resident.no_times if times is None else resident.array(times, np.int32),
            np.int32(times is not None), found.leaf_of_row, np.int32(n),
        )  # fmt: skip
        nodes = grown.state, grown.nodes, np.float64(alpha)
        count, choose = self._kernel("count_digits", _QUANTILES), self._kernel("choose_digit", _QUANTILES)
        for shift in range(56, -1, -8):
            count(self._blocks(n), (THREADS,), (*rows, np.int32(shift), prefix, counts))
            if self._shares is not None:
                self._shares.sum(counts)
            grid = (min(capacity, 8 * self._runtime.sm_count),)
            choose(grid, (DIGITS,), (*nodes, np.int32(shift), prefix, needed, counts, found.values))
        self.keep(found, store)

    def bound(self, found: LeafOfRow, cuts: Cuts, limits: Limits, refined: bool, store: TreeStore) -> None:
        """Leaf values are held to their order; see the verb."""
        grown, capacity, directions = found.grown, store.capacity, limits.directions
        assert directions is not None
        on_device = self._rounds.buffer(
            ("directions", id(cuts), directions),
            lambda: self._runtime.upload(of_features(directions, cuts).astype(np.int32)),
        )
        kept = self._room("kept", capacity * KEPT_BYTES, np.uint8, 0)
        ridge = np.float64(0.0 if refined else limits.reg_lambda)
        arguments = grown.state, grown.nodes, on_device, ridge, np.int32(refined), kept, found.values
        self._kernel("bound_leaves", _BOUNDS)((1,), (32,), arguments)
        self.keep(found, store)

    def keep(self, found: LeafOfRow, store: TreeStore) -> None:
        """The record of a tree again, whose values have changed."""
        grown = found.grown
        all_rows = found.gradients.states[grown.output : grown.output + 1]
        arguments = grown.state, all_rows, grown.nodes, *self._record(grown, store)
        self._kernel("keep")(self._by_nodes(store.capacity), (THREADS,), arguments)

    def place(self, tree: DeviceTree) -> None:
        """Say where the record of a tree goes."""
        self._rounds.set_inputs(PLACE, ((tree.place - tree.output) % tree.store.places,))

    def set_factor(self, factor: float) -> None:
        self._rounds.set_inputs(FACTOR, _words(factor))

    def set_noise(self, noise: Noise) -> None:
        self._rounds.set_inputs(ITERATION, (noise.key.words[2],))

    def set_scale(self, scale: float) -> None:
        self._rounds.set_inputs(SCALE, _words(scale))

    def add(self, scores: Array, found: LeafOfRow) -> None:
        """scores[output] += factor * tree, for the rows that it was grown on."""
        n, factor = scores.shape[1], self._rounds.inputs[FACTOR : FACTOR + 2].view(np.float64)
        ending = cast("Ending | None", self._rounds.take())
        if ending is not None and ending.values is found.values:
            ending.add(scores[found.grown.output], factor)
            return
        if ending is not None:
            ending.launch()
        arguments = found.values, factor, found.leaf_of_row, np.int32(n), scores[found.grown.output]
        self._kernel("add_leaves")(self._blocks(n), (THREADS,), arguments)

    def shrink(self, sums: Array, bias: Array, out: Array) -> None:
        """out = bias + scale * sums"""
        (k, n), scale = sums.shape, self._rounds.inputs[SCALE : SCALE + 2].view(np.float64)
        arguments = sums.reshape(-1), bias, scale, np.int32(n), out.reshape(-1)
        self._kernel("shrunk", ("common/common.cuh", "prediction/walk.cuh", "prediction/predict.cu"))(
            (*self._blocks(n), k), (THREADS,), arguments
        )

    def add_tree(self, scores: Array, tree: Any, factor: float, bins: DeviceBins, cuts: Cuts) -> None:
        """The same where the leaf of a row is still to be found."""
        if isinstance(tree, DeviceTree) and tree.host is None:
            head, nodes = tree.store.record(tree.place)
            count, capacity = head.view(np.int32)[2:3], tree.store.capacity
        else:
            host: Tree = tree.fetched if isinstance(tree, DeviceTree) else tree
            made = host_nodes(host.nodes, host.value)
            nodes, capacity = self._runtime.upload(made.view(np.uint8)), len(made)
            count = self._runtime.upload(np.array([capacity], np.int32))
        steps = self._flatten(nodes, count, cuts, capacity)
        arguments = steps, nodes, bins.rows, np.int32(bins.n), bins.shift, np.float64(factor), scores[tree.output]
        self._kernel("add_tree")(self._blocks(bins.n), (THREADS,), arguments)

    # parts of the above

    def _record(self, grown: Grown, store: TreeStore) -> tuple[Any, ...]:
        lost, place = grown.target.lost, self._rounds.inputs[PLACE : PLACE + 1]
        lost = self._resident.no_times if lost is None else lost
        sizes = np.int32(grown.output), np.int32(store.places)
        return lost, np.int32(store.capacity), place, *sizes, store.heads, store.nodes

    def _stream(self, noise: Noise | None, output: int) -> tuple[Any, ...]:
        """The stream of an output's leaves, but for the iteration, which is read when it is needed."""
        seed_low, seed_high, _, name = (0, 0, 0, 0) if noise is None else (noise.key / output).words
        iteration = self._rounds.inputs[ITERATION : ITERATION + 1]
        table = self._resident.array(TABLE, np.float64)
        return np.uint32(seed_low), np.uint32(seed_high), iteration, np.uint32(name), table.reshape(-1)

    def _find_leaves(self, grown: Grown, bins: DeviceBins, cuts: Cuts, capacity: int) -> Array:
        state, nodes = grown.state, grown.nodes
        place = STATE.fields["n_nodes"][1] // 4  # type: ignore[index]
        steps = self._flatten(nodes, state.reshape(-1).view(np.int32)[place : place + 1], cuts, capacity)
        leaf_of_row = self._room("leaf_of_row", bins.n, np.int32, grown.output)
        arguments = steps, nodes, bins.rows, np.int32(bins.n), bins.shift, leaf_of_row
        self._kernel("find_leaves")(self._blocks(bins.n), (THREADS,), arguments)
        return leaf_of_row

    def _flatten(self, nodes: Array, count: Array, cuts: Cuts, capacity: int) -> Array:
        steps = self._room("steps", capacity * STEP_BYTES, np.uint8, 0)
        arguments = nodes, count, *self._resident.kinds(cuts), steps
        self._kernel("flatten")(self._blocks(capacity), (THREADS,), arguments)
        return steps

    def _leaf_sums(
        self, gradients: DeviceGradients, output: int, leaf_of_row: Array, n: int, capacity: int, sums: Array
    ) -> None:
        times, near = gradients.multiplicity, 8 * capacity
        own = near <= NEAR_BYTES
        self._runtime.fill(sums, 0)
        arguments = (
            gradients.g[output], gradients.h[output], self._resident.no_times if times is None else times,
            np.int32(times is not None), leaf_of_row, np.int32(n), gradients.states[output : output + 1],
            np.int32(capacity), np.int32(own), sums,
        )  # fmt: skip
        self._kernel("leaf_sums")(self._blocks(n), (512,), arguments, near if own else 0)
        if self._shares is not None:
            self._shares.sum(sums)

    def _unit(self, weight: Any) -> float:
        """What real weights are multiplied with to be counted."""
        return weight_scale(weight) if self._shares is None else self._shares.share.unit

    def _room(self, name: str, size: int, dtype: Any, output: int) -> Array:
        return self._rounds.buffer((name, size, output), lambda: self._runtime.zeros(size, dtype))

    def _by_nodes(self, capacity: int) -> tuple[int]:
        return (max(1, min(-(-capacity // 32), 8 * self._runtime.sm_count)),)

    def _blocks(self, most: int) -> tuple[int]:
        return (max(1, min(-(-most // THREADS), 8 * self._runtime.sm_count)),)

    def _kernel(self, name: str, files: tuple[str, ...] = _LEAVES) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = self._runtime.kernel(source(*files), name)
        return self._kernels[name]


def _words(number: float) -> tuple[int, ...]:
    return tuple(np.array([number], np.float64).view(np.uint32).tolist())
