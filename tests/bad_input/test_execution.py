"""What is refused of ``execution=``, before any work, and what the message says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.errors import InputError, RecipeError

RULES: list[tuple[dict[str, Any], str]] = [
    ({"workers": 0}, r"^workers: must be an integer of at least 1; got 0"),
    ({"workers": -3}, r"^workers: .* got -3"),
    ({"workers": 2.0}, r"^workers: .* got 2\.0"),
    ({"workers": True}, r"^workers: .* got True"),
    ({"workers": None}, r"^workers: .* got None"),
    ({"leaf_values": "newest"}, r"^leaf_values: must be one of 'server', 'worker'; got 'newest'"),
    ({"sample_at": "push"}, r"^sample_at: must be one of 'pull', 'version'; got 'push'"),
    ({"staleness": "wait"}, r"^staleness: must be one of 'apply', 'damp', 'drop', 'block'; got 'wait'"),
    ({"staleness": "drop"}, r"^max_staleness: staleness='drop' needs a limit; got None"),
    ({"staleness": "block"}, r"^max_staleness: staleness='block' needs a limit; got None"),
    ({"max_staleness": 3}, r"^max_staleness: 3 is a limit, and staleness='apply' knows none"),
    ({"staleness": "drop", "max_staleness": -1}, r"^max_staleness: must be an integer of at least 0; got -1"),
    ({"damping": 0.0}, r"^damping: must be a finite number above 0; got 0\.0"),
    ({"max_failures": -1}, r"^max_failures: must be an integer of at least 0; got -1"),
    ({"allow_unproven": 1}, r"^allow_unproven: must be True or False; got 1"),
]

TIMEOUTS: list[tuple[Any, Any, str]] = [
    (0.0, "threads", r"^timeout: must be a finite number above 0; got 0\.0"),
    (-1, "ray", r"^timeout: must be a finite number above 0; got -1"),
    ("soon", "threads", r"^timeout: must be a finite number above 0; got 'soon'"),
    (float("inf"), "threads", r"^timeout: .* got inf"),
]


@pytest.mark.parametrize(("timeout", "engine", "message"), TIMEOUTS, ids=str)
def test_how_long_a_worker_may_be_silent(timeout: Any, engine: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        gb.Asynchronous(2, engine, timeout=timeout)


def test_an_engine_that_knows_no_timeout() -> None:
    class Own:
        def check(self, fit: Any) -> None: ...
        def start(self, fit: Any, machine: Any, workers: int) -> None: ...

    gb.Asynchronous(2, Own())
    with pytest.raises(RecipeError, match=r"^timeout: Own cannot tell a worker that hangs"):
        gb.Asynchronous(2, Own(), timeout=3.0)


SIMULATED: list[tuple[dict[str, Any], str]] = [
    ({"build_time": -1.0}, r"^build_time: must be a number of seconds, 0 or more, or a distribution .* got -1\.0"),
    ({"build_time": "fast"}, r"^build_time: .* got 'fast'"),
    ({"server_time": float("nan")}, r"^server_time: .* got nan"),
    ({"server_time": gb.times.Exponential}, r"^server_time: .* got <class"),
    ({"network": "measured"}, r"^network: .* got 'measured'"),
    ({"failures": 1.0}, r"^failures: a probability below 1 .* got 1\.0"),
    ({"failures": -0.1}, r"^failures: .* got -0\.1"),
    ({"speeds": (1.0, 2.0)}, r"^speeds: must be one number for each of 3 workers; got \(1\.0, 2\.0\)"),
    ({"speeds": (1.0, 2.0, 0.0)}, r"^speeds: must be a finite number above 0; got 0\.0"),
    ({"speeds": 2.0}, r"^speeds: must be one number for each"),
]


@pytest.mark.parametrize("kind", [gb.Asynchronous, gb.SimulatedWorkers])
@pytest.mark.parametrize(("given", "message"), RULES, ids=str)
def test_rules_of_workers(kind: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        kind(**{"workers": 3} | given)


@pytest.mark.parametrize(("given", "message"), SIMULATED, ids=str)
def test_rules_of_a_simulation(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        gb.SimulatedWorkers(3, **given)


@pytest.mark.parametrize(
    "engine", ["mpi", "", None, 3, pytest.param(object(), id="object"), gb.SimulatedWorkers], ids=repr
)
def test_an_engine_is_a_known_one(engine: Any) -> None:
    with pytest.raises(RecipeError, match=r"^engine: must be 'threads', .*or an object with check\(\) and start\(\)"):
        gb.Asynchronous(2, engine=engine)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gb.times.Constant(-1.0), "^value: must be a finite number, 0 or more"),
        (lambda: gb.times.Exponential(0.0), "^mean: must be a finite number above 0"),
        (lambda: gb.times.LogNormal(1.0, -1.0), "^spread: must be a finite number, 0 or more"),
        (lambda: gb.times.Straggling("slow"), "^usual: must be a number of seconds"),
        (lambda: gb.times.Straggling(1.0, 1.5), "^probability: must be at most 1"),
        (lambda: gb.times.Straggling(1.0, 0.5, 0.0), "^factor: must be a finite number above 0"),
    ],
)
def test_distributions(make: Any, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        make()


@pytest.mark.parametrize("execution", ["threads", 4, gb.Asynchronous, True])
def test_an_execution_is_a_policy(execution: Any) -> None:
    x = np.arange(20.0)[:, None]
    with pytest.raises(RecipeError, match=r"^execution: must be None, or a policy such as Asynchronous\(4\)"):
        gb.GradientBoostingRegressor(execution=execution).fit(x, x[:, 0])


@pytest.mark.parametrize("control", ["node", "previous_leaf"])
def test_a_control_variate_needs_one_worker(control: str) -> None:
    x = np.arange(20.0)[:, None]
    sampling = gb.ImportanceSampling(0.5, variance_control=control)
    with pytest.raises(RecipeError, match="needs a sequential anchor; with execution=Asynchronous"):
        gb.GradientBoostingRegressor(sampling=sampling, execution=gb.Asynchronous(2)).fit(x, x[:, 0])


def log_file(folder: Path, **changes: Any) -> Path:
    x = np.arange(40.0)[:, None]
    model = gb.GradientBoostingRegressor(n_estimators=4, execution=gb.Asynchronous(2)).fit(x, x[:, 0])
    found = model.log_.to_json() | changes
    (folder / "log.json").write_text(json.dumps(found))
    return folder / "log.json"


GOOD = [0, 0, 0, 0, 1.0, "applied", 0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "gpuboost"}, "log: a log is a record of"),
        ({"more": 1}, "log: a log is a record of"),
        ({"version": 2}, "log: this gpuboost reads version 1"),
        ({"fields": ["ticket"]}, "log: this gpuboost reads version 1"),
        ({"workers": "two"}, "log: workers: found 'two'"),
        ({"leaf_values": "both"}, "log: leaf_values: found 'both'"),
        ({"simulated": 1}, "log: simulated: found 1"),
        ({"lines": {}}, "log: lines: must be a list"),
        ({"lines": [GOOD[:-1]]}, "log: line 0: must have the 9 values"),
        ({"lines": [["0", *GOOD[1:]]]}, "log: line 0: ticket: wrong kind of value; found '0'"),
        ({"lines": [GOOD, [1, 0, 3, 1, *GOOD[4:]]]}, "log: line 1: applied to version 1, before it was pulled, 3"),
    ],
    ids=str,
)
def test_a_damaged_log(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        gb.Replay(log_file(tmp_path, **changes))


def test_a_log_is_a_log(tmp_path: Path) -> None:
    assert len(gb.Replay(log_file(tmp_path)).log) == 4
    (tmp_path / "text").write_text("{not JSON")
    with pytest.raises(InputError, match="is not JSON"):
        gb.Log.load(tmp_path / "text")
    with pytest.raises(RecipeError, match=r"^log: must be a gb\.Log, or the path of one; got 3"):
        gb.Replay(3)
    with pytest.raises(FileNotFoundError):
        gb.Replay(tmp_path / "none")
