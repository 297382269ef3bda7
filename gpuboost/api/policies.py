"""Policies, losses and base learners as nested parameters: ``GridSearchCV(model, {"sampling__rate": [0.3, 0.5]})``.

Setting a field of one puts a new one in its place: policies are immutable, and an estimator may be in use elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from sklearn.base import clone


def fields_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """``{"sampling__rate": 0.5}`` for every field of every policy, and every parameter of a scikit-learn estimator."""
    return {f"{name}__{field}": value for name, owner in params.items() for field, value in _fields(owner).items()}


def _fields(owner: Any) -> dict[str, Any]:
    if isinstance(owner, type):
        return {}
    if is_dataclass(owner):
        return {field.name: getattr(owner, field.name) for field in fields(owner) if field.init}
    if callable(getattr(owner, "get_params", None)) and callable(getattr(owner, "set_params", None)):
        return dict(owner.get_params())
    return {}


def replaced(params: Mapping[str, Any], nested: Mapping[str, Any]) -> dict[str, Any]:
    """The policies and estimators that ``nested`` changes, by name, each made anew.

    Raises
    ------
    ValueError
        If there is no such policy, or it has no such field.
    """
    changes: dict[str, dict[str, Any]] = {}
    for key, value in nested.items():
        name, _, field = key.partition("__")
        owner = params.get(name)
        if field not in _fields(owner):
            raise ValueError(f"{key}: {_why_not(name, owner, params)}")
        changes.setdefault(name, {})[field] = value
    return {name: _changed(params[name], changed) for name, changed in changes.items()}


def _changed(owner: Any, changed: Mapping[str, Any]) -> Any:
    if is_dataclass(owner) and not isinstance(owner, type):
        return replace(owner, **changed)
    return clone(owner).set_params(**changed)


def _why_not(name: str, owner: Any, params: Mapping[str, Any]) -> str:
    if name not in params:
        return f"there is no parameter {name!r}; there are {', '.join(sorted(params))}."
    known = sorted(_fields(owner))
    if not known:
        return f"{name} is {owner!r}, which has no parameters of its own. Set {name} to an object that has some first."
    return f"{owner!r} has no such parameter; it has {', '.join(known)}."
