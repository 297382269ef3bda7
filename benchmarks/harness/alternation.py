"""Runs of our library and of others in turn, and the table of their times.

The first run of each is not counted. A ratio is our median over that of the fastest peer; CPU seconds are of all
threads and processes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpuboost.benchmarks.harness.cases import OURS
from gpuboost.benchmarks.harness.experiments import Options
from gpuboost.benchmarks.harness.measure import own_seconds

PEERS = "xgboost", "lightgbm", "sklearn"
Seconds = dict[str, tuple[float, float]]  # library -> medians of (seconds, CPU seconds)


def alternated(runs: Mapping[str, Callable[[], Any]], repeats: int, tell: Callable[[str], None]) -> Seconds:
    """Medians of ``repeats`` runs of each, in turn, after one that is not counted."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            tell(f"{name}, turn {turn}")
            begun, cpu = time.perf_counter(), own_seconds()
            run()
            if turn:
                taken[name].append((time.perf_counter() - begun, own_seconds() - cpu))
    return {
        name: (median(seconds for seconds, _ in each), median(cpu for _, cpu in each)) for name, each in taken.items()
    }


def median(values: Any) -> float:
    return float(np.median(list(values)))


def ratios(found: Seconds) -> tuple[float, float]:
    """Our seconds, and our CPU seconds, over the least of the peers; NaN without peers."""
    peers = [times for name, times in found.items() if not name.startswith(OURS)]
    if not peers:
        return float("nan"), float("nan")
    return found[OURS][0] / min(seconds for seconds, _ in peers), found[OURS][1] / min(cpu for _, cpu in peers)


def beside(options: Options) -> tuple[str, ...]:
    return (OURS, *(name for name in PEERS if options.beside(name)))


def columns(names: Sequence[str]) -> tuple[str, ...]:
    return ("", *names, "of the fastest peer", "CPU time, of the least")


def row(what: str, seconds: Seconds, names: Sequence[str]) -> tuple[str, ...]:
    wall, cpu = ratios(seconds)
    cells = (
        f"{1e3 * seconds[name][0]:.0f} ({1e3 * seconds[name][1]:.0f})" if name in seconds else "" for name in names
    )
    return (what, *cells, told(wall), told(cpu))


def told(ratio: float) -> str:
    """Two digits, or a dash where no peer ran."""
    return "-" if math.isnan(ratio) else f"{ratio:.2f}"
