"""The end of a tree on a device: its leaf values, the update of the scores, and its record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gpuboost.backends.cuda.array_cache import ArrayCache
from gpuboost.backends.cuda.bins import DeviceBins
from gpuboost.backends.cuda.device.grids import block_count
from gpuboost.backends.cuda.device.inputs import Input, KeyInput, RoundNoise
from gpuboost.backends.cuda.device.kernels import Kernels
from gpuboost.backends.cuda.device.round import WORDS, RecordedRound, recorded_verb
from gpuboost.backends.cuda.device.runtime import Runtime
from gpuboost.backends.cuda.leaf_update import FusedLeafUpdate
from gpuboost.backends.cuda.random_shape import RandomShapes
from gpuboost.backends.cuda.target import DeviceGradients
from gpuboost.backends.cuda.trees.all_reduce import AllReduce
from gpuboost.backends.cuda.trees.tree import NODE, STATE, as_bytes, as_records
from gpuboost.backends.cuda.trees.tree_ring import DeviceTree, TreeRing, host_nodes
from gpuboost.backends.numerics.leaf_values import weight_scale
from gpuboost.backends.numerics.monotone import of_features
from gpuboost.backends.optional_verbs import Shrinkage
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.types import Array, Cuts, FittedTree, Limits, Nodes, Noise, Structure, TrainingSet

THREADS, DIGITS = 256, 256  # as in the kernels
NEAR_BYTES = 48 << 10  # of shared memory that need no opt-in
STEP_BYTES, KEPT_BYTES = 16, 48
_LEAVES = ("common/common.cuh", "common/tree.cuh", "growth/record.cuh", "prediction/walk.cuh", "leaves/leaves.cu")
_NOISY = ("common/common.cuh", "common/philox.cuh", "common/normal.cuh", *_LEAVES)
_BOUNDS = ("common/common.cuh", "common/tree.cuh", "splits/bounds.cuh", "leaves/bounds.cu")
_SMOOTHED = ("common/common.cuh", "common/tree.cuh", "splits/bounds.cuh", "leaves/smooth_values.cu")
_PREDICTION = ("common/common.cuh", "prediction/walk.cuh", "prediction/predict.cu")
PAYS = 16  # times as many rounds must be left that a graph of several pays, which takes a millisecond to make
PAYS_IN_LOCK_STEP = 1  # where the others wait for each graph
_QUANTILES = ("common/common.cuh", "common/tree.cuh", "common/ordered_float.cuh", "leaves/quantiles.cu")


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A tree's shape without leaf values. ``leaf_of_row`` is None if the tree was grown from drawn rows."""

    nodes: Array  # (most nodes,) NODE, as bytes
    state: Array  # (1,) STATE, as bytes
    target: DeviceGradients
    leaf_of_row: Array | None
    output: int
    own_sums: bool  # leaf values are computed from the tree's own sums
    blind: bool = False  # the shape was drawn at random, and the rows of each node are not counted yet
    shape: Nodes | None = None  # the same nodes on the host, where growth waited for them
    lane: int | None = None  # of its training's outputs that grow at once


