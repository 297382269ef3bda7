"""The time of each kernel of a training, by events between the launches of rounds that are not replayed as graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost import losses
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.gpu.budget import gpu_or_reason, skipped
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.store import Array
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.recipe import Recipe
from gpuboost.types import Limits

ROWS, DEPTH, WARM_UP, TREES = 11_000_000, 8, 3, 20
COLUMNS = ("kernel", "launches per tree", "us per tree", "share", "note")


class Timing:
    """A runtime that stands between the driver and a device, and notes when every kernel begins and ends."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self.spans: list[tuple[str, Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def kernel(self, source: str, name: str, *, functions: Any = (), shared_limit: int | None = None) -> Any:
        launch = self._runtime.kernel(source, name, functions=functions, shared_limit=shared_limit)

        def timed(grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int = 0) -> None:
            begin = self._event()
            launch(grid, block, args, shared_mem)
            self.spans.append((name, begin, self._event()))

        return timed

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        return work

    def seconds(self) -> dict[str, list[float]]:
        """Seconds of every launch, by kernel."""
        self._runtime.wait()
        elapsed = self._runtime.cp.cuda.get_elapsed_time
        seconds: dict[str, list[float]] = defaultdict(list)
        for name, begin, end in self.spans:
            seconds[name].append(elapsed(begin, end) * 1e-3)
        return seconds

    def _event(self) -> Any:
        event = self._runtime.cp.cuda.Event()
        event.record(self._runtime.stream)
        return event


def kernels(options: Options) -> Finding:
    """Microseconds per tree of each kernel, the longest first."""
    gpu, about = gpu_or_reason()
    n = 20_000 if options.small else ROWS
    title = f"Kernels: {n:,} x 28, depth {DEPTH}, {TREES} trees"
    if gpu is None:
        return skipped(title, COLUMNS, about)
    options.tell("kernels: data")
    made = higgs_like(n, 1, 1)
    options.tell("kernels: training")
    each = microseconds(gpu, made.X, made.y.astype(np.float64), DEPTH, TREES)
    total = sum(micro for _, micro in each.values())
    table = tuple(
        (name, f"{count:.1f}", f"{micro:.1f}", f"{micro / total:.1%}", "")
        for name, (count, micro) in sorted(each.items(), key=lambda item: -item[1][1])
    )
    notes = (about, "events stand between all launches, so short kernels seem longer than they are in a graph")
    return Finding(
        title, COLUMNS, (*table, ("all", "", f"{total:.1f}", "100.0%", "")), notes, {"gpu": about, "microseconds": each}
    )


def microseconds(runtime: Any, x: Array, y: Array, depth: int, trees: int) -> dict[str, tuple[float, float]]:
    """Launches per tree, and microseconds per tree, by kernel; the first trees are not counted."""
    from gpuboost.backends.cuda.backend import Cuda  # imports kernels, which ``bench --list`` can do without

    timing = Timing(runtime)
    machine = Cuda(timing)
    rows = gb.Dataset(x, y).training_set(machine.quantise, where="timed")
    growth = DepthWise(Limits(2**depth, depth))
    begun = boost(Recipe(losses.Logistic(), WARM_UP, 0.1, growth), rows, machine)
    timing.spans.clear()
    boost(Recipe(losses.Logistic(), trees, 0.1, growth), rows, machine, resume=begun)
    return {name: (len(each) / trees, 1e6 * sum(each) / trees) for name, each in timing.seconds().items()}
