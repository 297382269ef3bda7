"""Compiled kernels of other versions are removed when they have not been used for long, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

from gpuboost import losses
from gpuboost.backends.cpu import formulas
from gpuboost.kernels.common import jit
from gpuboost.kernels.disk_cache import folders, functions, machine_code
from gpuboost.kernels.gradients import pointwise

DAY = 86_400


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that those of all versions lie in."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.delenv("GPUBOOST_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "gpuboost").mkdir()
    return tmp_path / "gpuboost"


def aged(folder: Path, days: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.nbi").write_bytes(b"x")
    then = time.time() - days * DAY
    os.utime(folder, (then, then))
    return folder


def test_a_new_version_removes_what_was_unused_for_long(home: Path) -> None:
    old, recent = aged(home / f"kernels-{'a' * 16}", 31), aged(home / f"kernels-{'b' * 16}", 29)
    other, data = aged(home / "benchmarks", 400), aged(home / "kernels-of-mine", 400)
    own = Path(folders.usable_folder())
    assert sorted(home.iterdir()) == sorted([own, recent, other, data])
    assert not old.exists()
    assert (recent / "kernel.nbi").exists()


def test_what_a_killed_process_left_is_removed_too(home: Path) -> None:
    left = aged(home / f"kernels-{'a' * 16}-removed", 31)
    folders.usable_folder()
    assert not left.exists()


def test_a_link_is_left_alone(home: Path, tmp_path: Path) -> None:
    kept = aged(tmp_path / "elsewhere", 400)
    link = home / f"kernels-{'c' * 16}"
    link.symlink_to(kept, target_is_directory=True)
    folders.usable_folder()
    assert link.is_symlink()
    assert (kept / "kernel.nbi").exists()


def test_the_first_use_in_a_day_is_noted_and_nothing_is_removed_then(home: Path) -> None:
    own, old = aged(folders.cache_folders()[0], 45), aged(home / f"kernels-{'d' * 16}", 45)
    assert folders.usable_folder() == str(own)
    assert time.time() - own.stat().st_mtime < 60
    assert (own / "kernel.nbi").exists()
    assert old.exists()


def test_a_folder_that_somebody_named_is_nobody_elses(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = aged(home / f"kernels-{'e' * 16}", 400)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(home / f"kernels-{'f' * 16}"))
    assert Path(folders.usable_folder()).is_dir()
    assert old.exists()


def test_no_folder_where_nothing_can_be_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(aged(home / "file", 0) / "kernel.nbi")
    monkeypatch.setenv("XDG_CACHE_HOME", file)
    monkeypatch.setattr(tempfile, "tempdir", file)
    assert folders.usable_folder() == ""
    with pytest.warns(UserWarning, match="compiles its kernels in every process.*GPUBOOST_CACHE_DIR"):
        folders.warn_of_replacement("")


def test_who_runs_on_after_its_folder_was_removed_compiles_anew(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(folders.usable_folder())
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(own))
    twice = numba.njit(cache=True)(_twice)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert twice(3) == 6
    aged(own, 31)
    folders.remove_unused(home / "none")
    assert list(home.iterdir()) == []
    assert twice(1.5) == 3.0  # of another type: looked for on the disk, compiled, and kept there
    assert any(own.rglob("*.nbc"))


def _twice(x: float) -> float:
    return 2 * x


def test_machine_code_is_saved_by_one_at_a_time(tmp_path: Path) -> None:
    saving, most = [], []

    def save(key: str, data: bytes) -> None:
        saving.append(key)
        most.append(len(saving))
        time.sleep(0.02)
        saving.remove(key)

    compiled = [SimpleNamespace(_cache=SimpleNamespace(_cache_file=None)) for _ in range(4)]
    for one in compiled:
        one._cache._cache_file = SimpleNamespace(save=save, _cache_path=str(tmp_path))
        functions.save_one_at_a_time(one)
    threads = [Thread(target=one._cache._cache_file.save, args=(str(i), b"")) for i, one in enumerate(compiled)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4


def test_a_folder_that_cannot_be_written_to_is_left_to_numba(tmp_path: Path) -> None:
    saved: list[str] = []
    compiled = SimpleNamespace(
        _cache=SimpleNamespace(
            _cache_file=SimpleNamespace(save=lambda key, data: saved.append(key), _cache_path=str(tmp_path / "none"))
        )
    )
    functions.save_one_at_a_time(compiled)
    compiled._cache._cache_file.save("key", b"")
    assert saved == ["key"]


def test_kernels_of_the_library_are_saved_so() -> None:
    from gpuboost.kernels.common.philox import philox  # an entry point of Python, so it is cached

    assert philox._cache._cache_file.save.__qualname__ == "save_one_at_a_time.<locals>.locked"


def test_a_kernel_that_closes_over_kernels_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call makes new kernels, as another process does; one that closes over others is not taken for them."""
    monkeypatch.setattr(jit, "_FOLDER", str(tmp_path))

    def outer(by: float) -> Any:
        @jit.kernel
        def inner(x: float) -> float:
            return x * by

        @jit.kernel
        def twice(x: float) -> float:
            return inner(inner(x))

        return twice

    for by, found in ((3.0, 0), (3.0, 1), (5.0, 0), (5.0, 1)):
        kernel = outer(by)
        assert kernel(2.0) == 2.0 * by * by
        assert sum(kernel.stats.cache_hits.values()) == found


