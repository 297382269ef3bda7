"""The Langevin policy: its numbers, its limits, and what the theory says of its company."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from support.builders import random_case

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError, UnprovenError
from gpuboost.execution import Serial
from gpuboost.growth import DepthWise
from gpuboost.keys import Key
from gpuboost.langevin import Chain, Langevin, NoNoise
from gpuboost.learners import RandomGroups
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.reports.report import verdict
from gpuboost.sampling import GOSS, MVS, ImportanceSampling, UniformSampling
from gpuboost.steps import ConstantStep, GradientStep, NewtonStep, QuantileStep, Step
from gpuboost.training.parameters.assembly import recipe_from
from gpuboost.types import Gradients, Limits, Sample, TrainingSet

LIMITS = Limits(16, 4, reg_lambda=0.0)


def made(**changes: Any) -> Recipe:
    """A recipe that the theorem covers, but for the changes."""
    first = Recipe(
        losses.Logistic(), 10, 0.1, DepthWise(LIMITS), step=GradientStep(), langevin=Langevin(shrinkage=0.01)
    )
    return replace(first, **changes)


def unlisted(n: int = 400, **weights: Any) -> TrainingSet:
    return replace(random_case(1, n, 3).data, **weights)


# the numbers


@pytest.mark.parametrize(
    ("policy", "beta"),
    [
        (Langevin(), 400.0),
        (Langevin(temperature=1.0), 400.0),
        (Langevin(inverse_temperature=400.0), 400.0),
        (Langevin(temperature=2.5), 1000.0),
        (Langevin(inverse_temperature=1000.0), 1000.0),
    ],
)
def test_the_inverse_temperature_is_n_or_n_times_the_temperature(policy: Langevin, beta: float) -> None:
    chain = policy.chain(unlisted(), 0.1, 1.0, LIMITS)
    assert chain.structure == chain.leaves == math.sqrt(2.0 * 400.0 / (0.1 * beta))
    assert policy.beta(400.0) == beta


def test_n_is_the_total_weight() -> None:
    policy = Langevin(inverse_temperature=100.0)
    times = np.full(400, 3, np.int32)
    assert policy.chain(unlisted(multiplicity=times), 0.1, 1.0, LIMITS).leaves == math.sqrt(2.0 * 1200.0 / 10.0)
    weight = np.full(400, 0.25)
    assert policy.chain(unlisted(weight=weight), 0.1, 1.0, LIMITS).leaves == math.sqrt(2.0 * 100.0 / 10.0)


def test_the_default_shrinkage_makes_the_prior_variance_about_1_and_is_bounded() -> None:
    assert Langevin().chain(unlisted(), 0.1, 1.0, LIMITS).shrink == pytest.approx(1.0 - 0.1 * 16 / 400)
    stump = replace(LIMITS, max_depth=1)
    assert Langevin(temperature=10.0).chain(unlisted(), 0.1, 1.0, stump).shrink == pytest.approx(1.0 - 0.1 * 2 / 4000)
    assert Langevin(temperature=1e-6).chain(unlisted(), 0.1, 1.0, LIMITS).shrink == 0.5


def test_a_prior_variance_is_another_way_to_say_the_shrinkage() -> None:
    data = unlisted()
    for policy in (Langevin(prior_variance=4.0), Langevin(temperature=2.0, prior_variance=2.0)):
        assert policy.chain(data, 0.1, 1.0, LIMITS).shrink == pytest.approx(1.0 - 0.1 * 16 / (400 * 4.0))
    assert Langevin(prior_variance=1.0).chain(data, 0.1, 1.0, LIMITS) == Langevin().chain(data, 0.1, 1.0, LIMITS)
    assert Langevin(prior_variance=1e-9).chain(data, 0.1, 1.0, LIMITS).shrink == 0.5
    with pytest.raises(RecipeError, match=r"prior_variance: it is leaves / \(beta shrinkage"):
        Langevin(shrinkage=0.1, prior_variance=1.0)


def test_a_constant_curvature_divides_the_step_so_shrinkage_goes_with_it() -> None:
    policy = Langevin(shrinkage=0.02)
    assert policy.chain(unlisted(), 0.1, 0.25, LIMITS).shrink == pytest.approx(1.0 - 0.02 * 0.4)
    assert policy.chain(unlisted(), 0.1, 0.25, LIMITS).leaves == policy.chain(unlisted(), 0.1, 1.0, LIMITS).leaves


def test_switches_leave_one_of_the_two_noises_out() -> None:
    only = Langevin(structure_noise=False).chain(unlisted(), 0.1, 1.0, LIMITS)
    assert (only.structure, only.leaves > 0.0) == (0.0, True)
    only = Langevin(leaf_noise=False).chain(unlisted(), 0.1, 1.0, LIMITS)
    assert (only.structure > 0.0, only.leaves) == (True, 0.0)
    assert NoNoise().chain(unlisted(), 0.1, 1.0, LIMITS) == Chain(1.0, 0.0, 0.0)


def test_an_empty_leaf_has_no_noise() -> None:
    from gpuboost.backends.numerics.leaf_values import leaf_noise
    from gpuboost.types import Nodes

    leaf = np.array([0, -1, -1], np.int32)
    zeros = np.zeros(3)
    nodes = Nodes(leaf, leaf, leaf > 0, leaf, leaf, zeros, zeros, zeros.astype(np.int64), np.zeros((3, 8), np.uint32))
    for ridge in (0.0, 2.0):
        z = leaf_noise(nodes, np.array([4.0, 4.0, 0.0]), Limits(2, reg_lambda=ridge), 3.0, np.ones(3))
        assert z.tolist() == [0.0, 3.0 / math.sqrt(4.0 + ridge), 0.0]


# bad input


@pytest.mark.parametrize("name", ["inverse_temperature", "shrinkage", "temperature", "prior_variance"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, "hot", True, [1.0]])
def test_numbers_out_of_range_are_refused(name: str, value: object) -> None:
    with pytest.raises(RecipeError, match=rf"{name}: Langevin needs None or a finite number"):
        Langevin(**{name: value})


@pytest.mark.parametrize("name", ["inverse_temperature", "temperature", "prior_variance"])
def test_a_temperature_or_a_prior_of_0_is_refused(name: str) -> None:
    with pytest.raises(RecipeError, match=f"{name}: Langevin needs None or a finite number above 0; got 0"):
        Langevin(**{name: 0})


def test_two_spellings_at_once_are_refused() -> None:
    with pytest.raises(RecipeError, match="temperature: it is inverse_temperature / N, so one of the two says it all"):
        Langevin(inverse_temperature=10.0, temperature=1.0)


@pytest.mark.parametrize("name", ["structure_noise", "leaf_noise", "paper", "allow_unproven"])
def test_switches_are_booleans(name: str) -> None:
    with pytest.raises(RecipeError, match=f"{name}: Langevin needs True or False; got 1"):
        Langevin(**{name: 1})


def test_a_shrinkage_that_leaves_nothing_is_refused_before_any_work() -> None:
    with pytest.raises(RecipeError, match=r"shrinkage times learning_rate is below 1; got 1.5"):
        made(langevin=Langevin(shrinkage=15.0))
    with pytest.raises(RecipeError, match=r"20000 rounds that each keep 0.95 of the model would leave less than"):
        made(langevin=Langevin(shrinkage=0.5), rounds=20_000)
    with pytest.raises(RecipeError, match=r"shrinkage: 5000 rounds that each keep 0.5"):
        Langevin(temperature=1e-9).chain(unlisted(), 0.1, 1.0, LIMITS).check(5000)


@pytest.mark.parametrize("value", [1.0, "langevin", Langevin, {"shrinkage": 0.1}])
def test_what_is_no_policy_is_refused(value: object) -> None:
    with pytest.raises(RecipeError, match="langevin: must be None, or a policy such as Langevin"):
        gb.GradientBoostingRegressor(langevin=value).fit(np.eye(4), np.arange(4.0))


# the company it keeps


@dataclass(frozen=True)
class Trimming:
    """A policy of a user's that says what it is."""

    unbiased: bool | None = False
    bounded: bool | None = True

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        return Sample()


