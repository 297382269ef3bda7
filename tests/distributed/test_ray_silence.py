"""Workers and shards on Ray that hang without dying, and shards on the GPUs of a cluster."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator import require_compiler
from support.ray_workers import all_gone, ray_here

import gpuboost as gb
from gpuboost.backends.sharded import gpu_shard
from gpuboost.backends.sharded.shard import Shard
from gpuboost.errors import DeviceError, WorkerError
from gpuboost.execution import ray_worker_group

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

TESTS = str(Path(__file__).resolve().parents[1])
PATIENCE = 12.0  # a fresh worker has kernels to load, on a machine that may be busy
RNG = np.random.default_rng(0)
X = RNG.normal(size=(9_000, 4))
Y = X[:, 0] + X[:, 1] * X[:, 2]


@pytest.fixture(autouse=True)
def by_value() -> Iterator[None]:
    """What is defined here is sent to workers as it stands."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """With two GPUs, as Ray counts them."""
    with ray_here(num_gpus=2):
        yield


def fitted(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**{"n_estimators": 8, "max_depth": 3, "random_state": 3, **params}).fit(X, Y)


def slowly(record: Any) -> bool:
    """The other worker is not to build all trees before the patience is at an end."""
    time.sleep(0.1)
    return False


class HangsOnce:
    """A way to choose features that does not come back from the tree of one ticket, in one process."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def draw(self, n_features: int, key: Any) -> Any:
        from gpuboost.types import Candidates

        if key.iteration == 5 and not os.path.exists(self.mark):
            open(self.mark, "w").close()
            time.sleep(600.0)
        return Candidates(np.arange(n_features, dtype=np.int32))


def test_a_worker_that_hangs_is_ended_and_replaced(tmp_path: Path) -> None:
    execution = gb.Asynchronous(2, "ray", timeout=PATIENCE)
    with pytest.warns(RuntimeWarning, match="gave no answer for 12 s"):
        model = fitted(
            n_estimators=200, learners=HangsOnce(str(tmp_path / "mark")), execution=execution, callbacks=[slowly]
        )
    assert all_gone("Builder")
    log = model.fit_report_.log
    assert [line.outcome for line in log.lines].count("failed") == 1
    assert fitted(n_estimators=200, execution=gb.Replay(log)).predict(X).tobytes() == model.predict(X).tobytes()


class Sleepy(ray_worker_group.ShardActor):
    """A shard that falls asleep over its third tree."""

    trees = 0

    def do(self, message: Any) -> Any:
        self.trees += message.method is Shard.init_root
        if self.trees == 3:
            time.sleep(600.0)
        return super().do(message)


def test_a_shard_that_hangs_ends_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_worker_group, "ShardActor", Sleepy)
    with pytest.raises(WorkerError, match=r"a shard gave no answer for 12 s.*raise gb\.Ray\(patience=\)"):
        fitted(execution=gb.DataParallel(2, gb.Ray(patience=PATIENCE)))
    assert all_gone("Sleepy")


def emulated() -> Any:
    """A GPU of a worker's own, that Ray has set aside for it."""
    sys.path.insert(0, TESTS)
    from emulator import FakeCupy

    from gpuboost.backends.cuda.device.runtime import CupyRuntime

    assert os.environ["CUDA_VISIBLE_DEVICES"] in ("0", "1")
    return CupyRuntime(FakeCupy())


def test_shards_on_the_gpus_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without NCCL, so that what they add up goes through the object store."""
    require_compiler()
    monkeypatch.setattr(gpu_shard, "first_gpu", emulated)
    model = fitted(device="cuda", execution=gb.DataParallel(2, "ray"), validation_fraction=0.1)
    with pytest.raises(DeviceError, match="each of 3 shards asks Ray for a GPU, and the cluster has 2"):
        fitted(device="cuda", execution=gb.DataParallel(3, "ray"))
    assert "no NCCL" in model.fit_report_.device_reason
    assert model.set_params(device="cpu").predict(X).tobytes() == fitted(validation_fraction=0.1).predict(X).tobytes()
    assert all_gone("ShardActor")
    assert all_gone("RendezvousActor")
