"""The recipe of an estimator's parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpuboost.composition.inert import inert_findings
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious, SignStump
from gpuboost.learners import weighted
from gpuboost.learning_rates import Averaging
from gpuboost.losses.protocol import Loss
from gpuboost.losses.start_values import OPTIMUM, start_rule
from gpuboost.recipe import Recipe
from gpuboost.training.constraints.by_column import NOTHING, ByColumn
from gpuboost.training.parameters.automatic import provisional
from gpuboost.training.parameters.base_learners import base_learner
from gpuboost.training.parameters.learner_checks import check_learners
from gpuboost.training.parameters.limits import limits
from gpuboost.training.parameters.policies import (
    execution,
    langevin,
    learners,
    learning_rate,
    multi_output,
    permutations,
    sampling,
    step,
)
from gpuboost.training.parameters.posterior_samples import check_posterior_samples
from gpuboost.training.parameters.values import choice, integer
from gpuboost.types import Limits

GROWTHS: dict[str, Callable[[Limits], Growth]] = {
    "depthwise": DepthWise,
    "leafwise": LeafWise,
    "oblivious": Oblivious,
    "sign_stump": SignStump,
}


def recipe_from(
    params: Mapping[str, Any],
    loss: Loss,
    n_rows: int,
    n_columns: int | None = None,
    by_column: ByColumn = NOTHING,
    *,
    first: int = 0,
    counted: int | None = None,
) -> Recipe:
    """The recipe of the parameters, for a known number of rows and an optional number of columns.

    by_column: what parameters say of single columns. first: rounds of the model that the fit begins with. counted: rows
    as their weights count them, if that is another number.

    Raises
    ------
    RecipeError
        If a parameter is out of its range, or pieces contradict each other; the message names them.
    """
    params = provisional(params, counted or n_rows)
    dynamics = langevin(params.get("langevin"))
    growth: Growth = choice("growth", params["growth"], GROWTHS)(limits(params, loss, n_rows, by_column, counted))
    drawn = weighted(learners(params["learners"]), by_column.weights)
    if n_columns is not None and params.get("base_learner") is None:
        check_learners(drawn, growth.limits, n_columns, params["max_bins"])
    drawn_rows, rounds = sampling(params["sampling"]), integer("n_estimators", params["n_estimators"], 0)
    learner = base_learner(params.get("base_learner"), drawn_rows)
    rate, rates = learning_rate(params["learning_rate"], rounds, first)
    made = Recipe(
        loss=loss,
        rounds=rounds,
        learning_rate=rate,
        growth=growth,
        sampling=drawn_rows,
        learners=drawn,
        step=step(params["step"], loss, dynamics),
        langevin=dynamics,
        execution=execution(params.get("execution")),
        base_learner=learner,
        start_at=start_rule(params.get("start", OPTIMUM), loss),
        inert=inert_findings(params, learner, dynamics, rounds),
        permutations=permutations(params),
        rates=rates,
        averages=isinstance(params["learning_rate"], Averaging),
        multi_output=multi_output(params, loss),
    )
    check_posterior_samples(params)
    return made
