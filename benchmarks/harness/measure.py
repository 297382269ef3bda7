"""Seconds, CPU seconds and peak memory of the phases of one run; what other processes took meanwhile."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_STAT = Path("/proc/stat")


def resident_mb() -> float:
    """Resident memory of this process now; 0 where nothing can tell."""
    if _STATUS.exists():
        return _status("VmRSS")
    with suppress(ImportError):
        import psutil

        return float(psutil.Process().memory_info().rss / 2**20)
    return 0.0


def _status(field: str) -> float:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def busy_seconds() -> float:
    """CPU seconds that the whole machine has worked, time stolen by a hypervisor included; 0 where nothing tells."""
    if not _STAT.exists():
        return 0.0
    user, nice, system, _idle, _wait, irq, soft, stolen = map(int, _STAT.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + soft + stolen) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """CPU seconds of this process and of those it has started, such as the one that compiles in a first fit."""
    ended, tick = os.times(), os.sysconf("SC_CLK_TCK") if _STAT.exists() else 1
    seconds = time.process_time() + ended.children_user + ended.children_system
    for children in Path("/proc/self/task").glob("*/children"):  # each is listed with the thread that started it
        with suppress(OSError):  # a thread or a process has come to an end meanwhile
            for child in children.read_text().split():
                fields = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()
                seconds += (int(fields[11]) + int(fields[12])) / tick
    return seconds


class PeakMemory:
    """The highest resident memory while open: the kernel's own mark where it can be reset, else samples."""

    def __enter__(self) -> PeakMemory:
        self.mb = resident_mb()
        self._marked = self._reset_mark()
        if not self._marked:
            self._done = threading.Event()
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._marked:
            self.mb = _status("VmHWM")
            return
        self._done.set()
        self._thread.join()
        self.mb = max(self.mb, resident_mb())

    def _reset_mark(self) -> bool:
        try:
            _CLEAR.write_text("5")
        except OSError:
            return False
        return _status("VmHWM") <= resident_mb() * 1.02 + 4  # some sandboxes take the write and do nothing

    def _sample(self) -> None:
        while not self._done.wait(0.005):
            self.mb = max(self.mb, resident_mb())


class Clock:
    """Collects the phases of a run: name -> seconds, cpu_seconds, other_cpu_seconds, peak_mb (above ``ready``)."""

    def __init__(self) -> None:
        self.phases: dict[str, dict[str, Any]] = {}
        self.base_mb = resident_mb()

    def ready(self) -> None:
        """Data and library are loaded: memory is counted from here."""
        self.base_mb = resident_mb()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        with PeakMemory() as peak:
            busy, cpu, start = busy_seconds(), own_seconds(), time.perf_counter()
            yield
            seconds, cpu = time.perf_counter() - start, own_seconds() - cpu
            others = max(0.0, busy_seconds() - busy - cpu)
        self.phases[name] = {
            "seconds": seconds,
            "cpu_seconds": round(cpu, 4),
            "other_cpu_seconds": round(others, 3),
            "peak_mb": round(peak.mb - self.base_mb, 1),
        }

    def repeated(self, name: str, call: Callable[[], Any], times: int = 3) -> Any:
        """The median of several calls as one phase; returns what the last call returned."""
        taken, result = [], None
        with self.phase(name):
            for _ in range(times):
                start = time.perf_counter()
                result = call()
                taken.append(time.perf_counter() - start)
        self.phases[name].update(seconds=statistics.median(taken), each=taken)
        return result

    def disturbed(self) -> list[str]:
        """Phases during which others took more than 4 % of a core: their seconds say little."""
        wall = {name: sum(p.get("each", [p["seconds"]])) for name, p in self.phases.items()}
        return [name for name, p in self.phases.items() if p["other_cpu_seconds"] > max(0.04 * wall[name], 0.05)]
