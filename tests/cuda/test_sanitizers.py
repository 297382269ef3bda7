"""The sanitizers find what no order of the threads shows: each planted bug, and nothing in its mended twin."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulator.sanitizer import sanitized

RUN = """
import sys
from pathlib import Path
import numpy as np
from emulator import emulated_runtime

planted, kernel, fixed = sys.argv[1:4]
text = ("#define FIXED\\n" if fixed == "fixed" else "") + '#line 1 "planted.cu"\\n' + Path(planted).read_text()
runtime = emulated_runtime(chained=kernel not in ("block_race", "last_block"))
launch = runtime.kernel(text, kernel)
i32, zeros = np.int32, runtime.zeros
out = zeros(64, i32) if kernel.startswith("beyond") else zeros(256, i32)
few = runtime.upload(np.arange(1024, dtype=i32))
launches = {
    "missing_barrier": (1, 256, (out,)),
    "warp_synchronous": (1, 32, (out,)),
    "missing_second_barrier": (1, 256, (few, out, i32(4))),
    "lost_update": (1, 256, (out,)),
    "block_race": (4, 32, (out,)),
    "last_block": (4, 32, (few, zeros(4, i32), zeros(1, np.uint32), out)),
    "cluster_race": (2, 32, (out,)),
    "beyond_static": (1, 64, (out, i32(1))),
    "beyond_dynamic": (1, 64, (out, i32(1))),
    "beyond_local": (1, 64, (out, i32(5))),
    "beyond_write": (1, 64, (out, i32(1))),
    "beyond_read": (1, 64, (zeros(64, i32), out, i32(1))),
    "wide_shift": (1, 1, (out, i32(33))),
    "overflow": (1, 1, (out, i32(1))),
    "misaligned": (1, 1, (zeros(8, np.float32), zeros(8, np.float32))),
}
grid, block, arguments = launches[kernel]
launch((grid,), (block,), arguments, shared_mem=256 if kernel == "beyond_dynamic" else 0)
runtime.wait()
"""


def report(sanitize: str, kernel: str, fixed: str = "") -> tuple[int, str]:
    result = sanitized(sanitize, RUN, str(Path(__file__).parent / "planted.cu"), kernel, fixed)
    return result.returncode, result.stdout


def line_of(kernel: str, text: str) -> int:
    """The line of planted.cu on which ``text`` stands inside a kernel."""
    lines = (Path(__file__).parent / "planted.cu").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if f" {kernel}(" in line)
    return next(i for i in range(start, len(lines)) if text in lines[i]) + 1


RACES = [
    ("missing_barrier", "s[255 - threadIdx.x]"),
    ("warp_synchronous", "s[i] = s[i] + s[i + d]"),
    ("missing_second_barrier", "s[threadIdx.x] = x["),
    ("lost_update", "s += 1"),
    ("block_race", "out[0] = out[0] + 1"),
    ("last_block", "sum += parts[b]"),
    ("cluster_race", "out[1 - blockIdx.x]"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "culprit"), RACES)
def test_races(kernel, culprit):
    status, text = report("thread", kernel)
    assert status == 66
    assert "data race" in text
    assert f"planted.cu:{line_of(kernel, culprit)}" in text


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [kernel for kernel, _ in RACES])
def test_no_race_where_there_is_none(kernel):
    status, text = report("thread", kernel, "fixed")
    assert (status, text) == (0, "")


@pytest.mark.slow
def test_a_shared_array_of_one_entry_too_few():
    status, text = report("address", "beyond_static")
    assert status != 0
    assert "index 64 out of bounds for type 'int [64]'" in text
    assert f"planted.cu:{line_of('beyond_static', 's[threadIdx.x + k] = 1')}" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        ("beyond_dynamic", "heap-buffer-overflow"),
        ("beyond_write", "SEGV"),
        ("beyond_read", "SEGV"),
    ],
)
def test_addresses(kernel, what):
    status, text = report("address", kernel)
    assert status != 0
    assert what in text
    assert "planted.cu:" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        ("wide_shift", "shift exponent 33"),
        ("overflow", "signed integer overflow"),
        ("misaligned", "misaligned address"),
        ("beyond_local", "out of bounds"),
    ],
)
def test_undefined_behaviour(kernel, what):
    status, text = report("address", kernel)
    assert status != 0
    assert what in text
    assert "planted.cu:" in text


@pytest.mark.slow
def test_nothing_where_there_is_nothing():
    status, text = report("address", "missing_second_barrier", "fixed")
    assert (status, text) == (0, "")
