"""Strict JSON: a value without the type, range and place that the format gives it is refused.

Nothing here runs what it reads, follows what it names or trusts a length. All refusals are ``InputError`` and say
where: ``model file: trees[3].left[7]: ...``.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError

_LARGEST = float(np.finfo(np.float64).max)
_MOST_NESTED = 100
_NOTHING = object()
DAMAGED = "The file is damaged, or was not written by gpuboost."


def refuse(where: str, rule: str, seen: object = _NOTHING, advice: str = DAMAGED) -> NoReturn:
    """Raise InputError: model file: where: rule; seen. advice."""
    got = "" if seen is _NOTHING else f"; found {_shortened(seen)}"
    raise InputError(f"model file: {where + ': ' if where else ''}{rule}{got}. {advice}")


def parse(text: str) -> Any:
    """The value of a JSON text without duplicate keys, NaN or Infinity. A number such as 1e999 is read as infinite."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_constant)
    except json.JSONDecodeError as error:
        refuse(f"line {error.lineno}, column {error.colno}", f"this is not JSON ({error.msg})")
    except RecursionError:
        refuse("", "objects and lists are nested only a few levels deep; these are nested too deep to be read")
    except ValueError as error:  # an integer of thousands of digits
        if isinstance(error, InputError):
            raise
        refuse("", f"a number cannot be read ({error})")


def record(value: Any, where: str, keys: Collection[str]) -> dict[str, Any]:
    """An object with exactly these keys."""
    if not isinstance(value, dict):
        refuse(where, "an object was expected", value)
    for key in keys:
        if key not in value:
            refuse(where, f"the entry {key!r} is missing")
    for key in value:
        if key not in keys:
            refuse(where, f"there is no entry of this name; it has {', '.join(keys)}", key)
    return value


def free(value: Any, where: str) -> dict[str, Any]:
    """An object of which only the numbers are checked here: they must be finite."""
    if not isinstance(value, dict):
        refuse(where, "an object was expected", value)
    _check_finite(value, where)
    return value


def items(value: Any, where: str) -> list[Any]:
    """A list of anything."""
    if not isinstance(value, list):
        refuse(where, "a list was expected", value)
    return value


def integer(value: Any, where: str, low: int, high: int) -> int:
    """An integer of low .. high."""
    if type(value) is not int or not low <= value <= high:
        refuse(where, f"an integer of {low} to {high} was expected", value)
    return value


def number(value: Any, where: str) -> float:
    """A finite float64."""
    return float(numbers([value], where)[0])


def integers(value: Any, where: str, low: int, high: int, length: int | None = None) -> NDArray[np.int64]:
    """A list of integers of low .. high."""
    rule = f"a list of integers of {low} to {high} was expected"
    entries = items(value, where)
    if not set(map(type, entries)) <= {int}:
        _blame(entries, where, rule, lambda x: type(x) is int)
    _check_length(entries, where, length)
    try:
        array = np.array(entries, dtype=np.int64)
    except OverflowError:
        _blame(entries, where, rule, lambda x: low <= x <= high)
    if not ((array >= low) & (array <= high)).all():
        _blame(entries, where, rule, lambda x: low <= x <= high)
    return array


def numbers(value: Any, where: str, length: int | None = None) -> NDArray[np.float64]:
    """A list of finite numbers."""
    rule = "a list of finite numbers was expected"
    entries = items(value, where)
    if not set(map(type, entries)) <= {int, float}:
        _blame(entries, where, rule, lambda x: type(x) in (int, float))
    _check_length(entries, where, length)
    try:
        array = np.array(entries, dtype=np.float64)
    except OverflowError:  # an integer of hundreds of digits
        _blame(entries, where, rule, lambda x: abs(x) <= _LARGEST)
    if not np.isfinite(array).all():
        _blame(entries, where, rule, lambda x: abs(x) <= _LARGEST)
    return array


def _check_finite(value: Any, where: str, depth: int = 0) -> None:
    if depth > _MOST_NESTED:
        refuse("", "objects and lists are nested only a few levels deep; these are nested too deep to be read")
    if isinstance(value, dict):
        for key, entry in value.items():
            _check_finite(entry, f"{where}.{key}", depth + 1)
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            _check_finite(entry, f"{where}[{i}]", depth + 1)
    elif isinstance(value, (int, float)) and not abs(value) <= _LARGEST:
        refuse(where, "all numbers are within the range of float64", value)


def _check_length(entries: list[Any], where: str, length: int | None) -> None:
    if length is not None and len(entries) != length:
        refuse(where, f"{length} entries were expected, as in the lists beside it", len(entries))


def _blame(entries: list[Any], where: str, rule: str, right: Any) -> NoReturn:
    index = next(i for i, x in enumerate(entries) if not right(x))
    refuse(f"{where}[{index}]", rule, entries[index])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        refuse("", "an object names each entry once", next(name for name in names if names.count(name) > 1))
    return mapping


def _constant(name: str) -> NoReturn:
    refuse("", "all numbers are finite", name)


def _shortened(seen: object) -> str:
    text = repr(seen) if isinstance(seen, (str, int, float, bool, type(None))) else type(seen).__name__
    return text if len(text) <= 60 else text[:57] + "..."
