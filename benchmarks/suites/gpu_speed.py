"""Speed on a GPU: time per tree against the memory's own speed and against other libraries, and what can be counted.

Every figure but those of ``counted`` needs a GPU; without one its table says so. ``counted`` needs none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.gpu.budget import bytes_per_row, gpu_or_reason, sampled_bytes_per_row, skipped
from gpuboost.benchmarks.gpu.categories import categories
from gpuboost.benchmarks.gpu.counted import counted, counted_leafwise, counted_noise, counted_sample, counted_search
from gpuboost.benchmarks.gpu.host import host
from gpuboost.benchmarks.gpu.kernels import kernels
from gpuboost.benchmarks.gpu.lock_step import counted_lock_step, lock_step
from gpuboost.benchmarks.gpu.micro import copy_bandwidth, micro
from gpuboost.benchmarks.gpu.outputs import outputs
from gpuboost.benchmarks.gpu.peers import apart, peers
from gpuboost.benchmarks.gpu.prediction import prediction
from gpuboost.benchmarks.gpu.threshold import threshold
from gpuboost.benchmarks.gpu.workers import workers
from gpuboost.benchmarks.harness.experiments import Experiment, Finding, Options, Part
from gpuboost.benchmarks.harness.store import Array

FEW_TREES = 10
RATE = 0.1
PEER_SECONDS = 180.0  # that another library may take for all of its fits; on an unknown GPU some compile for minutes
COLUMNS = ("library", "ms per tree", "of ours", "trees/s", "GB/s of the budget", "of a copy", "first fit s", "note")


@dataclass(frozen=True)
class Shape:
    """A training to time. ``target``: most milliseconds per tree that are aimed at on an H200, if there is an aim."""

    title: str
    n: int
    d: int
    depth: int
    make: Callable[[int, int], tuple[Array, Array]]
    trees: int = 110
    target: float | None = None
    rate: float | None = None  # of rows that are drawn by importance
    params: Mapping[str, Any] = field(default_factory=dict)  # of ours beside those; other libraries are then not timed

    @property
    def bytes_per_row(self) -> float:
        """By design, per tree; of a line search without what the passes move whose number depends on the data."""
        if self.rate is None:
            return bytes_per_row(self.d, self.depth)
        return sampled_bytes_per_row(self.d, self.depth, self.rate)


def higgs(n: int, d: int) -> tuple[Array, Array]:
    data = higgs_like(n, 1, 1)
    return data.X, data.y


def plain(n: int, d: int) -> tuple[Array, Array]:
    """Uniform float32 numbers, filled in stretches so that little memory is needed beside them; two classes."""
    rng, x = np.random.default_rng(1), np.empty((n, d), np.float32)
    for top in range(0, n, 1 << 20):
        part = x[top : top + (1 << 20)]
        rng.random(out=part, dtype=np.float32)
    noise = rng.random(n, dtype=np.float32)
    return x, (x[:, 0] + x[:, 1] * (x[:, 2] > 0.5) + noise > 1.4).astype(np.float64)


def _of_a_million(title: str, depth: int, **params: Any) -> Shape:
    return Shape(f"1,000,000 x 28, {title}", 1_000_000, 28, depth, higgs, trees=210, params=params)


LEAFWISE = {"growth": "leafwise", "max_depth": None, "max_leaves": 31}
SHAPES = {
    "higgs-11m": Shape("11,000,000 x 28, depth 8", 11_000_000, 28, 8, higgs, trees=210, target=1.2),
    "higgs-11m-mvs": Shape("11,000,000 x 28, depth 8, MVS(0.1)", 11_000_000, 28, 8, higgs, trees=510, rate=0.1),
    "higgs-1m": Shape("1,000,000 x 28, depth 6", 1_000_000, 28, 6, higgs, trees=510, target=0.2),
    "higgs-1m-by-node": _of_a_million("depth 6, 5 features for every node", 6, learners=gb.RandomByNode(5)),
    "higgs-1m-search": _of_a_million("depth 6, line search", 6, step="line_search"),
    "higgs-1m-stumps": _of_a_million("depth 1, stumps of one value", 1, growth="sign_stump"),
    "higgs-1m-leafwise": _of_a_million("31 leaves, leaf-wise", 5, **LEAFWISE),
    "wide": Shape("400,000 x 2,000, depth 8", 400_000, 2_000, 8, plain, trees=60),
    "airline": Shape("115,000,000 x 13, depth 8", 115_000_000, 13, 8, plain, trees=110),
    "small": Shape("10,000 x 20, depth 6", 10_000, 20, 6, plain, trees=510),
    "small-leafwise": Shape("10,000 x 20, 31 leaves, leaf-wise", 10_000, 20, 5, plain, trees=510, params=LEAFWISE),
}


def timed(shape: Shape, options: Options) -> Finding:
    """Milliseconds per tree: two fits to the same bins, of few trees and of many; their difference by the trees."""
    title = f"{shape.title}, two classes"
    gpu, about = gpu_or_reason()
    if gpu is None:
        return skipped(title, COLUMNS, about)
    n = min(shape.n, 20_000) if options.small else shape.n
    trees = FEW_TREES + 10 if options.small else shape.trees
    sampling = None if shape.rate is None else gb.MVS(shape.rate)
    params = {"max_depth": shape.depth, "sampling": sampling, **shape.params}
    told = gb.estimate_memory(n, shape.d, n_classes=2, **params).total
    if told > gpu.free_memory:
        return skipped(title, COLUMNS, f"{told / 2**30:.1f} GiB are needed, {gpu.free_memory / 2**30:.1f} are free")
    options.tell(f"{shape.title}: data")
    x, y = shape.make(n, shape.d)
    ceiling = copy_bandwidth(gpu)
    runs: list[dict[str, Any]] = []
    repeats = options.repeats or 3
    options.tell(f"{shape.title}: gpuboost")
    runs.append({"library": "gpuboost", **_measured(_ours(params), x, y, trees, repeats)})
    asked = options.peers and sampling is None and not shape.params
    for name in peers(shape.depth, RATE, options.threads) if asked else ():
        if name in options.peers:
            options.tell(f"{shape.title}: {name}")
            task = name, shape, n, trees, repeats, options.threads
            runs.append({"library": name, **apart(_of_peer, *task, seconds=PEER_SECONDS)})
    moved = shape.bytes_per_row * n
    rows = tuple(_row(run, runs[0], moved, ceiling) for run in runs)
    notes = [f"{about}; copy {ceiling / 1e9:.0f} GB/s; {shape.bytes_per_row:.0f} bytes a row budgeted"]
    if shape.target is not None and not options.small and "ms" in runs[0]:
        word = "met" if runs[0]["ms"] <= shape.target else "missed"
        notes.append(f"aim: {shape.target} ms per tree, {word}")
    return Finding(
        title, COLUMNS, rows, tuple(notes), {"gpu": about, "rows": n, "runs": runs, "copy": ceiling, "bytes": moved}
    )


Fit = Callable[[int], Any]
"""(trees) -> a model, when it is there"""


def _ours(params: Mapping[str, Any]) -> Callable[[Array, Array], Fit]:
    def bind(x: Array, y: Array) -> Fit:
        data = gb.Dataset(x, y)

        def fit(trees: int) -> Any:
            model = gb.GradientBoostingClassifier(
                n_estimators=trees, learning_rate=RATE, device="cuda", random_state=0, **params
            )
            return model.fit(data)

        return fit

    return bind


def _of_peer(name: str, shape: Shape, n: int, trees: int, repeats: int, threads: int) -> dict[str, Any]:
    x, y = shape.make(n, shape.d)
    return _measured(peers(shape.depth, RATE, threads)[name], x, y, trees, repeats)


def _measured(library: Callable[[Array, Array], Fit], x: Array, y: Array, trees: int, repeats: int) -> dict[str, Any]:
    try:
        begun = time.perf_counter()
        fit = library(x, y)
        fit(FEW_TREES)  # everything is compiled, binned and on the device after this
        first = time.perf_counter() - begun
        few, many = (min(_seconds(fit, count) for _ in range(repeats)) for count in (FEW_TREES, trees))
    except Exception as error:  # of many libraries' own kinds; the others go on
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    if many <= few:
        return {"error": f"{trees} trees in {many:.3f} s, {FEW_TREES} in {few:.3f} s: the machine was busy with others"}
    return {"ms": 1e3 * (many - few) / (trees - FEW_TREES), "first": first, "few": few, "many": many, "trees": trees}


def _seconds(fit: Fit, trees: int) -> float:
    start = time.perf_counter()
    fit(trees)
    return time.perf_counter() - start


def _row(run: dict[str, Any], ours: dict[str, Any], moved: float, ceiling: float) -> tuple[str, ...]:
    if "error" in run:
        return (run["library"], *[""] * 6, run["error"])
    speed = moved / max(1e-9, 1e-3 * run["ms"])
    is_ours = run["library"] == "gpuboost"
    times = f"{run['ms'] / ours['ms']:.1f}" if "ms" in ours else ""
    used = (f"{speed / 1e9:.0f}", f"{speed / ceiling:.0%}") if is_ours else ("", "")
    return run["library"], f"{run['ms']:.3f}", times, f"{1e3 / run['ms']:.0f}", *used, f"{run['first']:.1f}", ""


def _part(shape: Shape) -> Part:
    return Part(f"time per tree: {shape.title}", lambda options: timed(shape, options))


EXPERIMENT = Experiment(
    name="gpu-speed",
    title="GPU: milliseconds per tree, against a copy and against other libraries",
    peers=("py-boost",),
    parts={
        "counted": Part("launches, bytes and atomics per row and tree, counted without a GPU", counted),
        "counted-sample": Part("the same where a tenth of the rows is drawn by importance", counted_sample),
        "counted-noise": Part("the same with noise on the gradients", counted_noise),
        "counted-search": Part("the same with a line search along every tree", counted_search),
        "counted-leafwise": Part("launches and waits of leaf-wise trees", counted_leafwise),
        "counted-lock-step": Part("nodes of graphs per tree of several trainings at once", counted_lock_step),
        "host": Part("time of the host per tree, with a runtime that computes nothing", host),
        "micro": Part("what the device's memories, atomics and launches can do", micro),
        "workers": Part("trees a second of 1, 2 and 4 worker streams, against one tree at a time", workers),
        "threshold": Part("whole fits on the CPU and on a GPU, by the size of the data", threshold),
        "lock-step": Part("time per tree of several small trainings at once", lock_step),
        "outputs": Part("one tree for several outputs, beside Py-Boost and XGBoost", outputs),
        "categories": Part("whole fits of columns of many categories, beside CatBoost", categories),
        "prediction": Part("prediction of many rows and of few, beside XGBoost", prediction),
        "kernels": Part("time of each kernel, 11,000,000 x 28, depth 8", kernels),
        **{name: _part(shape) for name, shape in SHAPES.items()},
    },
)
