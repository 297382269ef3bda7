"""A saved model as an estimator again."""

from __future__ import annotations

import inspect
import os
import warnings
from contextlib import suppress
from typing import Any

from gpuboost.api.classifier import GradientBoostingClassifier
from gpuboost.api.ranker import GradientBoostingRanker
from gpuboost.api.regressor import GradientBoostingRegressor
from gpuboost.data.cuts import check_max_bins
from gpuboost.errors import InputError, RecipeError, UnprovenError
from gpuboost.training import files, parameters

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
    model._restore(saved)
    return model


def _check_parameters(params: dict[str, Any], saved: files.Saved, path: str | os.PathLike[str]) -> None:
    """Refuse parameters that no estimator accepts: a model that loads can be shown, cloned and fitted again.

    Parameters that have to be asked for (``allow_unproven``) load: earlier versions did not ask for all of them.
    """
    try:
        with warnings.catch_warnings(action="ignore"), suppress(UnprovenError):
            check_max_bins(params["max_bins"])
            parameters.recipe(params, saved.loss, _MANY_ROWS, saved.columns.n_features)
    except (RecipeError, InputError) as error:
        raise InputError(f"model file {os.fspath(path)!r}: parameters: {error}") from None
