"""Cells of the table of faults in docs/reliability.md: a shard that is late, and an answer of Ray that comes twice."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.sharded import shard as shard_module

RNG = np.random.default_rng(4)
X = RNG.normal(size=(400, 5))
Y = X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.1 * RNG.normal(size=400)
FEW: dict[str, Any] = {"n_estimators": 8, "max_depth": 3, "random_state": 7, "n_jobs": 1}


def test_a_shard_that_is_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = gb.dumps(gb.GradientBoostingRegressor(**FEW).fit(X, Y))
    do, late = shard_module.Shard.do, []
    shards: list[Any] = []

    def slow(self: Any, *arguments: Any, **more: Any) -> Any:
        shards.append(self)
        if self is shards[0] and len(shards) % 50 == 0:
            late.append(time.sleep(0.05))
        return do(self, *arguments, **more)

    monkeypatch.setattr(shard_module.Shard, "do", slow)
    model = gb.GradientBoostingRegressor(**FEW, execution=gb.DataParallel(3)).fit(X, Y)
    assert len(late) >= 2
    assert len({id(shard) for shard in shards}) == 3
    content = gb.to_dict(model)
    assert content["trees"] == gb.to_dict(gb.loads(expected))["trees"]


@pytest.mark.thorough
@pytest.mark.xdist_group("ray")
def test_an_answer_of_ray_that_comes_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    from support.ray_workers import ray_here

    from gpuboost.execution.ray_engine import RayEngine

    wait, again = RayEngine.wait, []
    repeated = []

    def twice(self: RayEngine) -> Any:
        if again:
            repeated.append(again.pop())
            return repeated[-1]
        again.append(wait(self))
        return again[-1]

    monkeypatch.setattr(RayEngine, "wait", twice)
    with ray_here():
        model = gb.GradientBoostingRegressor(**FEW, execution=gb.Asynchronous(2, "ray")).fit(X, Y)
    log = model.fit_report_.log
    assert len(repeated) >= 7
    assert len({line.ticket for line in log.lines}) == len(log.lines)
    assert len(log.applied) == 8
    monkeypatch.undo()
    replayed = gb.GradientBoostingRegressor(**FEW, execution=gb.Replay(log)).fit(X, Y)
    assert replayed.predict(X).tobytes() == model.predict(X).tobytes()
