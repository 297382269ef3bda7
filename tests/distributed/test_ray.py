"""Workers and shards on a real Ray, started on this machine: the same bytes, and what happens when one is killed."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.ray_workers import actors, all_gone, ray_here

import gpuboost as gb
from gpuboost import losses
from gpuboost.errors import DeviceError, RecipeError, WorkerError
from gpuboost.execution import ray_cluster
from gpuboost.execution.messages import Failure, Push
from gpuboost.execution.ray_engine import RayEngine

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.xdist_group("ray")  # a second cluster beside it would be in its way

Array = np.ndarray
Data = tuple[Array, Array]


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3_000, 8))
    x[rng.random(x.shape) < 0.03] = np.nan
    y = np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1] * x[:, 2]) + 0.1 * rng.normal(size=3_000)
    return x, y


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with ray_here() as found:
        yield found


def fitted(data: Data, **params: Any) -> gb.GradientBoostingRegressor:
    given = {"n_estimators": 8, "max_depth": 4, "random_state": 3, **params}
    return gb.GradientBoostingRegressor(**given).fit(*data)


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[Push | Failure]:
    """What workers have reported so far."""
    found: list[Push | Failure] = []
    wait = RayEngine.wait

    def noted(self: RayEngine) -> Push | Failure:
        found.append(wait(self))
        return found[-1]

    monkeypatch.setattr(RayEngine, "wait", noted)
    return found


class BoomError(Exception):
    """What a worker raises below."""


class RaisesOnce:
    """A way to choose features that raises in the tree of one ticket, and only in one process."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def draw(self, n_features: int, key: Any) -> Any:
        from gpuboost.types import Candidates

        if key.iteration == 5 and not os.path.exists(self.mark):
            open(self.mark, "w").close()
            raise BoomError("the tree of ticket 5")
        return Candidates(np.arange(n_features, dtype=np.int32))


class Unsendable:
    """A policy that holds a socket."""

    def __init__(self) -> None:
        self.held = socket.socket()

    def draw(self, n_features: int, key: Any) -> Any:
        raise AssertionError("work was begun")


# without a cluster


def test_options_are_checked() -> None:
    for wrong in ({"address": ""}, {"address": 7}):
        with pytest.raises(RecipeError, match="address: must be None"):
            gb.Ray(**wrong)
    with pytest.raises(RecipeError, match="cpus_per_worker"):
        gb.Ray(cpus_per_worker=0)
    with pytest.raises(RecipeError, match="timeout"):
        gb.Ray(timeout=0.0)
    with pytest.raises(RecipeError, match="object_store_memory"):
        gb.Ray(object_store_memory=1000)
    with pytest.raises(RecipeError, match="address: it is for engine='ray'"):
        gb.Asynchronous(2, address="head:6379")


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "find_spec", lambda _: None)
    for make in (lambda: gb.Asynchronous(2, engine="ray"), lambda: gb.DataParallel(2, engine="ray"), gb.Ray):
        with pytest.raises(RecipeError, match=r"pip install 'gpuboosting\[ray\]'"):
            make()


@pytest.mark.parametrize("make", [gb.Asynchronous, gb.DataParallel])
def test_an_address_where_nothing_listens(make: Any, data: Data) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    began = time.perf_counter()
    with pytest.raises(DeviceError, match=f"no Ray cluster answers at '{address}'.*Check host and port"):
        fitted(data, execution=make(2, "ray", address))
    with pytest.raises(DeviceError, match="address: must be 'auto' or 'host:port'"):
        fitted(data, execution=make(2, "ray", "head:port"))
    assert time.perf_counter() - began < 20.0


@pytest.mark.parametrize("make", [gb.Asynchronous, gb.DataParallel])
def test_what_cannot_be_sent_is_refused_before_any_work(make: Any, data: Data) -> None:
    policy = Unsendable()
    with pytest.raises(RecipeError, match=r"learners: workers of engine='ray' are sent it, and it cannot be pickled"):
        fitted(data, execution=make(2, "ray"), learners=policy)
    policy.held.close()
    assert not ray.is_initialized()


