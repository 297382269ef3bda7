"""A saved model as an estimator again."""

from __future__ import annotations

import inspect
import os
from typing import Any

from gpuboost.api.classifier import GradientBoostingClassifier
from gpuboost.api.ranker import GradientBoostingRanker
from gpuboost.api.regressor import GradientBoostingRegressor
from gpuboost.errors import InputError
from gpuboost.training import files

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
    model._restore(saved)
    return model
