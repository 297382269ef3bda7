"""The size of data from which a GPU is faster than the CPU: what ``device="auto"`` is to be set by."""

from __future__ import annotations

import time

import gpuboost as gb
from gpuboost.backends.cpu.compilation.background import BACKGROUND
from gpuboost.backends.devices import AUTO_CELLS
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.gpu.budget import gpu_or_reason, skipped
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.store import Array

TITLE = "Whole fits on the CPU and on a GPU, 100 trees of depth 6, two classes"
COLUMNS = ("rows x features", "values", "CPU, s", "GPU, s", "GPU, s, first fit of its shape")
SIZES = (3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
TREES = 100


def threshold(options: Options) -> Finding:
    """Seconds from rows on the host to a model there, at several sizes: the least of the repeats, after fits that are
    not timed."""
    gpu, about = gpu_or_reason()
    if gpu is None:
        return skipped(TITLE, COLUMNS, about)
    runs = []
    sizes, trees = ((300, 1_000), 5) if options.small else (SIZES, TREES)
    for n in sizes:
        options.tell(f"{TITLE}: {n:,} rows")
        data = higgs_like(n, 1, 1)
        first = _seconds(data.X, data.y, trees, "cuda", 1)
        _compile_for_cpu(data.X, data.y, trees, options.threads)
        seconds = {
            device: min(_seconds(data.X, data.y, trees, device, options.threads) for _ in range(options.repeats or 3))
            for device in ("cpu", "cuda")
        }
        runs.append({"rows": n, "values": n * data.X.shape[1], "first": first, **seconds})
    faster = next((run["values"] for run in runs if run["cuda"] <= run["cpu"]), None)
    rows = tuple(
        (f"{run['rows']:,} x 28", f"{run['values']:,}", *(f"{run[name]:.2f}" for name in ("cpu", "cuda", "first")))
        for run in runs
    )
    said = "at no size" if faster is None else f"from {faster:,} values on"
    notes = (
        about,
        f"{options.threads} threads on the CPU; the GPU is faster {said}; 'auto' takes it from {AUTO_CELLS:,}",
    )
    return Finding(TITLE, COLUMNS, rows, notes, {"gpu": about, "runs": runs, "faster": faster})


def _compile_for_cpu(x: Array, y: Array, trees: int, threads: int) -> None:
    """Have every kernel of such fits compiled and loaded: some are compiled in the background, for the fits after."""
    _seconds(x, y, trees, "cpu", threads)
    BACKGROUND.wait()
    _seconds(x, y, trees, "cpu", threads)
    BACKGROUND.wait()


def _seconds(x: Array, y: Array, trees: int, device: str, threads: int) -> float:
    model = gb.GradientBoostingClassifier(
        n_estimators=trees, max_depth=6, random_state=0, device=device, n_jobs=threads
    )
    start = time.perf_counter()
    model.fit(x, y)
    return time.perf_counter() - start
