"""Rounds that a device repeats without the host: the model, and what a watch sees, are those of rounds one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from emulator import emulated_runtime
from support.builders import model_bytes, random_case
from support.examples import daily

from gpuboost import losses
from gpuboost.backends.cuda import leaves
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.learners import RandomGroups
from gpuboost.losses import AbsoluteError, Logistic, Softmax
from gpuboost.recipe import Recipe
from gpuboost.sampling import UniformSampling
from gpuboost.steps import automatic
from gpuboost.types import Limits, Progress

SHALLOW = DepthWise(Limits(4, 2))


def watched(recipe: Recipe, case: Any, backend: Any, stop: int | None = None, **given: Any) -> tuple[Any, ...]:
    """The model, and of each round that the watch saw: its number, trees so far, ticket and version."""
    seen: list[tuple[int, ...]] = []

    def watch(progress: Progress) -> bool:
        line = progress.log[-1]
        seen.append((progress.round, progress.n_rounds, line.ticket, line.pulled, len(progress.ensemble.trees)))
        return progress.n_rounds == stop

    return model_bytes(boost(recipe, case.data, backend, watch=watch, **given)), seen


@pytest.mark.parametrize(
    ("loss", "target", "growth"),
    [
        (Logistic(), "binary", SHALLOW),
        (AbsoluteError(), "real", Oblivious(Limits(4, 2))),
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
    assert runtime.cp.counts["kernel next_slot"] > 0


def test_few_rounds_are_repeated_by_the_graph_of_one() -> None:
    case = random_case(5, 60, 2, target="binary", most_cuts=9)
    recipe, runtime = Recipe(Logistic(), 20, 0.3, SHALLOW), emulated_runtime()
    assert watched(recipe, case, Cuda(runtime), together=8) == watched(recipe, case, Reference())
    assert runtime.cp.counts["graph"] == 18
    assert runtime.cp.counts["kernel next_slot"] == 0


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
            {"sampling": UniformSampling(0.5)},
            {"rates": tuple(0.3 / (1 + i // 10) for i in range(20))},
            {"growth": LeafWise(Limits(4, 3))},
            {"learners": RandomGroups(1)},
            {"growth": DepthWise(Limits(4, 2, random_strength=1.0))},
            {"averages": True, "learning_rate": 1.0},
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
