"""Conversion of estimators to model files and back. ``gpuboost.model.file`` defines the format.

Parameters that decide the model are written; those of its environment (``device``, ``execution``, ``n_jobs``,
``verbose``, ``warm_start``, ``callbacks``) are not, so that the same model gives the same bytes on every machine.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost import losses, public
from gpuboost.arguments import is_real
from gpuboost.data.columns import Columns
from gpuboost.data.encoding import AUTO
from gpuboost.data.labels import classes_from_json, classes_to_json
from gpuboost.errors import InputError
from gpuboost.learning_rates import listed
from gpuboost.losses.per_output import MULTILABEL
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.model import file
from gpuboost.records import dataclass, declared
from gpuboost.sampling import ImportanceSampling, UniformSampling
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.storage import UNSEALED, checked_path, is_intact, sealed
from gpuboost.training import fit_record
from gpuboost.training.automatic import is_auto
from gpuboost.training.constraints.forced_splits import forced_from_json, forced_to_json
from gpuboost.training.fit_record import CONTINUED, FitRecord
from gpuboost.types import Cuts, Ensemble

CHECKSUM = '"run":{"checksum":"'
"""Text before the checksum of a checkpoint; quotes inside any other text of the file are escaped."""

NOT_WRITTEN = ("callbacks", "device", "execution", "n_jobs", "verbose", "warm_start")

POLICIES = public.Loaded(
    {name: f"{module}:{name}" for name, module in (public.POLICIES | public.IMPLIED_POLICIES).items()}
    | {public.class_name(entry): entry for entry in public.FAMILIES}
)
"""Classes that a model file stores by name and fields."""

CLASSIFIER, REGRESSOR, RANKER = "GradientBoostingClassifier", "GradientBoostingRegressor", "GradientBoostingRanker"

MAY_LACK = {"run", "guarantee", "chain", "offsets", "learning_rate"}
"""Entries of ``extra`` that not every file has."""

PLAIN = (str, int, float, bool, type(None))

LATER: dict[str, Any] = {
    "categorical_encoding": AUTO,
    "reg_alpha": 0.0,
    "max_delta_step": 0.0,
    "path_smooth": 0.0,
    "extra_trees": False,
    "multi_output": "one_tree_per_output",
    **dict.fromkeys(("interaction_cst", "forced_splits", "sketch", "feature_costs", "feature_weights")),
}
"""Parameters that earlier versions did not have, and the defaults at which files leave them out"""


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
    if not callable(rate) or _is_policy(rate):
        return saved.params
    rounds = max(1, saved.params["n_estimators"], saved.ensemble.n_rounds // saved.columns.sequences)
    return {**saved.params, "learning_rate": list(listed(rate, rounds))}


def written(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a model file holds, as JSON values."""
    params = {}
    for name, value in given.items():
        if name not in NOT_WRITTEN:
            with suppress(TypeError):  # not representable in JSON: a loaded model has the default
                params[name] = forced_to_json(value) if name == "forced_splits" else _to_json(value)
    for name, default in LATER.items():
        if params.get(name) == default and type(params.get(name)) is type(default):
            params.pop(name, None)
    if params.get("missing", 0.0) != params.get("missing", 0.0):
        del params["missing"]  # NaN: the default, which JSON does not have
    if "langevin" not in params:
        params.pop("posterior_samples", None)  # they are draws of its chain
    return params


