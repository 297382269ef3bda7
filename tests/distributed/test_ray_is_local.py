"""A Ray that a fit starts listens on the loopback address only: it runs whatever pickle it is sent."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gpuboost as gb

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(sys.platform != "linux", reason="sockets are read from /proc"),
]

LISTENING = "0A"


def descendants() -> Iterator[Path]:
    """Folders in /proc of this process's children, their children, and so on."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has ended meanwhile
                continue
    ours = {os.getpid()}
    for _ in range(6):
        ours |= {process for process, parent in parents.items() if parent in ours}
    return (Path("/proc") / str(process) for process in ours)


def sockets() -> set[str]:
    """Inodes of the sockets of this process and its descendants."""
    links = set()
    for folder in descendants():
        try:
            links |= {os.readlink(entry) for entry in (folder / "fd").iterdir()}
        except OSError:  # it has ended meanwhile
            continue
    return {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}


def addresses() -> list[str]:
    """Hexadecimal addresses at which this process and its descendants listen."""
    ours, listening = sockets(), []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            local, state, inode = (line.split()[i] for i in (1, 3, 9))
            if state == LISTENING and inode in ours:
                listening.append(local.partition(":")[0])
    return listening


@pytest.mark.slow
def test_a_ray_of_the_fits_own_is_not_reached_from_elsewhere() -> None:
    import ray

    if ray.is_initialized():
        pytest.skip("another Ray is running in this process")
    x = np.random.default_rng(0).normal(size=(200, 3))
    seen: list[str] = []
    model = gb.GradientBoostingRegressor(
        n_estimators=2,
        execution=gb.Asynchronous(1, engine=gb.Ray(object_store_memory=100 * 2**20), allow_unproven=True),
        callbacks=[lambda _: seen.extend(addresses())],
    )
    model.fit(x, x[:, 0])
    assert len(seen) >= 4, "Ray's own servers"
    assert {address[-8:] for address in seen} == {"0100007F"}  # 127.0.0.1, also as an IPv6 address
