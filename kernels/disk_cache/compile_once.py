"""Each kernel compiled by one process, where several need it at once."""

import os
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PATIENCE = 60.0  # seconds; a process that waited as long compiles by itself, since the other one may be stopped
_PAUSE = 0.01  # seconds between two looks


def compile_once(compiled):
    """Have a compiled function that is not on disk compiled under a lock that all processes of the folder share.

    Processes that start together, such as the workers of a grid search, need the same kernels at the same time. One
    compiles, and the others wait and read what it saved. Kernels call each other without circles, so no two processes
    wait for each other. Where files cannot be locked, each process compiles.
    """
    cache, plain = compiled._cache, compiled.compile
    if fcntl is None or getattr(cache, "_cache_file", None) is None:
        return
    load, lock_file = cache.load_overload, Path(cache._cache_file._index_path).with_suffix(".lock")
    compiling = []  # what to release at the end of the compilation that goes on

    def load_or_wait(signature, target):
        overload = load(signature, target)
        if overload is None and len(compiling) == 1:
            compiling[0].enter_context(_locked(lock_file))
            overload = load(signature, target)
        return overload

    def compile_alone(signature):
        with global_compiler_lock, ExitStack() as held:
            compiling.append(held)
            held.callback(compiling.pop)
            return plain(signature)

    cache.load_overload, compiled.compile = load_or_wait, compile_alone


@contextmanager
def _locked(path):
    """Hold a lock on a file, or go on without it if another process holds it for too long."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # the folder is gone, or read-only
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            _wait(file)
        yield
    finally:
        with suppress(OSError):  # said, not left to close: a child that was forked meanwhile has the file open
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def _wait(file):
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return None
        time.sleep(_PAUSE)
