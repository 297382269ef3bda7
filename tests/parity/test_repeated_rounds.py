"""Rounds that a device repeats without the host: the model, and what a watch sees, are those of rounds one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from emulator import emulated_gpu, emulated_runtime
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from support.builders import model_bytes, random_case
from support.examples import daily

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cuda import leaves
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.composition.repeated_rounds import rounds_are_counted, rounds_are_equal
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.langevin import GeometricAnnealing, Langevin
from gpuboost.learners import RandomByLevel, RandomByNode, RandomGroups
from gpuboost.losses import AbsoluteError, Logistic, Softmax, SquaredError
from gpuboost.recipe import Recipe
from gpuboost.sampling import GOSS, MVS, ImportanceSampling, UniformSampling, WeightTrimming
from gpuboost.steps import automatic
from gpuboost.types import Limits, Progress

SHALLOW = DepthWise(Limits(4, 2))


def watched(recipe: Recipe, case: Any, backend: Any, stop: int | None = None, **given: Any) -> tuple[Any, ...]:
    """The model, and of each round that the watch saw: its number, ticket, version, shrinkage and trees so far."""
    seen: list[tuple[float, ...]] = []

    def watch(progress: Progress) -> bool:
        line = progress.log[-1]
        place = progress.round, progress.n_rounds, line.ticket, line.pulled
        seen.append((*place, progress.factor, progress.scale, len(progress.ensemble.trees)))
        return progress.n_rounds == stop

    return model_bytes(boost(recipe, case.data, backend, watch=watch, **given)), seen


@pytest.mark.parametrize(
    ("loss", "target", "growth"),
    [
        (Logistic(), "binary", SHALLOW),
        (AbsoluteError(), "real", Oblivious(Limits(4, 2))),
        (SquaredError(), "real", LeafWise(Limits(5, 62))),
        pytest.param(Softmax(3), "3", SHALLOW, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("together", daily([4, 2], 1))
def test_repeated_rounds_are_the_references(
    loss: Any, target: str, growth: Any, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuboost.backends.cuda.backend.SLOTS", 24)  # so that the ring is filled several times
    monkeypatch.setattr(leaves, "PAYS", 1)
    case = random_case(5, 60, 2, target=target, most_cuts=9)
    recipe = Recipe(loss, 41, 0.3, growth, step=automatic(loss))
    runtime = emulated_runtime()
    assert watched(recipe, case, Cuda(runtime), together=together) == watched(recipe, case, Reference())
    assert runtime.cp.counts["graph"] < 39
    assert runtime.cp.counts["kernel next_round"] > 0


NODES = {"learners": RandomByNode(2)}
DRAWN: list[dict[str, Any]] = [
    {"sampling": MVS(0.4), **NODES},
    {"sampling": UniformSampling(0.5), "growth": DepthWise(Limits(4, 2, random_strength=1.0))},
    {"sampling": GOSS(variance_control="none"), "growth": DepthWise(Limits(4, 2, extra_trees=True))},
    {"sampling": WeightTrimming(0.8), "learners": RandomByLevel(2)},
    {"sampling": ImportanceSampling(0.5, score="loss"), "growth": Oblivious(Limits(4, 2))},
    {"loss": Softmax(3), "sampling": UniformSampling(0.6), **NODES},
    {"learners": RandomGroups(2)},
    {"sampling": UniformSampling(0.6), "growth": LeafWise(Limits(4, 62)), **NODES},
    {"loss": Softmax(3), "learners": RandomGroups(0.5), "growth": Oblivious(Limits(4, 2, random_strength=1.0))},
    {"langevin": Langevin(1e3, allow_unproven=True)},
    {"loss": Softmax(3), "langevin": Langevin(1e3, 0.01, structure_noise=False, allow_unproven=True)},
    {"sampling": MVS(0.5), "langevin": Langevin(1e3, noise_scale="weight", allow_unproven=True), **NODES},
]
"""Pieces that draw by kernels, in the streams of their round."""


@pytest.mark.parametrize("drawn", daily(DRAWN, 3), ids=str)
@pytest.mark.parametrize("pays", [1, 16])
def test_rounds_that_count_are_repeated(drawn: dict[str, Any], pays: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of random streams go up on the device, or, in graphs of one round, in what the host writes."""
    monkeypatch.setattr("gpuboost.backends.cuda.backend.SLOTS", 24)
    monkeypatch.setattr(leaves, "PAYS", pays)
    recipe = replace(Recipe(Logistic(), 30, 0.3, SHALLOW), **drawn)
    case = random_case(5, 120, 3, target="3" if recipe.loss.n_outputs == 3 else "binary", most_cuts=9)
    runtime, through_verbs, gradients = emulated_runtime(), [], Cuda.gradients

    def noted(self: Cuda, *arguments: Any) -> Any:
        through_verbs.append(arguments)
        return gradients(self, *arguments)

    monkeypatch.setattr(Cuda, "gradients", noted)
    assert watched(recipe, case, Cuda(runtime), together=4) == watched(recipe, case, Reference())
    prepared = recipe.prepared(Reference(), case.data)
    assert rounds_are_counted(prepared)
    assert not rounds_are_equal(prepared)
    assert len(through_verbs) < 6
    assert (runtime.cp.counts["kernel next_round"] > 0) == (pays == 1)


