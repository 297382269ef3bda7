"""Rows shared out to 1, 2 or 4 emulated GPUs: one model, byte for byte, and one machine's at that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator.nccl import World
from support.builders import Case, model_bytes, random_case
from support.examples import crossed, daily
from support.gpu_shards import place, whole_stretches

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Backend
from gpuboost.boosting import boost
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious, SignStump
from gpuboost.learners import AllLearners, RandomByLevel, RandomByNode, RandomGroups, RandomLearners
from gpuboost.losses import Loss
from gpuboost.multi_output import EveryOutput, OneTree, RandomOutputs, RandomProjection, TopOutputs
from gpuboost.recipe import Recipe
from gpuboost.steps import automatic
from gpuboost.types import Ensemble, Limits, Progress, TrainingSet

ROWS, FEWER = 13_000, 5_000  # four stretches and two, the last of which is not whole


def run(recipe: Recipe, data: TrainingSet, backend: Backend, resume: Ensemble | None = None) -> list[bytes]:
    """The model, and after each round the scores and the mean loss."""
    seen: list[bytes] = []
    weight = None if data.weight is None and data.multiplicity is None else data.row_weight()

    def watch(progress: Progress) -> bool:
        seen.append(backend.to_host(progress.scores).tobytes())
        seen.append(np.float64(backend.loss_value(recipe.loss, progress.scores, data.y, weight)).tobytes())
        return False

    return [model_bytes(boost(recipe, data, backend, seed=3, watch=watch, resume=resume)), *seen]


def assert_one_machine(recipe: Recipe, case: Case, shards: tuple[int, ...] = (1, 2, 4), **given: Any) -> None:
    expected = run(recipe, case.data, Cpu(1), **given)
    for size in shards:
        backend, data = place(case, whole_stretches(len(case.data.y), size), World())
        assert backend.by == ("alone" if size == 1 else "nccl")
        assert run(recipe, data, backend, **given) == expected, size


@pytest.mark.parametrize("least", daily([40, 1], 1))
@pytest.mark.parametrize("growth", daily([LeafWise, DepthWise, Oblivious], 1))
def test_every_growth(growth: type, least: int) -> None:
    case = random_case(2, ROWS, 6, categorical=0.3, missing=0.05, target="binary")
    recipe = Recipe(losses.Logistic(), 3, 0.5, growth(Limits(16, 5, min_samples_leaf=least)))
    assert_one_machine(recipe, case)


LOSSES: list[tuple[Loss, str]] = [
    (losses.SquaredError(), "real"),
    (losses.Quantile(0.3), "real"),
    (losses.Quantile([0.3, 0.6]), "real"),
    (losses.Poisson(), "positive"),
    (losses.Softmax(3), "3"),
    (losses.GaussianNLL(), "real"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "target", "weights"),
    crossed(LOSSES, ["none", "real", "whole"]),
    ids=lambda value: getattr(value, "name", None),
)
def test_losses_and_their_steps(loss: Loss, target: str, weights: str) -> None:
    case = random_case(8, ROWS, 5, target=target, weights=weights)
    recipe = Recipe(loss, 2, 0.3, DepthWise(Limits(9, 4)), step=automatic(loss))
    assert_one_machine(recipe, case, (4,))


DRAWN: list[tuple[Any, Growth]] = [
    (RandomLearners(7), DepthWise(Limits(2, 1))),
    (RandomGroups(1, "root"), DepthWise(Limits(12, 4, 3))),
    (RandomByNode(2), DepthWise(Limits(12, 4))),
    (RandomByNode(2), LeafWise(Limits(9, 6, 3))),
    (RandomByLevel(2), LeafWise(Limits(9, 6, 3))),
    (AllLearners(), SignStump(Limits(2, 1))),
    (AllLearners(), LeafWise(Limits(9, 6, random_strength=0.5))),
    (AllLearners(), Oblivious(Limits(16, 4, random_strength=1.0))),
    (AllLearners(), LeafWise(Limits(9, 6, extra_trees=True))),
    (AllLearners(), Oblivious(Limits(16, 4, extra_trees=True))),
]


@pytest.mark.slow
@pytest.mark.parametrize(("learners", "growth"), DRAWN, ids=str)
def test_which_splits_compete_is_drawn_alike_everywhere(learners: Any, growth: Growth) -> None:
    case = random_case(5, FEWER, 5, target="binary", weights="whole", categorical=0.0)
    assert_one_machine(Recipe(losses.Logistic(), 3, 0.5, growth, learners=learners), case, (2,))


@pytest.mark.slow
def test_without_nccl_it_goes_through_the_host() -> None:
    case = random_case(5, ROWS, 4, target="binary")
    recipe = Recipe(losses.Logistic(), 3, 0.5, DepthWise(Limits(12, 4)))
    backend, data = place(case, whole_stretches(ROWS, 3))
    assert backend.by == "host"
    assert "no NCCL" in backend.why
    assert run(recipe, data, backend) == run(recipe, case.data, Cpu(1))


@pytest.mark.slow
def test_a_model_is_carried_on() -> None:
    case = random_case(1, FEWER, 4, target="binary")
    recipe = Recipe(losses.Logistic(), 3, 0.5, DepthWise(Limits(8, 3)))
    begin = boost(recipe, case.data, Cpu(1), seed=3)
    assert_one_machine(recipe, case, (2,), resume=begin)


@pytest.mark.slow
def test_deep_trees_are_looked_at() -> None:
    """Beyond STATIC_LEVELS the driver asks whether there is anything left to split."""
    case = random_case(3, ROWS, 3, categorical=0.0)
    recipe = Recipe(losses.SquaredError(), 1, 0.5, DepthWise(Limits(400, 15)))
    assert_one_machine(recipe, case, (2,))


@pytest.mark.slow
def test_a_gradient_that_is_not_finite_ends_the_fit_everywhere() -> None:
    case = random_case(1, ROWS, 3)
    case.data.y[9_000] = np.inf  # of the last shard
    backend, data = place(case, whole_stretches(ROWS, 2), World())
    with pytest.raises(InputError, match="finite"):
        boost(Recipe(losses.SquaredError(), 2, 0.5, DepthWise(Limits(4, 2))), data, backend)


@pytest.mark.parametrize(
    ("sketch", "growth"),
    crossed(
        [EveryOutput(), TopOutputs(2), RandomOutputs(2), RandomProjection(2)],
        [DepthWise(Limits(12, 4)), LeafWise(Limits(9, 6, 40))],
        most=1,
    ),
    ids=repr,
)
def test_one_tree_for_all_outputs(sketch: Any, growth: Growth) -> None:
    case = random_case(4, FEWER, 3, target="3", categorical=0.4, missing=0.05, weights="whole")
    assert_one_machine(Recipe(losses.Softmax(3), 2, 0.5, growth, multi_output=OneTree(sketch)), case, (1, 2))
