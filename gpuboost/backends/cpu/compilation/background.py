"""Compilation of ``large_trees.grow`` in the background, by a process of its own.

It takes as long as all other kernels of a fit together, and no tree needs it: until it is on disk, the pool of threads
divides the steps of a tree, and the bytes are the same. So no fit waits for it.
"""

from __future__ import annotations

import subprocess
import threading

from gpuboost.backends.cpu.compilation.warm_up import start_process
from gpuboost.backends.cpu.compilation.warm_up_tree import PLAIN, DummyTree
from gpuboost.backends.cpu.large_trees import BOUNDED, OBLIVIOUS
from gpuboost.backends.host.collection import no_collection
from gpuboost.kernels.common.disk_cache import is_noted, note
from gpuboost.types import Limits

LIMITS = {OBLIVIOUS: Limits(8, growth="oblivious"), BOUNDED: Limits(8, max_delta_step=1.0)}
"""Limits of a tree of each ``kernel_kind``, by the beginning of its name"""

_RUN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from gpuboost.backends.cpu.compilation.background import compile_kernel; compile_kernel(sys.argv[2])"
)


class Background:
    """For each ``kernel_kind`` of trees: whether their kernel is on disk, and the process for it."""

    def __init__(self) -> None:
        self._lock, self._asked, self._ready = threading.Lock(), dict[str, int](), set[str]()
        self._processes = dict[str, "subprocess.Popen[bytes] | None"]()

    def is_ready(self, kind: str) -> bool:
        """True if the kernel is on disk. The second tree that asks starts its compilation, unless it has begun.

        The first one is still waiting for its other kernels, so the processors are busy.
        """
        if kind in self._ready:
            return True
        with self._lock:
            self._asked[kind] = times = self._asked.get(kind, 0) + 1
            if times == 1:
                self._look(kind)
            elif times == 2:
                self._processes[kind] = _started(kind)
            elif (process := self._processes[kind]) is not None and process.poll() is not None:
                self._processes[kind] = None
                self._look(kind)
        return kind in self._ready

    def wait(self) -> None:
        """Compile what has been asked for, and wait until it is done."""
        with self._lock:
            for kind in self._asked.keys() - self._ready:
                process = self._processes.get(kind) or _started(kind)
                self._processes[kind], self._asked[kind] = None, 2
                if process is not None:
                    process.wait()
                self._look(kind)

    def _look(self, kind: str) -> None:
        if is_noted(_note(kind)):
            self._ready.add(kind)


BACKGROUND = Background()
"""The compilations of this process"""


def compile_kernel(kind: str) -> None:
    """Main function of the process."""
    with no_collection():
        limits = next((limits for start, limits in LIMITS.items() if kind.startswith(start)), PLAIN)
        DummyTree(large=True, categorical=kind.endswith("categorical"), limits=limits).together()
    note(_note(kind))


def _started(kind: str) -> subprocess.Popen[bytes] | None:
    process = start_process(_note(kind), _RUN, kind)
    if process is not None and process.stdin is not None:
        process.stdin.close()  # it is told nothing
    return process


def _note(kind: str) -> str:
    return f"team-{kind}"
