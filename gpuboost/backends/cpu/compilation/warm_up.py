"""Warm-up of the first fit: a helper process compiles half of the kernels and leaves them in the disk cache.

numba compiles one kernel at a time, under a lock and the GIL, so a second thread would not help. While this process
compiles binning and gradients, the helper begins with tree growth. The longest kernel, ``small_trees.grow``, contains
the code of most of the others: it comes last, once both processes have compiled their share of them.

A kernel that is not in the cache when it is needed is compiled by this process: only the time depends on the helper.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from gpuboost._imports.collection import no_collection
from gpuboost.backends.cpu.compilation.warm_up_tree import DummyTree
from gpuboost.backends.cpu.trees.histograms import PACKED_ROWS
from gpuboost.kernels.disk_cache.folders import is_noted, note, usable_folder
from gpuboost.kernels.gradients import pointwise

TIMEOUT = 60.0  # seconds that each process waits for the other; both are done in a fifth of that
GO_ON, STOP = b"+", b"-"  # messages to the helper process
_GIVE_WAY = "import os; hasattr(os, 'nice') and os.nice(10); "
_RUN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from gpuboost.backends.cpu.compilation.warm_up import compile_share; compile_share(*sys.argv[2:])"
)


class Helper:
    """The helper process, if any: ``start`` it with the first data, ``join`` it before the first tree."""

    def __init__(self) -> None:
        self._lock, self._asked = threading.Lock(), set[tuple[str, str]]()
        self._process: subprocess.Popen[bytes] | None = None
        self._to_join: tuple[str, str] | None = None

    def start(self, n_rows: int, threads: int, *, categorical: bool) -> None:
        """Start the compilation of kernels that are not in the disk cache. No helper is started for one thread.

        categorical: some features are categorical.
        """
        wanted = "large" if n_rows > PACKED_ROWS else "small", "categorical" if categorical else "numeric"
        if threads == 1 or wanted in self._asked:
            return
        with self._lock:
            if self._process is not None:
                if self._process.poll() is None:
                    return
                _tell(self._process, STOP)
            self._asked.add(wanted)
            self._process = _started(wanted)
            self._to_join = None if self._process is None else wanted

    def join(self, *, usual: bool) -> None:
        """Compile this process's share, if the tree is of the usual kind, and let the helper go on, or stop it.

        An interrupt also stops the helper.
        """
        with self._lock:
            process, wanted, self._to_join = self._process, self._to_join, None
            if process is None or wanted is None or process.poll() is not None:
                return  # another thread has waited for it, or it has ended
            dummy, word = _dummy_tree(*wanted), STOP
            with no_collection():
                try:
                    if usual:
                        dummy.search()
                        word = GO_ON
                finally:
                    _tell(process, word)
                dummy.settle()

    def wait(self) -> None:
        """Wait until the helper has ended."""
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            _tell(process, STOP)  # only the first message counts
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


HELPER = Helper()
"""The helper of this process."""


@cache
def load_numba() -> None:
    """Load the parts of numba that its first kernel needs, which every fit has."""
    with no_collection():
        pointwise.add_leaves(np.empty(0), np.empty(0), np.empty(0, np.int32), 0, 0)


def compile_share(*wanted: str) -> None:
    """Main function of the helper process, which waits until the parent has compiled its share.

    It marks its work as done whatever the answer is, so that a user who never grows such trees gets one helper process
    only, not one in every new process.
    """
    dummy, told = _dummy_tree(*wanted), list[bytes]()
    with no_collection():
        dummy.pack()
        dummy.sum()
        dummy.split()
        listener = threading.Thread(target=lambda: told.append(os.read(0, 1)), daemon=True)
        listener.start()
        listener.join(TIMEOUT)
        if told == [GO_ON]:  # else there is no tree to grow, or one of another kind
            dummy.levels()
    note("-".join(wanted))


def _dummy_tree(size: str, kind: str) -> DummyTree:
    return DummyTree(large=size == "large", categorical=kind == "categorical")


def _tell(process: subprocess.Popen[bytes], word: bytes) -> None:
    """Send a message; only the first one counts."""
    assert process.stdin is not None
    if not process.stdin.closed:
        with suppress(OSError):  # it has ended already
            process.stdin.write(word)
            process.stdin.close()


def _started(wanted: tuple[str, str]) -> subprocess.Popen[bytes] | None:
    """The helper process; None if all is compiled, or if no process can be started."""
    return start_process("-".join(wanted), _RUN, *wanted)


def start_process(what: str, program: str, *arguments: str, background: bool = False) -> subprocess.Popen[bytes] | None:
    """A process that compiles; None if ``what`` is noted, or if Python cannot be started (frozen or embedded).

    program: text; it is given ``sys.path`` as JSON, and the arguments.
    background: at a lower priority, since this process goes on meanwhile.
    """
    folder, python = usable_folder(), sys.executable or ""
    plain_python = Path(python).stem.lower().startswith("python") and not getattr(sys, "frozen", False)
    if not (folder and plain_python) or is_noted(what):
        return None
    flags: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    if background:
        program = _GIVE_WAY + program
        flags |= getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)  # of Windows, which has no os.nice
    try:
        return subprocess.Popen(
            [python, "-P", "-c", program, json.dumps([str(path) for path in sys.path]), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"NUMBA_CACHE_DIR": folder},
            creationflags=flags,
        )
    except (OSError, ValueError):  # not allowed here
        return None
