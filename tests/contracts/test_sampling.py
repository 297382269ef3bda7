"""Every built-in row-sampling policy keeps the contract that ``gpuboost.testing`` has for policies of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
import pytest
from emulator import emulated_runtime

import gpuboost as gb
from gpuboost import public
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.sampling import EveryRow, smart_first_order, smart_second_order
from gpuboost.testing import SamplingContract
from gpuboost.types import Gradients, Sample


@cache
def emulated() -> Cuda:
    return Cuda(emulated_runtime())


class OnEveryMachine(SamplingContract):
    """The contract with an emulated GPU among the machines."""

    def machines(self) -> Sequence[Backend]:
        return *super().machines(), emulated()

    def on_host(self, machine: Backend, sample: Any) -> Sample:
        if sample.rows is None or isinstance(sample.rows, np.ndarray):
            return super().on_host(machine, sample)
        count = int(machine.to_host(sample.m)[0])
        inverse = sample.inverse_probability
        of_each = np.full(count, 1.0 / sample.rate, np.float32) if inverse is None else machine.to_host(inverse)[:count]
        return Sample(machine.to_host(sample.rows)[:count], of_each)


class TestEveryRow(OnEveryMachine):
    sampling = EveryRow()
    random = False


class TestUniform(OnEveryMachine):
    sampling = gb.UniformSampling(0.3)
    bad_arguments = ({"rate": 0.0}, {"rate": 1.5}, {"rate": float("nan")}, {"rate": True})


class TestHorvitzThompson(OnEveryMachine):
    sampling = gb.UniformSampling(0.3, variance_control="horvitz_thompson")
    bad_arguments = ({"variance_control": "node"}, {"variance_control": None})


class TestImportance(OnEveryMachine):
    sampling = gb.ImportanceSampling(0.3)
    bad_arguments = ({"rate": 0.0}, {"rho": 1.0}, {"score": "h"}, {"floor": 0.5}, {"lag": 3}, {"eta": 0.0})


class TestImportanceByLoss(OnEveryMachine):
    sampling = gb.ImportanceSampling(0.3, score="loss", floor=0.1)
    bad_arguments = ({"score": -1.0}, {"variance_control": "leaf"})


class TestImportanceOfFixedRho(OnEveryMachine):
    sampling = smart_first_order(rho=0.8, paper=True)
    bad_arguments = ({"rho": 0.0}, {"rho": None}, {"floor": 1.5})


class TestImportanceByCurvature(OnEveryMachine):
    sampling = smart_second_order(0.4)
    bad_arguments = ({"rate": -1.0},)


class TestRowProbabilities(OnEveryMachine):
    sampling = gb.RowProbabilities(np.resize([1.0, 0.5, 0.2], 400))
    bad_arguments = ({"p": [2.0]}, {"p": [0.0]}, {"variance_control": "node"})

    def _draw(self, machine: Backend, gradients: Gradients, step: int, seed: int = 0, policy: Any = None) -> Sample:
        rule = gb.RowProbabilities(np.resize(self.sampling.p, gradients.g.shape[1]))
        return super()._draw(machine, gradients, step, seed, rule)


class TestMvs(OnEveryMachine):
    sampling = gb.MVS(0.1)
    bad_arguments = ({"rate": 2.0},)


class TestGoss(OnEveryMachine):
    sampling = gb.GOSS()
    bad_arguments = ({"top": 0.0}, {"other": 0.0}, {"top": 0.95}, {"variance_control": "node"})


class TestTrimming(OnEveryMachine):
    sampling = gb.WeightTrimming(0.9)
    random = False
    bad_arguments = ({"mass": 0.0}, {"mass": 1.5}, {"score": "loss"})


def test_no_policy_is_left_out() -> None:
    covered = {type(case.sampling) for case in OnEveryMachine.__subclasses__()}
    entries = (f"{module}:{name}" for name, module in {**public.PUBLIC, **public.IMPLIED_POLICIES}.items())
    drawing = {public.loaded(entry) for entry in entries if entry.startswith("gpuboost.sampling.")}
    drawing = {policy for policy in drawing if isinstance(policy, type) and hasattr(policy, "draw")}
    drawing -= {gb.QuerySampling}  # which draws no rows before the queries are known
    assert drawing == covered, "each policy has a class in this file, derived from OnEveryMachine"


# the contract finds what it is for


@dataclass(frozen=True)
class Half:
    """Every row with probability 1/2, by NumPy."""

    rate: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.rate <= 1.0:
            raise RecipeError(f"sampling: the rate must be in (0, 1]; got {self.rate!r}.")

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        rows = np.flatnonzero(self.coins(gradients.g.shape[1], key) < self.rate).astype(np.int32)
        return Sample(rows, np.full(len(rows), self.weight(), np.float32))

    def coins(self, n: int, key: Key) -> np.ndarray:
        return np.random.default_rng(key.words).random(n)

    def weight(self) -> float:
        return 1.0 / self.rate


class Unweighted(Half):
    def weight(self) -> float:
        return 1.0


class Global(Half):
    def coins(self, n: int, key: Key) -> np.ndarray:
        return np.random.random(n)  # noqa: NPY002


class Unkeyed(Half):
    def coins(self, n: int, key: Key) -> np.ndarray:
        return np.random.default_rng(0).random(n)


class TestMine(SamplingContract):
    sampling = Half()
    bad_arguments = ({"rate": 0.0},)


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        (Unweighted(), "sums_weighted_by_the_inverse_probability_are_unbiased"),
        (Global(), "a_draw_is_a_function_of_seed_and_round"),
        (Global(), "every_machine_draws_the_same_rows"),
        (Unkeyed(), "a_draw_is_a_function_of_seed_and_round"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_wrong_policy_breaks_it(wrong: Half, test: str) -> None:
    class Contract(SamplingContract):
        sampling = wrong

    with pytest.raises(AssertionError):
        getattr(Contract(), f"test_{test}")()


def test_a_policy_without_bad_arguments_is_asked_for_some() -> None:
    class Contract(SamplingContract):
        sampling = Half()

    assert fields(Half)
    with pytest.raises(AssertionError, match="bad_arguments"):
        Contract().test_arguments_out_of_their_range_are_refused()
