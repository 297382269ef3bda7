"""Compiled kernels where the package and the home are read-only, as in containers and on clusters."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gpuboost
from gpuboost import kernels
from gpuboost.kernels.disk_cache import folders

LOAD = """
import warnings
from pathlib import Path
warnings.simplefilter("error")
from numpy import uint64
import gpuboost
from gpuboost.backends.devices import kernel_cache
import gpuboost.kernels.histograms.histogram
from gpuboost.kernels.common.philox import philox
assert Path(gpuboost.__file__).parts[-3] == "site"
philox(*map(uint64, range(6)))
print(kernel_cache())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package into whose folders nobody can write compiled code: a file is where its folder would be."""
    site = tmp_path_factory.mktemp("read_only") / "site"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(str(gpuboost.__file__)).parent, site / "gpuboost", ignore=ignored)
    shutil.copytree(next(iter(kernels.__path__)), site / "gpuboost" / "kernels", ignore=ignored, dirs_exist_ok=True)
    for folder in (site / "gpuboost" / "kernels").iterdir():
        if folder.is_dir():
            (folder / "__pycache__").touch()
    return site


def folder_used(site: Path, code: str = LOAD, **environment: str) -> str:
    """The folder of compiled kernels in a process without a home."""
    environment = (
        os.environ | {"HOME": os.devnull, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    )
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "PYTHONWARNINGS"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_temporary_folder_where_no_other_can_be_written(site: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code = LOAD.replace('warnings.simplefilter("error")', "warnings.showwarning = lambda message, *_: print(message)")
    said, used = folder_used(site, code, GPUBOOST_CACHE_DIR=str(tmp_path / "file"), TMPDIR=str(tmp_path)).splitlines()
    folder = Path(used)
    assert said.startswith("GPUBOOST_CACHE_DIR: nothing can be written in")
    assert folder.parent.parent == tmp_path
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert any(folder.rglob("*.nbc"))


@pytest.mark.slow
def test_kernels_in_a_read_only_folder_are_copied(site: Path, tmp_path: Path) -> None:
    filled = Path(folder_used(site, GPUBOOST_CACHE_DIR=str(tmp_path / "image")))
    kept = {path.name for path in filled.rglob("*.nbc")}
    code = f"""
from gpuboost.kernels.disk_cache import folders
can_write = folders._can_write  # the root user can write everywhere
folders._can_write = lambda folder: str(folder) != {str(filled)!r} and can_write(folder)
print(folders.usable_folder())
"""
    copied = Path(folder_used(site, code, GPUBOOST_CACHE_DIR=str(tmp_path / "image"), TMPDIR=str(tmp_path)))
    assert copied.parent.parent == tmp_path
    assert {path.name for path in copied.rglob("*.nbc")} == kept != set()


@pytest.mark.slow
def test_one_warning_where_nothing_can_be_written(site: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code = """
import tempfile, warnings
from numpy import uint64
tempfile.tempdir = "/dev/null"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from gpuboost.kernels.common.philox import philox
    import gpuboost.kernels.histograms.histogram
    philox(*map(uint64, range(6)))
print(len(caught), caught[0].message)
"""
    said = folder_used(site, code, GPUBOOST_CACHE_DIR=str(tmp_path / "file"))
    assert said.startswith("1 gpuboost compiles its kernels in every process")
    assert "GPUBOOST_CACHE_DIR" in said


def test_nothing_is_noted_where_no_folder_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folders, "usable_folder", lambda: "")
    folders.note("small-numeric")
    assert not any(tmp_path.iterdir())
    (tmp_path / folders.noted_name("small-numeric")).touch()
    assert not folders.is_noted("small-numeric")
