"""The first fit of a machine: another process compiles half of the kernels, and leaves them on disk for this one.

numba compiles one kernel at a time, under a lock and the GIL; so a second thread would be no help. While this process
compiles what reads the data and finds their gradients, the other one begins with what grows trees. The longest kernel,
``small_trees.grow``, holds the code of most of the others: it comes last, once both have compiled their share of them.

Whatever is not on disk by the time it is asked for, this process compiles itself: but for the time it takes, nothing
depends on the other one.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numpy as np

from gpuboost.backends.cpu.histograms import NARROW_ROWS
from gpuboost.backends.cpu.warm_up_tree import Rehearsal
from gpuboost.kernels.common.disk_cache import is_noted, note, usable_folder
from gpuboost.kernels.gradients import pointwise

PATIENCE = 60.0  # seconds that either waits for the other; both are done in a fifth of that
GO_ON, STOP = b"+", b"-"  # what this process tells the other one
_RUN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from gpuboost.backends.cpu.warm_up import compile_share; compile_share(*sys.argv[2:])"
)


class Helper:
    """The other process, if there is one: ``start`` it when the data are seen, ``meet`` it before the first tree."""

    def __init__(self) -> None:
        self._lock, self._asked = threading.Lock(), set[tuple[str, str]]()
        self._process: subprocess.Popen[bytes] | None = None
        self._to_meet: tuple[str, str] | None = None

    def start(self, n_rows: int, threads: int, *, categorical: bool) -> None:
        """Have kernels compiled, if they are not on disk. Who asked for one thread gets no second process.

        categorical: whether some of the features are.
        """
        wanted = "large" if n_rows > NARROW_ROWS else "small", "categorical" if categorical else "numeric"
        if threads == 1 or wanted in self._asked:
            return
        with self._lock:
            if self._process is not None:
                if self._process.poll() is None:
                    return
                _tell(self._process, STOP)
            self._asked.add(wanted)
            self._process = _started(wanted)
            self._to_meet = None if self._process is None else wanted

    def meet(self, *, usual: bool) -> None:
        """Compile this process's share, if the tree is of the usual kind, and tell the other one to go on; or to stop.

        Also to stop if this is interrupted.
        """
        with self._lock:
            process, wanted, self._to_meet = self._process, self._to_meet, None
            if process is None or wanted is None or process.poll() is not None:
                return  # another thread has waited for it, or it has ended
            rehearsal, word = _rehearsal(*wanted), STOP
            with _no_collection():
                try:
                    if usual:
                        rehearsal.search()
                        word = GO_ON
                finally:
                    _tell(process, word)
                rehearsal.settle()

    def wait(self) -> None:
        """Until it is done."""
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            _tell(process, STOP)  # if it has been told nothing yet
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


HELPER = Helper()
"""That of this process."""


@cache
def load_numba() -> None:
    """Have numba load what it needs for its first kernel, which every fit needs."""
    with _no_collection():
        pointwise.add_leaves(np.empty(0), np.empty(0), np.empty(0, np.int32), 0, 0)


@contextmanager
def _no_collection() -> Iterator[None]:
    """numba makes a thousand classes as it is loaded, and more as it compiles, which live as long as it does.

    Looking for garbage among them, time and again, takes a third of loading, and a twentieth of compiling.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def compile_share(*wanted: str) -> None:
    """Main function of the helper process, which is told when the parent has compiled its share.

    It marks its work as done whatever it is told, so that a user who never grows such trees gets one helper process
    only, not one in every new process.
    """
    rehearsal, told = _rehearsal(*wanted), list[bytes]()
    with _no_collection():
        rehearsal.pack()
        rehearsal.sum()
        rehearsal.split()
        listener = threading.Thread(target=lambda: told.append(os.read(0, 1)), daemon=True)
        listener.start()
        listener.join(PATIENCE)
        if told == [GO_ON]:  # else there is no tree to grow, or one of another kind
            rehearsal.levels()
    note("-".join(wanted))


def _rehearsal(size: str, kind: str) -> Rehearsal:
    return Rehearsal(large=size == "large", categorical=kind == "categorical")


def _tell(process: subprocess.Popen[bytes], word: bytes) -> None:
    """Only the first word counts."""
    assert process.stdin is not None
    if not process.stdin.closed:
        with suppress(OSError):  # it has ended already
            process.stdin.write(word)
            process.stdin.close()


def _started(wanted: tuple[str, str]) -> subprocess.Popen[bytes] | None:
    """None if there is nothing to do, or no way to: a frozen program, or one that Python is only a part of."""
    folder, python = usable_folder(), sys.executable or ""
    known = Path(python).stem.lower().startswith("python") and not getattr(sys, "frozen", False)
    if not (folder and known) or is_noted("-".join(wanted)):
        return None
    try:
        return subprocess.Popen(
            [python, "-P", "-c", _RUN, json.dumps([str(path) for path in sys.path]), *wanted],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"NUMBA_CACHE_DIR": folder},
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, ValueError):  # not allowed here
        return None
