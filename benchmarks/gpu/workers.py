"""Trees a second of workers that are streams of one GPU, against one tree at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gpuboost as gb
from gpuboost.benchmarks.data.synthetic import higgs_like
from gpuboost.benchmarks.gpu.budget import gpu_or_reason, skipped
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.benchmarks.harness.store import Array

TITLE = "Trees under way on streams of one GPU, two classes"
COLUMNS = (
    "rows x features, depth, sampling",
    "workers",
    "trees/s",
    "of one at a time",
    "mean staleness",
    "MiB",
    "note",
)
WORKERS = (0, 1, 2, 4)  # 0: none, one tree at a time
FEW, RATE = 20, 0.05


@dataclass(frozen=True)
class Load:
    """A training whose trees fill a GPU more or less."""

    n: int
    depth: int
    trees: int
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.n:,} x 28, {self.depth}, {self.params.get('sampling', 'every row')}"


LOADS = (
    Load(10_000, 6, 520),
    Load(100_000, 6, 520),
    Load(1_000_000, 6, 220),
    Load(1_000_000, 8, 220, {"sampling": gb.MVS(0.1)}),
)


def workers(options: Options) -> Finding:
    """Trees a second of each load: one tree at a time, and 1, 2 and 4 streams, in turn; the best of the repeats."""
    gpu, about = gpu_or_reason()
    if gpu is None:
        return skipped(TITLE, COLUMNS, about)
    table: list[tuple[str, ...]] = []
    runs: list[dict[str, Any]] = []
    for load in LOADS[:1] if options.small else LOADS:
        n, few, trees = (1_000, 3, 8) if options.small else (load.n, FEW, load.trees)
        data = higgs_like(n, 1, 1)
        records = measured(load, data.X, data.y, few, trees, options, gpu.free_memory)
        runs += records
        table += [_row(load, record, records[0]) for record in records]
    notes = (about, f"trees after the first {FEW}, whose seconds are taken off; features drawn, so that trees differ")
    return Finding(TITLE, COLUMNS, tuple(table), notes, {"gpu": about, "runs": runs})


def measured(load: Load, x: Array, y: Array, few: int, trees: int, options: Options, free: int) -> list[dict[str, Any]]:
    """A record for each number of workers: the best of the repeats, which take turns. The first few are not counted."""
    rows = gb.Dataset(x, y)
    records: list[dict[str, Any]] = []
    for count in WORKERS:
        told = gb.estimate_memory(*x.shape, n_classes=2, **_params(load, count)).total
        records.append({"load": load.title, "workers": count, "bytes": told, "rate": 0.0, "staleness": 0.0})
    for repeat in range(options.repeats or 3):
        for record in records:
            if record["bytes"] > free:
                record["note"] = "does not fit"
                continue
            options.tell(f"{load.title}: {record['workers']} workers, repeat {repeat + 1}")
            params = _params(load, record["workers"])
            begun, _ = _seconds(rows, few, params)
            done, model = _seconds(rows, trees, params)
            record["rate"] = max(record["rate"], (trees - few) / max(1e-9, done - begun))
            record["staleness"] = model.log_.mean_staleness
    return records


def _params(load: Load, count: int) -> dict[str, Any]:
    execution = gb.Asynchronous(count) if count else None
    return {"max_depth": load.depth, "learners": 0.8, "execution": execution, **load.params}


def _seconds(rows: gb.Dataset, trees: int, params: Mapping[str, Any]) -> tuple[float, Any]:
    model = gb.GradientBoostingClassifier(
        n_estimators=trees, learning_rate=RATE, device="cuda", random_state=0, **params
    )
    start = time.perf_counter()
    model.fit(rows)
    return time.perf_counter() - start, model


def _row(load: Load, record: Mapping[str, Any], alone: Mapping[str, Any]) -> tuple[str, ...]:
    count, size = str(record["workers"] or "none"), f"{record['bytes'] / 2**20:,.0f}"
    if not record["rate"]:
        return load.title, count, "", "", "", size, record.get("note", "")
    times = f"{record['rate'] / alone['rate']:.2f}" if alone["rate"] else ""
    return load.title, count, f"{record['rate']:.0f}", times, f"{record['staleness']:.1f}", size, ""
