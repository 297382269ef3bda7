"""A machine that does not play along: no room on the disk, no home, forks, threads, pickles."""

from __future__ import annotations

import errno
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.hostile.campaign import Tally
from support.hostile.corpus import Corpus, rows

import gpuboost as gb
from gpuboost.cli import main

X, Y = rows(400, 5)
FEW: dict[str, Any] = {"n_estimators": 40, "max_depth": 4, "random_state": 0, "n_jobs": 2}
TOO_SMALL = 16_384  # bytes; each file below is larger


@pytest.fixture(scope="module")
def model() -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**FEW).fit(X, Y)


@contextmanager
def no_room() -> Iterator[None]:
    """No file may grow beyond TOO_SMALL bytes, as where a disk is full.

    Python 3.11 does not see that the bytecode of a module was written in part, and every later process would fail to
    import it: none is written.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (TOO_SMALL, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = bytecode


@contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of 64 kB, most of it taken; the test is skipped where none can be mounted."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
        )
        if mounted.returncode:
            pytest.skip("no file system can be mounted here")
        try:
            (Path(folder) / "other").write_bytes(b"x" * 48_000)
            yield Path(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


def _writers(model: Any, place: Path, source: Path) -> dict[str, Callable[[], object]]:
    """Everything that writes a file of more than TOO_SMALL bytes to ``place``."""
    checkpoint = gb.callbacks.Checkpoint(place, every=40)
    log = gb.Log(tuple(_line(i) for i in range(400)))
    return {
        "save_model": lambda: model.save_model(place),
        "Dataset.save": lambda: gb.Dataset(X, Y).save(place),
        "Checkpoint": lambda: gb.GradientBoostingRegressor(**FEW, callbacks=[checkpoint]).fit(X, Y),
        "Log.save": lambda: log.save(place),
        "export.to_xgboost": lambda: gb.export.to_xgboost(model, place),
        "export.to_onnx": lambda: gb.export.to_onnx(model, place),
        "predict --output": lambda: _command(
            ["predict", str(source / "rows.csv"), "--model", str(source / "m.json"), "--output", str(place)]
        ),
        "train --model": lambda: _command(
            ["train", str(source / "rows.csv"), "--target", "x4", "--quiet", "--model", str(place)]
        ),
    }


def _line(i: int) -> Any:
    from gpuboost.types import Built

    return Built(i, 0, i, i, 1.0, "applied", 0.0, 1.0, 2.0)


def _command(arguments: list[str]) -> None:
    """A command that cannot write says so in one line and ends with status 2."""
    with warnings.catch_warnings(action="ignore"):  # the model was fitted without names
        status = main(arguments)
    if status == 2:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), arguments[-1])


def _sources(folder: Path, model: Any) -> Path:
    header = ",".join(f"x{f}" for f in range(5))
    table = np.nan_to_num(np.tile(X, (3, 1)))
    np.savetxt(folder / "rows.csv", table, delimiter=",", header=header, comments="", fmt="%.17g")
    model.save_model(folder / "m.json")
    return folder


@pytest.mark.parametrize("how", ["limit", "disk"])
def test_no_room_leaves_the_old_file_and_no_other(how: str, model: Any, tally: Tally, tmp_path: Path) -> None:
    source = _sources(tmp_path, model)
    if how == "disk":
        with small_disk() as folder:
            _full(model, folder, source, no_room_here=False, tally=tally)
    else:
        folder = tmp_path / "out"
        folder.mkdir()
        _full(model, folder, source, no_room_here=True, tally=tally)


def _full(model: Any, folder: Path, source: Path, *, no_room_here: bool, tally: Tally) -> None:
    place = folder / "file.json"
    for write in _writers(model, source / "warm.json", source).values():
        write()  # every kernel is compiled and in the cache before there is no room for it
    for name, write in _writers(model, place, source).items():
        place.write_bytes(b"old content")
        before = {path.name for path in folder.iterdir()}
        tally.add("writers")
        try:
            if no_room_here:
                with no_room():
                    write()
            else:
                write()
            tally.fault(name, "no error")
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EFBIG) or str(place) not in str(error):
                tally.fault(name, repr(error))
        if place.read_bytes() != b"old content" or {path.name for path in folder.iterdir()} != before:
            tally.fault(name, f"{len(place.read_bytes())} bytes, {sorted(path.name for path in folder.iterdir())}")
    tally.check()


def test_a_fit_in_a_fork_of_a_process_that_has_fitted(model: Any, tally: Tally) -> None:
    """In a process of its own, since later versions of Python warn of forks beside threads."""
    code = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, gpuboost as gb
x = np.random.default_rng(0).normal(size=(20_000, 5)); y = x[:, 0]
few = dict(n_estimators=5, n_jobs=2, random_state=0)
expected = gb.GradientBoostingRegressor(**few).fit(x, y).predict(x)
statuses = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(gb.GradientBoostingRegressor(**few).fit(x, y).predict(x), expected) else 1)
    statuses.append(os.waitpid(child, 0)[1])
sys.exit(int(any(statuses)))
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=300, capture_output=True, text=True, check=False)
    tally.add("forks", 2)
    assert done.returncode == 0, done.stderr


def test_fits_and_predictions_in_several_threads(model: Any, tally: Tally) -> None:
    expected, answers = model.predict(X), []

    def work() -> None:
        for _ in range(5):
            fresh = gb.GradientBoostingRegressor(**FEW).fit(X, Y)
            answers.append(np.array_equal(fresh.predict(X), expected) and np.array_equal(model.predict(X), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    tally.add("fits in threads", len(answers))
    assert answers == [True] * 20


def test_predictions_while_another_thread_fits_again(model: Any) -> None:
    """Each answer is that of the old model or of the new one, never of a mixture."""
    shared = gb.GradientBoostingRegressor(**FEW).fit(X, Y)
    targets = (Y, -Y)
    allowed = [gb.GradientBoostingRegressor(**FEW).fit(X, y).predict(X).tobytes() for y in targets]
    over = threading.Event()

    def refit() -> None:
        for turn in range(12):
            shared.fit(X, targets[turn % 2])
        over.set()

    thread = threading.Thread(target=refit)
    thread.start()
    strange = 0
    while not over.is_set():
        try:
            strange += shared.predict(X).tobytes() not in allowed
        except ValueError:  # not fitted, for a moment
            continue
    thread.join()
    assert strange == 0


def test_pickles_of_every_kind(corpus: Corpus, tally: Tally, tmp_path: Path) -> None:
    place = tmp_path / "model.json"
    for text in corpus.models.values():
        place.write_text(text)
        model = gb.load_model(place)
        tally.add("pickles")
        for protocol in (2, pickle.HIGHEST_PROTOCOL):
            again = pickle.loads(pickle.dumps(model, protocol))
            assert np.array_equal(again.predict(corpus.x), model.predict(corpus.x))
            assert again.get_params().keys() == model.get_params().keys()


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """A folder that nobody can write to, the root user neither; without the right to mount, a file in its place."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    if not mounted:
        folder.rmdir()
        folder.touch()
    try:
        with pytest.raises(OSError, match=r"Read-only file system|Not a directory"):
            (folder / "file").touch()
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.thorough
@pytest.mark.parametrize("home", ["/proc", "missing", "read-only"])
def test_a_home_that_cannot_be_written_to(home: str, model: Any, tmp_path: Path) -> None:
    """Nothing can be cached, and predictions are the same."""
    model.save_model(tmp_path / "model.json")
    np.save(tmp_path / "expected.npy", model.predict(X))
    np.save(tmp_path / "x.npy", X)
    if home == "read-only":
        with read_only(tmp_path / "home") as folder:
            _predicts(tmp_path, str(folder))
    else:
        _predicts(tmp_path, home if home == "/proc" else str(tmp_path / "no" / "such"))


def _predicts(folder: Path, home: str) -> None:
    """Predictions of a process with that home, and no other place for its kernels, are right."""
    dropped = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "GPUBOOST_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in dropped} | {"HOME": home}
    code = f"""
import sys, numpy as np, gpuboost as gb
folder = {str(folder)!r}
found = gb.load_model(folder + "/model.json").predict(np.load(folder + "/x.npy"))
sys.exit(0 if np.array_equal(found, np.load(folder + "/expected.npy")) else 1)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, timeout=500, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
