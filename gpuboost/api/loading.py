"""A saved model as an estimator again."""

from __future__ import annotations

import inspect
import json
import os
from typing import Any, cast

from sklearn.utils.validation import check_is_fitted

from gpuboost.api.classifier import GradientBoostingClassifier
from gpuboost.api.ranker import GradientBoostingRanker
from gpuboost.api.regressor import GradientBoostingRegressor
from gpuboost.api.saved_parameters import check_parameters, check_readable
from gpuboost.errors import InputError, shown
from gpuboost.training import files
from gpuboost.training.checkpoint import CheckpointState
from gpuboost.training.parameter_json import NOT_WRITTEN

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
        If the file is damaged, is not a model file, or is of a newer gpuboost.
    OSError
        If it cannot be read.
    """
    return _estimator(files.read(path), f"model file {os.fspath(path)!r}")


def dumps(model: Any) -> str:
    """The text of the model file of a fitted estimator; ``gb.loads`` reads it, ``json.loads`` makes a dictionary of it.

    Raises
    ------
    TypeError
        If it is not an estimator of this library.
    InputError
        As ``save_model``.
    """
    if not isinstance(model, tuple(KINDS.values())):
        raise TypeError(f"model: a fitted estimator of gpuboost is needed; got {shown(model)[:80]}.")
    check_is_fitted(model)
    saved: files.Saved = cast(Any, model)._saved()
    check_readable(saved, type(model))
    return files.text(saved)


def to_dict(model: Any) -> dict[str, Any]:
    """The content of the model file of a fitted estimator as a dictionary of JSON values: see docs/model_file.md.

    LightGBM: ``dump_model``. ``gb.loads(json.dumps(...))`` makes an estimator of it again.

    Raises
    ------
    TypeError, InputError
        As ``gb.dumps``.
    """
    content: dict[str, Any] = json.loads(dumps(model))
    return content


def loads(
    text: str | bytes,
) -> GradientBoostingClassifier | GradientBoostingRegressor | GradientBoostingRanker:
    """The estimator of a text that ``gb.dumps`` wrote, or of the content of a model file.

    Raises
    ------
    TypeError
        If it is neither text nor bytes.
    InputError
        As ``gb.load_model``.
    """
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"text: the content of a model file, str or bytes, is needed; got {type(text).__name__}.")
    return _estimator(files.read_text(text), "model file")


def _estimator(
    saved: files.Saved, name: str
) -> GradientBoostingClassifier | GradientBoostingRegressor | GradientBoostingRanker:
    """The fitted estimator of a saved model; name: of the file, for messages."""
    kind = KINDS[files.kind_of(saved)]
    known = inspect.signature(kind).parameters
    unknown = [name for name in saved.params if name not in known or name in NOT_WRITTEN]
    if unknown:
        raise InputError(f"{name}: parameters: {unknown[0]!r} is unknown; it may come from a newer gpuboost.")
    model: GradientBoostingClassifier | GradientBoostingRegressor | GradientBoostingRanker = kind(**saved.params)
    check_parameters(model.get_params(deep=False), saved, name)
    if saved.run is not None:
        _check_run(saved.run, name)
    model._restore(saved)
    return model


def _check_run(run: Any, name: str) -> None:
    """Refuse a checkpoint from which no fit could be resumed."""
    try:
        CheckpointState.from_json(run)
    except InputError as error:
        raise InputError(f"{name}: {str(error).removeprefix('model file: ')}") from None
