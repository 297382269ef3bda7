"""What memory of a GPU is for: a backend, and its workers' benches, that say so of all they allocate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from gpuboost.backends.cuda.device.dry_run import Rehearsal
from gpuboost.backends.cuda.device.plan import Plan, tile_width
from gpuboost.backends.protocol import Backend
from gpuboost.backends.workers import Bench, Work
from gpuboost.keys import Key
from gpuboost.types import Candidates, DenseBins, Limits, Sample, Structure, Target, TrainingSet

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
    "lent": "what workers are lent, and the trees they bring",
    "sample": "the draw, and the drawn rows",
    "histograms": "histograms of nodes",
    "partials": "sums of stretches of rows",
    "trees": "nodes and finished trees",
    "eval sets": "bins, target and scores of eval sets",
    "other": "other",
}
"""What memory is for. The first nine grow with the rows."""

OF_ROWS = tuple(PURPOSES)[:9]
_IN_THE_ARENA = {
    "pairs": "lists", "list": "lists", "list_pairs": "lists", "slot_of_row": "node ids", "histograms": "histograms",
    "counts": "histograms", "partials": "partials", "partial_counts": "partials",
}  # fmt: skip

_OF_VERB = {
    "quantise": "bins", "start": "scores", "gradients": "gradients", "sample": "sample", "weigh": "sample",
    "draw": "sample", "losses": "sample", "keep": "sample", "node_control": "sample", "leaf_control": "sample",
    "leaf_values": "trees", "leaf_quantiles": "trees", "bound_leaves": "trees", "add_leaves": "trees",
    "line_search": "lists", "length_along": "lists",
}  # fmt: skip


class Labelled:
    """A backend whose allocations are told apart by the verb that asks for them."""

    def __init__(self, machine: Cuda, runtime: Rehearsal) -> None:
        self._machine, self._runtime, self.name, self.offers = machine, runtime, machine.name, machine.offers
        self._plan: Plan | None = None
        self._drawn = 0  # rows that are gathered for a tree
        self._workers: list[Labelled] = []

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._machine, name)

        def labelled(*given: Any, **named: Any) -> Any:
            with self._runtime.purpose(_OF_VERB.get(name, "other")):
                return verb(*given, **named)

        return labelled

    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        if key is not None:
            with self._runtime.purpose("other"):
                return self._machine.grow(data, target, output, candidates, limits, key)
        room = target.gradients.g.shape[1]
        self._drawn = 0 if target.rows is None else room
        self._plan = Plan.of(room, data.cuts, limits, self._runtime.sm_count, len(candidates.features))
        with self._runtime.purpose("arena"):
            return self._machine.grow(data, target, output, candidates, limits)

    def benches(self) -> Callable[[], Bench]:
        """Each worker's machine has its allocations told apart, too."""
        opened = self._machine.benches()

        def hire() -> Bench:
            bench = opened()
            self._workers.append(Labelled(cast("Cuda", bench.machine), self._runtime))
            return _LabelledBench(bench, self._workers[-1], self._runtime)

        return hire

    def breakdown(self, data: TrainingSet) -> dict[str, int]:
        """Bytes by purpose when they were the most."""
        bins, most = cast(DenseBins, data.bins), self._runtime.most
        found = {purpose: most[purpose] for purpose in PURPOSES}
        found["rows"], found["columns"] = (min(part.nbytes, most["bins"]) for part in (bins.rows, bins.columns))
        found["other"] += most["bins"] - found["rows"] - found["columns"]
        held = sum(0 if given is None else given.nbytes for given in (data.weight, data.multiplicity))
        if most["gradients"]:  # weights are brought there when gradients are first computed
            found["labels"], found["gradients"] = found["labels"] + held, found["gradients"] - held
        told = sum(found.values())
        if most["arena"]:
            for one in (self, *self._workers):
                one._tell(found)
        found["trees"] += most["arena"] - sum(found.values()) + told
        return found

    def _tell(self, found: dict[str, int]) -> None:
        """Add what this machine grows trees in."""
        if self._plan is None:
            return
        for name, (length, dtype) in self._plan.sizes().items():
            found[_IN_THE_ARENA.get(name, "trees")] += max(1, length) * dtype.itemsize
        found["sample"] += _bytes_of_bins(self._drawn, self._plan.d)
        found["node ids"] += 4 * self._plan.n


class _LabelledBench:
    """See ``Bench``."""

    def __init__(self, bench: Bench, machine: Labelled, runtime: Rehearsal) -> None:
        self._bench, self._machine, self._runtime = bench, machine, runtime

    def lend(self, target: Target, sample: Sample) -> tuple[Target, Sample]:
        with self._runtime.purpose("lent"):
            return self._bench.lend(target, sample)

    def build(self, work: Work) -> tuple[Structure, ...]:
        with self._runtime.purpose("lent"):
            return self._bench.build(lambda _: work(cast(Backend, self._machine)))

    def beside(self) -> _LabelledBench:
        return _LabelledBench(self._bench.beside(), self._machine, self._runtime)

    def close(self) -> None:
        self._bench.close()


def _bytes_of_bins(n: int, d: int) -> int:
    width = tile_width(d)
    return n * (-(-d // width) * width + d)
