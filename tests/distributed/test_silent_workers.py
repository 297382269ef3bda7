"""A worker that hangs without dying: it counts as lost when the patience with it is at an end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.errors import WorkerError
from gpuboost.execution.machines import BackendFactory
from gpuboost.execution.messages import Failure, Pull, Push
from gpuboost.execution.threads import Threads
from gpuboost.types import Candidates, Gradients, Sample, Target

RNG = np.random.default_rng(4)
X = RNG.normal(size=(500, 6))
Y = X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.1 * RNG.normal(size=500)

go_on = threading.Event()


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """No timeout ends while kernels are compiled."""
    regressor(execution=gb.Asynchronous(2)).fit(X, Y)


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    go_on.clear()
    yield
    go_on.set()  # nothing hangs for longer than its test


class HangsOnce:
    """A way to choose features that does not come back from the tree of one ticket, the first time."""

    def __init__(self, times: int = 1) -> None:
        self.left = times

    def draw(self, n_features: int, key: Any) -> Candidates:
        if key.iteration == 5 and self.left:
            self.left -= 1
            go_on.wait(60.0)
        return Candidates(np.arange(n_features, dtype=np.int32))


def slowly(record: Any) -> bool:
    """The other worker is not to build all trees before the patience is at an end."""
    time.sleep(0.1)
    return False


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**({"n_estimators": 16, "random_state": 7} | params))


def test_a_thread_that_hangs_costs_its_tree_and_nothing_else() -> None:
    began = time.perf_counter()
    execution = gb.Asynchronous(2, timeout=0.5)
    with pytest.warns(
        RuntimeWarning, match=r"(?s)worker \d failed while it built tree 5.*gave no answer for 0\.5 s.*left to"
    ):
        model = regressor(learners=HangsOnce(), execution=execution, callbacks=[slowly]).fit(X, Y)
    assert time.perf_counter() - began < 30.0
    log = model.fit_report_.log
    assert [line.outcome for line in log.lines].count("failed") == 1
    assert len(log.applied) == 16
    again = regressor(execution=gb.Replay(log)).fit(X, Y)
    assert again.predict(X).tobytes() == model.predict(X).tobytes()


def test_one_that_hangs_again_and_again_ends_the_fit() -> None:
    execution = gb.Asynchronous(2, timeout=0.5, max_failures=1)
    with (
        pytest.warns(RuntimeWarning, match="gave no answer"),
        pytest.raises(
            WorkerError, match=r"(?s)max_failures=1 .*gave no answer for 0\.5 s.*raise Asynchronous\(timeout=\)"
        ),
    ):
        regressor(learners=HangsOnce(2), execution=execution, callbacks=[slowly]).fit(X, Y)


class Slow:
    """A fit whose first tree waits for an event."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def __call__(self, backend: Any, target: Target, ticket: int) -> tuple[Any, ...]:
        if ticket == 0:
            self.over.wait(60.0)
        return ()


def test_what_a_worker_says_too_late_is_not_heard() -> None:
    values = np.ones((1, 3), np.float32)
    target, fit = Target(0, None, Gradients(values, values)), Slow()
    engine = Threads(timeout=0.2).start(cast(Any, fit), BackendFactory(Cpu(1)), 2)
    engine.submit(0, Pull(0, 0, target, Sample()))
    engine.submit(1, Pull(1, 0, target, Sample()))
    assert isinstance(engine.wait(), Push)  # of the other one
    silent = engine.wait()
    assert isinstance(silent, Failure)
    assert (silent.worker, silent.ticket) == (0, 0)
    assert engine.replace(0)
    fit.over.set()
    time.sleep(0.1)  # it says so now
    engine.submit(0, Pull(2, 0, target, Sample()))
    heard = engine.wait()
    assert isinstance(heard, Push)
    assert heard.ticket == 2
    engine.stop()


def test_threads_are_waited_for_unless_it_is_asked_for() -> None:
    assert gb.Asynchronous(2)._kind() == Threads(None)
    assert gb.Asynchronous(2, timeout=3.0)._kind() == Threads(3.0)
