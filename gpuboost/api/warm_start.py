"""``warm_start=True``: a fit that goes on with the model that the estimator holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboost.errors import RecipeError, shown
from gpuboost.training.files import Saved
from gpuboost.training.init_model import Start, rounds_before, starting_point
from gpuboost.training.parameters.automatic import is_auto
from gpuboost.training.parameters.values import integer
from gpuboost.training.targets import TrainingTarget


def check_warm_start(warm_start: Any, *, fitted: bool, init_model: Any, resume_from: Any) -> bool:
    """True if the fit goes on with the estimator's own model.

    Raises
    ------
    RecipeError
        If ``warm_start`` is not a bool, or another model is given to go on with.
    """
    if not isinstance(warm_start, bool):
        raise RecipeError(f"warm_start: must be True or False; got {shown(warm_start)}.")
    if not (warm_start and fitted):
        return False
    for name, value in (("init_model", init_model), ("resume_from", resume_from)):
        if value is not None:
            raise RecipeError(
                f"{name}: with warm_start=True a fitted estimator goes on with its own model; got another one too. "
                "Set warm_start=False, or fit a clone."
            )
    return True


def own_model(saved: Saved, target: TrainingTarget) -> Start:
    """The model to go on with. Raises InputError if it was made for another kind of target."""
    return starting_point(saved, target, "warm_start")


def check_resumed(start: Start, *, warm_start: bool) -> Start:
    """``start``. Raises RecipeError with ``warm_start`` if the interrupted fit had itself continued a model.

    ``n_estimators`` then does not tell whether the rounds of that model count.
    """
    if warm_start and start.run is not None and start.run.first:
        raise RecipeError(
            f"resume_from: the interrupted fit went on with a model of {start.run.first} rounds. Set warm_start=False, "
            "and n_estimators to the number of rounds after these."
        )
    return start


def rounds_left(n_estimators: Any, start: Start) -> int:
    """Number of rounds to add to a model for ``n_estimators`` rounds in all.

    Raises
    ------
    RecipeError
        If the model has more, or ``n_estimators`` is "auto".
    """
    if is_auto(n_estimators):
        raise RecipeError(
            "n_estimators: with warm_start=True the rounds of the model count, and 'auto' is no number to count up to; "
            "give one, or set warm_start=False to choose anew."
        )
    done = rounds_before(start)
    asked = integer("n_estimators", n_estimators, 0)
    if asked < done:
        raise RecipeError(
            f"n_estimators: with warm_start=True the rounds of the model count; it has {done}, and {asked} are asked "
            "for. Take model[:n] for fewer, or set warm_start=False to begin anew."
        )
    return asked - done


def joined_history(
    before: Mapping[str, Mapping[str, list[float]]], rounds: int, after: dict[str, dict[str, list[float]]]
) -> dict[str, dict[str, list[float]]]:
    """Metrics of the first ``rounds`` rounds and of those after them; the latter alone if sets or metrics differ."""
    same = {name: set(of) for name, of in before.items()} == {name: set(of) for name, of in after.items()}
    if not same or any(len(values) < rounds for of in before.values() for values in of.values()):
        return after
    return {
        name: {metric: before[name][metric][:rounds] + values for metric, values in of.items()}
        for name, of in after.items()
    }
