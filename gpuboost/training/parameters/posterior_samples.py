"""Checks of ``posterior_samples``: the rounds that draws come from are those of one stationary chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboost.errors import RecipeError
from gpuboost.langevin import Langevin, TemperatureSchedule
from gpuboost.records import declared
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.training.parameters.values import integer
from gpuboost.watch.early_stopping import stops_early


def check_posterior_samples(params: Mapping[str, Any]) -> None:
    """Raise RecipeError before the fit for values that ``predict_uncertainty`` would refuse after it."""
    asked = params.get("posterior_samples")
    if asked is None:
        return
    samples = integer("posterior_samples", asked, 1)
    if not isinstance(params["langevin"], Langevin):
        raise RecipeError("posterior_samples: draws come from a chain with noise; pass langevin=gb.Langevin() too.")
    if params["early_stopping_rounds"] is not None:
        raise RecipeError(
            "posterior_samples: early stopping picks the best iterate, which is no draw from the posterior; set "
            "early_stopping_rounds to None."
        )
    if stops_early(params.get("callbacks")):
        raise RecipeError(
            "posterior_samples: early stopping picks the best iterate, which is no draw from the posterior; leave "
            "EarlyStopping out of callbacks."
        )
    _check_schedule(params["langevin"].schedule, params["n_estimators"])
    frozen = declared(SamplingTraits, params["sampling"]).frozen_from
    if frozen is not None and 2 * frozen > params["n_estimators"]:
        raise RecipeError(
            "posterior_samples: draws come from the last half of the rounds, and the probabilities of the rows change "
            f"there until round {frozen}. Use frozen_from of at most {params['n_estimators'] // 2}."
        )
    if params["n_estimators"] < 2 * samples:
        raise RecipeError(
            f"posterior_samples: {samples} draws need {2 * samples} rounds, as half of them are burn-in; "
            f"n_estimators is {params['n_estimators']}."
        )


def _check_schedule(schedule: Any, rounds: int) -> None:
    """Raise RecipeError if the temperature still changes in the second half of the rounds, where draws come from."""
    if schedule is None:
        return
    constant = schedule.constant_from if isinstance(schedule, TemperatureSchedule) else None
    if constant is None or 2 * constant > rounds:
        raise RecipeError(
            f"posterior_samples: draws come from the last half of the rounds, at one temperature, and schedule="
            f"{schedule!r} changes it there. Anneal for at most {rounds // 2} rounds, or leave posterior_samples out."
        )
