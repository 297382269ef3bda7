"""``execution=`` on the estimators, checkpoints, and fits that go on."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from support.examples import crossed, daily

import gpuboost as gb
from gpuboost.errors import InputError, RecipeError

RNG = np.random.default_rng(4)
X = RNG.normal(size=(500, 6))
Y = X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.1 * RNG.normal(size=500)
LABEL = (Y > 0.0).astype(int)
EVAL = {"held out": (X[:150] + 0.01, Y[:150])}


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**({"n_estimators": 24, "random_state": 7, "sampling": 0.6} | params))


def saved(model: Any, folder: Path) -> bytes:
    model.save_model(folder / "model.json")
    return (folder / "model.json").read_bytes()


SIMULATED = gb.SimulatedWorkers(8, build_time=gb.times.Exponential(1.0), server_time=0.05)


def test_one_worker_writes_the_same_file_as_none(tmp_path: Path) -> None:
    one = [None, gb.Asynchronous(1), gb.SimulatedWorkers(1, build_time=1.0, server_time=0.0)]
    models = [regressor(execution=execution).fit(X, Y) for execution in one]
    assert len({saved(model, tmp_path) for model in models}) == 1
    assert models[0].log_ is not None
    assert models[0].log_.mean_staleness == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "execution"), crossed(["classifier", "regressor", "ranker"], [gb.Asynchronous(3), SIMULATED]), ids=str
)
def test_every_estimator_runs_it_reports_it_and_replays_it(execution: Any, kind: str, tmp_path: Path) -> None:
    params = {"n_estimators": 20, "random_state": 1, "learners": 0.7, "execution": execution}
    target, more = (LABEL, {}) if kind == "classifier" else (Y, {})
    model: Any = {"classifier": gb.GradientBoostingClassifier, "regressor": gb.GradientBoostingRegressor,
                  "ranker": gb.GradientBoostingRanker}[kind](**params)  # fmt: skip
    if kind == "ranker":
        target, more = np.clip(np.round(Y + 2.0), 0, 4), {"group": np.full(50, 10)}
    model.fit(X, target, **more)
    log = model.fit_report_.log
    assert model.log_ is log
    assert len(log) == len(log.applied) == 20
    newest = {line.worker: line.applied + 1 for line in log.applied}  # a worker's next tree was pulled there
    under_way = sum(20 - newest.get(worker, 0) for worker in range(execution.workers))
    assert log.staleness.sum() + under_way == 20 * (execution.workers - 1), "of real threads, one may do nothing"
    assert f"20 rounds by {execution.workers}" in str(model.fit_report_)
    assert ("simulated" in str(model.fit_report_)) == (execution is SIMULATED)
    log.save(tmp_path / "log.json")
    again = clone(model).set_params(execution=gb.Replay(tmp_path / "log.json")).fit(X, target, **more)
    assert saved(again, tmp_path) == saved(model, tmp_path)
    assert again.log_.applied == log.applied


def test_a_replay_has_the_seed_of_its_log(tmp_path: Path) -> None:
    drawn = regressor(execution=SIMULATED, sampling=0.5, random_state=None).fit(X, Y)
    replay = gb.Replay(drawn.log_)
    assert saved(clone(drawn).set_params(execution=replay).fit(X, Y), tmp_path) == saved(drawn, tmp_path)
    with pytest.raises(
        gb.RecipeError, match=f"random_state: the log to replay is of a run with the seed {replay.log.seed}"
    ):
        regressor(execution=replay, sampling=0.5, random_state=replay.log.seed + 1).fit(X, Y)


def test_a_simulation_can_be_repeated(tmp_path: Path) -> None:
    models = [regressor(execution=SIMULATED).fit(X, Y) for _ in range(2)]
    assert saved(models[0], tmp_path) == saved(models[1], tmp_path)
    assert models[0].log_ == models[1].log_
    other = regressor(execution=gb.SimulatedWorkers(8, build_time=gb.times.Exponential(1.0), server_time=0.05, seed=1))
    assert saved(other.fit(X, Y), tmp_path) != saved(models[0], tmp_path)


@pytest.mark.slow
def test_a_thousand_workers_fit_on_this_machine() -> None:
    execution = gb.SimulatedWorkers(1000, build_time=gb.times.LogNormal(1.0), server_time=0.001)
    model = regressor(execution=execution, n_estimators=1100, learning_rate=0.01).fit(X, Y)
    assert model.log_.staleness.max() > 900
    assert model.log_.speed_up > 400
    assert model.score(X, Y) > 0.5


def test_a_log_says_how_many_workers_are_enough_if_that_is_known() -> None:
    """The server's time shows where a worker comes back for its next tree."""
    few, many = (gb.SimulatedWorkers(n, build_time=1.0, server_time=0.01) for n in (2, 1000))
    logs = [regressor(n_estimators=5, execution=one).fit(X, Y).log_ for one in (few, many)]
    assert "1 s to build and 0.01 s at the server, so 101 workers are enough" in str(logs[0])
    assert str(logs[1]).endswith("1 s to build")