@dataclass(frozen=True)
class Delayed:
    """Not the serial execution."""

    def open(self, fit: Callable[..., Any], backend: Backend) -> AbstractContextManager[Any]:
        return Serial().open(fit, backend)


class SearchingStep(GradientStep):
    """A user's step, of which nothing is known."""


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "sound"),
        ({"sampling": UniformSampling(0.5)}, "sound"),
        ({"sampling": MVS(0.5)}, "heuristic"),
        ({"sampling": ImportanceSampling(0.5, score="gradient", floor=0.1)}, "heuristic"),
        ({"sampling": GOSS(0.2, 0.2)}, "heuristic"),
        ({"learners": RandomGroups(1)}, "sound"),
        ({"step": ConstantStep()}, "sound"),
        ({"loss": losses.Huber()}, "sound"),
        ({"loss": losses.Softmax(3)}, "sound"),
        ({"loss": losses.SmoothedZeroOne()}, "sound"),
        ({"growth": DepthWise(replace(LIMITS, reg_lambda=3.0))}, "sound"),
        ({"loss": losses.SquaredError()}, "heuristic"),
        ({"loss": losses.SquaredError(), "step": NewtonStep()}, "heuristic"),
        ({"loss": losses.AbsoluteError()}, "heuristic"),
        ({"loss": losses.Poisson()}, "heuristic"),
        ({"langevin": Langevin(shrinkage=0.0)}, "heuristic"),
        ({"langevin": Langevin(leaf_noise=False)}, "heuristic"),
        ({"langevin": Langevin(structure_noise=False)}, "heuristic"),
        ({"langevin": Langevin(shrinkage=0.01, random_from=5)}, "sound"),
        (
            {
                "langevin": Langevin(shrinkage=0.01, random_from=5),
                "growth": DepthWise(replace(LIMITS, min_samples_leaf=2)),
            },
            "heuristic",
        ),
    ],
)
def test_what_may_be_run(changes: dict[str, Any], kind: str) -> None:
    found = verdict(made(**changes))
    assert found.kind == kind
    assert all(reason for reason in found.reasons)
    assert ("SGLB, theorem 1" in str(found)) == (kind == "sound")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"step": NewtonStep()}, "leaves that average the gradient"),
        ({"growth": DepthWise(replace(LIMITS, min_split_gain=0.1))}, "min_split_gain: the choice of a tree's shape"),
        ({"execution": Delayed()}, "execution: noise and shrinkage assume the chain's own order"),
        ({"sampling": Trimming(None)}, "sampling: it is not known of Trimming"),
    ],
)
def test_what_is_not_proven_has_to_be_asked_for(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(UnprovenError, match=f"{text}.*To run it nevertheless: gb.Langevin.allow_unproven=True"):
        made(**changes)
    asked = made(**changes, langevin=Langevin(shrinkage=0.01, allow_unproven=True))
    assert verdict(asked).kind == "unproven"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"sampling": Trimming()}, "sampling: Langevin boosting requires unbiased gradients; what Trimming"),
        ({"sampling": Trimming(True, False)}, "noise bounded with probability one; Trimming"),
        ({"loss": losses.AbsoluteError(), "step": QuantileStep()}, "searches the best value of each leaf"),
    ],
)
def test_what_changes_the_law_is_refused_even_if_asked_for(changes: dict[str, Any], text: str) -> None:
    for policy in (Langevin(), Langevin(allow_unproven=True)):
        with pytest.raises(RecipeError, match=text) as error:
            made(**changes, langevin=policy)
        assert not isinstance(error.value, UnprovenError)


