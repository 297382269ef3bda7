"""The parameters of a saved model: those that no estimator accepts are refused, as it is read and as it is written."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

from gpuboost import losses
from gpuboost.api.constructor import parameters_of
from gpuboost.data.cuts import check_binning, check_max_bins
from gpuboost.errors import InputError, RecipeError, UnprovenError
from gpuboost.training import files
from gpuboost.training.constraints.by_column import ByColumn
from gpuboost.training.parameters.assembly import recipe_from
from gpuboost.training.parameters.values import integer, real

_MANY_ROWS = 2**31  # a file does not say how many rows the model was fitted to


def check_readable(saved: files.Saved, kind: type[Any]) -> None:
    """Raise InputError if parameters that were changed after the fit would make the model's file unreadable.

    kind: class of the estimator.
    """
    read = files.as_read(saved)
    defaults = {name: parameter.default for name, parameter in parameters_of(kind).items()}
    try:
        check_parameters({**defaults, **read.params}, read, "model file")
    except InputError as error:
        raise InputError(f"{error} No file with these could be read: set them as they were for the fit.") from None


def check_parameters(params: dict[str, Any], saved: files.Saved, name: str) -> None:
    """Refuse parameters that no estimator accepts: a model that loads can be shown, cloned and fitted again.

    Parameters that have to be asked for (``allow_unproven``) load: earlier versions did not ask for all of them.
    """
    try:
        with warnings.catch_warnings(action="ignore"), suppress(UnprovenError):
            check_max_bins(params["max_bins"])
            check_binning(params["binning"])
            _check_unused(params)
            losses.get(params["loss"], 2)  # any number of classes: the loss of the model is beside the parameters
            by_column = ByColumn.of(params, saved.columns)
            recipe_from(params, saved.loss, _MANY_ROWS, saved.columns.n_features, by_column)
    except (RecipeError, InputError) as error:
        raise InputError(f"{name}: parameters: {error}") from None


def _check_unused(params: dict[str, Any]) -> None:
    """Refuse values of the parameters that a recipe does not hold."""
    rounds, share = params["early_stopping_rounds"], params["validation_fraction"]
    if rounds is not None:
        integer("early_stopping_rounds", rounds, 1)
    if share is not None and not 0.0 < real("validation_fraction", share, positive=True) < 1.0:
        raise RecipeError(f"validation_fraction: must be None or a share between 0 and 1; got {share!r}.")
    rules = {
        "categorical_features": (str, list),
        "class_weight": (str, dict),
        "eval_metric": (str, list),
        "eval_at": (int, list),
        "random_state": (int,),
        "posterior_samples": (int,),
        "missing": (int, float),
    }
    for name, kinds in rules.items():
        value = params.get(name)
        if not (value is None or isinstance(value, kinds)) or isinstance(value, bool):
            raise RecipeError(f"{name}: no estimator has such a value; got {value!r}.")
