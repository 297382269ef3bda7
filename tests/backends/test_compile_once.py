"""A kernel that several processes need at once is compiled by one of them."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuboost.kernels.disk_cache import compile_once as module
from gpuboost.kernels.disk_cache.compile_once import compile_once


class Kernel:
    """As much of numba's dispatcher as there is to it: look on the disk, else compile and save."""

    def __init__(self, folder: Path, disk: dict[str, str]) -> None:
        self.compiled: list[str] = []
        self._disk = disk
        self._cache = SimpleNamespace(
            load_overload=lambda signature, _: disk.get(signature),
            _cache_file=SimpleNamespace(_index_path=str(folder / "kernel.nbi")),
        )

    def compile(self, signature: str) -> str:
        found = self._cache.load_overload(signature, None)
        if found is None:
            self.compiled.append(signature)
            found = self._disk[signature] = "code"
        return found


def held_by_another(folder: Path) -> Any:
    file = (folder / "kernel.lock").open("w")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def test_who_waited_reads_what_the_other_saved(tmp_path: Path) -> None:
    disk: dict[str, str] = {}
    kernel = Kernel(tmp_path, disk)
    compile_once(kernel)
    found = []
    with held_by_another(tmp_path):
        thread = threading.Thread(target=lambda: found.append(kernel.compile("f8")))
        thread.start()
        thread.join(0.05)
        assert not found
        disk["f8"] = "of the other"
    thread.join()
    assert found == ["of the other"]
    assert not kernel.compiled


def test_the_lock_is_free_afterwards_whatever_happened(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, {})
    compile_once(kernel)
    kernel.compile("f8")
    kernel._disk = None  # type: ignore[assignment]  # saving fails
    with pytest.raises(TypeError):
        kernel.compile("f4")
    with (tmp_path / "kernel.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert kernel.compiled == ["f8", "f4"]


def test_code_on_disk_is_read_without_waiting(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, {"f8": "there"})
    compile_once(kernel)
    with held_by_another(tmp_path):
        assert kernel.compile("f8") == "there"


def test_no_process_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    kernel = Kernel(tmp_path, {})
    compile_once(kernel)
    with held_by_another(tmp_path):
        assert kernel.compile("f8") == "code"


def test_a_folder_that_is_gone_is_no_reason_to_fail(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path / "gone", {})
    compile_once(kernel)
    assert kernel.compile("f8") == "code"


CALL_KERNELS = """
import sys, numba.core.event as event
import numpy as np
from gpuboost.kernels.common import fixed_point
from gpuboost.kernels.gradients import pointwise

started = []
class Listener(event.Listener):
    def on_start(self, of):
        function = of.data["dispatcher"].py_func
        kept = function.__module__.startswith("gpuboost.kernels.") and not function.__name__.startswith("_")
        if kept and hasattr(of.data["dispatcher"]._cache, "_cache_file"):
            started.append(f"{function.__module__}.{function.__qualname__}{of.data['args']}".replace(" ", ""))
    def on_end(self, of): pass

event.register("numba:compile", Listener())
one, rows, each = np.ones(40, np.float32), np.zeros(40, np.int32), np.empty(0, np.int32)
fixed_point.scale_and_pack(one, one, each, 40.0, np.empty(40, np.int64))
fixed_point.leaf_sums(one, one, each, 1.0, 1.0, rows, 0, 40, np.zeros((1, 2), np.int64))
fixed_point.count_leaves(rows, 0, 40, np.zeros(1, np.int64))
fixed_point.extents(one, each, 0, 1, np.zeros((1, 3)))
pointwise.add_leaves(np.zeros(40), np.ones(1), rows, 0, 40)
pointwise.sum_in_order(np.ones(40))
print("called", *started)
"""


@pytest.mark.slow
@pytest.mark.long
def test_processes_that_start_together_share_the_work(tmp_path: Path) -> None:
    environment = os.environ | {"GPUBOOST_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CALL_KERNELS]
    processes = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate()[0].split() for process in processes]
    assert all(words[:1] == ["called"] for words in said)
    compiled = [kernel for words in said for kernel in words[1:]]
    assert len(compiled) > 5
    assert len(set(compiled)) == len(compiled)
