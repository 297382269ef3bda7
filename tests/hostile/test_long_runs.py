"""Many rounds and many fits in one process: memory, file handles and threads stay what they were."""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from support.hostile.campaign import Tally, many

import gpuboost as gb

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0] + np.sin(3 * X[:, 1])

BYTES_PER_TREE = 4_000
"""More than a tree of depth 2 takes in memory, as arrays of Python objects."""


def resident() -> int:
    """Bytes of memory that this process has."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def _threads(expected: int) -> int:
    """The number of threads, once those of the last fit have had time to end."""
    until = time.monotonic() + 20.0
    while threading.active_count() > expected and time.monotonic() < until:
        time.sleep(0.01)
    return threading.active_count()


pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")


def _fits(number: int, tally: Tally, folder: Path) -> None:
    """Fits of several kinds, one after the other, each saved and loaded."""
    kinds = (
        {},
        {"growth": "leafwise", "max_leaves": 5},
        {"sampling": 0.5},
        {"execution": gb.Asynchronous(2)},
        {"execution": gb.DataParallel(2)},
        {"base_learner": gb.learners.Spline()},
        {"langevin": gb.Langevin()},
        {"early_stopping_rounds": 2, "validation_fraction": 0.3},
    )

    def fit(turn: int) -> None:
        model = gb.GradientBoostingRegressor(n_estimators=3, max_depth=2, n_jobs=2, **kinds[turn % len(kinds)])
        model.fit(X, Y)
        model.save_model(folder / "model.json")
        gb.load_model(folder / "model.json").predict(X)

    with warnings.catch_warnings(action="ignore"):
        for turn in range(4 * len(kinds)):
            fit(turn)
        gc.collect()
        before = resident(), handles(), threading.active_count()
        for turn in range(number):
            fit(turn)
            if turn % 100 == 99:
                gc.collect()  # beside the many objects of a test session it runs too seldom to bound what waits for it
        gc.collect()
        after = resident(), handles(), _threads(before[2])
    tally.add("fits", number)
    tally.add("kB more", max(0, after[0] - before[0]) // 1024)
    assert after[1] <= before[1], "file handles"
    assert after[2] <= before[2], "threads"
    assert after[0] - before[0] < 5_000_000 + 4_000 * number, "memory"


def test_fits_leave_nothing_behind(tally: Tally, tmp_path: Path) -> None:
    _fits(24, tally, tmp_path)


@pytest.mark.thorough
def test_a_thousand_fits_leave_nothing_behind(tally: Tally, tmp_path: Path) -> None:
    _fits(many(1_000), tally, tmp_path)


@pytest.mark.thorough
def test_memory_grows_by_the_trees_and_no_more(tally: Tally) -> None:
    """100,000 rounds at full scale; the model is the only thing that grows."""
    rounds = many(100_000)
    sizes: list[int] = []

    def watch(record: gb.callbacks.Round) -> bool:
        if record.round % (rounds // 10) == rounds // 10 - 1:
            sizes.append(resident())
        return False

    handles_before, threads_before = handles(), threading.active_count()
    model = gb.GradientBoostingRegressor(
        n_estimators=rounds, max_depth=1, learning_rate=1e-3, callbacks=[watch], n_jobs=1
    )
    model.fit(X, Y)
    tally.add("rounds", model.n_iter_)
    growth = np.diff(sizes) / (rounds / 10)
    tally.add("bytes a round", int(np.median(growth)))
    assert model.n_iter_ == rounds
    assert np.median(growth) < BYTES_PER_TREE, growth
    assert handles() <= handles_before
    assert threading.active_count() <= threads_before + 1
    assert np.isfinite(model.predict(X)).all()
