"""Small trees that several threads grow in one call: the same bytes if one is late, from any Python thread."""

from __future__ import annotations

import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import gpuboost as gb
from gpuboost.backends import devices
from gpuboost.backends.cpu.trees import small_trees as cpu_small_trees
from gpuboost.kernels.growth import small_trees as kernel
from gpuboost.kernels.growth import team
from gpuboost.training import job

random = np.random.default_rng(5)
X = random.normal(size=(600, 9))
Y: NDArray[np.float64] = X[:, 0] * X[:, 1] + random.normal(size=600)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small data are worth three threads, and there are processors for them."""
    monkeypatch.setattr(cpu_small_trees, "WORK_PER_THREAD", 1)
    monkeypatch.setattr(cpu_small_trees, "LEAST_TOGETHER", 1)
    monkeypatch.setattr(devices, "processors", lambda: 3)
    monkeypatch.setattr(job, "processors", lambda: 3)


def model_bytes(folder: Path, n_jobs: int, **settings: int) -> bytes:
    file = folder / f"{n_jobs}-{threading.get_ident()}.json"
    fitted = gb.GradientBoostingRegressor(n_estimators=6, n_jobs=n_jobs, device="cpu", **settings).fit(X, Y)
    fitted.save_model(file)
    return file.read_bytes()


def test_a_tree_takes_one_call_of_each_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    steps: list[int] = []
    compiled = kernel.grow
    monkeypatch.setattr(kernel, "grow", lambda step, *rest: steps.append(step) or compiled(step, *rest))
    expected = model_bytes(tmp_path, 1)
    assert steps == [kernel.BUILD] * 6
    steps.clear()
    assert model_bytes(tmp_path, 3) == expected
    assert steps.count(kernel.BUILD) == 6
    assert set(steps) <= {kernel.BUILD, kernel.HELP}


def test_fits_of_several_python_threads_do_not_meet(tmp_path: Path) -> None:
    expected = {depth: model_bytes(tmp_path, 1, max_depth=depth) for depth in (3, 8)}
    with ThreadPoolExecutor(4) as threads:
        fits = [(depth, threads.submit(model_bytes, tmp_path, 3, max_depth=depth)) for depth in (3, 8) * 4]
        assert all(fit.result() == expected[depth] for depth, fit in fits)


def test_one_that_comes_after_the_end_finds_nothing_to_do() -> None:
    words = np.zeros(team.WORDS, np.int64)
    team.offer(words, 2, 1)
    assert [team.take(words), team.take(words)] == [0, 1]
    assert team.take(words) < 0
    team.end(words)
    assert team.wait_for_chunk(words) == -1


def test_one_that_nobody_leads_gives_up() -> None:
    assert team.wait_for_chunk(np.zeros(team.WORDS, np.int64)) == -1


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_a_fit(tmp_path: Path) -> None:
    rounds: list[int] = []

    def interrupt(record: object) -> None:
        rounds.append(1)
        if len(rounds) == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        gb.GradientBoostingRegressor(n_estimators=500, n_jobs=3, device="cpu", callbacks=[interrupt]).fit(X, Y)
    assert len(rounds) == 3
    assert model_bytes(tmp_path, 3) == model_bytes(tmp_path, 1)
