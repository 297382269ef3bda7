"""The parameters of an estimator as JSON values, in which a model file holds them.

Parameters that decide the model are written; those of its environment are not (``NOT_WRITTEN``), so that the same model
gives the same bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any

import numpy as np

from gpuboost import losses, public
from gpuboost.data.encoding import AUTO
from gpuboost.errors import InputError
from gpuboost.records import declared
from gpuboost.sampling import ImportanceSampling, UniformSampling
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.training.constraints.forced_splits import forced_from_json, forced_to_json
from gpuboost.training.fit_record import CONTINUED

NOT_WRITTEN = ("callbacks", "device", "execution", "n_jobs", "verbose", "warm_start")

POLICIES = public.Loaded(
    {name: f"{module}:{name}" for name, module in (public.POLICIES | public.IMPLIED_POLICIES).items()}
    | {public.class_name(entry): entry for entry in public.FAMILIES}
)
"""Classes that a model file stores by name and fields."""

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


def parameters_from_json(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Inverse of ``written``. Raises InputError if a value is none of those that it writes."""
    return {
        name: forced_from_json(value) if name == "forced_splits" else _from_json(name, value)
        for name, value in entries.items()
    }


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
    if is_policy(value):
        return _policy_to_json(value)
    if getattr(losses, type(value).__name__, None) is type(value):
        return {"loss": losses.to_json(value)}
    raise TypeError(f"{value!r} cannot be written to a model file")


def is_policy(value: Any) -> bool:
    """True for an object that a model file stores by its class and fields."""
    return type(value) is POLICIES.get(type(value).__name__)


def _in_order(value: Any) -> Any:
    """The items of a set in one order, as the bytes of a file do not depend on hashes; others in their own."""
    return sorted(value, key=lambda item: (str(type(item)), item)) if isinstance(value, (set, frozenset)) else value


def _is_item(value: Any) -> bool:
    return isinstance(value, PLAIN) or (isinstance(value, dict) and "policy" in value)


def _policy_to_json(policy: Any) -> dict[str, Any]:
    """Class and fields. Raises TypeError for a policy that a model cannot hold: with a function, or a number by row."""
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