def test_early_stopping_and_validation_go_by_version(tmp_path: Path) -> None:
    model = regressor(execution=SIMULATED, n_estimators=300, early_stopping_rounds=5, learning_rate=0.5)
    model.fit(X, Y, eval_set=EVAL)
    assert model.n_iter_ < len(model.log_.applied) < 300
    assert len(model.evals_result_["held out"]["rmse"]) == len(model.log_.applied)
    again = clone(model).set_params(execution=gb.Replay(model.log_)).fit(X, Y, eval_set=EVAL)
    assert saved(again, tmp_path) == saved(model, tmp_path)


def test_parameters_of_the_policy_are_parameters() -> None:
    model = regressor(execution=gb.Asynchronous(2))
    assert model.get_params()["execution__workers"] == 2
    assert model.set_params(execution__workers=3).execution == gb.Asynchronous(3)
    assert pickle.loads(pickle.dumps(model.fit(X, Y))).log_ == model.log_


def test_check_says_what_is_known() -> None:
    sound = regressor(execution=gb.Asynchronous(16)).check(X, Y)
    assert sound.kind == "sound"
    assert any("only the shapes of trees are stale" in reason for reason in sound.reasons)
    old = {"execution": gb.Asynchronous(16, leaf_values="worker"), "learning_rate": 0.05}
    assert regressor(**old).check(X, Y).kind == "heuristic"
    assert regressor(**old | {"learning_rate": 0.5}).check(X, Y).kind == "unproven"
    assert gb.GradientBoostingClassifier(**old).check(X, LABEL).kind == "unproven"
    assert "stability" not in str(gb.GradientBoostingClassifier(**old, step="gradient").check(X, LABEL))
    searched = regressor(**old, loss="absolute_error").check(X, Y)
    assert searched.kind == "refused"
    assert "leaf_values='server'" in str(searched)


def test_a_fit_beyond_the_limit_warns() -> None:
    execution = gb.SimulatedWorkers(16, build_time=1.0, server_time=0.0, leaf_values="worker", allow_unproven=True)
    with (
        pytest.warns(gb.OutsideTheoryWarning, match=r"exceeds the stability limit 0\.101 of delayed gradients"),
        pytest.warns(gb.OutsideTheoryWarning, match="the training loss rose"),
    ):
        regressor(execution=execution, learning_rate=0.5).fit(X, Y)
    alike = gb.SimulatedWorkers(4, build_time=1.0, server_time=0.0, sample_at="version")
    with pytest.warns(gb.OutsideTheoryWarning, match="the first 4 trees are alike"):
        regressor(execution=alike).fit(X, Y)


# going on


class StopError(Exception):
    """An interruption."""


def interrupted(model: Any, path: Path, at: int, every: int = 4, **more: Any) -> None:
    def stop(record: Any) -> bool:
        if record.round == at:
            raise StopError
        return False

    callbacks = [gb.callbacks.Checkpoint(path, every=every), stop]
    with pytest.raises(StopError):
        clone(model).set_params(callbacks=callbacks).fit(X, Y, **more)


STATEFUL: dict[str, dict[str, Any]] = {
    "plain": {},
    "importance": {"sampling": gb.ImportanceSampling(0.3)},
    "node control": {"sampling": gb.ImportanceSampling(0.3, variance_control="node", lag=2)},
    "leaf control": {"sampling": gb.ImportanceSampling(0.3, variance_control="previous_leaf")},
    "langevin": {"langevin": gb.Langevin(shrinkage=0.1), "sampling": None},
    "stopping": {"early_stopping_rounds": 4, "n_estimators": 200, "learning_rate": 0.6},
    "set aside": {"validation_fraction": 0.25, "learners": 3},
}


