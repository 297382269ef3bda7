"""Memory checking of kernels: those of the CPU under numba's bounds check, those of CUDA under the sanitizers."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from emulator.sanitizer import sanitized
from support.hostile import every_cuda_kernel
from support.hostile.campaign import Tally

from gpuboost.kernels.disk_cache import folders

TESTS = Path(__file__).resolve().parents[1]
KERNELS = TESTS.parent / "kernels"

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None or not sys.platform.startswith("linux"), reason="needs gcc and Linux"
)


def _folder() -> Path:
    """A cache of checked kernels, kept from run to run: to compile them takes minutes."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gpuboost" / f"checked-{folders._digest()}"


def run_cases(*which: str, **environment: str) -> dict[str, list[str]]:
    """The cases of CPU kernels, in a process of their own: their names, and which kernels they called.

    which: "few" for some combinations of what is crossed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "support.hostile.every_kernel", *which],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": str(TESTS), **environment},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, list[str]] = json.loads(done.stdout)
    assert not found["failed"], "\n".join(found["failed"])
    assert not found["missing"], "\n".join(found["missing"])
    return found


@pytest.mark.slow
def test_the_cases_call_every_cpu_kernel() -> None:
    """Unchecked and few, which takes seconds: a kernel that no case calls is seen before the long test below."""
    assert run_cases("few")["reached"]


@pytest.mark.thorough
def test_every_cpu_kernel_keeps_within_its_arrays(tally: Tally) -> None:
    """Indices of arrays; plain addresses are checked by the test below."""
    found = run_cases(NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(_folder()))
    tally.add("cases", len(found["cases"]))
    tally.add("kernels reached", len(found["reached"]))
    tally.show("cases", found["cases"])
    tally.show("CPU kernels reached", found["reached"])


@pytest.mark.thorough
def test_the_bounds_check_sees_a_planted_fault() -> None:
    code = """
import numpy as np
from gpuboost.kernels.common.jit import for_this_process
@for_this_process
def beyond(x, i):
    return x[i]
try:
    beyond(np.zeros(3), 3)
except IndexError:
    raise SystemExit(0)
raise SystemExit(1)
"""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def with_addresses() -> set[str]:
    """The CPU kernels that compute with addresses of arrays, as numba's bounds check cannot see."""
    names = set()
    for path in KERNELS.glob("*/*.py"):
        functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
        for node in (node for function in functions for node in ast.walk(function)):
            if isinstance(node, ast.Attribute) and node.attr == "ctypes":
                inside = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
                names.add(f"{path.parent.name}/{path.stem}.{inside[-1].name}")  # the innermost comes last
    return names


def _guarded(*arguments: str, timeout: float = 1800) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-m", "support.hostile.guarded_memory", *arguments]
    return subprocess.run(
        command, cwd=TESTS, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )


@needs_gcc
@pytest.mark.thorough
@pytest.mark.parametrize("side", ["after", "before"])
def test_kernels_with_plain_addresses_keep_within_their_arrays(side: str, tally: Tally) -> None:
    """A page that traps touches every array of NumPy; the kernels are those in use, not twins of them."""
    done = _guarded(side)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    addressed = with_addresses()
    tally.add("cases", len(found["cases"]))
    tally.add("kernels with plain addresses", len(addressed))
    tally.add("arrays guarded", int(done.stderr.split()[-3]))
    tally.show("CPU kernels with plain addresses", addressed)
    assert not found["failed"], "\n".join(found["failed"])
    assert addressed
    assert addressed <= set(found["reached"]), sorted(addressed - set(found["reached"]))


@needs_gcc
@pytest.mark.thorough
@pytest.mark.parametrize("side", ["after", "before"])
def test_the_guard_sees_a_planted_fault(side: str) -> None:
    done = _guarded(side, "planted", timeout=300)
    assert done.stdout == "within\n"
    assert done.returncode == -signal.SIGSEGV


def cuda_kernels() -> set[str]:
    """The names of all __global__ functions."""
    texts = (path.read_text() for path in KERNELS.glob("*/*.cu*"))
    pattern = r"__global__[^(;{]*?(?:__\w+__\s*\([^)]*\)\s*)*(\w+)\s*\("
    return {name for text in texts for name in re.findall(pattern, text) if not name.startswith("__")}


@pytest.mark.slow
def test_the_work_launches_every_cuda_kernel() -> None:
    """Without a sanitizer, as above."""
    names = every_cuda_kernel.launched()
    assert cuda_kernels() == names, sorted(cuda_kernels() ^ names)


LAUNCHES = (
    "import json, sys; from support.hostile.every_cuda_kernel import launched; "
    "print('launched:' + json.dumps(sorted(launched(*map(int, sys.argv[1:])))))"
)


def launched_under(sanitizer: str, processes: int | None, tally: Tally) -> set[str]:
    """Names of the kernels that the work launches, divided among processes; None: one for each part."""
    names: set[str] = set()
    parts = len(every_cuda_kernel.parts())
    for first in range(processes or parts):
        some = range(first, parts, processes or parts)
        result = sanitized(sanitizer, LAUNCHES, *map(str, some), timeout=1800)
        assert result.returncode == 0, f"parts {[*some]}: {result.stdout[-3000:]}"
        names |= set(json.loads(result.stdout.rpartition("launched:")[2]))
    tally.add("parts of the work", parts)
    tally.add("kernels launched", len(names))
    tally.show("CUDA kernels launched", names)
    return names


@pytest.mark.thorough
def test_every_cuda_kernel_keeps_within_its_memory(tally: Tally) -> None:
    """In four processes: under a sanitizer a module keeps the stacks of its threads, and Linux limits the mappings."""
    names = launched_under("address", 4, tally)
    assert cuda_kernels() == names, sorted(cuda_kernels() ^ names)


@pytest.mark.thorough
def test_no_cuda_kernel_has_a_race(tally: Tally) -> None:
    """In a process for each part: the thread sanitizer's memory does not reach for all of it."""
    names = launched_under("thread", None, tally)
    assert cuda_kernels() == names, sorted(cuda_kernels() ^ names)
