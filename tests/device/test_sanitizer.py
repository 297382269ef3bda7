"""compute-sanitizer finds nothing: no access out of bounds, no race in shared memory, no barrier that some miss."""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from .small_cases import PARTS

pytestmark = pytest.mark.cuda

CASES = Path(__file__).with_name("small_cases.py")
FOUND = 9  # exit status
AT_ONCE = 4  # processes


@pytest.mark.parametrize("tool", ["memcheck", "synccheck"])
def test_nothing_is_found(real_gpu: Any, tool: str) -> None:
    assert watched(tool) == ""


def test_no_race_is_found(real_gpu: Any) -> None:
    """Each part has a process of its own: in one for all of them, the tool itself does not come to an end."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda part: watched("racecheck", part), range(PARTS)))
    assert found == [""] * PARTS


def watched(tool: str, *parts: int) -> str:
    """What a tool has to say of those parts of the cases, or of all; "" if it is content."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        pytest.skip("compute-sanitizer is not on PATH")
    command = [program, "--tool", tool, "--error-exitcode", str(FOUND), sys.executable, str(CASES), *map(str, parts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-4_000:]


@pytest.mark.filterwarnings("ignore:variance_control")
def test_the_cases_run(gpu: Any) -> None:
    from .small_cases import main

    main()
