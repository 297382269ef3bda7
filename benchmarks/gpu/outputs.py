"""Several targets, labels and classes on a GPU: one tree for all outputs, beside Py-Boost and XGBoost on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gpuboost as gb
from gpuboost.benchmarks.gpu.budget import gpu_or_reason, skipped
from gpuboost.benchmarks.gpu.peers import apart
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.suites import outputs as on_cpu
from gpuboost.benchmarks.suites.outputs import DEPTH, RATE, ROUNDS, K, PyBoost, Rows, judged

SECONDS = 240.0
COLUMNS = ("rows", "library", "loss", "seconds of a fit", "of ours", "note")
MAKERS = (on_cpu.related, on_cpu.unrelated, on_cpu.many, on_cpu.labels, on_cpu.digits)
Fit = Callable[[Rows], Any]


def outputs(options: Options) -> Finding:
    """The sets of the suite ``outputs``: losses and seconds of the second of two equal fits."""
    title = f"Several outputs on a GPU: {ROUNDS} rounds of depth {DEPTH}, rate {RATE}, one tree for all"
    gpu, about = gpu_or_reason()
    if gpu is None:
        return skipped(title, COLUMNS, about)
    table, numbers = [], {}
    for make in MAKERS:
        rows, runs = make(options.small), {}
        for name in _libraries(options):
            options.tell(f"{make.__name__}: {name}")
            runs[name] = apart(_timed, name, rows, seconds=SECONDS)
        table += [_row(make.__name__, name, run, runs["gpuboost"]) for name, run in runs.items()]
        numbers[make.__name__] = runs
    return Finding(title, COLUMNS, tuple(table), (about,), {"gpu": about, "runs": numbers})


def _libraries(options: Options) -> tuple[str, ...]:
    names = ["gpuboost", "gpuboost, sketched"]
    if options.beside("py-boost"):
        names += ["Py-Boost", "Py-Boost, sketched"]
    if options.beside("xgboost"):
        names.append("XGBoost")
    return tuple(names)


def _timed(name: str, rows: Rows) -> dict[str, Any]:
    fit = _FITS[name]
    try:
        fit(rows)
        begun = time.perf_counter()
        model = fit(rows)
        seconds = time.perf_counter() - begun
        return {"loss": judged(rows, model), "seconds": seconds}
    except Exception as error:  # of a library's own kind
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def _ours(rows: Rows, sketch: Any = None) -> Any:
    kind = gb.GradientBoostingRegressor if rows.task == "numbers" else gb.GradientBoostingClassifier
    return kind(
        n_estimators=ROUNDS, max_depth=DEPTH, learning_rate=RATE, random_state=0, device="cuda",
        multi_output="one_tree", sketch=sketch,
    ).fit(rows.x, rows.y)  # fmt: skip


def _xgboost(rows: Rows) -> Any:
    import xgboost

    kind = xgboost.XGBRegressor if rows.task == "numbers" else xgboost.XGBClassifier
    return kind(
        n_estimators=ROUNDS, max_depth=DEPTH, learning_rate=RATE, device="cuda", tree_method="hist",
        multi_strategy="multi_output_tree", random_state=0,
    ).fit(rows.x, rows.y)  # fmt: skip


_FITS: dict[str, Fit] = {
    "gpuboost": _ours,
    "gpuboost, sketched": partial(_ours, sketch=gb.RandomProjection(K)),
    "Py-Boost": PyBoost,
    "Py-Boost, sketched": partial(PyBoost, sketch="proj"),
    "XGBoost": _xgboost,
}


def _row(of: str, name: str, run: dict[str, Any], ours: dict[str, Any]) -> tuple[str, ...]:
    if "error" in run:
        return (of, name, "", "", "", run["error"])
    ratio = f"{run['seconds'] / ours['seconds']:.1f}" if "seconds" in ours else ""
    return (of, name, f"{run['loss']:.4f}", f"{run['seconds']:.2f}", ratio, "")