def kernels_of(loss: Any) -> set[str]:
    """Names of the loss's kernel and of those that it closes over, which machine code is linked by."""
    found, waiting = set(), [formulas.lambdas(loss) if loss.task == "ranking" else formulas.gradients(loss)]
    while waiting:
        function = getattr(waiting.pop(), "py_func", None)
        if function is not None and function.__closure__:
            found.add(function.__qualname__)
            waiting += [cell.cell_contents for cell in function.__closure__]
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (losses.LambdaMART(), losses.PairwiseLogistic()),
        (losses.LambdaMART(), losses.LambdaMART(metric="map")),
        (losses.Poisson(), losses.Gamma()),
        (losses.Quantile([0.1, 0.9]), losses.Quantile([0.2, 0.8])),
    ],
    ids=lambda loss: loss.name,
)
def test_kernels_that_functions_make_have_names_of_their_own(one: Any, other: Any) -> None:
    """Those that contain a formula differ by name: of one name, code of another process stood for both."""
    assert kernels_of(one)
    assert max(kernels_of(one) - kernels_of(other), default="") != ""
    if one.n_outputs > 1:
        assert one.row_derivatives.__qualname__ != other.row_derivatives.__qualname__


DERIVATIVES = """
import sys
import numpy as np
from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.reference.backend import Reference
from gpuboost.types import TrainingSet

rng = np.random.default_rng(0)
data = TrainingSet(None, None, rng.integers(0, 2, 300).astype(float), query_start=np.arange(0, 301, 30))
for text in sys.argv[1:]:
    loss = eval(text, {name: getattr(losses, name) for name in losses.__all__})
    scores = rng.normal(size=(1, 300))
    found, expected = (machine.gradients(loss, scores, data, None) for machine in (Cpu(1), Reference()))
    assert found.g.tobytes() == expected.g.tobytes() and found.h.tobytes() == expected.h.tobytes(), text
"""


@pytest.mark.slow
@pytest.mark.long
def test_code_of_several_processes_is_not_mixed(tmp_path: Path) -> None:
    """Each loss is compiled by a process of its own; then one process has all of them from the disk."""
    each = ["LambdaMART()", "LambdaMART(metric='map')"]
    environment = os.environ | {"GPUBOOST_CACHE_DIR": str(tmp_path)}
    for texts in ([each[0]], [each[1]], each):
        command = [sys.executable, "-c", DERIVATIVES, *texts]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr


def test_a_kernel_on_disk_is_read_without_the_declarations_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = np.zeros(1), np.array([2.0]), np.zeros(1, np.int32), 0, 1
    pointwise.add_leaves(*arguments)
    again = jit.kernel(pointwise.add_leaves.py_func)  # as in a new process
    monkeypatch.setattr(type(again.targetctx), "refresh", lambda _: pytest.fail("the compiler is not needed"))
    again(*arguments)
    assert arguments[0] == 4.0
    assert sum(again.stats.cache_hits.values()) == 1


def test_code_from_disk_is_parsed_when_another_kernel_is_to_contain_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it raises the errors, with the constants, that it was compiled with."""
    monkeypatch.setattr(jit, "_FOLDER", str(tmp_path))

    @jit.kernel
    def root(x: float) -> float:
        if x < 0.0:
            raise ValueError("x is negative", 17)
        room = np.empty(2)
        room[:] = x
        return np.sqrt(room.sum() / 2.0)

    assert root(4.0) == 2.0
    again = jit.kernel(root.py_func)  # as in a new process
    assert again(9.0) == 3.0
    code = again.overloads[again.signatures[0]].library
    assert isinstance(code, machine_code.MachineCode)
    assert code._bitcode is not None
    with pytest.raises(ValueError, match="negative") as raised:
        again(-1.0)
    assert raised.value.args == ("x is negative", 17)
    fourth = numba.njit(lambda x: again(again(x)))
    assert fourth(16.0) == 2.0
    assert code._bitcode is None
    unparsed = jit.kernel(root.py_func)
    assert unparsed(1.0) == 1.0
    code = unparsed.overloads[unparsed.signatures[0]].library
    assert code.get_pointer_to_function("no such function") == 0
    assert code._bitcode is None  # looked for in its LLVM code


@pytest.mark.slow
def test_a_fit_by_kernels_on_disk_imports_nothing_that_compiles() -> None:
    """The first process may have to compile, the second does not."""
    for at_last in (False, True):
        done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, timeout=300, check=True)
        assert not at_last or done.stdout.split() == ["False", "False"]


FIT = """
import sys
import numpy as np
import gpuboost as gb
from gpuboost.backends.cpu.compilation.first_fit import FIRST_FITS
FIRST_FITS.end()
x = np.random.default_rng(0).normal(size=(200, 3))
gb.GradientBoostingRegressor(n_estimators=3, n_jobs=1, device="cpu").fit(x, x[:, 0]).predict(x)
print(*(name in sys.modules for name in ("numba.np.arrayobj", "numba.cpython.unicode")))
"""


@pytest.mark.parametrize(
    ("where", "name", "other"),
    [
        (numba, "__version__", "0.1"),
        (sys, "implementation", SimpleNamespace(cache_tag="cpython-399")),
        (folders, "__file__", "/another/environment/gpuboost/kernels/disk_cache/folders.py"),
    ],
)
def test_what_another_environment_noted_is_not_there(
    where: Any, name: str, other: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shares the folder, but numba finds none of its kernels: a fit that counted on them would wait for seconds."""
    digest = folders._digest()
    monkeypatch.setattr(folders, "_digest", lambda: digest)
    folders.note("small-numeric")
    assert folders.is_noted("small-numeric")
    monkeypatch.setattr(where, name, other)
    folders._environment.cache_clear()
    try:
        assert not folders.is_noted("small-numeric")
    finally:
        folders._environment.cache_clear()
