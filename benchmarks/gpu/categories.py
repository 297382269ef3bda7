"""Columns of many categories on a GPU: held-out loss and seconds of whole fits, beside CatBoost on the same GPU."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from gpuboost.benchmarks.data import real
from gpuboost.benchmarks.gpu.budget import gpu_or_reason, skipped
from gpuboost.benchmarks.gpu.peers import apart
from gpuboost.benchmarks.harness.cases import OURS, Setting
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.peers import open_peer
from gpuboost.benchmarks.harness.scores import score
from gpuboost.benchmarks.harness.store import Data

TREES, REPEATS, SECONDS = 200, 3, 240.0
COLUMNS = ("library", "log loss", "seconds of a fit", "of ours", "note")
ON_GPU: dict[str, dict[str, Any]] = {
    OURS: {"device": "cuda"},
    "catboost": {"task_type": "GPU", "devices": "0"},
}


def categories(options: Options) -> Finding:
    """amazon, nine columns of up to 7,518 categories: each library at its own defaults, and its best of some fits."""
    title = f"amazon, {TREES} trees of depth 6, whole fits on a GPU"
    gpu, about = gpu_or_reason()
    if gpu is None:
        return skipped(title, COLUMNS, about)
    data = real.amazon(1_000 if options.small else None)
    trees = 5 if options.small else TREES
    runs: dict[str, dict[str, Any]] = {}
    for name in libraries(options):
        options.tell(f"amazon: {name}")
        fits = partial(timed_fits, name, ON_GPU[name], trees, options.threads, options.repeats or REPEATS)
        runs[name] = apart(fits, data, seconds=SECONDS)
    rows = tuple(_row(name, run, runs[OURS]) for name, run in runs.items())
    return Finding(title, COLUMNS, rows, (about,), {"gpu": about, "runs": runs})


def libraries(options: Options) -> list[str]:
    """This library, and the requested ones that are installed."""
    return [name for name in ON_GPU if name == OURS or options.beside(name)]


def timed_fits(
    name: str, options: dict[str, Any], trees: int, threads: int, repeats: int, data: Data
) -> dict[str, Any]:
    """The loss, and the seconds of each fit after one of two trees; {"error": why} if there is none."""

    def fitted(setting: Setting) -> tuple[Any, Any]:
        peer = open_peer(name, "binary", setting, threads, data.y, **options)
        return peer, peer.train(peer.bin(peer.prepare(data.X), data.y, None, None))

    try:
        fitted(Setting(trees=2, matched=False))
        seconds = []
        for _ in range(repeats):
            begun = time.perf_counter()
            peer, model = fitted(Setting(trees=trees, matched=False))
            seconds.append(time.perf_counter() - begun)
        return {"logloss": score(data, peer.predict(model, peer.prepare(data.X_test)))["logloss"], "seconds": seconds}
    except Exception as error:  # of a library's own kind
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def _row(name: str, run: dict[str, Any], ours: dict[str, Any]) -> tuple[str, ...]:
    if "error" in run:
        return (name, "", "", "", run["error"])
    ratio = f"{min(run['seconds']) / min(ours['seconds']):.1f}" if "seconds" in ours else ""
    return (name, f"{run['logloss']:.5f}", f"{min(run['seconds']):.2f}", ratio, "")
