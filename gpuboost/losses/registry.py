"""Losses by name, and to and from the model file."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from gpuboost.errors import GpuBoostError, InputError, shown
from gpuboost.losses.base import LATER
from gpuboost.losses.custom import Custom, SavedCustom
from gpuboost.losses.custom.arrays import ArrayLoss
from gpuboost.losses.per_output import OneOutputLoss, PerOutput
from gpuboost.losses.protocol import Loss
from gpuboost.public import LOSSES, Loaded

CLASSES = Loaded(LOSSES)

NAMES: tuple[str, ...] = tuple(LOSSES)

_ELSEWHERE = {
    "absolute": "absolute_error",
    "accelerated_failure_time": "aft",
    "binary": "logistic",
    "binary:logistic": "logistic",
    "crossentropy": "cross_entropy",
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
    "pairlogit": "pair_logit",
    "pairwise": "pairwise_logistic",
    "pinball": "quantile",
    "rank:map": "lambdamart",
    "rank:ndcg": "lambdamart",
    "rank:pairwise": "pairwise_logistic",
    "rank_xendcg": "xendcg",
    "ranknet": "pairwise_logistic",
    "reg:logistic": "cross_entropy",
    "regression": "squared_error",
    "rmse": "squared_error",
    "survival:aft": "aft",
    "survivalaft": "aft",
    "xentropy": "cross_entropy",
}
"""Names in other libraries, for the error message."""


def get(loss: str | Loss, n_classes: int | None = None) -> Loss:
    """The loss of that name with its default parameter; a loss object is returned as it is.

    Args:
        loss: a name or a loss object.
        n_classes: number of classes, for "softmax".

    Raises:
        InputError: if there is no such loss, or n_classes is missing.
    """
    if not isinstance(loss, str):
        if isinstance(loss, type):
            raise InputError(f"loss: a loss object or a name is needed; got the class {loss.__name__}. Call it first.")
        if inspect.isroutine(loss):
            raise InputError(
                f"loss: a name or a loss object is needed; got the function {getattr(loss, '__name__', loss)!r}. Make "
                "a loss of scalar functions of (y, f) with gb.losses.custom(value, gradient, hessian), or of one of "
                "arrays with gb.losses.custom_arrays(function)."
            )
        missing = [member for member in ("name", "n_outputs", "derivatives", "start") if not _has(loss, member)]
        if missing:
            raise InputError(
                f"loss: a loss object or a name is needed; {loss!r} has no {missing[0]}. Names: {', '.join(NAMES)}."
            )
        return loss
    if loss not in CLASSES:
        raise InputError(f"loss: unknown name {loss!r}. {_suggestion(loss)}Names: {', '.join(NAMES)}.")
    named = CLASSES[loss]
    of_classes = named.facts.task == "multiclass"
    if of_classes and n_classes is None:
        raise InputError(
            f"loss: {loss!r} needs the number of classes; pass gpuboost.losses.{named.__name__}(n_classes=K)."
        )
    loss_object: Loss = named(n_classes) if of_classes else named()
    return loss_object


def to_json(loss: Loss) -> dict[str, Any]:
    """Name and parameters of a loss, as a model file holds them. A custom loss is kept by name only.

    Raises:
        InputError: if it is not one of this package's losses.
    """
    if isinstance(loss, (Custom, ArrayLoss, SavedCustom)):
        several = {"outputs": loss.n_outputs} if loss.n_outputs > 1 else {}
        lists = {"lists": True} if loss.task == "ranking" else {}
        return {"name": "custom", "function": loss.name, **several, **lists}
    if isinstance(loss, PerOutput):
        return {"name": loss.name, "loss": to_json(loss.loss), "outputs": loss.n_outputs}
    if type(loss) is not CLASSES.get(getattr(loss, "name", "")):
        raise InputError(f"loss: {shown(loss)} cannot be written to a model file. Use gpuboost.losses.custom(...).")
    return {
        "name": loss.name,
        **{
            field.name: getattr(loss, field.name)
            for field in fields(CLASSES[loss.name])
            if field.metadata != LATER or getattr(loss, field.name) != field.default
        },
    }


def from_json(stored: Any) -> Loss:
    """Loss from the output of ``to_json``.

    Raises:
        InputError: if the entry is not exactly what ``to_json`` writes.
    """
    if not isinstance(stored, Mapping) or not isinstance(stored.get("name"), str):
        raise InputError(f"model file: loss must be an object with a name; it holds {stored!r}.")
    rest = {key: value for key, value in stored.items() if key != "name"}
    name = stored["name"]
    if name == PerOutput.name:
        return _per_output(rest)
    if name == "custom":
        return _custom(rest)
    if name not in CLASSES:
        raise InputError(f"model file: unknown loss {name!r}. It may come from a newer version. {_suggestion(name)}")
    expected = [field.name for field in fields(CLASSES[name]) if field.metadata != LATER or field.name in rest]
    if sorted(rest) != sorted(expected):
        raise InputError(f"model file: loss {name!r} holds {expected}; found {sorted(rest)}.")
    facts = CLASSES[name].facts
    checks_types = facts.task == "ranking" or facts.checks_parameters  # its parameters are of several types
    if not checks_types and any(
        isinstance(parameter, bool) or not isinstance(parameter, (int, float)) for parameter in rest.values()
    ):
        raise InputError(f"model file: parameters of loss {name!r} are numbers; found {rest!r}.")
    try:
        loss_object: Loss = CLASSES[name](**rest)
    except GpuBoostError as error:
        raise InputError(f"model file: {error}") from None
    return loss_object


def _per_output(rest: Mapping[str, Any]) -> PerOutput:
    outputs = rest.get("outputs")
    counted = isinstance(outputs, int) and not isinstance(outputs, bool) and outputs >= 2
    if sorted(rest) != ["loss", "outputs"] or not counted:
        raise InputError(f"model file: a loss of several targets holds loss and outputs, 2 or more; found {rest!r}.")
    loss = from_json(rest["loss"])
    if not may_have_columns(loss):
        raise InputError(f"model file: a loss of several targets is of losses of one; found {loss!r}.")
    return PerOutput(cast(OneOutputLoss, loss), int(rest["outputs"]))


def may_have_columns(loss: Loss) -> bool:
    """True if y may have several columns with this loss, each with a score of its own: see ``PerOutput``."""
    built_in = type(loss) is CLASSES.get(getattr(loss, "name", ""))
    return built_in and loss.n_outputs == 1 and loss.task in ("regression", "binary")


def _custom(rest: dict[str, Any]) -> SavedCustom:
    seen = dict(rest)
    outputs = rest.pop("outputs", 1)
    counted = isinstance(outputs, int) and not isinstance(outputs, bool) and outputs >= 1
    lists = rest.pop("lists", False)
    counted = counted and (lists is False or (lists is True and outputs == 1))
    if list(rest) != ["function"] or not isinstance(rest["function"], str) or not counted:
        raise InputError(f"model file: a custom loss holds name and function, a string; it holds {seen!r}.")
    return SavedCustom(rest["function"], outputs, lists)


def _has(loss: Any, member: str) -> bool:
    return getattr(loss, member, None) is not None


def _suggestion(name: str) -> str:
    close = [_ELSEWHERE[name]] if name in _ELSEWHERE else difflib.get_close_matches(name, NAMES, n=1)
    return f"Did you mean {close[0]!r}? " if close else ""
