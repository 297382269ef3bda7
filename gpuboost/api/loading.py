"""A saved model as an estimator again."""

from __future__ import annotations

import inspect
import os
import warnings
from typing import Any

from gpuboost.api.classifier import GradientBoostingClassifier
from gpuboost.api.ranker import GradientBoostingRanker
from gpuboost.api.regressor import GradientBoostingRegressor
from gpuboost.data.cuts import check_max_bins
from gpuboost.errors import InputError, RecipeError
from gpuboost.training import files, parameters
from gpuboost.training.checkpoint import CheckpointState

_MANY_ROWS = 2**31  # a file does not say how many rows the model was fitted to

KINDS: dict[str, Any] = {
    files.CLASSIFIER: GradientBoostingClassifier,
    files.REGRESSOR: GradientBoostingRegressor,
    files.RANKER: GradientBoostingRanker,
}


def load_model(
    path: str | os.PathLike[str],
) -> GradientBoostingClassifier | GradientBoostingRegressor | GradientBoostingRanker:
    """The estimator that ``save_model`` wrote, fitted: it predicts the same bits.

    Nothing of the file is run. Parameters that a file cannot hold, such as callbacks, have their defaults.

    Raises
    ------
    InputError
        If the file is damaged, is no model file, or is of a newer gpuboost.
    OSError
        If it cannot be read.
    """
    saved = files.read(path)
    kind = KINDS[files.kind_of(saved)]
    known = inspect.signature(kind).parameters
    unknown = [name for name in saved.params if name not in known or name in files.NOT_WRITTEN]
    if unknown:
        name = f"model file {os.fspath(path)!r}"
        raise InputError(f"{name}: parameters: {unknown[0]!r} is unknown; it may come from a newer gpuboost.")
    model: GradientBoostingClassifier | GradientBoostingRegressor | GradientBoostingRanker = kind(**saved.params)
    _check_parameters(model.get_params(deep=False), saved, path)
    if saved.run is not None:
        _check_run(saved.run, path)
    model._restore(saved)
    return model


def _check_run(run: Any, path: str | os.PathLike[str]) -> None:
    """Refuse a checkpoint from which no fit could be resumed."""
    try:
        CheckpointState.from_json(run)
    except InputError as error:
        text = str(error).removeprefix("model file: ")
        raise InputError(f"model file {os.fspath(path)!r}: {text}") from None


def _check_unused(params: dict[str, Any]) -> None:
    """Refuse values of the parameters that a recipe does not hold."""
    rounds, share = params["early_stopping_rounds"], params["validation_fraction"]
    if rounds is not None:
        parameters.integer("early_stopping_rounds", rounds, 1)
    if share is not None and not 0.0 < parameters.real("validation_fraction", share, positive=True) < 1.0:
        raise RecipeError(f"validation_fraction: must be None or a share between 0 and 1; got {share!r}.")
    rules = {
        "categorical_features": (str, list),
        "class_weight": (str, dict),
        "eval_metric": (str, list),
        "eval_at": (int, list),
        "random_state": (int,),
        "posterior_samples": (int,),
    }
    for name, kinds in rules.items():
        value = params.get(name)
        if not (value is None or isinstance(value, kinds)) or isinstance(value, bool):
            raise RecipeError(f"{name}: no estimator has such a value; got {value!r}.")


def _check_parameters(params: dict[str, Any], saved: files.Saved, path: str | os.PathLike[str]) -> None:
    """Refuse parameters that no estimator accepts: a model that loads can be shown, cloned and fitted again."""
    try:
        with warnings.catch_warnings(action="ignore"):
            parameters.recipe(params, saved.loss, _MANY_ROWS, saved.columns.n_features)
            check_max_bins(params["max_bins"])
            _check_unused(params)
    except (RecipeError, InputError) as error:
        raise InputError(f"model file {os.fspath(path)!r}: parameters: {error}") from None
