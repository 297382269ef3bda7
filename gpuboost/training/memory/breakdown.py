"""The GPU memory of a training by purpose: tracing of the allocations of a backend and of its workers' slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from gpuboost.backends.cuda.device.dry_run import DryRun
from gpuboost.backends.cuda.outputs import one_tree
from gpuboost.backends.cuda.trees.plan import ArenaPlan, bytes_of_bins
from gpuboost.backends.protocol import Backend
from gpuboost.backends.workers import BuildFunction, WorkerSlot
from gpuboost.keys import Key
from gpuboost.types import Candidates, DenseBins, Gradients, Limits, Sample, Structure, Target, TrainingSet

if TYPE_CHECKING:  # it imports kernels, which take a while
    from gpuboost.backends.cuda.backend import Cuda

PURPOSES = {
    "rows": "bins, by row",
    "columns": "bins, by column",
    "labels": "target and weights",
    "scores": "scores",
    "gradients": "gradients",
    "node ids": "the node of each row",
    "lists": "rows to be counted, and their gradients",
    "workers": "copies of targets and of trees, of asynchronous workers",
    "sample": "the draw, and the drawn rows",
    "histograms": "histograms of nodes",
    "lines": "sums of the children that are built",
    "trees": "nodes and finished trees",
    "categories": "ordered target statistics of categories, before the training",
    "eval sets": "bins and scores of eval sets",
    "metrics": "targets and weights of eval sets, and memory of their metrics",
    "other": "other",
}
"""Purposes of memory. The first nine grow with the rows."""

OF_ROWS = tuple(PURPOSES)[:9]
_IN_THE_ARENA = {
    "pairs": "lists", "list": "lists", "list_pairs": "lists", "slot_of_row": "node ids", "histograms": "histograms",
    "counts": "histograms", "line_sums": "lines",
}  # fmt: skip

_OF_ONE_TREE = {"leaf_of_row": "node ids", "histograms": "histograms", "counts": "histograms", "nodes": "trees"}

_OF_VERB = {
    "quantise": "bins", "start": "scores", "gradients": "gradients", "drawn_gradients": "gradients",
    "sample": "sample", "weigh": "sample",
    "draw": "sample", "losses": "sample", "keep_gradients": "sample", "node_control_variate": "sample",
    "leaf_control_variate": "sample",
    "squared_norms": "gradients", "chosen_outputs": "gradients", "projected_outputs": "gradients",
    "leaf_values": "trees", "leaf_quantiles": "trees", "bound_leaves": "trees", "add_leaves": "trees",
    "line_search": "lists", "length_along": "lists",
}  # fmt: skip


class TracedBackend:
    """A backend whose allocations are traced to the verb that asks for them."""

    def __init__(self, machine: Cuda, runtime: DryRun) -> None:
        self._machine, self._runtime, self.name, self.offers = machine, runtime, machine.name, machine.offers
        self._plan: ArenaPlan | None = None
        self._arenas = 1
        self._of_one_tree: dict[str, int] = {}
        self._drawn = 0  # rows that are gathered for a tree
        self._workers: list[TracedBackend] = []

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._machine, name)

        def traced(*arguments: Any, **named: Any) -> Any:
            with self._runtime.purpose(_OF_VERB.get(name, "other")):
                return verb(*arguments, **named)

        return traced

    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        if key is not None:
            with self._runtime.purpose("other"):
                return self._machine.grow(data, target, output, candidates, limits, key)
        k, room = target.gradients.g.shape
        self._drawn = 0 if target.rows is None else room
        self._plan = ArenaPlan.of(room, data.cuts, limits, self._runtime, len(candidates.features))
        self._arenas = self._plan.arenas(k)
        with self._runtime.purpose("arena"):
            return self._machine.grow(data, target, output, candidates, limits)

    def grow_together(
        self, data: TrainingSet, target: Target, searched: Gradients, candidates: Candidates, limits: Limits
    ) -> tuple[Structure, ...]:
        (k, room), s = target.gradients.g.shape, searched.g.shape[0]
        self._drawn = 0 if target.rows is None else room
        arrays = one_tree.sizes(room, k, s, candidates, limits, room)
        self._of_one_tree = {name: length * dtype.itemsize for name, (length, dtype) in arrays.items()}
        with self._runtime.purpose("arena"):
            return self._machine.grow_together(data, target, searched, candidates, limits)

    def slots(self) -> Callable[[], WorkerSlot]:
        """Slots of workers whose allocations are traced too."""
        opened = self._machine.slots()

        def new_slot() -> WorkerSlot:
            slot = opened()
            self._workers.append(TracedBackend(cast("Cuda", slot.machine), self._runtime))
            return _TracedSlot(slot, self._workers[-1], self._runtime)

        return new_slot

    def breakdown(self, data: TrainingSet) -> dict[str, int]:
        """Bytes by purpose at the peak."""
        bins, peak = cast(DenseBins, data.bins), self._runtime.most
        sizes = {purpose: peak[purpose] for purpose in PURPOSES}
        sizes["rows"], sizes["columns"] = (min(part.nbytes, peak["bins"]) for part in (bins.rows, bins.columns))
        sizes["other"] += peak["bins"] - sizes["rows"] - sizes["columns"]
        held = sum(0 if array is None else array.nbytes for array in (data.weight, data.multiplicity))
        if peak["gradients"]:  # weights are copied to the device when gradients are first computed
            sizes["labels"], sizes["gradients"] = sizes["labels"] + held, sizes["gradients"] - held
        outside = sum(sizes.values())
        if peak["arena"]:
            for traced in (self, *self._workers):
                traced._add_to(sizes)
        sizes["trees"] += peak["arena"] - sum(sizes.values()) + outside
        return sizes

    def _add_to(self, sizes: dict[str, int]) -> None:
        """Add the arrays in which this backend grows trees to ``sizes``."""
        for name, size in self._of_one_tree.items():
            sizes[_OF_ONE_TREE.get(name, "lists")] += size
        if self._plan is None:
            return
        for name, (length, dtype) in self._plan.sizes().items():
            sizes[_IN_THE_ARENA.get(name, "trees")] += self._arenas * max(1, length) * dtype.itemsize
        sizes["sample"] += bytes_of_bins(self._drawn, self._plan.d, self._plan.width)
        sizes["node ids"] += self._arenas * 4 * self._plan.n


class _TracedSlot:
    """See ``WorkerSlot``."""

    def __init__(self, slot: WorkerSlot, machine: TracedBackend, runtime: DryRun) -> None:
        self._slot, self._machine, self._runtime = slot, machine, runtime

    def copy_target(self, target: Target, sample: Sample) -> tuple[Target, Sample]:
        with self._runtime.purpose("workers"):
            return self._slot.copy_target(target, sample)

    def build(self, work: BuildFunction) -> tuple[Structure, ...]:
        with self._runtime.purpose("workers"):
            return self._slot.build(lambda _: work(cast(Backend, self._machine)))

    def sibling(self) -> _TracedSlot:
        return _TracedSlot(self._slot.sibling(), self._machine, self._runtime)

    def close(self) -> None:
        self._slot.close()
