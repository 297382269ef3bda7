"""Several targets a row: each output's trees are those of a model of its own, on every machine, byte for byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulator.nccl import World
from support.builders import TEAMS, Case, model_bytes, random_case
from support.cpu_shards import even, place
from support.examples import crossed
from support.gpu_shards import place as gpu_place
from support.gpu_shards import whole_stretches
from support.training import MACHINES, allowed, assert_parity, device, parity, trained

from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.langevin import Langevin
from gpuboost.losses.base import BaseLoss
from gpuboost.losses.per_output import PerOutput
from gpuboost.recipe import Recipe
from gpuboost.sampling import ImportanceSampling, UniformSampling
from gpuboost.steps import GradientStep, LineSearchStep, NewtonStep, QuantileStep, Step
from gpuboost.types import Limits

K = 3
SHALLOW = DepthWise(Limits(8, 3))
LOSSES: list[tuple[BaseLoss, str]] = [
    (losses.SquaredError(), "real"),
    (losses.Quantile(0.2), "real"),
    (losses.Huber(0.3), "real"),
    (losses.Poisson(), "positive"),
    (losses.Logistic(0.1), "binary"),
]


def with_columns(case: Case, seed: int = 0, k: int = K) -> Case:
    """The case with k targets a row: its own, and shuffled ones."""
    random = np.random.default_rng(seed)
    y = np.column_stack([case.data.y, *(random.permutation(case.data.y) for _ in range(k - 1))])
    return replace(case, data=replace(case.data, y=y))


@pytest.mark.parametrize(
    ("loss", "target", "step", "weights", "machine"),
    crossed(
        [(loss, target, step) for loss, target in LOSSES for step in allowed(loss)],
        ["none", "real", "whole"],
        MACHINES,
    ),
    ids=lambda value: getattr(value, "name", value if isinstance(value, str) else type(value).__name__),
)
def test_every_loss_of_columns(loss: BaseLoss, target: str, step: Step, weights: str, machine: str) -> None:
    case = with_columns(random_case(len(target), 200, 4, target=target, weights=weights))
    found = assert_parity(Recipe(PerOutput(loss, K), 3, 0.5, SHALLOW, step=step), case.data, machine)
    assert max(len(tree.value) for tree in found.trees) > 1
    if machine == "cpu":
        for output in range(K):
            one = replace(case.data, y=np.ascontiguousarray(case.data.y[:, output]))
            alone = boost(Recipe(loss, 3, 0.5, SHALLOW, step=step), one, TEAMS[1], seed=7)
            assert alone.bias[0] == found.bias[output]
            for ours, theirs in zip(found.trees[output::K], alone.trees, strict=True):
                assert ours.value.tobytes() == theirs.value.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("machine", [*MACHINES, "shards"])
@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(PerOutput(losses.SquaredError(), K), 3, 0.5, LeafWise(Limits(9, 6)), ImportanceSampling(0.4)),
        Recipe(PerOutput(losses.Logistic(), K), 3, 0.5, Oblivious(Limits(8, 3)), UniformSampling(0.5)),
        Recipe(PerOutput(losses.AbsoluteError(), K), 3, 0.5, SHALLOW, step=QuantileStep()),
        Recipe(PerOutput(losses.SquaredError(), K), 3, 0.1, SHALLOW, step=GradientStep(), langevin=Langevin(1.0)),
    ],
    ids=["leafwise", "oblivious", "quantiles", "langevin"],
)
def test_it_goes_with_the_other_pieces(recipe: Recipe, machine: str) -> None:
    target = "binary" if recipe.loss.task == "multilabel" else "real"
    case = with_columns(random_case(4, 300, 5, categorical=0.0, target=target, weights="real"))
    if machine != "shards":
        assert_parity(recipe, case.data, machine)
        return
    expected = model_bytes(boost(recipe, case.data, TEAMS[1], seed=3))
    for ends in ([300], even(300, 3)):
        backend, data = place(case, ends)
        assert model_bytes(boost(recipe, data, backend, seed=3)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("loss", "per"), [(losses.Logistic(), "leaf"), (losses.AbsoluteError(), "tree")])
def test_line_searches(loss: BaseLoss, per: str, machine: str) -> None:
    case = with_columns(random_case(6, 250, 4, categorical=0.0, target="binary"))
    assert_parity(Recipe(PerOutput(loss, K), 2, 0.5, SHALLOW, step=LineSearchStep(per)), case.data, machine)


def test_the_loss_of_rows_is_the_sum_over_columns_on_every_machine() -> None:
    case = with_columns(random_case(2, 150, 3, weights="real"))
    loss = PerOutput(losses.SquaredError(), K)
    recipe = Recipe(loss, 2, 0.5, SHALLOW, step=NewtonStep())
    _, running = parity(recipe, case.data, "cpu", seed=7, threads=(1, 3))
    scores, weight = np.frombuffer(running[-1]).reshape(K, -1), case.data.row_weight()
    expected = np.average(0.5 * ((scores.T - case.data.y) ** 2).sum(axis=1), weights=weight)
    found = [machine.loss_value(loss, scores, case.data.y, weight) for machine in (Reference(), TEAMS[3])]
    cuda = Cuda(device())
    found.append(cuda.loss_value(loss, cuda.start(case.data, np.zeros(K)) * 0.0, case.data.y * 0.0 + 1.0, weight))
    assert found[0] == found[1] == pytest.approx(expected, rel=1e-12)
    assert found[2] == pytest.approx(0.5 * K, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [losses.SquaredError(), losses.Quantile(0.3)], ids=lambda loss: loss.name)
def test_several_gpus(loss: BaseLoss) -> None:
    rows = 9_000
    case = with_columns(random_case(2, rows, 3, categorical=0.0, missing=0.05), k=2)
    step = QuantileStep() if loss.leaf_quantile is not None else NewtonStep()
    recipe = Recipe(PerOutput(loss, 2), 2, 0.5, SHALLOW, step=step)
    expected, scores = trained(recipe, case.data, TEAMS[1])
    backend, data = gpu_place(case, whole_stretches(rows, 2), World())
    found, running = trained(recipe, data, backend)
    assert model_bytes(found) == model_bytes(expected)
    assert running == scores
