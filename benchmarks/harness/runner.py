"""Runs a suite: every (case, library, repeat) in a fresh process, libraries taking turns, on a quiet machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuboost.benchmarks.harness import machine, results, store
from gpuboost.benchmarks.harness.cases import OURS, Case, Size, Suite
from gpuboost.benchmarks.harness.peers import installed
from gpuboost.benchmarks.harness.worker import MARK

Row = dict[str, Any]

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Plan:
    """The runs to make, and their limits of time."""

    suite: Suite
    size: Size = "full"
    cases: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()  # beside gpuboost
    threads: int = 0  # 0: every core this process may use
    repeats: int = 0  # 0: the suite's own number
    wait: float = 45.0  # most seconds to wait for a quiet machine before each run
    retries: int = 1  # more runs where others disturbed one
    timeout: float = 1800.0  # seconds for one run

    @property
    def used_threads(self) -> int:
        return self.threads or machine.cores()

    @property
    def used_repeats(self) -> int:
        return self.repeats or self.suite.repeats

    def libraries(self, case: Case) -> tuple[str, ...]:
        """Ours first, then the asked-for peers that can run the case and are installed."""
        return OURS, *(name for name in case.peers if name in self.peers and installed(name))


def run(plan: Plan, tell: Callable[[str], None]) -> Iterator[Row]:
    """Yields one row per run as it ends. ``tell`` gets a line before each run."""
    for case in (case.sized(plan.size) for case in plan.suite.chosen(plan.cases)):
        tell(f"{case.name}: data")
        folder = store.prepared(case)
        failed: set[str] = set()
        if case.setting.warm_up:
            tell(f"{case.name}: kernels")
            _process({**_job(plan, case, OURS, folder), "trees": 2}, _environment(plan), plan.timeout)
        with tempfile.TemporaryDirectory() as by_row:
            for repeat in range(plan.used_repeats):
                names = plan.libraries(case)
                for name in names if repeat % 2 == 0 else names[::-1]:
                    if name in failed:
                        continue
                    tell(f"{case.name}: {name}, repeat {repeat + 1} of {plan.used_repeats}")
                    row = _undisturbed(plan, case, name, folder, Path(by_row))
                    failed |= {name} if "error" in row else set()
                    beside = results.beside_ours(Path(by_row), name)
                    yield {"case": case.name, "peer": name, "repeat": repeat, **row, **beside}


def _undisturbed(plan: Plan, case: Case, peer: str, folder: Path, by_row: Path) -> Row:
    """The best of a few tries: the first that other programs did not disturb, else the least disturbed one."""
    tries: list[Row] = []
    for _ in range(plan.retries + 1):
        waited = machine.wait_until_quiet(plan.wait) if plan.wait > 0 else 0.0
        row = {"waited_seconds": round(waited, 1), "load": round(_load(), 2), **_one(plan, case, peer, folder, by_row)}
        if "error" in row or not {"bin", "train", "predict"} & set(row["disturbed"]):
            return row
        tries.append(row)
    return min(tries, key=lambda row: sum(p["other_cpu_seconds"] for p in row["phases"].values()))


def _load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _one(plan: Plan, case: Case, peer: str, folder: Path, by_row: Path) -> Row:
    job = _job(plan, case, peer, folder)
    if plan.suite.kind == "quality":
        job["by_row"] = str(by_row / f"{peer}.npy")
    environment = _environment(plan)
    if case.kernels == "shared":
        return _process(job, environment, plan.timeout)
    with tempfile.TemporaryDirectory() as empty:
        environment["NUMBA_CACHE_DIR"] = empty
        if case.kernels == "primed":
            first = _process(job, environment, plan.timeout)
            if "error" in first:
                return first
        return _process(job, environment, plan.timeout)


def _job(plan: Plan, case: Case, peer: str, folder: Path) -> Row:
    asked = {"suite": plan.suite.name, "case": case.name, "size": plan.size, "peer": peer}
    return {**asked, "threads": plan.used_threads, "folder": str(folder.resolve()), "by_row": None}


def _environment(plan: Plan) -> dict[str, str]:
    return {**os.environ, **dict.fromkeys(_THREAD_VARIABLES, str(plan.used_threads)), "PYTHONWARNINGS": "ignore"}


def _process(job: Row, environment: dict[str, str], timeout: float) -> Row:
    command = [sys.executable, "-m", "gpuboost.benchmarks.harness.worker", json.dumps(job)]
    try:
        with tempfile.TemporaryDirectory() as scratch:  # some libraries write into the current folder
            done = subprocess.run(
                command, env=environment, cwd=scratch, capture_output=True, text=True, timeout=timeout, check=False
            )
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {timeout:.0f} s"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(MARK):
            return dict(json.loads(line.removeprefix(MARK)))
    return {"error": (done.stderr.strip() or f"exit status {done.returncode}")[-2000:]}