@pytest.mark.slow
def test_ray_is_started_for_a_fit_and_ended_after_it(data: Data) -> None:
    """Here, where the fixture has not started one yet. One worker is serial (TA-1)."""
    one = fitted(data)
    other = fitted(data, execution=gb.Asynchronous(1, gb.Ray(object_store_memory=100 * 2**20)))
    assert other.predict(data[0]).tobytes() == one.predict(data[0]).tobytes()
    assert not ray.is_initialized()


# on a cluster


@pytest.mark.slow
def test_shards_on_ray_are_one_machine(cluster: Any, data: Data) -> None:
    x, y = data
    w = np.random.default_rng(1).lognormal(size=len(y))
    for params in ({}, {"sampling": gb.MVS(0.4), "min_samples_leaf": 5}, {"loss": "absolute_error"}):
        given = {"n_estimators": 4, "random_state": 3, **params}
        one = gb.GradientBoostingRegressor(**given).fit(x, y, sample_weight=w, eval_set=[(x[:200], y[:200])])
        execution = gb.DataParallel(4, engine="ray")
        other = gb.GradientBoostingRegressor(**given, execution=execution)
        other.fit(x, y, sample_weight=w, eval_set=[(x[:200], y[:200])])
        assert other.predict(x).tobytes() == one.predict(x).tobytes(), params
        assert other.evals_result_ == one.evals_result_
    assert ray.is_initialized()
    assert all_gone("ShardActor")


@pytest.mark.slow
def test_functions_of_the_user_are_sent(cluster: Any, data: Data) -> None:
    loss = losses.custom(
        lambda y, f: 0.5 * (y - f) * (y - f),
        lambda y, f: f - y,
        lambda y, f: 1.0 + 0.0 * f,
        name="mine",
        smoothness=1.0,
    )
    one = fitted(data, loss=loss, n_estimators=3)
    for execution in (gb.DataParallel(2, "ray"), gb.Asynchronous(1, "ray")):
        other = fitted(data, loss=loss, n_estimators=3, execution=execution)
        assert other.predict(data[0]).tobytes() == one.predict(data[0]).tobytes()


@pytest.mark.slow
def test_a_worker_killed_in_mid_run(cluster: Any, data: Data, reports: list[Push | Failure]) -> None:
    """TA-12: it costs one tree at most; the run completes, and its log gives the same bytes again (TA-8)."""

    def watch(record: Any) -> bool:
        """Kill a worker once all four have built a tree, and stop when a fresh one has built one in its place."""
        time.sleep(0.02)
        failed = [i for i, one in enumerate(reports) if isinstance(one, Failure)]
        if not killed and {one.worker for one in reports} == {0, 1, 2, 3}:
            killed.append(actors("Builder")[1])
            os.kill(killed[0], signal.SIGKILL)
        return bool(failed) and any(one.worker == reports[failed[0]].worker for one in reports[failed[0] + 1 :])

    assert all_gone("Builder")
    killed: list[int] = []
    with pytest.warns(RuntimeWarning, match=r"failed while it built tree \d+; a fresh one takes its place"):
        model = fitted(data, n_estimators=3_000, execution=gb.Asynchronous(4, "ray"), callbacks=[watch])
    log, rounds = model.fit_report_.log, model.ensemble_.n_rounds
    assert rounds < 3_000, "no fresh worker came"
    assert [line.outcome for line in log.lines].count("failed") == 1
    again = fitted(data, n_estimators=rounds, execution=gb.Replay(log))
    assert again.predict(data[0]).tobytes() == model.predict(data[0]).tobytes()
    assert all_gone("Builder")


