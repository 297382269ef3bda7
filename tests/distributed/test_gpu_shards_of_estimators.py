"""``device="cuda"`` with ``execution=gb.DataParallel(...)`` on estimators, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from emulator.nccl import World
from support.gpu_shards import gpus

import gpuboost as gb
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.sharded import gpu_shard
from gpuboost.backends.sharded.gpu_shard import Offer
from gpuboost.backends.sharded.gpus import _way
from gpuboost.backends.sharded.worker_group import LocalWorkerGroup, Message
from gpuboost.errors import DeviceError, RecipeError
from gpuboost.training.placement.sharding import STRETCH, ends_of

Data = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def data() -> Data:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10_000, 4))
    return x, x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(size=10_000)


@pytest.fixture(params=["nccl", pytest.param("host", marks=pytest.mark.slow)])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Three emulated GPUs, with NCCL or without."""
    made = gpus(3, World() if request.param == "nccl" else None)

    def gpus_in_turn() -> Iterator[object]:
        return (lambda cp=cp: CupyRuntime(cp) for cp in made)

    monkeypatch.setattr(gpu_shard, "gpus_in_turn", gpus_in_turn)
    return str(request.param)


def test_an_estimator_writes_the_same_file(way: str, data: Data, tmp_path: Path) -> None:
    x, y = data
    weight = np.random.default_rng(1).integers(0, 3, len(y))  # rows of weight 0 are on no shard
    given = {"n_estimators": 5, "max_depth": 3, "random_state": 5, "validation_fraction": 0.1}
    watched = {"early_stopping_rounds": 3, "eval_metric": ["rmse", "mae"], "callbacks": []}
    one = gb.GradientBoostingRegressor(**given, **watched).fit(x, y, sample_weight=weight)
    checkpoint = gb.callbacks.Checkpoint(tmp_path / "checkpoint.json", every=2)
    watched["callbacks"] = [checkpoint]
    # whole stretches: 6,000 rows of a weight above 0 are two shards at most, of the three that are asked for
    other = gb.GradientBoostingRegressor(**given, **watched, device="cuda", execution=gb.DataParallel(3))
    other.fit(x, y, sample_weight=weight)
    assert other.set_params(device="cpu").predict(x).tobytes() == one.predict(x).tobytes()
    assert other.evals_result_ == one.evals_result_
    report = other.fit_report_
    assert report.device == "cuda"
    assert "shards compute on GPUs; " in report.device_reason
    assert ("by NCCL" if way == "nccl" else "no NCCL (pip install") in report.device_reason
    held = (tmp_path / "checkpoint.json").read_bytes()
    assert len(held) > 1_000
    again = gb.GradientBoostingRegressor(**given, **watched, device="cuda", execution=gb.DataParallel(1))
    again.fit(x, y, sample_weight=weight, resume_from=tmp_path / "checkpoint.json")
    assert again.set_params(device="cpu").predict(x).tobytes() == one.predict(x).tobytes()
    assert again.evals_result_ == one.evals_result_


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"sampling": 0.5}, "^sampling: with device='cuda' shards .*sampled rows only with device='cpu'"),
        ({"langevin": gb.Langevin(shrinkage=0.1), "step": "gradient"}, "^langevin: with device='cuda' shards"),
        ({"step": "line_search"}, "^step: a line search"),
        ({"base_learner": gb.learners.Spline()}, "^base_learner: shards"),
    ],
)
def test_what_they_do_not_do_starts_no_shard(
    params: dict[str, object], text: str, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(LocalWorkerGroup, "__init__", lambda *given: started.append(given))
    with pytest.raises(RecipeError, match=text):
        gb.GradientBoostingRegressor(**params, device="cuda", execution=gb.DataParallel(2)).fit(*data)
    assert not started


def test_lists_of_queries_are_refused(data: Data) -> None:
    x, y = data
    ranker = gb.GradientBoostingRanker(device="cuda", execution=gb.DataParallel(2))
    with pytest.raises(RecipeError, match=r"^loss: .*lists of queries"):
        ranker.fit(x, (y > 0).astype(int), group=np.arange(len(y)) // 10)


def test_a_gpu_by_number_is_refused(data: Data) -> None:
    with pytest.raises(DeviceError, match=r"^device: .*gives each a GPU; got device='cuda:1'"):
        gb.GradientBoostingRegressor(device="cuda:1", execution=gb.DataParallel(2)).fit(*data)


def test_no_gpu_says_what_was_tried(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise DeviceError("no NVIDIA driver was found")

    monkeypatch.setattr("gpuboost.backends.devices.gpus", none)
    with pytest.raises(DeviceError, match=r"^device: 'cuda' is not usable; no NVIDIA driver"):
        gb.GradientBoostingRegressor(device="cuda", execution=gb.DataParallel(2)).fit(*data)


def test_how_they_add_up_is_decided_by_what_all_of_them_have() -> None:
    a, b, without = Offer("host/1", True), Offer("host/2", True), Offer("host/3", False)
    assert [_way(offers)[0] for offers in ([a], [a, b], [a, b, without], [a, a])] == ["alone", "nccl", "host", "host"]
    assert "1 of 3 shards has no NCCL" in _way([a, b, without])[1]
    assert "share a GPU" in _way([a, a])[1]


def test_shards_begin_where_stretches_do() -> None:
    for n, shards in ((1, 3), (STRETCH, 2), (STRETCH + 1, 2), (10 * STRETCH - 5, 4), (100_001, 7)):
        ends = ends_of(n, shards, whole=True)
        assert ends[-1] == n
        assert len(ends) == min(shards, -(-n // STRETCH))
        assert all(end % STRETCH == 0 for end in ends[:-1])
        assert np.all(np.diff([0, *ends]) > 0)


class Stuck:
    """A shard that waits for another, until it is told that that one will not come."""

    def __init__(self, fails: bool) -> None:
        self._fails, self._over = fails, threading.Event()

    def do(self, message: Message) -> None:
        if self._fails:
            raise MemoryError("this one is full")
        assert self._over.wait(30.0)
        raise DeviceError("another shard failed")

    def abort(self) -> None:
        self._over.set()


def test_a_shard_that_fails_is_what_is_reported_and_no_shard_waits_for_it() -> None:
    kinds = iter([False, True, False])
    workers = LocalWorkerGroup(lambda: Stuck(next(kinds)), 3)
    with pytest.raises(MemoryError, match="this one is full"):
        workers.ask([Message(gpu_shard.GpuShard.offer)] * 3)
