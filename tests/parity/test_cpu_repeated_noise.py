"""Rounds of Langevin boosting, which a CPU repeats in one call: models and reports of rounds one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from support.builders import random_case
from support.examples import crossed, daily
from support.repeated_rounds import Counted, assert_rounds_are_the_references, counted, watched

import gpuboost as gb
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.kernels.growth import repeated_rounds as kernel
from gpuboost.langevin import GeometricAnnealing, Langevin
from gpuboost.learners import RandomByNode, RandomGroups
from gpuboost.losses import Logistic, Poisson, Softmax, SquaredError
from gpuboost.recipe import Recipe
from gpuboost.sampling import MVS, UniformSampling
from gpuboost.types import Limits

__all__ = ["counted"]

GROWTH = DepthWise(Limits(8, 3))


def noise(*given: Any, **more: Any) -> Langevin:
    return Langevin(*given, allow_unproven=True, **more)


NOISY: list[dict[str, Any]] = [
    {"langevin": noise(1e3)},
    {"langevin": noise(1e2, 0.0)},  # the model does not shrink
    {"langevin": noise(1e3, structure_noise=False)},
    {"langevin": noise(1e3, leaf_noise=False)},
    {"langevin": noise(1e3, 0.1, structure_noise=False, leaf_noise=False)},  # the kernel of plain rounds
    {"langevin": noise(1e3), "growth": LeafWise(Limits(6, 8))},
    {"langevin": noise(1e3), "growth": Oblivious(Limits(8, 3))},
    {"langevin": noise(1e3), "growth": DepthWise(Limits(8, 3, reg_alpha=0.1))},
]
DRAWN: list[dict[str, Any]] = [  # a kernel of its own, which takes long to compile
    {"langevin": noise(1e3), "sampling": UniformSampling(0.5)},
    {"langevin": noise(1e3), "sampling": MVS(0.5), "learners": RandomGroups(2)},
    {"langevin": noise(1e3), "learners": RandomByNode(2)},
]
CASES: list[tuple[Any, str, str]] = [
    (SquaredError(), "real", "real"),
    (Logistic(), "binary", "whole"),
    (Poisson(), "positive", "none"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "target", "weights"), CASES)
@pytest.mark.parametrize("noisy", DRAWN)
def test_repeated_rounds_of_drawn_rows_and_features_are_the_references(
    noisy: dict[str, Any], loss: Any, target: str, weights: str, counted: Counted
) -> None:
    of = random_case(5, 200, 4, target=target, weights=weights, categorical=0.0)
    recipe = replace(Recipe(loss, 12, 0.3, GROWTH), **noisy)
    assert_rounds_are_the_references(recipe, of, counted)


@pytest.mark.parametrize(("noisy", "loss", "target", "weights"), crossed(NOISY, CASES))
def test_repeated_rounds_are_the_references(
    noisy: dict[str, Any], loss: Any, target: str, weights: str, counted: Counted
) -> None:
    of = random_case(5, 200, 4, target=target, weights=weights, categorical=0.0)
    recipe = replace(Recipe(loss, 12, 0.3, GROWTH), **noisy)
    assert_rounds_are_the_references(recipe, of, counted)


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [*NOISY, *DRAWN])
def test_rounds_of_several_outputs_are_the_references(noisy: dict[str, Any], counted: Counted) -> None:
    of = random_case(5, 200, 4, target="3", weights="whole", categorical=0.0)
    recipe = replace(Recipe(Softmax(3), 12, 0.3, GROWTH), **noisy)
    assert watched(recipe, of, Cpu(1), together=5) == watched(recipe, of, Reference())
    assert counted.calls == [5, 5, 1]


def test_one_kernel_serves_for_all_noise(counted: Counted) -> None:
    """The process that compiles it has noise on gradients and on leaf values."""
    case, plain = random_case(5, 200, 4, categorical=0.0), Recipe(SquaredError(), 3, 0.3, GROWTH)
    boost(replace(plain, **NOISY[0]), case.data, Cpu(1), together=5)
    before = len(kernel.repeat.overloads)
    for noisy in NOISY[:4]:
        boost(replace(plain, **noisy), case.data, Cpu(1), together=5)
    assert counted.calls == [2] * 5
    assert len(kernel.repeat.overloads) == before


@pytest.mark.slow
def test_categories_have_noise(counted: Counted) -> None:
    case = random_case(15, 200, 5, target="binary", categorical=0.9)
    assert case.data.cuts.is_categorical.any()
    recipe = Recipe(Logistic(), 40, 0.3, GROWTH, langevin=noise(1e3))
    assert watched(recipe, case, Cpu(1), together=8) == watched(recipe, case, Reference())
    assert sum(counted.calls) > 8


def test_leaf_values_in_order_have_noise(counted: Counted) -> None:
    case = random_case(12, 200, 4, categorical=0.0)
    growth = DepthWise(Limits(8, 3, directions=(1, 0, -1, 0)))
    recipe = Recipe(SquaredError(), 12, 0.3, growth, langevin=noise(1e3))
    assert watched(recipe, case, Cpu(1), together=5) == watched(recipe, case, Reference())
    assert counted.calls == [5, 5, 1]


def test_a_model_that_shrinks_is_continued(counted: Counted) -> None:
    case = random_case(8, 150, 4, categorical=0.0)
    recipe = Recipe(SquaredError(), 6, 0.3, GROWTH, langevin=noise(1e2))

    def twice(backend: Any, **given: Any) -> tuple[Any, ...]:
        first = boost(recipe, case.data, backend, **given)
        return watched(replace(recipe, learning_rate=0.1), case, backend, resume=first, **given)

    assert twice(Cpu(1), together=4) == twice(Reference())
    assert counted.calls == [4, 1, 4, 1]


@pytest.mark.parametrize("stop", [2, 5, 9])
def test_rounds_after_a_stop_leave_no_trace(stop: int, counted: Counted) -> None:
    case = random_case(6, 100, 3, categorical=0.0)
    recipe = Recipe(SquaredError(), 30, 0.3, GROWTH, langevin=noise(1e2))
    assert watched(recipe, case, Cpu(1), stop, together=8) == watched(recipe, case, Reference(), stop)
    assert counted.calls


@pytest.mark.parametrize(
    "differing",
    [
        noise(1e3, schedule=GeometricAnnealing(4.0, 3)),
        noise(1e3, random_from=3),
        noise(1e3, noise_scale="weight"),
    ],
    ids=["schedule", "random shapes", "scale"],
)
def test_other_rounds_go_through_the_loop(differing: Langevin, counted: Counted) -> None:
    case = random_case(11, 100, 3, categorical=0.0)
    recipe = Recipe(SquaredError(), 6, 0.3, GROWTH, langevin=differing)
    assert watched(recipe, case, Cpu(1), together=8) == watched(recipe, case, Reference())
    assert not any(counted.calls)


@pytest.mark.parametrize("early", daily([None, 4], 1))
def test_eval_sets_have_the_metrics_of_rounds_one_by_one(
    early: int | None, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = make_friedman1(300, random_state=0)
    model = gb.GradientBoostingRegressor(
        n_estimators=40, max_depth=3, learning_rate=0.3, random_state=0, early_stopping_rounds=early,
        langevin=gb.Langevin(inverse_temperature=1e3),
    )  # fmt: skip
    repeated = clone(model).fit(x[:200], y[:200], eval_set=[(x[200:], y[200:])])
    assert sum(counted.calls) > 8
    monkeypatch.setattr(Cpu, "offers", replace(Cpu.offers, counted_rounds=False))
    one_by_one = clone(model).fit(x[:200], y[:200], eval_set=[(x[200:], y[200:])])
    assert repeated.evals_result_ == one_by_one.evals_result_
    assert gb.dumps(repeated) == gb.dumps(one_by_one)
