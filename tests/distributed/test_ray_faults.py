"""What can go wrong on Ray: workers killed at any point, a full object store, answers that are slow to come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.ray_workers import actors, all_gone, ray_here

import gpuboost as gb
from gpuboost.benchmarks.suites.cluster import Pretended
from gpuboost.errors import DeviceError
from gpuboost.execution import ray_engine
from gpuboost.execution.messages import Failure, Pull, Push
from gpuboost.execution.ray_engine import RayEngine
from gpuboost.types import Gradients, Sample, Target

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

BUILD = 0.1  # seconds that a tree takes below
NOTHING: Any = dict  # what makes the machine of a fit that computes nothing
IN_TIME = 60.0  # a fresh worker has to import the library, on a machine that may be busy


def target_of(rows: int) -> Target:
    values = np.ones((1, rows), np.float32)
    return Target(0, None, Gradients(values, values))


class Talk:
    """A server of two workers: the one that is watched, and another that always has a tree to build."""

    def __init__(self, engine: RayEngine, rows: int) -> None:
        self.engine, self.target, self.tickets = engine, target_of(rows), 0
        self.order(1)

    def order(self, worker: int) -> int:
        self.tickets += 1
        self.engine.submit(worker, Pull(self.tickets, 0, self.target, Sample()))
        return self.tickets

    def report(self, ticket: int) -> Push | Failure:
        """What becomes of worker 0's order. The other one goes on meanwhile."""
        until = time.perf_counter() + IN_TIME
        while time.perf_counter() < until:
            message = self.engine.wait()
            if message.worker == 0:
                assert message.ticket == ticket
                return message
            assert isinstance(message, Push)
            self.order(1)
        raise AssertionError(f"nothing was heard of ticket {ticket}")

    def pid(self) -> int:
        found: int = ray.get(self.engine._actors[0].__ray_call__.remote(lambda _: os.getpid()))
        return found

    def make_good(self) -> None:
        """A fresh worker takes the place, and builds."""
        assert self.engine.replace(0)
        assert isinstance(self.report(self.order(0)), Push)


# a full object store


@pytest.fixture
def cramped() -> Iterator[Any]:
    """A Ray of little memory, on whose disk there is no room at all."""
    with ray_here(object_store_memory=80 * 2**20, _system_config={"local_fs_capacity_threshold": 1e-6}) as found:
        yield found


FULL = r"object store is full, and so is the disk.*it holds .*Ray\(object_store_memory=\)"


def test_a_store_full_of_targets(cramped: Any) -> None:
    engine = gb.Ray().start(Pretended(10, 2.0), NOTHING, 2)
    engine.submit(0, Pull(0, 0, target_of(12_000_000), Sample()))
    with pytest.raises(DeviceError, match=f"^engine: .*{FULL}"):
        engine.submit(1, Pull(1, 0, target_of(12_000_000), Sample()))
    engine.stop()


def test_a_store_without_room_for_an_answer(cramped: Any) -> None:
    engine = gb.Ray().start(Pretended(24_000_000, 0.0), NOTHING, 1)
    engine.submit(0, Pull(0, 0, target_of(10), Sample()))
    with pytest.raises(DeviceError, match=f"^engine: .*{FULL}"):
        engine.wait()
    engine.stop()


@pytest.mark.parametrize(
    "make", [lambda: gb.Asynchronous(2, "ray"), lambda: gb.DataParallel(1, "ray")], ids=["workers", "shards"]
)
def test_a_store_without_room_for_the_data(make: Callable[[], Any], cramped: Any) -> None:
    x = np.random.default_rng(0).normal(size=(1_500_000, 1)).astype(np.float32).repeat(28, axis=1)
    with pytest.raises(DeviceError, match=FULL):
        gb.GradientBoostingRegressor(n_estimators=2, execution=make()).fit(x, x[:, 0])
    assert all_gone("Builder")
    assert all_gone("ShardActor")


def test_a_store_with_a_disk_may_be_small() -> None:
    """Ray moves what it has no room for to the disk: slow, and nothing is lost."""
    with ray_here(object_store_memory=80 * 2**20):
        engine = gb.Ray().start(Pretended(10, 0.0), NOTHING, 2)
        for ticket, worker in enumerate((0, 1, 0, 1)):
            engine.submit(worker, Pull(ticket, 0, target_of(12_000_000), Sample()))
        assert sorted(engine.wait().ticket for _ in range(4)) == [0, 1, 2, 3]
        engine.stop()


# on a Ray that the tests from here on share: to start one takes some seven CPU seconds


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with ray_here() as found:
        yield found


