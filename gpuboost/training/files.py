"""Conversion of estimators to model files and back. ``gpuboost.model.file`` defines the format.

``gpuboost.training.parameter_json`` says which parameters are written, and how.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost import losses
from gpuboost.arguments import is_real
from gpuboost.data.columns import Columns
from gpuboost.data.labels import classes_from_json, classes_to_json
from gpuboost.errors import InputError
from gpuboost.learning_rates import listed
from gpuboost.losses.per_output import MULTILABEL
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.model import file
from gpuboost.records import dataclass
from gpuboost.storage import UNSEALED, checked_path, is_intact, sealed
from gpuboost.training import fit_record
from gpuboost.training.fit_record import FitRecord
from gpuboost.training.parameter_json import held_to, is_policy, parameters_from_json, written
from gpuboost.training.parameters.automatic import is_auto
from gpuboost.types import Cuts, Ensemble

CHECKSUM = '"run":{"checksum":"'
"""Text before the checksum of a checkpoint; quotes inside any other text of the file are escaped."""

CLASSIFIER, REGRESSOR, RANKER = "GradientBoostingClassifier", "GradientBoostingRegressor", "GradientBoostingRanker"

MAY_LACK = {"run", "guarantee", "chain", "offsets", "learning_rate"}
"""Entries of ``extra`` that not every file has."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Contents of a model file that concern the estimator."""

    params: dict[str, Any]  # those that can be written
    ensemble: Ensemble
    loss: Loss
    columns: Columns
    classes: NDArray[Any] | None  # of a classifier; None otherwise
    best_iteration: int | None = None
    best_score: float | None = None
    run: dict[str, Any] | None = None  # of a checkpoint: its state, see ``training.checkpoint``
    record: FitRecord = field(default_factory=FitRecord)
    offsets: bool = False  # True: fitted with offsets (``init_score``)
    learning_rate: Any = None  # that of the fit, if ``"auto"`` stands for it

    @property
    def fitted(self) -> dict[str, Any]:
        """The parameters; those that continued fits are held to are of the model's own fit."""
        return {**self.params, **(self.record.params or {})}


def write(saved: Saved, path: str | os.PathLike[str]) -> None:
    """Write the file atomically. Raises InputError as ``text``."""
    file.save(path, text(saved))


def text(saved: Saved) -> str:
    """The text of a model file.

    Raises
    ------
    InputError
        If the loss or a class label cannot be written.
    """
    score = saved.best_score
    extra = {
        "estimator": kind_of(saved),
        "classes": None if saved.classes is None else classes_to_json(saved.classes),
        "best_iteration": saved.best_iteration,
        "best_score": None if score is None or not math.isfinite(score) else score,
    } | fit_record.to_json(saved.record)
    if saved.offsets:
        extra["offsets"] = True
    if is_auto(saved.params.get("learning_rate")) and saved.learning_rate is not None:
        extra["learning_rate"] = saved.learning_rate
    if saved.run is not None:
        extra["run"] = {**saved.run, "checksum": UNSEALED}
    params = written(_with_rates(saved))
    content = file.to_json(saved.ensemble, losses.to_json(saved.loss), saved.columns.to_json(), params, extra)
    return content if saved.run is None else sealed(content, CHECKSUM)