@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
@pytest.mark.parametrize("at", daily([6, 1, 11], 1))
@pytest.mark.parametrize("name", STATEFUL)
def test_a_serial_fit_goes_on_as_if_nothing_had_happened(name: str, at: int, tmp_path: Path) -> None:
    model, watched = regressor(**STATEFUL[name]), {} if name == "set aside" else {"eval_set": EVAL}
    whole = clone(model).fit(X, Y, **watched)
    interrupted(model, tmp_path / "run.json", at, **watched)
    resumed = clone(model).fit(X, Y, **watched, resume_from=tmp_path / "run.json")
    assert saved(resumed, tmp_path) == saved(whole, tmp_path)
    assert resumed.evals_result_ == whole.evals_result_
    assert (resumed.best_iteration_, resumed.best_score_) == (whole.best_iteration_, whole.best_score_)
    assert resumed.fit_report_.rounds == whole.fit_report_.rounds
    assert [line.ticket for line in resumed.log_.lines] == [line.ticket for line in whole.log_.lines]


@pytest.mark.parametrize("execution", [gb.Asynchronous(3), SIMULATED], ids=repr)
def test_the_log_of_a_fit_that_went_on_replays_to_the_same_bytes(execution: Any, tmp_path: Path) -> None:
    model = regressor(execution=execution)
    interrupted(model, tmp_path / "run.json", 9)
    resumed = clone(model).fit(X, Y, resume_from=tmp_path / "run.json")
    log = resumed.log_
    assert [line.applied for line in log.applied] == list(range(24))
    assert len({line.ticket for line in log.applied}) == 24
    again = clone(model).set_params(execution=gb.Replay(log)).fit(X, Y)
    assert saved(again, tmp_path) == saved(resumed, tmp_path)


def test_a_run_may_be_interrupted_twice_and_go_on_with_others(tmp_path: Path) -> None:
    path, model = tmp_path / "run.json", regressor()
    interrupted(model, path, 3)
    callbacks = [gb.callbacks.Checkpoint(path), lambda record: record.round == 11]
    clone(model).set_params(callbacks=callbacks, execution=SIMULATED).fit(X, Y, resume_from=path)
    last = clone(model).set_params(execution=gb.Asynchronous(2), n_jobs=1).fit(X, Y, resume_from=path)
    assert last.n_iter_ == 24
    assert {line.staleness for line in last.log_.applied[:4]} == {0}
    again = clone(model).set_params(execution=gb.Replay(last.log_)).fit(X, Y)
    assert saved(again, tmp_path) == saved(last, tmp_path)


def test_a_checkpoint_is_a_model(tmp_path: Path) -> None:
    model = regressor()
    interrupted(model, tmp_path / "run.json", 9)
    loaded = gb.load_model(tmp_path / "run.json")
    assert loaded.n_iter_ == 10
    expected = regressor(n_estimators=10).fit(X, Y)
    assert loaded.predict(X).tobytes() == expected.predict(X).tobytes()
    more = clone(model).set_params(n_estimators=5).fit(X, Y, init_model=tmp_path / "run.json")
    assert more.n_iter_ == 15


