"""Kernels compiled on another machine: their wheel, and a first process that compiles nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gpuboost.backends.cpu.compilation import kernel_wheel
from gpuboost.cli import main
from gpuboost.errors import InputError
from gpuboost.kernels.disk_cache import folders, prebuilt

COUNT = """
import json
from numpy import uint64
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event): pass
event.register("numba:compile", Listener())
from gpuboost.backends.devices import kernel_cache
from gpuboost.kernels.common.philox import philox
drawn = [int(word) for word in philox(*map(uint64, range(6)))]
print(json.dumps([kernel_cache(), drawn, "philox" in compiled]))
"""
REQUIRES = list(prebuilt.PROCESSORS["x86-64-v2"])


def counted(cache: Path, **environment: str) -> tuple[Path, list[int], bool]:
    """The folder of kernels of a process that draws a number, the number, and whether it compiled for that."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    variables |= {"GPUBOOST_CACHE_DIR": str(cache)} | environment
    done = subprocess.run([sys.executable, "-c", COUNT], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    folder, drawn, compiled = json.loads(done.stdout)
    return Path(folder), drawn, compiled


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """A wheel of one kernel, compiled for another processor than this one, and what the kernel gave."""
    folder = tmp_path_factory.mktemp("wheel")
    other = {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": ""}
    cache, drawn, compiled = counted(folder / "cache", **other)
    assert compiled
    (cache / folders.noted_name("small-numeric")).touch()
    asked = [sys.executable, "-c", f"from {kernel_wheel.__name__} import print_target; print_target()"]
    target = subprocess.run(asked, env=os.environ | other, capture_output=True, text=True, check=True).stdout
    return kernel_wheel._write(folder, cache, {"target": json.loads(target), "requires": REQUIRES}), drawn


@pytest.mark.slow
@pytest.mark.skipif(not prebuilt._has(REQUIRES), reason="the processor is not an x86-64-v2")
def test_first_process_of_a_machine_compiles_nothing(wheel: tuple[Path, list[int]], tmp_path: Path) -> None:
    archive, drawn = wheel
    zipfile.ZipFile(archive).extractall(tmp_path / "site")
    folder, first, compiled = counted(tmp_path / "cache", PYTHONPATH=str(tmp_path / "site"))
    assert (first, compiled) == (drawn, False)
    assert (folder / folders.noted_name("small-numeric")).exists()
    assert {path.name for path in folder.parent.iterdir()} == {folder.name}  # nothing half made is left
    _, second, compiled = counted(tmp_path / "cache")  # the copy serves without the package
    assert (second, compiled) == (drawn, False)


@pytest.mark.slow  # its two processes are those of the test above
def test_the_wheel_is_one_that_installers_accept(wheel: tuple[Path, list[int]]) -> None:
    archive = zipfile.ZipFile(wheel[0])
    names = archive.namelist()
    record = next(name for name in names if name.endswith("/RECORD"))
    lines = [line.rsplit(",", 2) for line in archive.read(record).decode().splitlines()]
    assert [name for name, _, _ in lines] == names
    for name, digest, size in lines:
        if name != record:
            content = archive.read(name)
            whole = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert (digest, size) == (f"sha256={whole}", str(len(content)))
    version = wheel[0].name.split("-")[1]
    assert f"Requires-Dist: gpuboosting=={version}" in archive.read(record.replace("RECORD", "METADATA")).decode()
    inside = {name.split("/")[2] for name in names if name.endswith(".nbc")}
    assert "common" in inside
    assert not any("_" in folder for folder in inside)
    assert f"{prebuilt.PACKAGE}/{folders.folder_name()}/small-numeric" in names  # of no environment


def test_kernels_of_other_processors_and_systems_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / prebuilt.PACKAGE / "kernels-0"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    triple = prebuilt.llvm.get_process_triple()

    def found(triple: str, requires: list[str]) -> Path | None:
        (folder / prebuilt.ABOUT).write_text(json.dumps({"target": [triple, "x", ""], "requires": requires}))
        return prebuilt.installed("kernels-0")

    assert found(triple, []) == folder
    assert found("riscv64-unknown-linux-gnu", []) is None
    assert found(triple, ["a feature of tomorrow"]) is None
    assert prebuilt.installed("kernels-1") is None  # of another version


def test_kernels_that_another_process_left_meanwhile_stay(tmp_path: Path) -> None:
    filled, folder = tmp_path / "filled", tmp_path / "kernels-0"
    for place, text in ((filled, "theirs"), (folder, "own")):
        place.mkdir()
        (place / "kernel.nbi").write_text(text)
    folders._fill(folder, filled)
    assert (folder / "kernel.nbi").read_text() == "own"
    assert {path.name for path in tmp_path.iterdir()} == {"filled", "kernels-0"}


def test_unknown_processors_are_refused_before_anything_is_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["warmup", "--wheel", str(tmp_path / "out"), "--cpu", "pentium"]) == 2
    assert "--cpu: must be one of host, x86-64-v2" in capsys.readouterr().err
    assert main(["warmup", "--cpu", "generic"]) == 2
    assert "without --wheel DIR" in capsys.readouterr().err
    monkeypatch.setitem(prebuilt.PROCESSORS, "future", ("a feature of tomorrow",))
    with pytest.raises(InputError, match="has no a feature of tomorrow"):
        kernel_wheel.build(tmp_path / "out", [], "future")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_unknown_kind_is_refused_by_the_compiling_process(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", "nonsense", "--wheel", str(tmp_path)]) == 2
    said = capfd.readouterr().err
    assert "kinds: unknown: " in said
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())