def _with_rates(saved: Saved) -> dict[str, Any]:
    """The parameters, with the rates of the rounds in place of a user's function of the round."""
    rate = saved.params.get("learning_rate")
    if not callable(rate) or is_policy(rate):
        return saved.params
    rounds = max(1, saved.params["n_estimators"], saved.ensemble.n_rounds // saved.columns.sequences)
    return {**saved.params, "learning_rate": list(listed(rate, rounds))}


def read(path: str | os.PathLike[str]) -> Saved:
    """Read a file that ``write`` wrote.

    Raises
    ------
    InputError
        If it is not a model file, is damaged, or was written by a newer gpuboost; the message names the place.
    """
    checked_path(path)
    try:
        return _read(Path(path).read_bytes())
    except InputError as error:
        why = str(error).removeprefix("model file: ")
        raise InputError(f"model file {os.fspath(path)!r}: {why}") from None


def read_text(content: str | bytes) -> Saved:
    """The model that ``text`` wrote. Raises InputError as ``read``."""
    return _read(content.encode() if isinstance(content, str) else content)


def _read(content: bytes) -> Saved:
    record = file.from_json(content)
    extra = record.extra
    if set(extra) - MAY_LACK != {"estimator", "classes", "best_iteration", "best_score"}:
        raise InputError(f"model file: extra: must hold what an estimator writes there; found {sorted(extra)}.")
    params = parameters_from_json(record.parameters)
    saved = Saved(
        params=params,
        ensemble=record.ensemble,
        loss=losses.from_json(record.loss),
        columns=Columns.from_json(record.columns),
        classes=None if extra["classes"] is None else classes_from_json(extra["classes"]),
        best_iteration=_optional("best_iteration", extra["best_iteration"], int),
        best_score=_optional("best_score", extra["best_score"], float),
        run=_run(extra.get("run"), content),
        record=replace(fit_record.from_json(extra, record.ensemble.n_rounds), params=held_to(params)),
        offsets=_flag("offsets", extra.get("offsets", False)),
        learning_rate=_rate(extra, record.parameters),
    )
    _check_parts(saved, extra["estimator"])
    return saved


def as_read(saved: Saved) -> Saved:
    """The model as a file of it would be read."""
    params = parameters_from_json(written(_with_rates(saved)))
    return replace(saved, params=params, loss=losses.from_json(losses.to_json(saved.loss)))


def _run(value: Any, content: bytes) -> dict[str, Any] | None:
    """State of a checkpoint without its checksum, which is compared; files of version 0.1.0 have none."""
    if not isinstance(value, dict) or "checksum" not in value:
        return value  # checked where a fit is resumed
    checksum = value["checksum"]
    if not isinstance(checksum, str) or not is_intact(content, CHECKSUM, checksum):
        raise InputError(
            f"model file: extra.run.checksum: {checksum!r} is not that of the rest of the file. The file was changed, "
            "or damaged, after it was written; resume from another checkpoint."
        )
    return {name: item for name, item in value.items() if name != "checksum"}


def _check_parts(saved: Saved, kind: Any) -> None:
    """Raise InputError if parts that are valid by themselves contradict each other."""
    cuts, columns, outputs = saved.ensemble.cuts, saved.columns, saved.ensemble.n_outputs
    sees = columns.sees_categories
    if len(sees) != cuts.n_columns or (sees[cuts.columns] != cuts.is_categorical).any():
        raise InputError("model file: columns: they must be those of the features; their number or kind differs.")
    _check_statistics(columns, cuts)
    for f, codes in enumerate(cuts.categories):
        table = None if codes is None else columns.categories[int(cuts.columns[f])]
        if codes is not None and table is not None and len(codes) and not 0 <= codes.min() <= codes.max() < len(table):
            raise InputError(
                f"model file: features[{f}].categories: codes of 0 to {len(table) - 1}, positions in the column's "
                f"{len(table)} categories, were expected; found {codes.min()} to {codes.max()}."
            )
    if saved.loss.n_outputs != outputs:
        raise InputError(f"model file: bias: {saved.loss.name} has {saved.loss.n_outputs} outputs; found {outputs}.")
    _check_classes(saved, outputs)
    best, rounds = saved.best_iteration, saved.ensemble.n_rounds
    if best is not None and not 0 <= best < max(1, rounds):
        raise InputError(f"model file: extra.best_iteration: 0 to {rounds - 1} was expected; found {best}.")
    if kind != kind_of(saved):
        raise InputError(
            f"model file: estimator: with classes {CLASSIFIER}, with a loss for rankings {RANKER}, else {REGRESSOR}; "
            f"found {kind!r}."
        )


def _check_classes(saved: Saved, outputs: int) -> None:
    """Raise InputError unless there are as many classes as scores; several labels of a row are numbered."""
    if saved.classes is not None and len(saved.classes) != max(2, outputs):
        raise InputError(f"model file: classes: {max(2, outputs)} were expected; found {len(saved.classes)}.")
    if saved.loss.task == MULTILABEL and np.asarray(saved.classes).tolist() != list(range(outputs)):
        raise InputError(f"model file: classes: those of {outputs} labels are 0 to {outputs - 1}; found others.")


def _check_statistics(columns: Columns, cuts: Cuts) -> None:
    """Raise InputError unless each mean has a feature for each permutation."""
    if columns.statistics is None:
        return
    is_mean, expected = np.array([column.is_mean for column in columns.layout]), columns.statistics.permutations
    wrong = (np.bincount(cuts.columns, minlength=len(is_mean)) != expected) & is_mean
    if wrong.any():
        f = int(np.argmax(wrong))
        raise InputError(
            f"model file: features: column {f} of those that trees see has {expected} features, one for each "
            "permutation of a mean; another number was found."
        )


def kind_of(saved: Saved) -> str:
    """Class name of the estimator of this model."""
    if saved.classes is not None:
        return CLASSIFIER
    return RANKER if is_list_loss(saved.loss) else REGRESSOR


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"model file: extra.{name}: true or false was expected; found {value!r}.")
    return value


def _rate(extra: Mapping[str, Any], params: Mapping[str, Any]) -> Any:
    """The learning rate of the fit: the parameter, unless that is ``"auto"``."""
    if "learning_rate" not in extra:
        return params.get("learning_rate")
    rate = extra["learning_rate"]
    if not is_real(rate, 0.0) or rate == 0.0:
        raise InputError(f"model file: extra.learning_rate: a number above 0 was expected; found {rate!r}.")
    return float(rate)


def _optional(name: str, value: Any, kind: type) -> Any:
    if value is None or (isinstance(value, (int, kind)) and not isinstance(value, bool)):
        return value
    raise InputError(f"model file: extra.{name}: null or a number was expected; found {value!r}.")