def held_to(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a fit that decide how it may be continued; those of its estimator may change later."""
    if given.get("langevin") is None:
        return {name: given[name] for name in CONTINUED if name in given}
    decides = written(given)
    return {name: value if name in decides else None for name, value in given.items() if name not in NOT_WRITTEN}


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
    params = _params_from(record.parameters)
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


def _params_from(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: forced_from_json(value) if name == "forced_splits" else _from_json(name, value)
        for name, value in entries.items()
    }


def as_read(saved: Saved) -> Saved:
    """The model as a file of it would be read."""
    params = _params_from(written(_with_rates(saved)))
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


def _to_json(value: Any) -> Any:
    """The parameter as a JSON value. Raises TypeError if it cannot be written."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, (list, tuple, np.ndarray, set, frozenset)):
        items = [_to_json(item) for item in _in_order(value)]
        if all(_is_item(item) or (isinstance(item, list) and all(map(_is_item, item))) for item in items):
            return items
    if isinstance(value, Mapping) and "policy" not in value:  # that is a policy, as JSON already
        return {"pairs": [[_to_json(key), float(weight)] for key, weight in value.items()]}
    if _is_policy(value):
        return _policy_to_json(value)
    if getattr(losses, type(value).__name__, None) is type(value):
        return {"loss": losses.to_json(value)}
    raise TypeError(f"{value!r} cannot be written to a model file")


def _is_policy(value: Any) -> bool:
    return type(value) is POLICIES.get(type(value).__name__)


def _in_order(value: Any) -> Any:
    """The items of a set in one order, as the bytes of a file do not depend on hashes; others in their own."""
    return sorted(value, key=lambda item: (str(type(item)), item)) if isinstance(value, (set, frozenset)) else value


def _is_item(value: Any) -> bool:
    return isinstance(value, PLAIN) or (isinstance(value, dict) and "policy" in value)


def _policy_to_json(policy: Any) -> dict[str, Any]:
    """Class and fields. Raises TypeError if one is no part of a model: a number for each training row, a function."""
    held = {field.name: getattr(policy, field.name) for field in fields(policy)}
    held = {name: value for name, value in held.items() if not _is_left_out(policy, name, value)}
    if declared(SamplingTraits, policy).n_rows is not None:
        raise TypeError(f"{policy!r}: a number for each training row is not written to a model file")
    if isinstance(policy, ImportanceSampling):
        del held["factor"]
    if callable(held.get("noise_scale")):
        raise TypeError(f"{policy!r}: a function is not written to a model file")
    if callable(held.get("schedule")):
        held["schedule"] = _to_json(held["schedule"])
    return {"policy": type(policy).__name__, **{name: _plain(value) for name, value in held.items()}}


def _is_left_out(policy: Any, name: str, value: Any) -> bool:
    """True for fields at their default that earlier versions did not have, so that files stay as they were."""
    if name == "variance_control":
        return isinstance(policy, UniformSampling) and value == "leaf_refit"
    return name in ("schedule", "noise_scale", "frozen_from") and value is None


def _plain(value: Any) -> Any:
    """NumPy numbers as Python numbers, also in tuples, which become lists, and in mappings, which become pairs."""
    if isinstance(value, Mapping) and "policy" not in value:  # that is a policy, as JSON already
        return {"pairs": [[_plain(key), float(number)] for key, number in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _from_json(name: str, value: Any) -> Any:
    """Inverse of ``_to_json``."""
    if isinstance(value, PLAIN) or (isinstance(value, list) and all(isinstance(item, PLAIN) for item in value)):
        return value
    if isinstance(value, list):
        return [_from_json(name, item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"loss"}:
            return losses.from_json(value["loss"])
        if set(value) == {"pairs"} and _are_pairs(value["pairs"]):
            return {key: weight for key, weight in value["pairs"]}
        policy = POLICIES.get(str(value.get("policy")))
        if policy is not None:
            try:
                return policy(**{key: _policy_from_json(name, item) for key, item in value.items() if key != "policy"})
            except (TypeError, ValueError) as error:
                raise InputError(f"model file: parameters.{name}: {error}") from None
    raise InputError(f"model file: parameters.{name}: no parameter is written like this; found {value!r}.")


def _policy_from_json(name: str, value: Any) -> Any:
    """A field of a policy: a plain value, or a policy itself."""
    return _from_json(name, value) if isinstance(value, dict) else value


def _are_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], PLAIN) and isinstance(pair[1], (int, float))
        for pair in value
    )


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
