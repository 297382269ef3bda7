"""A Ray of the tests' own, and the processes of its actors."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def ray_here(**more: Any) -> Iterator[Any]:
    """A Ray with four CPUs that this process is connected to; fits use it and leave it alone."""
    import ray

    options = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    try:
        yield ray.init(**{"num_cpus": 4, "object_store_memory": 200 * 2**20, **options, **more})
    finally:
        ray.shutdown()


def actors(name: str) -> list[int]:
    """Processes of actors of a class, on a Ray that this process has started. Ray names them so."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if (folder / "cmdline").read_bytes().startswith(f"ray::{name}".encode()) and _is_ours(int(folder.name)):
                    found.append(int(folder.name))
            except (OSError, IndexError):  # it has ended meanwhile
                continue
    return sorted(found)


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def all_gone(name: str) -> bool:
    """Whether they are, within some seconds: Ray ends a process when it gets to it."""
    until = time.perf_counter() + 20.0
    while actors(name) and time.perf_counter() < until:
        time.sleep(0.05)
    return not actors(name)