@pytest.mark.slow
def test_a_worker_that_raises(cluster: Any, data: Data, tmp_path: Path, reports: list[Push | Failure]) -> None:
    def heard(record: Any) -> bool:
        """Stop once it is known; the other worker would build the few trees of the other tests before."""
        time.sleep(0.02)
        return any(isinstance(one, Failure) for one in reports)

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        policy = RaisesOnce(str(tmp_path / "mark"))
        with pytest.warns(RuntimeWarning, match="the tree of ticket 5"):
            model = fitted(
                data, n_estimators=3_000, learners=policy, execution=gb.Asynchronous(2, "ray"), callbacks=[heard]
            )
        assert [line.outcome for line in model.fit_report_.log.lines].count("failed") == 1
        (tmp_path / "mark").unlink()
        with pytest.raises(WorkerError, match=r"(?s)test_ray.py.*in draw.*the tree of ticket 5"):
            fitted(data, n_estimators=3_000, learners=policy, execution=gb.Asynchronous(2, "ray", max_failures=0))
    finally:
        ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert all_gone("Builder")


@pytest.mark.slow
def test_a_lost_shard_ends_the_fit_and_a_checkpoint_continues_it(cluster: Any, data: Data, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"

    def kill(record: Any) -> bool:
        if record.round == 5:
            os.kill(actors("ShardActor")[0], signal.SIGKILL)
        return False

    checkpoint = gb.callbacks.Checkpoint(path, every=2)
    with pytest.raises(WorkerError, match="a shard was lost"):
        fitted(data, execution=gb.DataParallel(2, "ray"), callbacks=[checkpoint, kill])
    given = {"n_estimators": 8, "max_depth": 4, "random_state": 3}
    model = gb.GradientBoostingRegressor(**given, execution=gb.DataParallel(2, "ray"))
    model.fit(*data, resume_from=path)
    assert model.predict(data[0]).tobytes() == fitted(data).predict(data[0]).tobytes()


@pytest.mark.slow
def test_more_workers_than_the_cluster_has_room_for(cluster: Any, data: Data) -> None:
    with pytest.raises(DeviceError, match=r"of 9 workers started within 3 s; each asks for 1 CPUs.*cluster has 4"):
        fitted(data, execution=gb.Asynchronous(9, gb.Ray(timeout=3.0)))
    assert all_gone("Builder")


# two nodes


@pytest.mark.slow
def test_two_nodes_one_of_which_is_lost(data: Data) -> None:
    """Shards and workers on nodes that the driver is not on; when a node goes, the rest go on."""
    from ray.cluster_utils import Cluster

    ray.shutdown()
    quiet = {"include_dashboard": False, "object_store_memory": 150 * 2**20}
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **quiet})
    try:
        pair = [nodes.add_node(num_cpus=2, object_store_memory=150 * 2**20) for _ in range(2)]
        one = fitted(data)
        other = fitted(data, execution=gb.DataParallel(4, "ray", nodes.address))
        assert other.predict(data[0]).tobytes() == one.predict(data[0]).tobytes()
        assert not ray.is_initialized()

        def lose(record: Any) -> bool:
            time.sleep(0.1)
            if record.round == 5:
                nodes.remove_node(pair.pop(), allow_graceful=False)
            return False

        with pytest.warns(RuntimeWarning, match="was lost"):
            model = fitted(data, n_estimators=40, execution=gb.Asynchronous(4, "ray", nodes.address), callbacks=[lose])
        log = model.fit_report_.log
        assert 1 <= [line.outcome for line in log.lines].count("failed") <= 4
        again = fitted(data, n_estimators=40, execution=gb.Replay(log))
        assert again.predict(data[0]).tobytes() == model.predict(data[0]).tobytes()

        pair.append(nodes.add_node(num_cpus=2, object_store_memory=150 * 2**20))  # shards are not replaced
        execution = gb.DataParallel(4, "ray", nodes.address)
        with pytest.raises(WorkerError, match="a shard was lost, and with it its rows"):
            fitted(data, n_estimators=40, execution=execution, callbacks=[lose])
    finally:
        ray.shutdown()
        nodes.shutdown()