@pytest.fixture(params=[1_000, 200_000], ids=["answers in the message", "answers in the object store"])
def talk(request: pytest.FixtureRequest, cluster: Any) -> Iterator[Talk]:
    engine = gb.Ray(timeout=IN_TIME).start(Pretended(request.param, BUILD), NOTHING, 2)
    try:
        yield Talk(engine, request.param)
    finally:
        engine.stop()
    assert all_gone("Builder")


def test_a_worker_may_die_at_any_point_of_the_protocol(talk: Talk) -> None:
    """It costs the tree that was under way, never one that was done; the other worker never waits."""
    for seconds in (0.0, 0.02, 0.8 * BUILD):  # while it builds
        pid, ticket = talk.pid(), talk.order(0)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        assert isinstance(talk.report(ticket), Failure)
        talk.make_good()

    pid, ticket = talk.pid(), talk.order(0)  # between push and pull
    ray.wait([next(one for one, (worker, _) in talk.engine._tickets.items() if worker == 0)])
    os.kill(pid, signal.SIGKILL)
    assert isinstance(talk.report(ticket), Push)
    assert isinstance(talk.report(talk.order(0)), Failure)
    talk.make_good()

    for at_once in (True, False):  # before it pulls: before Ray can know, and when it does
        pid = talk.pid()
        os.kill(pid, signal.SIGKILL)
        while not at_once and Path(f"/proc/{pid}").exists():
            time.sleep(0.01)
        assert isinstance(talk.report(talk.order(0)), Failure)
        talk.make_good()

    os.kill(talk.pid(), signal.SIGKILL)  # before its successor has come up
    assert isinstance(talk.report(talk.order(0)), Failure)
    known = set(actors("Builder"))
    assert talk.engine.replace(0)
    ticket = talk.order(0)
    while not (fresh := set(actors("Builder")) - known):
        time.sleep(0.001)
    os.kill(fresh.pop(), signal.SIGKILL)
    assert isinstance(talk.report(ticket), Failure)
    talk.make_good()


def test_workers_killed_again_and_again(cluster: Any) -> None:
    """A fit that loses a worker every now and then ends, and its log gives the same bytes again."""
    x = np.random.default_rng(0).normal(size=(2_000, 6))
    y = x[:, 0] + x[:, 1] * x[:, 2]
    rng, killed = np.random.default_rng(1), []

    def kill(record: Any) -> bool:
        time.sleep(0.02)
        if record.round % 40 == 20:
            found = actors("Builder")
            killed.append(found[int(rng.integers(len(found)))])
            os.kill(killed[-1], signal.SIGKILL)
        return False

    given = {"n_estimators": 240, "max_depth": 4, "random_state": 0}
    model = gb.GradientBoostingRegressor(**given, execution=gb.Asynchronous(3, "ray", max_failures=6), callbacks=[kill])
    with pytest.warns(RuntimeWarning, match="was lost"):
        model.fit(x, y)
    log = model.fit_report_.log
    assert len(log.applied) == 240
    assert 1 <= [line.outcome for line in log.lines].count("failed") <= len(killed) == 6
    again = gb.GradientBoostingRegressor(**given, execution=gb.Replay(log)).fit(x, y)
    assert again.predict(x).tobytes() == model.predict(x).tobytes()
    assert all_gone("Builder")


# a slow network


class Distant(ray_engine.Builder):
    """A worker that is near or far: the first one's answers take long to arrive."""

    mark = ""  # a folder that the first one makes

    def __init__(self, fit: Any, machine: Any) -> None:
        super().__init__(fit, machine)
        try:
            os.mkdir(self.mark)
            self.away = 0.4
        except FileExistsError:
            self.away = 0.0

    def build(self, target: Target, ticket: int) -> Any:
        found = super().build(target, ticket)
        time.sleep(self.away)
        return found


