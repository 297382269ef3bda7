"""The pieces of a run: what is there if nothing is said, and what is refused before any work."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from importlib import import_module
from pkgutil import iter_modules

import pytest

from gpuboost import composition, losses
from gpuboost.composition import rules
from gpuboost.errors import RecipeError
from gpuboost.execution import Serial
from gpuboost.growth import DepthWise, LeafWise
from gpuboost.learners import AllLearners, RandomGroups
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, UniformSampling
from gpuboost.steps import ConstantStep, NewtonStep
from gpuboost.types import Limits


def test_what_is_not_said_is_an_object_that_does_nothing() -> None:
    recipe = Recipe(losses.SquaredError())
    assert (recipe.sampling, recipe.learners, recipe.execution) == (EveryRow(), AllLearners(), Serial())
    assert recipe.step == NewtonStep()
    assert isinstance(recipe.growth, DepthWise)


@pytest.mark.parametrize("rounds", [-1, -100])
def test_rounds_below_zero_are_refused(rounds: int) -> None:
    with pytest.raises(RecipeError, match=f"rounds: must be at least 0; got {rounds}"):
        Recipe(losses.SquaredError(), rounds)


@pytest.mark.parametrize("rate", [0.0, -0.1, float("nan")])
def test_a_learning_rate_that_is_not_positive_is_refused(rate: float) -> None:
    with pytest.raises(RecipeError, match="learning_rate: must be positive; got"):
        Recipe(losses.SquaredError(), 1, rate)


def test_a_contradiction_is_refused_whenever_it_arises() -> None:
    recipe = Recipe(losses.Logistic(), step=ConstantStep())
    with pytest.raises(RecipeError, match="smoothness"):
        replace(recipe, loss=losses.Poisson())


def test_every_rule_of_composition_is_listed() -> None:
    modules = [import_module(f"gpuboost.composition.{found.name}") for found in iter_modules(composition.__path__)]
    written = {module.findings for module in modules if hasattr(module, "findings") and module is not rules}
    assert len(written) >= 15
    assert written <= {rule.findings for rule in rules.RULES}


def test_recipes_are_compared_by_their_pieces_and_cannot_be_changed() -> None:
    def make(rate: float) -> Recipe:
        return Recipe(
            losses.Huber(2.0), 5, 0.1, LeafWise(Limits(7)), UniformSampling(rate), RandomGroups(2), ConstantStep()
        )

    assert make(0.5) == make(0.5) != make(0.6)
    with pytest.raises(FrozenInstanceError):
        make(0.5).rounds = 3