def test_what_a_fit_cannot_go_on_with(tmp_path: Path) -> None:
    path, model = tmp_path / "run.json", regressor()
    interrupted(model, path, 9, eval_set=EVAL)

    def refused(error: type[Exception], message: str, fitted: Any = model, **more: Any) -> None:
        given = {"X": X, "y": Y, "eval_set": EVAL, "resume_from": path} | more
        with pytest.raises(error, match=message):
            clone(fitted).fit(**given)

    refused(RecipeError, r"resume_from: a fit goes on as it began; learning_rate was 0\.1 and is 0\.2",
            regressor(learning_rate=0.2))  # fmt: skip
    refused(
        RecipeError, r"as it began; sampling was .* and is .*MVS|ImportanceSampling", regressor(sampling=gb.MVS(0.5))
    )
    refused(RecipeError, r"^random_state: .* begun with 7; got 8", regressor(random_state=8))
    refused(RecipeError, r"^n_estimators: .* holds 10 rounds, and 9", regressor(n_estimators=9))
    refused(InputError, r"checksum of target and weights: \d+ then, \d+ now", y=Y + 1.0)
    refused(InputError, r"rows: 500 then, 400 now", X=X[:400], y=Y[:400])
    refused(InputError, r"checksum of X: \d+ then, \d+ now", X=X[::-1])
    refused(RecipeError, "it watched", eval_set=None)
    refused(RecipeError, "eval_metric was None and is 'mae'", regressor(eval_metric="mae"))
    refused(RecipeError, "init_model must be None", init_model=regressor().fit(X, Y))
    refused(RecipeError, r"^resume_from: must be the path", resume_from=3)
    refused(InputError, "same kind", gb.GradientBoostingClassifier(), y=LABEL)
    regressor().fit(X, Y).save_model(tmp_path / "model.json")
    refused(InputError, "is a model, and no checkpoint", resume_from=tmp_path / "model.json")
    with pytest.raises(FileNotFoundError):
        clone(model).fit(X, Y, resume_from=tmp_path / "none.json")
    resumed = regressor(random_state=None).fit(X, Y, eval_set=EVAL, resume_from=path)
    assert resumed.fit_report_.seed == 7


def test_a_damaged_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    interrupted(regressor(), path, 9)
    text = path.read_text()
    wrongs = {'"first":0': '"first":-1', '"share"': '"shape"', '"applied",0.0': '"applied",null',
              '"evals":[]': '"evals":3', '"data":[': '"data":[1,', '"seed":7': '"seeds":7'}  # fmt: skip
    text = re.sub(r'"applied",[0-9.e-]+', '"applied",0.0', text)
    for right, wrong in wrongs.items():
        assert right in text
        path.write_text(text.replace(right, wrong, 1))
        with pytest.raises(InputError, match=r"run|log"):
            regressor().fit(X, Y, resume_from=path)


LEARNER = """
import sys, numpy as np, gpuboost as gb
rng = np.random.default_rng(4)
x = rng.normal(size=(2000, 10)); y = x[:, 0] + np.sin(3 * x[:, 1])
def told(record):
    if record.round == 3: print("ready", flush=True)
execution = gb.Asynchronous(2) if sys.argv[2] == "threads" else None
checkpoint = gb.callbacks.Checkpoint(sys.argv[1], every=10**6)
gb.GradientBoostingRegressor(n_estimators=10**6, learning_rate=0.01, n_jobs=1, random_state=0, execution=execution,
                             callbacks=[checkpoint, told]).fit(x, y)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "serial"])
def test_sigterm_saves_what_is_done(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with subprocess.Popen([sys.executable, "-c", LEARNER, str(path), kind], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.2)
        assert not path.exists()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    rounds = gb.load_model(path).n_iter_
    assert rounds > 3
    rng = np.random.default_rng(4)
    x = rng.normal(size=(2000, 10))
    y = x[:, 0] + np.sin(3 * x[:, 1])
    model = gb.GradientBoostingRegressor(n_estimators=rounds + 5, learning_rate=0.01, n_jobs=1, random_state=0)
    resumed = clone(model).fit(x, y, resume_from=path)
    whole = clone(model).set_params(execution=gb.Replay(resumed.log_)).fit(x, y)
    assert saved(resumed, tmp_path) == saved(whole, tmp_path)
    assert (saved(resumed, tmp_path) == saved(clone(model).fit(x, y), tmp_path)) == (kind == "serial")


def test_a_checkpoint_leaves_signals_as_they_were(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    regressor(n_estimators=2, callbacks=[gb.callbacks.Checkpoint(tmp_path / "a.json")]).fit(X, Y)
    assert signal.getsignal(signal.SIGTERM) is before
    seen = []
    thread = threading.Thread(
        target=lambda: seen.append(
            regressor(n_estimators=2, callbacks=[gb.callbacks.Checkpoint(tmp_path / "b.json")]).fit(X, Y)
        )
    )
    thread.start()
    thread.join()
    assert seen[0].n_iter_ == 2
    assert os.path.exists(tmp_path / "b.json")
