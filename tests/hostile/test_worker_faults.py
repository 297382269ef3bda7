"""Faults of workers that no other folder of tests has; docs/reliability.md lists all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.sharded import shard as shard_module
from gpuboost.execution import threads

RNG = np.random.default_rng(4)
X = RNG.normal(size=(500, 6))
Y = X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.1 * RNG.normal(size=500)
FEW: dict[str, Any] = {"n_estimators": 12, "max_depth": 3, "random_state": 7, "n_jobs": 1}


class Twice:
    """Reports in which every message stands twice."""

    def __init__(self, reports: Any) -> None:
        self.reports = reports

    def put(self, message: Any) -> None:
        self.reports.put(message)
        self.reports.put(message)


def _losses(**params: Any) -> tuple[gb.GradientBoostingRegressor, list[float]]:
    """A fitted model, and its training loss after each round."""
    losses: list[float] = []

    def watch(record: Any) -> bool:
        losses.append(record.training_loss())
        return False

    return gb.GradientBoostingRegressor(**FEW, callbacks=[watch], **params).fit(X, Y), losses


def test_an_answer_that_comes_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    live = threads._live
    monkeypatch.setattr(
        threads, "_live", lambda number, fit, slot, orders, reports: live(number, fit, slot, orders, Twice(reports))
    )
    model, _ = _losses(execution=gb.Asynchronous(3))
    log = model.fit_report_.log
    assert len({line.ticket for line in log.lines}) == len(log.lines)
    assert len(log.applied) == 12
    monkeypatch.undo()
    again = gb.GradientBoostingRegressor(**FEW, execution=gb.Replay(log)).fit(X, Y)
    assert again.predict(X).tobytes() == model.predict(X).tobytes()


def test_a_wrong_tree_cannot_raise_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaf values are the server's: a worker that answers with the tree of another order costs progress only."""
    built = threads._built
    first: list[Any] = []

    def same_again(fit: Any, slot: Any, pull: Any) -> Any:
        first.append(built(fit, slot, pull))
        return first[0]

    monkeypatch.setattr(threads, "_built", same_again)
    model, losses = _losses(execution=gb.Asynchronous(2))
    assert np.isfinite(model.predict(X)).all()
    assert all(after <= before * (1.0 + 1e-12) for before, after in pairwise(losses))


@pytest.mark.parametrize("error", [RuntimeError("out of luck"), MemoryError(), KeyboardInterrupt()], ids=repr)
def test_a_shard_that_fails_ends_the_fit_and_nothing_else(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The estimator is as it was, no thread is left, and a checkpoint continues the fit to the same bytes."""
    place = tmp_path / "run.json"
    model = gb.GradientBoostingRegressor(**FEW, execution=gb.DataParallel(3)).fit(X, Y)
    expected = model.predict(X)
    do, calls = shard_module.Shard.do, []

    def failing(self: Any, *arguments: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 200:
            raise error
        return do(self, *arguments, **more)

    monkeypatch.setattr(shard_module.Shard, "do", failing)
    model.set_params(callbacks=[gb.callbacks.Checkpoint(place, every=1)])
    with pytest.raises(type(error)):
        model.fit(X, Y)
    monkeypatch.undo()
    assert np.array_equal(model.predict(X), expected)
    left = [thread for thread in threading.enumerate() if thread.name.startswith("gpuboost worker")]
    assert not left
    fresh = gb.GradientBoostingRegressor(**FEW, execution=gb.DataParallel(3)).fit(X, Y, resume_from=place)
    assert np.array_equal(fresh.predict(X), expected)


DRIVER = """
import sys, numpy as np, gpuboost as gb
rng = np.random.default_rng(4)
x = rng.normal(size=(500, 6)); y = x[:, 0]
def told(record):
    if record.round == 5: print("ready", flush=True)
execution = gb.DataParallel(2) if sys.argv[2] == "shards" else gb.Asynchronous(1)
gb.GradientBoostingRegressor(n_estimators=10**6, random_state=0, n_jobs=1, execution=execution,
                             callbacks=[gb.callbacks.Checkpoint(sys.argv[1], every=1), told]).fit(x, y)
"""


@pytest.mark.parametrize("engine", [pytest.param("threads", marks=pytest.mark.thorough), "shards"])
def test_a_driver_that_is_killed_is_resumed_to_the_same_bytes(engine: str, tmp_path: Path) -> None:
    place = tmp_path / "run.json"
    with subprocess.Popen([sys.executable, "-c", DRIVER, str(place), engine], stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"ready\n"
        os.kill(driver.pid, signal.SIGKILL)
    x = np.random.default_rng(4).normal(size=(500, 6))
    done = gb.load_model(place).n_iter_
    make: Callable[[], Any] = lambda: gb.DataParallel(2) if engine == "shards" else gb.Asynchronous(1)  # noqa: E731
    few = {"n_estimators": done + 4, "random_state": 0, "n_jobs": 1}
    resumed = gb.GradientBoostingRegressor(**few, execution=make()).fit(x, x[:, 0], resume_from=place)
    assert resumed.predict(x).tobytes() == gb.GradientBoostingRegressor(**few).fit(x, x[:, 0]).predict(x).tobytes()
