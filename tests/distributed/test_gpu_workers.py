"""``execution=gb.Asynchronous(...)`` with ``device="cuda"``, through the public names, on an emulated GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator import FakeCupy, emulated_gpu
from sklearn.base import clone
from support.examples import crossed

import gpuboost as gb
from gpuboost.backends.cuda.device.gpus import open_gpu

RNG = np.random.default_rng(4)
X = RNG.normal(size=(400, 6))
X[RNG.random(X.shape) < 0.05] = np.nan
Y = np.nan_to_num(X[:, 0] + np.sin(3.0 * X[:, 1])) + 0.1 * RNG.normal(size=400)
LABELS = np.digitize(Y, [-0.5, 0.5])
WATCHED = {"held out": (X[:150] + 0.01, Y[:150])}
SIMULATED = gb.SimulatedWorkers(5, build_time=gb.times.Exponential(1.0), server_time=0.1)


@pytest.fixture(autouse=True)
def gpu() -> Iterator[FakeCupy]:
    with emulated_gpu() as cupy:
        yield cupy


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    usual = {"n_estimators": 12, "random_state": 7, "sampling": 0.6, "max_depth": 4, "device": "cuda"}
    return gb.GradientBoostingRegressor(**(usual | params))


def saved(model: Any, folder: Path) -> bytes:
    model.save_model(folder / "model.json")
    return (folder / "model.json").read_bytes()


@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_one_worker_writes_the_cpus_file(device: str, tmp_path: Path) -> None:
    one = regressor(device=device, execution=gb.Asynchronous(1)).fit(X, Y)
    assert one.fit_report_.device == "cuda:0"
    assert saved(one, tmp_path) == saved(regressor(device="cpu").fit(X, Y), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "execution"), crossed(["classifier", "regressor", "ranker"], [gb.Asynchronous(3), SIMULATED]), ids=str
)
def test_either_machine_replays_it(execution: Any, kind: str, tmp_path: Path) -> None:
    params = {"n_estimators": 8, "random_state": 1, "learners": 0.7, "execution": execution, "device": "cuda"}
    target, more = (LABELS, {}) if kind == "classifier" else (Y, {})
    model: Any = {"classifier": gb.GradientBoostingClassifier, "regressor": gb.GradientBoostingRegressor,
                  "ranker": gb.GradientBoostingRanker}[kind](**params)  # fmt: skip
    if kind == "ranker":
        target, more = np.clip(np.round(Y + 2.0), 0, 4), {"group": np.full(40, 10)}
    model.fit(X, target, **more)
    model.log_.save(tmp_path / "log.json")
    for device in ("cpu", "cuda"):
        again = clone(model).set_params(execution=gb.Replay(tmp_path / "log.json"), device=device)
        assert saved(again.fit(X, target, **more), tmp_path) == saved(model, tmp_path)
    if execution is SIMULATED:
        host = clone(model).set_params(device="cpu").fit(X, target, **more)
        assert saved(host, tmp_path) == saved(model, tmp_path)
        assert host.log_ == model.log_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "leaf_values"),
    crossed([0.4, gb.MVS(0.3), gb.GOSS(), gb.WeightTrimming(0.6)], ["server", "worker"]),
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
def test_what_was_drawn_is_reported_of_the_rounds_that_came_in(rule: Any, leaf_values: str) -> None:
    execution = gb.Asynchronous(4, leaf_values=leaf_values, staleness="drop", max_staleness=2, allow_unproven=True)
    model = regressor(sampling=rule, execution=execution).fit(X, Y, sample_weight=np.arange(400) % 3 + 1)
    replayed = regressor(sampling=rule, execution=gb.Replay(model.log_), device="cpu")
    replayed.fit(X, Y, sample_weight=np.arange(400) % 3 + 1)
    device, host = model.fit_report_.sampling, replayed.fit_report_.sampling
    assert len(device.rates) == 12
    assert device.rates == host.rates
    assert device.largest_weights == host.largest_weights
    assert device.never == host.never
    assert device.effective == host.effective[-1:]
    assert device.effective_rows == host.effective_rows


def test_stopping_early_goes_by_version(tmp_path: Path) -> None:
    model = regressor(execution=gb.Asynchronous(3), n_estimators=60, early_stopping_rounds=3, learning_rate=0.7)
    contrary = {"held out": (X[:150], -Y[:150])}  # in whatever order trees come, they make it worse
    model.fit(X, Y, eval_set=contrary)
    assert model.n_iter_ < len(model.log_.applied) < 60
    again = clone(model).set_params(execution=gb.Replay(model.log_), device="cpu").fit(X, Y, eval_set=contrary)
    assert saved(again, tmp_path) == saved(model, tmp_path)
    assert again.evals_result_ == model.evals_result_


@pytest.mark.slow
@pytest.mark.parametrize("devices", [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
def test_a_checkpoint_goes_on_on_either_machine(devices: tuple[str, str], tmp_path: Path) -> None:
    class StopError(Exception):
        """An interruption."""

    def stop(record: Any) -> bool:
        if record.round == 8:
            raise StopError
        return False

    callbacks = [gb.callbacks.Checkpoint(tmp_path / "run.json", every=4), stop]
    with pytest.raises(StopError):
        regressor(execution=gb.Asynchronous(3), callbacks=callbacks, device=devices[0]).fit(X, Y)
    resumed = regressor(execution=gb.Asynchronous(2), device=devices[1]).fit(X, Y, resume_from=tmp_path / "run.json")
    assert len(resumed.log_.applied) == 12
    for device in ("cpu", "cuda"):
        again = regressor(execution=gb.Replay(resumed.log_), device=device).fit(X, Y)
        assert saved(again, tmp_path) == saved(resumed, tmp_path)


def test_data_that_live_there_are_fitted_there(tmp_path: Path) -> None:
    on_gpu = open_gpu("cuda:0").upload(X)
    model = regressor(device="auto", execution=gb.Asynchronous(1)).fit(on_gpu, Y)
    assert model.fit_report_.device == "cuda:0"
    assert saved(model, tmp_path) == saved(regressor(device="cpu").set_params(device="auto").fit(on_gpu, Y), tmp_path)


def test_data_are_there_once(gpu: FakeCupy) -> None:
    """Of four workers more than of one there is what they grow trees in, and not another copy of the bins."""
    wide = np.tile(RNG.normal(size=(20_000, 1)), (1, 60)).astype(np.float32)
    told = {n: gb.estimate_memory(*wide.shape, regressor(execution=gb.Asynchronous(n))) for n in (1, 4)}
    for purpose in ("rows", "columns", "labels", "scores", "gradients"):
        assert told[1].breakdown[purpose] == told[4].breakdown[purpose]
    assert told[4].breakdown["workers"] == 4 * told[1].breakdown["workers"]


# what is refused


@pytest.mark.slow
def test_workers_of_other_processes_are_refused() -> None:
    pytest.importorskip("ray")
    with pytest.raises(
        gb.DeviceError, match=r"^device: trees of workers in other processes are built on the CPU; got "
    ):
        regressor(execution=gb.Asynchronous(2, engine="ray")).fit(X, Y)


@pytest.mark.filterwarnings("ignore:max_depth. 4 has no effect")
def test_base_learners_of_several_workers_are_refused() -> None:
    model = regressor(execution=gb.Asynchronous(2), base_learner=gb.learners.Spline())
    with pytest.raises(
        gb.DeviceError, match=r"^device: base learners other than trees are fitted by several workers on the CPU; got "
    ):
        model.fit(X, Y)
    assert model.set_params(device="cpu", n_estimators=2).fit(X, Y).n_iter_ == 2


def test_a_simulation_that_measures_is_refused() -> None:
    with pytest.raises(gb.DeviceError, match=r"^build_time: what is measured is a core's time, and cuda:0 does the"):
        regressor(execution=gb.SimulatedWorkers(2)).fit(X, Y)


def test_auto_leaves_several_workers_to_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBOOST_AUTO_CELLS", "1")
    report = regressor(device="auto", execution=gb.Asynchronous(2), n_estimators=2).fit(X, Y).fit_report_
    assert report.device == "cpu"
    assert report.device_reason == "device='auto' took the CPU, where several workers use several cores."


def test_workers_that_do_not_fit_are_refused_before_training() -> None:
    one, many = (gb.estimate_memory(*X.shape, regressor(execution=gb.Asynchronous(n))).total for n in (1, 8))
    with emulated_gpu(capacity=(one + many) // 2):
        regressor(execution=gb.Asynchronous(1), n_estimators=2).fit(X, Y)
        with pytest.raises(gb.DeviceError, match=r"free, and the training takes .* fewer workers"):
            regressor(execution=gb.Asynchronous(8)).fit(X, Y)
