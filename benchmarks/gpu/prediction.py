"""Prediction on a GPU by 500 trees of depth 8: many rows that lie on it, and calls for few rows, beside XGBoost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gpuboost as gb
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.gpu.budget import gpu_or_reason, skipped
from gpuboost.benchmarks.gpu.peers import apart
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.store import Array

TREES, DEPTH, TRAINED_ON, SECONDS = 500, 8, 200_000, 240.0
COLUMNS = ("library", "rows", "milliseconds", "of ours", "note")


def prediction(options: Options) -> Finding:
    """Raw float32 rows to probabilities; medians."""
    trees, many = (5, 20_000) if options.small else (TREES, 11_000_000)
    title = f"Prediction by {trees} trees of depth {DEPTH}, rows on the GPU"
    gpu, about = gpu_or_reason()
    if gpu is None:
        return skipped(title, COLUMNS, about)
    counts = (1, 1_000, many)
    names = ["gpuboost", *(["xgboost"] if options.beside("xgboost") else [])]
    runs = {}
    for name in names:
        options.tell(f"prediction: {name}")
        runs[name] = apart(_timed, name, trees, counts, seconds=SECONDS)
    rows = tuple(_row(name, run, str(count), runs["gpuboost"]) for name, run in runs.items() for count in counts)
    return Finding(title, COLUMNS, rows, (about,), {"gpu": about, "runs": runs})


def _timed(name: str, trees: int, counts: tuple[int, ...]) -> dict[str, Any]:
    try:
        import cupy

        data = higgs_like(max(counts), 1, 1)
        few = slice(0, TRAINED_ON)
        call = _FITS[name](data.X[few], data.y[few], trees)
        x = cupy.asarray(data.X)
        return {
            str(count): 1e3 * _median(call, x[:count].copy(), 5 if count > 1_000 else 200, cupy) for count in counts
        }
    except Exception as error:  # of a library's own kind
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def _median(call: Callable[[Any], Any], x: Any, times: int, cupy: Any) -> float:
    taken = []
    for _ in range(times + 2):
        begun = time.perf_counter()
        call(x)
        cupy.cuda.Device().synchronize()
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken[2:]))


def _ours(x: Array, y: Array, trees: int) -> Callable[[Any], Any]:
    model = gb.GradientBoostingClassifier(n_estimators=trees, max_depth=DEPTH, device="cuda", random_state=0)
    return model.fit(x, y).predict_proba


def _xgboost(x: Array, y: Array, trees: int) -> Callable[[Any], Any]:
    import xgboost

    told = {"objective": "binary:logistic", "tree_method": "hist", "device": "cuda", "max_depth": DEPTH, "eta": 0.1}
    return xgboost.train(told, xgboost.QuantileDMatrix(x, y), trees).inplace_predict


_FITS = {"gpuboost": _ours, "xgboost": _xgboost}


def _row(name: str, run: dict[str, Any], count: str, ours: dict[str, Any]) -> tuple[str, ...]:
    if "error" in run:
        return (name, count, "", "", run["error"])
    ratio = f"{run[count] / ours[count]:.1f}" if count in ours else ""
    return (name, f"{int(count):,}", f"{run[count]:.3f}", ratio, "")
