"""Losses by name, and to and from the model file."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, cast

from gpuboost.errors import GpuBoostError, InputError
from gpuboost.losses.binary import Exponential, Logistic
from gpuboost.losses.custom import Custom, SavedCustom
from gpuboost.losses.distribution import GaussianNLL
from gpuboost.losses.logitboost import LogitBoost
from gpuboost.losses.positive import Gamma, Poisson, Tweedie
from gpuboost.losses.protocol import Loss
from gpuboost.losses.ranking import LambdaMART, PairwiseLogistic
from gpuboost.losses.residual import AbsoluteError, Huber, Quantile, SquaredError
from gpuboost.losses.softmax import Softmax
from gpuboost.losses.zero_one import SmoothedZeroOne

_BUILT_IN: tuple[Callable[..., Loss], ...] = (
    SquaredError,
    Huber,
    AbsoluteError,
    Quantile,
    Poisson,
    Gamma,
    Tweedie,
    GaussianNLL,
    Logistic,
    Exponential,
    LogitBoost,
    SmoothedZeroOne,
    Softmax,
    LambdaMART,
    PairwiseLogistic,
)
_LISTS = (LambdaMART.name, PairwiseLogistic.name)  # their parameters are of several types, and they check them
_CLASSES: dict[str, Any] = {one.name: one for one in cast("tuple[Any, ...]", _BUILT_IN)}

NAMES: tuple[str, ...] = tuple(_CLASSES)

_ELSEWHERE = {
    "absolute": "absolute_error",
    "binary": "logistic",
    "binary:logistic": "logistic",
    "cross_entropy": "logistic",
    "deviance": "logistic",
    "l1": "absolute_error",
    "l2": "squared_error",
    "lad": "absolute_error",
    "lambda_mart": "lambdamart",
    "lambdarank": "lambdamart",
    "log_loss": "logistic",
    "logloss": "logistic",
    "ls": "squared_error",
    "mae": "absolute_error",
    "mse": "squared_error",
    "multi:softmax": "softmax",
    "multi:softprob": "softmax",
    "multiclass": "softmax",
    "pairwise": "pairwise_logistic",
    "pinball": "quantile",
    "rank:ndcg": "lambdamart",
    "rank:pairwise": "pairwise_logistic",
    "ranknet": "pairwise_logistic",
    "regression": "squared_error",
    "rmse": "squared_error",
}
"""What other libraries call them, for the error message."""


def get(loss: str | Loss, n_classes: int | None = None) -> Loss:
    """The loss of that name with its default parameter; a loss object is returned as it is.

    Args:
        loss: a name or a loss object.
        n_classes: what "softmax" is to tell apart.

    Raises:
        InputError: if there is no such loss, or n_classes is missing.
    """
    if not isinstance(loss, str):
        if isinstance(loss, type):
            raise InputError(f"loss: a loss object or a name is needed; got the class {loss.__name__}. Call it first.")
        missing = [member for member in ("name", "n_outputs", "derivatives", "start") if not _has(loss, member)]
        if missing:
            raise InputError(
                f"loss: a loss object or a name is needed; {loss!r} has no {missing[0]}. Names: {', '.join(NAMES)}."
            )
        return loss
    if loss not in _CLASSES:
        raise InputError(f"loss: unknown name {loss!r}. {_suggestion(loss)}Names: {', '.join(NAMES)}.")
    if loss != Softmax.name:
        found: Loss = _CLASSES[loss]()
        return found
    if n_classes is None:
        raise InputError("loss: 'softmax' needs the number of classes; pass gpuboost.losses.Softmax(n_classes=K).")
    return Softmax(n_classes)


def to_json(loss: Loss) -> dict[str, Any]:
    """What a model file holds of a loss: its name and parameters. A custom loss is kept by name only.

    Raises:
        InputError: if it is not one of this package's losses.
    """
    if isinstance(loss, (Custom, SavedCustom)):
        return {"name": "custom", "function": loss.name}
    if type(loss) is not _CLASSES.get(loss.name):
        raise InputError(f"loss: {loss!r} cannot be written to a model file. Use gpuboost.losses.custom(...).")
    return {"name": loss.name, **{field.name: getattr(loss, field.name) for field in fields(_CLASSES[loss.name])}}


def from_json(stored: Any) -> Loss:
    """The loss that ``to_json`` described.

    Raises:
        InputError: if the entry is not exactly what ``to_json`` writes.
    """
    if not isinstance(stored, Mapping) or not isinstance(stored.get("name"), str):
        raise InputError(f"model file: loss must be an object with a name; it holds {stored!r}.")
    rest = {key: value for key, value in stored.items() if key != "name"}
    name = stored["name"]
    if name == "custom":
        if list(rest) != ["function"] or not isinstance(rest["function"], str):
            raise InputError(f"model file: a custom loss holds name and function, a string; it holds {stored!r}.")
        return SavedCustom(rest["function"])
    if name not in _CLASSES:
        raise InputError(f"model file: unknown loss {name!r}. It may come from a newer version. {_suggestion(name)}")
    expected = [field.name for field in fields(_CLASSES[name])]
    if sorted(rest) != sorted(expected):
        raise InputError(f"model file: loss {name!r} holds {expected}; found {sorted(rest)}.")
    if name not in _LISTS and any(isinstance(one, bool) or not isinstance(one, (int, float)) for one in rest.values()):
        raise InputError(f"model file: parameters of loss {name!r} are numbers; found {rest!r}.")
    try:
        found: Loss = _CLASSES[name](**rest)
    except GpuBoostError as error:
        raise InputError(f"model file: {error}") from None
    return found


def _has(loss: Any, member: str) -> bool:
    return getattr(loss, member, None) is not None


def _suggestion(name: str) -> str:
    close = [_ELSEWHERE[name]] if name in _ELSEWHERE else difflib.get_close_matches(name, NAMES, n=1)
    return f"Did you mean {close[0]!r}? " if close else ""
