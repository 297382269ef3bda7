"""Scratch memory of growing trees."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from gpuboost.backends.host.workspace import Workspace

MB = 2**20


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_lines_that_are_not_written_to_take_no_memory() -> None:
    workspace = Workspace()
    before = resident()
    lines = workspace.small_pages("lines", (1024, 64 * 1024), np.uint8)
    lines[:, :8192] = 1  # 8 MB of 64
    assert resident() - before < 16 * MB


def test_small_pages_are_reused_as_other_arrays_are() -> None:
    workspace = Workspace()
    first = workspace.small_pages("lines", (30, 10), np.int64)
    first[:] = np.arange(300).reshape(30, 10)
    assert workspace.room("lines") == 300
    second = workspace.small_pages("lines", (20, 15), np.int64)
    assert second.ravel().tolist() == list(range(300))
    assert second.flags.writeable
    assert second.flags.c_contiguous
    assert workspace.small_pages("lines", (31, 10), np.int64).shape == (31, 10)
    assert workspace.room("lines") == 310
