"""The CPU quota of this process's control groups, as containers and systemd set it (Linux).

A container may see all processors of its machine and be given the time of two. Threads beyond the quota use it up early
in each period, and then all of them stand still until the next one.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from math import ceil, inf
from pathlib import Path

NONE = "max", "-1"  # instead of a number, in the second and in the first version of control groups


@cache
def quota_processors(root: Path = Path("/")) -> int | None:
    """Number of processors whose time the quota is, rounded up; None without a quota. root: of the file system."""
    least = inf
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        parts = [part for part in path.strip().split("/") if part not in ("", "..")]
        for depth in range(len(parts) + 1):  # a group's parents have quotas, too; a container sees its own as the root
            for mount in ("", "unified") if not controllers else ("cpu", controllers):
                least = min(least, _quota(root.joinpath("sys/fs/cgroup", mount, *parts[:depth])))
    return None if least == inf else ceil(least)


def _quota(group: Path) -> float:
    """Processors of one control group; infinite without a quota or without the files."""
    numbers = " ".join(_lines(group / "cpu.max")).split()
    if len(numbers) != 2:
        numbers = [*_lines(group / "cpu.cfs_quota_us"), *_lines(group / "cpu.cfs_period_us")]
    if len(numbers) != 2 or numbers[0] in NONE:
        return inf
    with suppress(ValueError, ZeroDivisionError):
        quota = int(numbers[0]) / int(numbers[1])
        return quota if quota > 0 else inf
    return inf


def _lines(file: Path) -> list[str]:
    with suppress(OSError, UnicodeDecodeError):
        return file.read_text().splitlines()
    return []
