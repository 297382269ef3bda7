"""Run Python code in a process of its own, with its kernels built for a sanitizer.

The address and thread sanitizers must be loaded before everything else, hence the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.compiler import why_not

_TESTS = Path(__file__).resolve().parents[1]
_LIBRARIES = {"address": "libasan.so", "thread": "libtsan.so"}
_FOUND = 66  # what the process exits with when the thread sanitizer has something to say


def _library(sanitize: str) -> str:
    """The run-time library to load first. Skips the test where the compiler has none."""
    name = _LIBRARIES[sanitize]
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=False)
    path = found.stdout.strip()
    if not Path(path).is_absolute():
        pytest.skip(f"this compiler comes without {name}")
    return path


def sanitized(sanitize: str, code: str, *arguments: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run ``code`` so that ``emulated_runtime()`` builds kernels for a sanitizer; ``arguments`` are its sys.argv[1:].

    The return code is not 0 if something was found; ``stdout`` holds the report too, with the kernel's file and line.

    Args:
        sanitize: "address", which is undefined behaviour too, or "thread".
        code: Python; tests/ is on its path.
    """
    if reason := why_not():
        pytest.skip(reason)
    path = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "GPUBOOST_SANITIZE": sanitize,
        "ASAN_OPTIONS": "detect_leaks=0",
        "TSAN_OPTIONS": f"exitcode={_FOUND}",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if sanitize in _LIBRARIES:
        environment["LD_PRELOAD"] = _library(sanitize)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