@dataclass(frozen=True, slots=True, eq=False)
class DeviceStructure:
    """Handle of a ``Structure`` on the device."""

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
        self,
        runtime: Runtime,
        arrays: ArrayCache,
        rounds: RecordedRound,
        shapes: RandomShapes,
        all_reduce: AllReduce | None = None,
    ) -> None:
        self._runtime, self._arrays, self._rounds, self._shapes = runtime, arrays, rounds, shapes
        self._all_reduce = all_reduce
        self._kernel, self._bounds = Kernels(runtime, *_LEAVES), Kernels(runtime, *_BOUNDS)
        noisy, smoothed = "#define NOISY 1\n", "#define SMOOTHED 1\n"
        self._smoothed = Kernels(runtime, *_SMOOTHED, before=smoothed)
        self._of_values = {  # by noise, and by path smoothing
            (False, False): self._kernel,
            (True, False): Kernels(runtime, *_NOISY, before=noisy),
            (False, True): Kernels(runtime, *_LEAVES, before=smoothed),
            (True, True): Kernels(runtime, *_NOISY, before=noisy + smoothed),
        }
        self._quantiles, self._prediction = Kernels(runtime, *_QUANTILES), Kernels(runtime, *_PREDICTION)
        self._factor, self._scale, self._noise = Input(rounds, 2), Input(rounds, 2), KeyInput(rounds)
        self._factor_of_others = Input(rounds, 2)  # of rows that are not learned from
        self._slot = Input(rounds, 1)  # in the ring, of output 0's tree
        self._next = Kernels(runtime, "common/common.cuh", "growth/next_round.cu")

    def upload(self, structure: Structure, gradients: DeviceGradients) -> Grown:
        """Copy a structure of the host, as of a continued ensemble, to the device, in the units of ``gradients``."""
        nodes, output, state = structure.nodes, structure.output, np.zeros(1, STATE)
        target = as_records(self._runtime.download(gradients.states[output : output + 1]), STATE)
        for name in ("unit_h", "error"):
            state[name] = target[name]
        state["n_nodes"], state["n_leaves"] = len(nodes.feature), nodes.is_leaf.sum()
        records = host_nodes(nodes, np.zeros(len(nodes.feature)))
        records["gain"], records["count"] = nodes.gain, nodes.count
        records["sum_h"] = np.rint(nodes.cover / state["unit_h"])
        on_device = [self._runtime.upload(as_bytes(array)) for array in (records, state)]
        shape = None if structure.blind else nodes
        return Grown(on_device[0], on_device[1], gradients, None, output, False, structure.blind, shape)

    def values(
        self, grown: Grown, gradients: DeviceGradients, data: TrainingSet, limits: Limits, stale: bool,
        tree: DeviceTree, noise: Noise | None,
    ) -> LeafOfRow:  # fmt: skip
        """Compute the exact leaf values, and record the tree in its slot."""
        ring = tree.ring
        self._slot.set((tree.slot - tree.output) % ring.slots)
        return self._values(grown, gradients, data, limits, stale, ring, self._noise.set_noise(noise))

    def repeat(
        self, trees: tuple[DeviceTree, ...], shrinkage: Shrinkage, rounds: int, left: int
    ) -> list[tuple[DeviceTree, ...]]:
        """Launch the last round again; the trees of each time: see ``Repeater``."""
        ring, k = trees[0].ring, len(trees)
        factors, now = (self._factor, self._factor_of_others), shrinkage.next

        def added(i: int) -> tuple[DeviceTree, ...]:
            return tuple(ring.add(tree.output, tree.version + 1 + i, tree.shape) for tree in trees)

        def after() -> None:
            self._next("next_round")(
                (1,), (WORDS,),
                slot=self._slot.words, trees=k, slots=ring.slots, inputs=self._rounds.inputs,
                counting=self._rounds.counting, kept=shrinkage.kept, length=shrinkage.length, scale=self._scale.number,
                factor=factors[0].number, factor_of_others=factors[1].number,
            )  # fmt: skip

        def first(slot: int) -> dict[int, tuple[int, ...]]:
            numbers = [factor.holding_number(now.factor) for factor in factors]
            return dict([self._slot.holding(slot), self._scale.holding_number(now.scale), *numbers])

        pays = PAYS if self._runtime.member is None else PAYS_IN_LOCK_STEP
        if rounds == 1 or left < pays * rounds or ring.room < k * rounds:
            made = added(0)
            self._rounds.repeat(first(made[0].slot))
            return [made]
        several = [added(i) for i in range(rounds)]
        self._rounds.repeat(first(several[0][0].slot), rounds, after)
        return several

    @recorded_verb(takes=True)
    def _values(
        self,
        grown: Grown,
        gradients: DeviceGradients,
        data: TrainingSet,
        limits: Limits,
        stale: bool,
        ring: TreeRing,
        noise: RoundNoise | None,
    ) -> LeafOfRow:
        n, capacity = data.n_rows, ring.capacity
        leaf_of_row, output = grown.leaf_of_row, grown.output
        self._rounds.in_lane(grown.lane)
        update = cast("FusedLeafUpdate | None", self._rounds.take())
        if update is not None and (stale or noise is not None or not update.fits(capacity, limits)):
            update.launch()
            update = None
        if leaf_of_row is None:
            leaf_of_row = self.find(grown, data, capacity)
        values = self._room("values", capacity, np.float64, output)
        sums, all_rows = self._room("sums", 2 * capacity, np.uint64, output), gradients.states[output : output + 1]
        other = stale or not grown.own_sums
        if other:
            self._leaf_sums(gradients, output, leaf_of_row, n, capacity, sums)
        if grown.blind:
            self._shapes.count(grown.state, all_rows, grown.nodes, leaf_of_row, n, sums)
        record, table = self._record(grown, ring), self._arrays.array(TABLE, np.float64)
        smoothed = limits.path_smooth > 0.0
        of_values = {
            "state": grown.state, "all": all_rows, "nodes": grown.nodes, "sums": sums, "other": other,
            "reg_lambda": limits.reg_lambda, "reg_alpha": limits.reg_alpha, "max_delta_step": limits.largest_value,
        }  # fmt: skip

        def compute_values() -> None:
            if smoothed:
                self._smoothed("smooth_values")((1,), (32,), **of_values, path_smooth=limits.path_smooth, values=values)
            self._of_values[noise is not None, smoothed]("leaf_values")(
                self._by_nodes(capacity), (THREADS,),
                **of_values, one_value=limits.signed, **self._drawn(noise, output),
                table=table, values=values, **record,
            )  # fmt: skip

        if update is not None:
            self._rounds.postpone(replace(update, values=values, record=record, compute_values=compute_values))
        else:
            compute_values()
        return LeafOfRow(leaf_of_row, values, grown, gradients)

    @recorded_verb()
    def quantiles(self, leaves: LeafOfRow, alpha: float, scores: Array, data: TrainingSet, ring: TreeRing) -> None:
        """Replace each leaf value by the quantile of the leaf's residuals."""
        grown, capacity, n = leaves.grown, ring.capacity, data.n_rows
        counts = self._room("counts", capacity * DIGITS, np.uint64, 0)  # 0 before and after
        prefix, needed = (self._room(name, capacity, np.uint64, 0) for name in ("prefix", "needed"))
        weight = data.weight
        unit = 1.0 if weight is None else self._rounds.buffer(("unit", id(data)), lambda: self._unit(weight))
        rows = self._arrays.rows_of_output(data, grown.output, self._rounds)
        for shift in range(56, -1, -8):
            self._quantiles("count_digits")(
                self._blocks(n), (THREADS,),
                **rows, scores=scores[grown.output], per_unit=unit, leaf_of_row=leaves.leaf_of_row,
                n=n, shift=shift, found=prefix, counts=counts,
            )  # fmt: skip
            if self._all_reduce is not None:
                self._all_reduce.sum(counts)
            self._quantiles("choose_digit")(
                (min(capacity, 8 * self._runtime.sm_count),), (DIGITS,),
                state=grown.state, nodes=grown.nodes, alpha=alpha, shift=shift, found=prefix, needed=needed,
                counts=counts, values=leaves.values,
            )  # fmt: skip
        self.keep(leaves, ring)

    @recorded_verb()
    def bound(self, leaves: LeafOfRow, cuts: Cuts, limits: Limits, refined: bool, ring: TreeRing) -> None:
        """Bound the leaf values; see the verb."""
        grown, capacity, directions = leaves.grown, ring.capacity, limits.directions
        assert directions is not None
        on_device = self._rounds.buffer(
            ("directions", id(cuts), directions),
            lambda: self._runtime.upload(of_features(directions, cuts).astype(np.int32)),
        )
        kept = self._room("kept", capacity * KEPT_BYTES, np.uint8, 0)
        self._bounds("bound_leaves")(
            (1,), (32,),
            state=grown.state, nodes=grown.nodes, directions=on_device, ridge=0.0 if refined else limits.reg_lambda,
            refined=refined, kept=kept, values=leaves.values,
        )  # fmt: skip
        self.keep(leaves, ring)

    def keep(self, leaves: LeafOfRow, ring: TreeRing) -> None:
        """Record a tree again, after a change of its values."""
        grown = leaves.grown
        self._kernel("keep")(
            self._by_nodes(ring.capacity), (THREADS,),
            state=grown.state, all=leaves.gradients.states[grown.output : grown.output + 1], nodes=grown.nodes,
            **self._record(grown, ring),
        )  # fmt: skip

    def add(self, scores: Array, leaves: LeafOfRow, factor: float) -> None:
        """scores[output] += factor * tree, for the rows of its training set."""
        self._add(scores, leaves, self._factor.set_number(factor))

    @recorded_verb(takes=True)
    def _add(self, scores: Array, leaves: LeafOfRow, factor: Input) -> None:
        output, update = leaves.grown.output, cast("FusedLeafUpdate | None", self._rounds.take())
        self._rounds.in_lane(leaves.grown.lane)
        if update is not None and update.values is leaves.values:
            update.add(scores[output], factor.number)
            return
        if update is not None:
            update.launch()
        n = scores.shape[1]
        self._kernel("add_leaves")(
            self._blocks(n), (THREADS,),
            values=leaves.values, factor=factor.number, leaf_of_row=leaves.leaf_of_row, n=n, scores=scores[output],
        )  # fmt: skip

    def shrink(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        """out = bias + scale * sums"""
        self._shrink(sums, bias, self._scale.set_number(scale), out)

    @recorded_verb()
    def _shrink(self, sums: Array, bias: Array, scale: Input, out: Array) -> None:
        k, n = sums.shape
        self._prediction("shrunk")(
            (*self._blocks(n), k), (THREADS,), sums=sums, bias=bias, scale=scale.number, n=n, out=out
        )

    def add_tree(self, scores: Array, tree: Any, factor: float, bins: DeviceBins, cuts: Cuts) -> None:
        """``add_leaves`` for rows whose leaves are not known."""
        by = self._factor_of_others.set_number(factor)
        if isinstance(tree, DeviceTree) and tree.host is None:
            if self._rounds.is_open:
                self._add_recorded(scores, tree.ring, tree.output, by, bins, cuts)
                return
            head, nodes = tree.ring.record(tree.slot)
            count, capacity = head.view(np.int32)[2:3], tree.ring.capacity
        else:
            host: FittedTree = tree.fetched if isinstance(tree, DeviceTree) else tree
            made = host_nodes(host.nodes, host.value)
            nodes, capacity = self._runtime.upload(made.view(np.uint8)), len(made)
            count = self._runtime.upload(np.array([capacity], np.int32))
        self._rounds.call(Leaves._add_nodes, self, scores, nodes, count, capacity, tree.output, by, bins, cuts)

    @recorded_verb()
    def _add_recorded(
        self, scores: Array, ring: TreeRing, output: int, factor: Input, bins: DeviceBins, cuts: Cuts
    ) -> None:
        """Add the tree that this round has recorded."""
        capacity = ring.capacity
        nodes = self._room("fetched", capacity * NODE.itemsize, np.uint8, output)
        count = self._room("fetched count", 1, np.int32, output)
        self._kernel("fetch_record")(
            self._blocks(capacity), (THREADS,),
            first_slot=self._slot.words, output=output, slots=ring.slots, capacity=capacity, heads=ring.heads,
            kept=ring.nodes, n_nodes=count, nodes=nodes,
        )  # fmt: skip
        self._add_nodes(scores, nodes, count, capacity, output, factor, bins, cuts)

    def _add_nodes(
        self, scores: Array, nodes: Array, count: Array, capacity: int, output: int, factor: Input, bins: DeviceBins,
        cuts: Cuts,
    ) -> None:  # fmt: skip
        steps = self._flatten(nodes, count, cuts, capacity, output)
        self._kernel("add_tree")(
            self._blocks(bins.n), (THREADS,),
            steps=steps, nodes=nodes, rows=bins.rows, n=bins.n, shift=bins.shift, factor=factor.number,
            scores=scores[output],
        )  # fmt: skip

    def find(self, grown: Grown, data: TrainingSet, capacity: int) -> Array:
        """(n,) int32 the leaf of every row in a tree of at most so many nodes."""
        state, nodes, bins = grown.state, grown.nodes, self._arrays.bins(data.bins)
        place = STATE.fields["n_nodes"][1] // 4  # type: ignore[index]
        count = state.reshape(-1).view(np.int32)[place : place + 1]
        steps = self._flatten(nodes, count, data.cuts, capacity, grown.output)
        leaf_of_row = self._room("leaf_of_row", bins.n, np.int32, grown.output)
        self._kernel("find_leaves")(
            self._blocks(bins.n), (THREADS,),
            steps=steps, nodes=nodes, rows=bins.rows, n=bins.n, shift=bins.shift, leaf_of_row=leaf_of_row,
        )  # fmt: skip
        return leaf_of_row

    # parts of the above

    def _record(self, grown: Grown, ring: TreeRing) -> dict[str, Any]:
        """Kernels' arguments for a tree's record."""
        lost = self._arrays.no_times if grown.target.lost is None else grown.target.lost
        return {
            "lost": lost, "capacity": ring.capacity, "first_slot": self._slot.words,
            "output": grown.output, "slots": ring.slots, "heads": ring.heads,
            "kept": ring.nodes,
        }  # fmt: skip

    def _drawn(self, noise: RoundNoise | None, output: int) -> dict[str, Any]:
        """Kernels' arguments for noise on the leaves of an output."""
        if noise is None:
            nowhere = self._slot.words  # no word of it is read
            return {"deviation": 0.0, "seed_low": 0, "seed_high": 0, "iteration": nowhere, "name": 0}
        return {"deviation": noise.deviation, **(noise.key / output).arguments}

    def _flatten(self, nodes: Array, count: Array, cuts: Cuts, capacity: int, output: int) -> Array:
        steps = self._room("steps", capacity * STEP_BYTES, np.uint8, output)
        n_bins, categorical = self._arrays.kinds(cuts)
        self._kernel("flatten")(
            self._blocks(capacity), (THREADS,),
            nodes=nodes, n_nodes=count, n_bins=n_bins, categorical=categorical, steps=steps,
        )  # fmt: skip
        return steps

    def _leaf_sums(
        self, gradients: DeviceGradients, output: int, leaf_of_row: Array, n: int, capacity: int, sums: Array
    ) -> None:
        near = 8 * capacity
        in_shared_memory = near <= NEAR_BYTES
        self._runtime.fill(sums, 0)
        self._kernel("leaf_sums")(
            self._blocks(n), (512,),
            g=gradients.g[output], h=gradients.h[output], **self._arrays.times(gradients.multiplicity),
            leaf_of_row=leaf_of_row, n=n, state=gradients.states[output : output + 1], capacity=capacity,
            own=in_shared_memory, sums=sums, shared_mem=near if in_shared_memory else 0,
        )  # fmt: skip
        if self._all_reduce is not None:
            self._all_reduce.sum(sums)

    def _unit(self, weight: Any) -> float:
        """The factor that turns real weights into counts."""
        return weight_scale(weight) if self._all_reduce is None else self._all_reduce.shard.unit

    def _room(self, name: str, size: int, dtype: Any, output: int) -> Array:
        return self._rounds.buffer((name, size, output), lambda: self._runtime.zeros(size, dtype))

    def _by_nodes(self, capacity: int) -> tuple[int]:
        return (block_count(self._runtime, capacity, 32),)

    def _blocks(self, threads: int) -> tuple[int]:
        return (block_count(self._runtime, threads, THREADS),)