def test_without_langevin_nothing_of_this_is_asked() -> None:
    for changes in ({"step": NewtonStep()}, {"sampling": Trimming()}, {"execution": Delayed()}):
        assert made(langevin=NoNoise(), **changes).findings == ()


# the estimators


@pytest.mark.parametrize(
    ("loss", "step"), [("squared_error", GradientStep()), ("huber", GradientStep()), ("quantile", GradientStep())]
)
def test_the_automatic_step_is_the_gradients(loss: str, step: Step) -> None:
    params = gb.GradientBoostingRegressor(langevin=Langevin()).get_params(deep=False)
    assert recipe_from(params, losses.get(loss), 100).step == step


def test_leaves_are_plain_averages_unless_told_otherwise() -> None:
    def ridge(loss: Loss, **params: Any) -> float:
        made = gb.GradientBoostingRegressor(**params).get_params(deep=False)
        return recipe_from(made, loss, 100).growth.limits.reg_lambda

    squared, lists = losses.SquaredError(), losses.get("lambdamart")
    assert ridge(squared) == 3.0
    assert ridge(lists) == 1.0
    assert ridge(squared, langevin=Langevin()) == 0.0
    assert ridge(squared, langevin=Langevin(), reg_lambda=1.0) == 1.0
    assert ridge(squared, reg_lambda=0.0) == ridge(lists, reg_lambda=0.0) == 0.0


