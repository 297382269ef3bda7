"""Several small trainings on one GPU: one after another, and in lock-step. Measured; or counted, without a GPU.

Each with the kernels of levels, and with trees that are grown in one launch by a cluster of blocks (GPUBOOST_CLUSTERS).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.backends.cuda.device.lock_step import in_lock_step
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.gpu.budget import gpu_or_reason, skipped
from gpuboost.benchmarks.gpu.counted import on_the_path, why_no_emulator
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.store import Array

ROWS, FEATURES, DEPTH, RATE = 10_000, 20, 6, 0.1
FEW, TREES = 20, 520
COUNTED_TREES = 11, 19  # a graph of eight rounds is captured at its second launch
COUNTS = (1, 4, 16)  # trainings
CLASSES = 7
TITLE = f"Trainings in lock-step, {ROWS:,} x {FEATURES}, depth {DEPTH}"
COLUMNS = ("trainings", "outputs", "trees by", "ms per tree", "times the trees of one")
COUNTED = ("trainings", "outputs", "trees by", "graph nodes per tree", "of one training")
WAYS = ("levels", "a cluster")


def lock_step(options: Options) -> Finding:
    """Milliseconds per tree: fits of few trees and of many, whose difference counts."""
    gpu, about = gpu_or_reason()
    if gpu is None:
        return skipped(TITLE, COLUMNS, about)
    n, few, many = (300, 3, 6) if options.small else (ROWS, FEW, TREES)
    runs = []
    for trainings, outputs, way in _cases(options):
        options.tell(f"{TITLE}: {trainings} trainings, {outputs} outputs, trees by {way}")
        x, y = _data(n, outputs)
        open_gpu("cuda:0").use_clusters(way != WAYS[0])
        short, long = (
            min(_seconds(x, y, trainings, outputs, trees) for _ in range(options.repeats or 3)) for trees in (few, many)
        )
        ms = 1e3 * max(1e-9, long - short) / ((many - few) * trainings * outputs)
        runs.append({"trainings": trainings, "outputs": outputs, "way": way, "ms": ms})
    alone = runs[0]["ms"]
    rows = tuple(
        (str(run["trainings"]), str(run["outputs"]), run["way"], f"{run['ms']:.4f}", f"{alone / run['ms']:.1f}")
        for run in runs
    )
    return Finding(TITLE, COLUMNS, rows, (about,), {"gpu": about, "runs": runs})


def counted_lock_step(options: Options) -> Finding:
    """Nodes of graphs per tree, of trainings on an emulated GPU."""
    title = f"Counted, not measured: {TITLE[0].lower()}{TITLE[1:]}"
    if reason := why_no_emulator():
        return skipped(title, COUNTED, reason)
    with on_the_path():
        emulator: Any = import_module("emulator")
    n, (few, many) = 100 if options.small else 2_000, COUNTED_TREES
    runs = []
    for trainings, outputs, way in _cases(options):
        options.tell(f"counted: {trainings} trainings, {outputs} outputs, trees by {way}")
        x, y = _data(n, outputs)
        nodes = []
        for trees in (few, many):
            with emulator.emulated_gpu() as cupy:
                open_gpu("cuda:0").use_clusters(way != WAYS[0])
                _fit(x, y, trainings, outputs, trees)
            nodes.append(cupy.counts["graph nodes"])
        each = (nodes[1] - nodes[0]) / (many - few)
        runs.append({"trainings": trainings, "outputs": outputs, "way": way, "nodes": each})
    rows = []
    for run in runs:
        each, alone = run["nodes"] / run["trainings"] / run["outputs"], runs[0]["nodes"]
        rows.append((str(run["trainings"]), str(run["outputs"]), run["way"], f"{each:.1f}", f"{each / alone:.3f}"))
    notes = (f"{n:,} rows; nodes after the first {few} rounds",)
    return Finding(title, COUNTED, tuple(rows), notes, {"runs": runs})


def _cases(options: Options) -> tuple[tuple[int, int, str], ...]:
    """Trainings, outputs of each, and how trees are grown."""
    levels, cluster = WAYS
    if options.small:
        return (1, 1, levels), (3, 1, levels), (1, 3, levels), (1, 1, cluster)
    sizes = (*((count, 1) for count in COUNTS), (1, CLASSES))
    return tuple((trainings, outputs, way) for way in WAYS for trainings, outputs in sizes)


def _data(n: int, outputs: int) -> tuple[Array, Array]:
    data = higgs_like(n, 1, 1)
    x = np.ascontiguousarray(data.X[:, :FEATURES])
    return x, np.digitize(x[:, 0], np.quantile(x[:, 0], np.arange(1, outputs) / outputs)) if outputs > 1 else data.y


def _seconds(x: Array, y: Array, trainings: int, outputs: int, trees: int) -> float:
    start = time.perf_counter()
    _fit(x, y, trainings, outputs, trees)
    return time.perf_counter() - start


def _fit(x: Array, y: Array, trainings: int, outputs: int, trees: int) -> None:
    rows = gb.Dataset(x, y)
    params: dict[str, Any] = {"n_estimators": trees, "max_depth": DEPTH, "random_state": 0, "device": "cuda"}
    fits: list[Callable[[], Any]] = [
        partial(gb.GradientBoostingClassifier(learning_rate=RATE * (1 + i / trainings), **params).fit, rows)
        for i in range(trainings)
    ]
    if len(fits) == 1:
        fits[0]()
    else:
        in_lock_step(fits, "cuda:0")
