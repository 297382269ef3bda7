"""Description of this machine, and the load of other processes on it."""

from __future__ import annotations

import platform
import re
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gpuboost.benchmarks.harness.measure import busy_seconds

LIBRARIES = ("gpuboosting", "numba", "numpy", "scipy", "scikit-learn", "xgboost-cpu", "xgboost", "lightgbm", "catboost")


def describe() -> dict[str, Any]:
    """Facts to judge a figure by: processor, cores this process may use, memory, versions."""
    return {
        "cpu": _processor(),
        "cores": cores(),
        "memory_gb": round(_memory_gb(), 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: release for name in LIBRARIES if (release := _version(name))},
    }


def slug(machine: dict[str, Any]) -> str:
    """A folder name for results: ``cpu-<processor>-<cores>-cores``."""
    name = re.sub(r"\(R\)|\(TM\)|CPU|@.*", "", machine["cpu"])
    return f"cpu-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}-{machine['cores']}-cores"


def cores() -> int:
    """Cores this process may use, which in a container is fewer than the machine has."""
    from joblib import cpu_count

    return int(cpu_count())


def others_busy(seconds: float = 1.0) -> float:
    """Cores kept busy by everything but this process, over a short sample."""
    busy, cpu, start = busy_seconds(), time.process_time(), time.perf_counter()
    time.sleep(seconds)
    own_cpu = time.process_time() - cpu
    return max(0.0, busy_seconds() - busy - own_cpu) / (time.perf_counter() - start)


def wait_until_quiet(most_seconds: float, level: float = 0.08) -> float:
    """Sleep until others leave the machine alone, at most so long; returns the seconds waited."""
    start = time.perf_counter()
    while time.perf_counter() - start < most_seconds and others_busy() > level:
        time.sleep(1.0)
    return time.perf_counter() - start


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float:
    info = Path("/proc/meminfo")
    return int(info.read_text().split()[1]) / 2**20 if info.exists() else 0.0
