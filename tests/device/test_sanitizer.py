"""compute-sanitizer finds nothing: no access out of bounds, no race in shared memory, no barrier that some miss."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.cuda

CASES = Path(__file__).with_name("small_cases.py")
FOUND = 9  # exit status


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
def test_nothing_is_found(real_gpu: Any, tool: str) -> None:
    program = shutil.which("compute-sanitizer")
    if program is None:
        pytest.skip("compute-sanitizer is not on PATH")
    command = [program, "--tool", tool, "--error-exitcode", str(FOUND), sys.executable, str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]


@pytest.mark.filterwarnings("ignore:variance_control")
def test_the_cases_run(gpu: Any) -> None:
    from .small_cases import main

    main()
