"""Policies and losses as nested parameters: ``GridSearchCV(model, {"sampling__rate": [0.3, 0.5]})``.

They are immutable, so setting a field of one puts a new one in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any


def fields_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """``{"sampling__rate": 0.5}`` for every field of every policy among the parameters."""
    return {
        f"{name}__{field.name}": getattr(value, field.name)
        for name, value in params.items()
        if is_dataclass(value) and not isinstance(value, type)
        for field in fields(value)
        if field.init
    }


def replaced(params: Mapping[str, Any], nested: Mapping[str, Any]) -> dict[str, Any]:
    """The policies that ``nested`` changes, by name, each made anew.

    Raises
    ------
    ValueError
        If there is no such policy, or it has no such field.
    """
    known = fields_of(params)
    changes: dict[str, dict[str, Any]] = {}
    for key, value in nested.items():
        if key not in known:
            raise ValueError(f"{key}: there is no such parameter; those of policies are {sorted(known)}.")
        name, _, field = key.partition("__")
        changes.setdefault(name, {})[field] = value
    return {name: replace(params[name], **changed) for name, changed in changes.items()}
