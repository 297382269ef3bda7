"""Trees under monotonic constraints on the emulated device: the bytes of the definition."""

from __future__ import annotations

from functools import cache

import pytest
from emulator import emulated_runtime
from emulator.nccl import World
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import constrained, model_bytes, random_case
from support.gpu_shards import place, whole_stretches

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, Growth, LeafWise
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomByNode, RandomLearners, Selection
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, ImportanceSampling, Sampling, UniformSampling
from gpuboost.steps import GradientStep, LineSearchStep, NewtonStep, QuantileStep, Step
from gpuboost.types import Limits, Progress, TrainingSet

ROWS = 13_000  # four stretches, the last of which is not whole
seeds = st.integers(0, 2**32 - 1)
limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([2, 9, 40]),
    max_depth=st.sampled_from([1, 2, 4, 7]),
    min_samples_leaf=st.sampled_from([1, 1, 3]),
    reg_lambda=st.sampled_from([0.0, 1.0, 10.0]),
    min_split_gain=st.sampled_from([0.0, 0.01]),
)


@cache
def device(order: str = "forward") -> CupyRuntime:
    return emulated_runtime(order)


def run(recipe: Recipe, data: TrainingSet, backend: Backend) -> list[bytes]:
    """The model, and the scores after each round."""
    seen: list[bytes] = []

    def watch(progress: Progress) -> bool:
        seen.append(backend.to_host(progress.scores).tobytes())
        return False

    return [model_bytes(boost(recipe, data, backend, seed=7, watch=watch)), *seen]


def assert_parity(recipe: Recipe, data: TrainingSet, order: str = "forward") -> None:
    assert run(recipe, data, Cuda(device(order))) == run(recipe, data, Reference())


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seeds, st.sampled_from([2, 100, 700]), st.sampled_from([1, 4, 9]), st.sampled_from([0.0, 0.3]),
    st.sampled_from(["none", "real", "whole"]), st.one_of(st.builds(DepthWise, limits), st.builds(LeafWise, limits)),
    st.sampled_from([EveryRow(), UniformSampling(0.5), ImportanceSampling(0.3)]),
    st.sampled_from(["forward", "random"]),
)  # fmt: skip
def test_every_tree_and_value(
    seed: int, n: int, d: int, categorical: float, weights: str, growth: Growth, sampling: Sampling, order: str
) -> None:
    data = random_case(seed, n, d, categorical=categorical, weights=weights).data
    recipe = Recipe(losses.SquaredError(), 3, 0.7, constrained(growth, data.cuts, seed), sampling)
    assert_parity(recipe, data, order=order)


@pytest.mark.parametrize(
    ("loss", "step"),
    [
        (losses.Quantile(0.3), QuantileStep()),
        (losses.Huber(), LineSearchStep("leaf")),
        (losses.Huber(), LineSearchStep("tree")),
        (losses.Quantile(0.3), LineSearchStep("leaf")),
        (losses.Poisson(), NewtonStep()),
    ],
)
@pytest.mark.parametrize("growth", [DepthWise(Limits(16, 5)), LeafWise(Limits(9, 6, 3))])
def test_values_that_take_steps_of_their_own(loss: losses.Loss, step: Step, growth: Growth) -> None:
    data = random_case(3, 400, 5, categorical=0.0, target="positive").data
    assert_parity(Recipe(loss, 4, 0.6, constrained(growth, data.cuts, 1), step=step), data)


@pytest.mark.parametrize(
    ("learners", "growth"),
    [
        (RandomByNode(2), LeafWise(Limits(9, 6))),
        (RandomLearners(9), DepthWise(Limits(2, 1))),
        (AllLearners(), DepthWise(Limits(16, 4, random_strength=1.0))),
    ],
)
def test_features_and_cuts_that_are_drawn(learners: Selection, growth: Growth) -> None:
    data = random_case(4, 300, 5, categorical=0.0).data
    recipe = Recipe(losses.SquaredError(), 4, 0.6, constrained(growth, data.cuts, 2), learners=learners)
    assert_parity(recipe, data, order="random")


def test_noise_is_held_to_the_order() -> None:
    data = random_case(5, 300, 4, categorical=0.0).data
    growth = constrained(DepthWise(Limits(16, 4, reg_lambda=0.0)), data.cuts, 3)
    noisy = Langevin(allow_unproven=True)
    assert_parity(Recipe(losses.SquaredError(), 4, 0.3, growth, step=GradientStep(), langevin=noisy), data)


@pytest.mark.parametrize("growth", [DepthWise(Limits(16, 5)), LeafWise(Limits(9, 6, 40))])
def test_several_gpus(growth: Growth) -> None:
    case = random_case(2, ROWS, 5, categorical=0.0, missing=0.05)
    loss = losses.Quantile(0.3) if isinstance(growth, LeafWise) else losses.SquaredError()
    step = QuantileStep() if isinstance(growth, LeafWise) else NewtonStep()
    recipe = Recipe(loss, 3, 0.5, constrained(growth, case.data.cuts, 4), step=step)
    expected = run(recipe, case.data, Cpu(1))
    for size in (1, 4):
        backend, data = place(case, whole_stretches(ROWS, size), World())
        assert run(recipe, data, backend) == expected