@pytest.mark.parametrize("staleness", ["apply", "block"])
def test_answers_that_are_slow_to_come(
    staleness: str, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are late, and delay no other worker unless lateness is bounded; the loss never rises (TA-7)."""
    x = np.random.default_rng(0).normal(size=(2_000, 6))
    y = x[:, 0] + x[:, 1] * x[:, 2]
    monkeypatch.setattr(Distant, "mark", str(tmp_path / "mark"))
    monkeypatch.setattr(ray_engine, "Builder", Distant)
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    most = {} if staleness == "apply" else {"max_staleness": 3}
    execution = gb.Asynchronous(3, "ray", staleness=staleness, **most)
    try:
        model = gb.GradientBoostingRegressor(n_estimators=40, random_state=0, step="gradient", execution=execution)
        model.fit(x, y, eval_set=[(x, y)])
    finally:
        ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    log = model.fit_report_.log
    trees = np.bincount([line.worker for line in log.applied], minlength=3)
    assert trees.sum() == 40
    if staleness == "apply":
        assert trees.min() < trees.max() / 3  # of the distant one, whichever it is
    else:
        assert log.staleness.max() <= 3
    (curve,) = next(iter(model.evals_result_.values())).values()
    assert np.all(np.diff(curve) <= 0.0)
    assert all_gone("Distant")


class SameAgain(ray_engine.Builder):
    """A worker whose answers have other bytes: it sends its first tree for every order."""

    first: Any = None

    def build(self, target: Target, ticket: int) -> Any:
        if self.first is None:
            self.first = super().build(target, ticket)
        return self.first


def test_a_wrong_tree_on_ray_cannot_raise_the_loss(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaf values are the server's: such workers cost progress only."""
    x = np.random.default_rng(0).normal(size=(1_000, 4))
    y = x[:, 0] + x[:, 1] * x[:, 2]
    monkeypatch.setattr(ray_engine, "Builder", SameAgain)
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    execution = gb.Asynchronous(2, "ray")
    try:
        model = gb.GradientBoostingRegressor(n_estimators=20, max_depth=3, random_state=0, execution=execution)
        model.fit(x, y, eval_set=[(x, y)])
    finally:
        ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert len({tree.value.size for tree in model.ensemble_.trees}) <= 2  # those of two workers, again and again
    (curve,) = next(iter(model.evals_result_.values())).values()
    assert np.all(np.diff(curve) <= 1e-12)
    assert all_gone("SameAgain")


@pytest.mark.parametrize("engine", ["workers", "shards"])
def test_an_interrupt_of_a_fit_on_ray(engine: str, cluster: Any) -> None:
    """No actor is left, and the estimator is as it was."""
    x = np.random.default_rng(0).normal(size=(1_000, 4))
    y = x[:, 0] + x[:, 1] * x[:, 2]

    def interrupt(record: Any) -> bool:
        if record.round == 5:
            raise KeyboardInterrupt
        return False

    model = gb.GradientBoostingRegressor(n_estimators=20, random_state=0).fit(x, y)
    before = model.predict(x)
    execution = gb.Asynchronous(2, "ray") if engine == "workers" else gb.DataParallel(2, "ray")
    model.set_params(execution=execution, callbacks=[interrupt], random_state=1, max_depth=2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y)
    assert all_gone("Builder")
    assert all_gone("ShardActor")
    assert np.array_equal(model.predict(x), before)


DRIVER = """
import os, sys, numpy as np, gpuboost as gb
x = np.random.default_rng(4).normal(size=(400, 5))
def told(record):
    if record.round == 4: print("ready", flush=True)
execution = gb.DataParallel(2, "ray") if sys.argv[2] == "shards" else gb.Asynchronous(1, "ray")
gb.GradientBoostingRegressor(n_estimators=10**6, max_depth=3, random_state=0, n_jobs=1, execution=execution,
                             callbacks=[gb.callbacks.Checkpoint(sys.argv[1], every=1), told]).fit(x, x[:, 0])
"""


def actors_of(pid: int) -> set[int]:
    """The actors of the Ray that a process has started."""
    parents: dict[int, int] = {}
    named = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                stat, command = (folder / "stat").read_text(), (folder / "cmdline").read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
            named |= {int(folder.name)} if command.startswith((b"ray::Builder", b"ray::ShardActor")) else set()
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family & named


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("engine", ["workers", "shards"])
def test_a_driver_that_is_killed_is_resumed_on_ray_to_the_same_bytes(engine: str, cluster: Any, tmp_path: Path) -> None:
    """Its actors end with it and with its own Ray, and another driver goes on from the checkpoint, on another Ray."""
    place = tmp_path / "run.json"
    with subprocess.Popen([sys.executable, "-c", DRIVER, str(place), engine], stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"ready\n"
        left = actors_of(driver.pid)
        os.kill(driver.pid, signal.SIGKILL)
    assert left
    until = time.perf_counter() + IN_TIME
    while any(map(running, left)) and time.perf_counter() < until:
        time.sleep(0.1)
    assert not any(map(running, left))
    x = np.random.default_rng(4).normal(size=(400, 5))
    done = gb.load_model(place).n_iter_
    assert done >= 5
    few = {"n_estimators": done + 4, "max_depth": 3, "random_state": 0, "n_jobs": 1}
    execution = gb.DataParallel(2, "ray") if engine == "shards" else gb.Asynchronous(1, "ray")
    resumed = gb.GradientBoostingRegressor(**few, execution=execution).fit(x, x[:, 0], resume_from=place)
    expected = gb.GradientBoostingRegressor(**few).fit(x, x[:, 0])
    assert resumed.predict(x).tobytes() == expected.predict(x).tobytes()
