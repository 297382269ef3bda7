"""The first small fits on a machine: by NumPy while a process compiles the kernels, with the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gpuboost as gb
from gpuboost.api import warm_up
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
    """The kernels that are noted, and the processes that were started, with their programs."""

    def __init__(self) -> None:
        self.noted, self.allowed = set[str](), True
        self.processes, self.programs = list[Process](), list[str]()

    def start(self, what: str, program: str, *, background: bool) -> Process | None:
        assert background
        if what in self.noted or not self.allowed:
            return None
        self.processes.append(Process())
        self.programs.append(program)
        return self.processes[-1]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(first_fit, "start_process", made.start)
    monkeypatch.setattr(first_fit, "is_noted", made.noted.__contains__)
    monkeypatch.setattr(first_fit, "note", made.noted.add)
    return made


def test_fits_are_taken_until_their_time_is_used_up(machine: Machine) -> None:
    fits = FirstFits(times=3.0 / first_fit.PARTS["plain"].seconds)
    assert [fits.take(seconds, threads=2) for seconds in (5.0, 1.0, 1.5, 1.0, 0.5)] == [False, True, True, False, True]
    assert len(machine.processes) == 1
    assert fits.are_over()


def test_they_are_over_after_the_end(machine: Machine) -> None:
    fits = FirstFits()
    assert not fits.are_over()
    fits.end()
    assert fits.are_over()
    assert not fits.take(0.1, threads=2)
    assert machine.processes == []


def test_one_thread_starts_no_process_and_compiles_at_last(machine: Machine) -> None:
    fits, both = FirstFits(), ("plain", "sampling")
    assert fits.take(4.0, both, threads=1)
    assert machine.noted == set()
    assert fits.take(2.0, both, threads=1)
    assert machine.noted == {"small-numeric"}  # used up: the next fit compiles it
    assert not fits.take(1.0, both, threads=1)
    assert machine.noted == {"small-numeric", "first-sampling"}
    assert fits.are_over(both)
    assert machine.processes == []


def test_they_are_over_once_the_kernels_are_noted(machine: Machine) -> None:
    fits = FirstFits()
    assert fits.take(0.1, threads=2)
    machine.noted.add("small-numeric")
    assert fits.are_over()


def test_they_are_over_where_no_process_compiles(machine: Machine) -> None:
    fits, others = FirstFits(), FirstFits()
    assert fits.take(0.1, threads=2)
    machine.processes[0].code, machine.allowed = 0, False
    for ended in (fits, others):
        assert not ended.take(0.1, threads=2)
        assert ended.are_over()


def test_each_part_has_its_time_and_is_compiled_after_the_others(machine: Machine) -> None:
    fits, both = FirstFits(), ("plain", "oblivious")
    assert fits.take(6.0, both, threads=2)  # 5 seconds of the one and one of the other
    assert [fits.take(seconds, both, threads=2) for seconds in (1.6, 1.5)] == [False, True]
    assert fits.are_over(both)
    assert not fits.are_over(("plain", "stumps"))
    assert fits.take(0.1, ("plain", "stumps"), threads=2)  # while the process still compiles others
    assert ["fit('plain', )" in text and "fit('oblivious'," in text for text in machine.programs] == [True]
    machine.processes[0].code = 0
    machine.noted |= {"small-numeric", "first-oblivious"}
    assert fits.take(0.1, ("plain", "stumps"), threads=2)
    assert "fit('stumps', max_depth=1)" in machine.programs[1]
    assert "fit('plain'" not in machine.programs[1]


FITS: list[dict[str, Any]] = [
    {"min_samples_leaf": 3, "max_leaves": 9},
    {"growth": "leafwise", "max_leaves": 9},
    {"growth": "oblivious", "max_depth": 3},
    {"max_depth": 1},
    {"sampling": 0.5, "learners": 0.5},
    {"sampling": gb.MVS(0.5), "growth": "leafwise"},
    {"langevin": gb.Langevin(allow_unproven=True)},
    {"loss": "absolute_error"},
    {"sampling": gb.GOSS(0.3, 0.2), "learners": gb.RandomByNode(0.5)},
    {"learners": gb.RandomByLevel(2), "growth": "oblivious", "max_depth": 3},
    {"monotonic_cst": [1, 0, 0, -1], "feature_weights": [1, 2, 3, 4], "learners": gb.RandomByNode(0.7)},
    {"reg_alpha": 0.5, "max_delta_step": 0.3, "path_smooth": 2.0, "growth": "leafwise"},
    {"interaction_cst": "pairwise", "learners": 0.5, "feature_weights": [1, 2, 3, 4]},
    {"feature_costs": gb.FeatureCosts([0.0, 0.1, 1.0, 0.0], split=0.001)},
    {"categorical_features": [3], "categorical_encoding": gb.OrderedTargetStatistics(permutations=2)},
    {"learning_rate": gb.Averaging(), "sampling": 0.7, "learners": gb.RandomByNode(0.5)},
    {"extra_trees": True, "random_strength": 1.0, "categorical_features": [3]},
    {"categorical_features": [2, 3]},
    {"categorical_features": [2], "growth": "oblivious", "max_depth": 3, "sampling": 0.7},
]
"""Parameters of fits that NumPy makes"""


RANKINGS = ["lambdamart", gb.losses.LambdaMART(metric="map"), "pairwise_logistic", "xendcg"]


def models(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> list[str]:
    some: dict[str, Any] = {"n_estimators": 4, "device": "cpu", "n_jobs": 2, "random_state": 0}
    classifier = gb.GradientBoostingClassifier(**some).fit(x, np.digitize(y, [0.0, 0.5]), sample_weight=weight)
    stops = gb.GradientBoostingRegressor(**some, early_stopping_rounds=2).fit(x, y, eval_set=[(x[:50], -y[:50])])
    assert stops.evals_result_
    regressors = [gb.GradientBoostingRegressor(**some, **more).fit(x, y) for more in FITS]
    label, group = np.digitize(y, [0.0, 0.5]), [1, 7, 40, 2, 50, 50]
    rankers = [gb.GradientBoostingRanker(**some, loss=loss).fit(x, label > 0, group=group) for loss in RANKINGS]
    many = gb.GradientBoostingRanker(**some, sampling=gb.MVS(0.6)).fit(x, label, group=group, sample_weight=weight[:6])
    return [str(stops.evals_result_), *map(gb.dumps, [classifier, stops, many, *regressors, *rankers])]


def test_models_are_those_of_the_kernels(
    machine: Machine, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, weight = rng.normal(size=(150, 4)), rng.integers(0, 3, 150).astype(float)
    x[:, 2:] = rng.integers(0, [3, 7], (150, 2))
    y = x[:, 0] * x[:, 1] + x[:, 3]
    x[rng.random(x.shape) < 0.1] = np.nan
    by_kernels, grown = models(x, y, weight), list[int]()
    grow = levels.grow
    monkeypatch.setattr(levels, "grow", lambda *arguments: grown.append(1) or grow(*arguments))
    monkeypatch.setattr(first_fit, "FIRST_FITS", FirstFits())
    assert models(x, y, weight) == by_kernels
    assert len(grown) > 4 * 4 + 4 * len(FITS) + 4 * len(RANKINGS)
    assert ["categorical_features=[0], )" in text for text in machine.programs] == [False]
    del grown[:]
    monkeypatch.setattr(first_fit, "FIRST_FITS", FirstFits())
    gb.GradientBoostingRegressor(n_estimators=2, device="cpu", n_jobs=1).fit(x, y)
    assert grown == [1, 1]
    assert len(machine.processes) == 1


def test_other_fits_are_left_to_kernels(
    machine: Machine, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_fit, "FIRST_FITS", FirstFits())
    x = rng.normal(size=(60, 3))
    at_the_root = gb.RandomGroups(0.5, groups="root")
    for more in ({"learners": at_the_root}, {"forced_splits": {"feature": 0, "threshold": 0.0}}):
        gb.GradientBoostingRegressor(n_estimators=1, device="cpu", n_jobs=2, **more).fit(x, x[:, 0])
    wide = rng.normal(size=(600, 400))  # whose sums by NumPy would take a gigabyte
    gb.GradientBoostingRegressor(n_estimators=1, device="cpu", n_jobs=2).fit(wide, wide[:, 0])
    assert machine.processes == []


WITHOUT_KIND = {"node_rules", "goss", "statistics", "map", "pairwise_logistic", "xendcg"}
"""Parts of the rarer fits, which ``gb.warm_up`` does not compile"""


def test_warm_up_has_the_other_parts() -> None:
    both = {f"{part}-{first_fit.CATEGORIES}" for part in first_fit.OF_TREES}  # a kind for each would be too many
    noted = {part for parts in warm_up.FIRST_FIT_PARTS.values() for part in parts}
    assert noted == set(first_fit.PARTS) - both - WITHOUT_KIND
    assert warm_up.FIRST_FIT_PARTS.keys() <= warm_up.KINDS.keys()


def test_fits_of_categorical_columns_have_processes_of_their_own(machine: Machine) -> None:
    fits, parts = FirstFits(), ("categories", "oblivious-categories", "sampling")
    assert fits.take(0.1, parts, threads=2)
    machine.processes[0].code = 0
    assert fits.take(0.1, ("plain", "sampling"), threads=2)
    for part, more in (("oblivious-categories", "growth='oblivious'"), ("sampling", "sampling=0.5")):
        assert f"fit({part!r}, categorical_features=[0], {more})" in machine.programs[0]
    assert "fit('plain', )" in machine.programs[1]
    assert "categorical_features" not in machine.programs[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        ("plain", "oblivious", "sampling", "goss", "noise", "lambdamart", "map", "pairwise_logistic", "xendcg"),
        ("categories", "node_rules-categories", "bounds-categories", "statistics"),
    ],
)
def test_the_process_notes_what_it_compiles(asked: tuple[str, ...]) -> None:
    """The program itself, with the kernels of this process's cache."""
    program = first_fit.program(asked, categorical="categories" in asked)
    program = program.replace("first_fit.note_kernels(part)", "print(part)")
    command = [sys.executable, "-c", program, json.dumps(sys.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    times = {part: 1 if first_fit.PARTS[part].call == "rank" else 2 for part in asked}
    assert done.stdout.split() == [part for part in asked for _ in range(times[part])]
