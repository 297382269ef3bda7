"""The first small fits on a machine: by NumPy while a process compiles the kernels, with the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.backends.cpu.compilation import first_fit
from gpuboost.backends.cpu.compilation.first_fit import FirstFits
from gpuboost.backends.reference import levels


class Process:
    """One that compiles until ``code`` is its exit status."""

    code: int | None = None
    stdin = None

    def poll(self) -> int | None:
        return self.code


class Machine:
    """Whether kernels are noted, and the processes that were started."""

    def __init__(self) -> None:
        self.noted, self.allowed, self.processes = False, True, list[Process]()

    def start(self, *_: str, background: bool) -> Process | None:
        assert background
        if self.noted or not self.allowed:
            return None
        self.processes.append(Process())
        return self.processes[-1]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(first_fit, "start_process", made.start)
    monkeypatch.setattr(first_fit, "is_noted", lambda _: made.noted)
    return made


def test_fits_are_taken_until_their_time_is_used_up(machine: Machine) -> None:
    fits = FirstFits(seconds=3.0)
    assert [fits.take(seconds) for seconds in (5.0, 1.0, 1.5, 1.0, 0.5)] == [False, True, True, False, True]
    assert len(machine.processes) == 1
    assert fits.are_over(threads=2)


def test_they_are_over_with_one_thread_and_after_the_end(machine: Machine) -> None:
    fits = FirstFits()
    assert [fits.are_over(threads) for threads in (1, 2)] == [True, False]
    fits.end()
    assert fits.are_over(threads=2)
    assert not fits.take(0.1)
    assert machine.processes == []


def test_they_are_over_once_the_kernels_are_noted(machine: Machine) -> None:
    fits = FirstFits()
    assert fits.take(0.1)
    machine.noted = True
    assert fits.are_over(threads=2)


def test_they_are_over_where_no_process_compiles(machine: Machine) -> None:
    fits, others = FirstFits(), FirstFits()
    assert fits.take(0.1)
    machine.processes[0].code, machine.allowed = 0, False
    for ended in (fits, others):
        assert not ended.take(0.1)
        assert ended.are_over(threads=2)


def models(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> list[str]:
    some: dict[str, Any] = {"n_estimators": 4, "device": "cpu", "n_jobs": 2, "random_state": 0}
    classifier = gb.GradientBoostingClassifier(**some).fit(x, np.digitize(y, [0.0, 0.5]), sample_weight=weight)
    regressor = gb.GradientBoostingRegressor(**some, min_samples_leaf=3, max_leaves=9).fit(x, y)
    return [gb.dumps(classifier), gb.dumps(regressor)]


def test_models_are_those_of_the_kernels(
    machine: Machine, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, weight = rng.normal(size=(150, 4)), rng.integers(0, 3, 150).astype(float)
    y = x[:, 0] * x[:, 1]
    x[rng.random(x.shape) < 0.1] = np.nan
    by_kernels, grown = models(x, y, weight), list[int]()
    grow = levels.grow
    monkeypatch.setattr(levels, "grow", lambda *arguments: grown.append(1) or grow(*arguments))
    monkeypatch.setattr(first_fit, "FIRST_FITS", FirstFits())
    assert models(x, y, weight) == by_kernels
    assert len(grown) == 4 * 3 + 4


def test_other_fits_are_left_to_kernels(
    machine: Machine, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_fit, "FIRST_FITS", FirstFits())
    x = rng.normal(size=(60, 3))
    x[:, 2] = rng.integers(0, 4, 60)
    for more in ({"growth": "leafwise"}, {"sampling": 0.5}, {"categorical_features": [2]}, {"reg_alpha": 1.0}):
        gb.GradientBoostingRegressor(n_estimators=1, device="cpu", n_jobs=2, **more).fit(x, x[:, 0])
    gb.GradientBoostingRegressor(n_estimators=1, device="cpu", n_jobs=2).fit(x, x[:, 0], eval_set=[(x, x[:, 0])])
    assert machine.processes == []