@pytest.mark.parametrize("params", daily([{"sampling": 0.5}, {"sampling": MVS(0.4), "learners": RandomByNode(2)}], 1))
def test_the_report_has_every_draw(params: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "PAYS", 1)
    x, y = make_friedman1(150, random_state=0)
    model = gb.GradientBoostingRegressor(n_estimators=40, max_depth=2, random_state=0, **params)
    with emulated_gpu() as cupy:
        repeated = clone(model).set_params(device="cuda").fit(x, y)
        assert cupy.counts["kernel next_round"] > 0
        monkeypatch.setattr(Cuda, "offers", replace(Cuda.offers, counted_rounds=False))
        one_by_one = clone(model).set_params(device="cuda").fit(x, y)
    assert gb.dumps(repeated) == gb.dumps(one_by_one)
    assert repeated.fit_report_.sampling == one_by_one.fit_report_.sampling


def test_rounds_of_which_the_host_reads_the_end_go_through_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.backends.cuda.trees.plan.BLIND_PASSES", 3)
    case, runtime = random_case(5, 60, 2, target="binary", most_cuts=9), emulated_runtime()
    recipe = Recipe(Logistic(), 20, 0.3, LeafWise(Limits(6, 62)))
    assert watched(recipe, case, Cuda(runtime), together=8) == watched(recipe, case, Reference())
    assert runtime.cp.counts["graph"] == 0


def test_few_rounds_are_repeated_by_the_graph_of_one() -> None:
    case = random_case(5, 60, 2, target="binary", most_cuts=9)
    recipe, runtime = Recipe(Logistic(), 20, 0.3, SHALLOW), emulated_runtime()
    assert watched(recipe, case, Cuda(runtime), together=8) == watched(recipe, case, Reference())
    assert runtime.cp.counts["graph"] == 18
    assert runtime.cp.counts["kernel next_round"] == 0


@pytest.mark.parametrize("pays", [1, 16])
@pytest.mark.parametrize("stop", [2, 3, 9, 30])
def test_rounds_after_a_stop_are_not_in_the_model(stop: int, pays: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "PAYS", pays)
    case = random_case(6, 60, 2, target="binary", most_cuts=9)
    recipe = Recipe(Logistic(), 30, 0.3, SHALLOW)
    found = watched(recipe, case, Cuda(emulated_runtime()), stop, together=16)
    assert found == watched(recipe, case, Reference(), stop)
    assert len(found[1]) == stop


def test_a_model_is_continued_by_repeated_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "PAYS", 1)
    case, backend = random_case(7, 60, 2, target="binary", most_cuts=9), Cuda(emulated_runtime())
    recipe = Recipe(Logistic(), 12, 0.3, SHALLOW)

    def twice(backend: Any, **given: Any) -> tuple[Any, ...]:
        first = boost(recipe, case.data, backend, **given)
        return watched(replace(recipe, learning_rate=0.1), case, backend, resume=first, **given)

    assert twice(backend, together=8) == twice(Reference())


@pytest.mark.parametrize(
    "differing",
    daily(
        [
            {"sampling": MVS(0.5, frozen_from=5)},
            {"rates": tuple(0.3 / (1 + i // 10) for i in range(20))},
            {"learners": RandomGroups(1, "root")},
            {"sampling": UniformSampling(0.5, variance_control="horvitz_thompson")},
            {"averages": True, "learning_rate": 1.0},
            {"langevin": Langevin(1e3, schedule=GeometricAnnealing(4.0, 9), allow_unproven=True)},
            {"langevin": Langevin(1e3, random_from=9, allow_unproven=True)},
        ],
        3,
    ),
    ids=str,
)
def test_rounds_that_differ_are_not_repeated(differing: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("a round was repeated")

    monkeypatch.setattr(Cuda, "repeat", refuse)
    case = random_case(8, 60, 2, target="binary", most_cuts=9)
    recipe = replace(Recipe(losses.Logistic(), 20, 0.3, SHALLOW), **differing)
    assert watched(recipe, case, Cuda(emulated_runtime()), together=8) == watched(recipe, case, Reference())


def test_a_host_repeats_nothing() -> None:
    case = random_case(8, 60, 2, target="binary", most_cuts=9)
    recipe = Recipe(Logistic(), 4, 0.3, SHALLOW)
    assert watched(recipe, case, Reference(), together=8) == watched(recipe, case, Reference())