@pytest.mark.parametrize("loss", ["logistic", losses.Logistic(0.1), "exponential"])
def test_check_says_what_fit_would_do(loss: str | Loss, binary_data: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = binary_data
    model = gb.GradientBoostingClassifier(loss, 3, langevin=Langevin(shrinkage=0.01))
    expected = "sound" if loss == "logistic" else "heuristic"
    assert model.check(x, y).kind == model.fit(x, y).fit_report_.verdict.kind == expected
    newton = model.set_params(step="newton")
    assert newton.check(x, y).kind == "unproven"
    with pytest.raises(UnprovenError, match="allow_unproven=True"):
        newton.fit(x, y)
    newton.set_params(langevin__allow_unproven=True).fit(x, y)
    assert newton.fit_report_.verdict.kind == "unproven"


def test_early_stopping_picks_an_iterate_so_the_law_is_not_that_of_a_draw(
    binary_data: tuple[np.ndarray, np.ndarray],
) -> None:
    x, y = binary_data
    model = gb.GradientBoostingClassifier(
        n_estimators=20, langevin=Langevin(), early_stopping_rounds=3, validation_fraction=0.2
    )
    assert model.check(x, y).kind == model.fit(x, y).fit_report_.verdict.kind == "heuristic"
    assert "not a draw from the stationary law" in str(model.fit_report_.verdict)


def test_its_numbers_are_searched_as_nested_parameters(regression_data: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = regression_data
    model = gb.GradientBoostingRegressor(n_estimators=5, langevin=Langevin())
    grid = {"langevin__inverse_temperature": [1e2, 1e5], "langevin__shrinkage": [0.0, 0.01]}
    best = GridSearchCV(model, grid, cv=2).fit(x, y).best_params_
    assert best["langevin__inverse_temperature"] == 1e5


def test_the_policy_is_saved_with_the_model(regression_data: tuple[np.ndarray, np.ndarray], tmp_path: Any) -> None:
    x, y = regression_data
    policy = Langevin(temperature=3.0, shrinkage=0.02, paper=True)
    model = gb.GradientBoostingRegressor(n_estimators=3, langevin=policy, random_state=0).fit(x, y)
    model.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert loaded.langevin == policy
    assert loaded.fit(x, y).predict(x).tobytes() == model.set_params(random_state=0).fit(x, y).predict(x).tobytes()
