"""A hash of all that a Python function's compiled code depends on, so that it can be kept on disk."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from gpuboost.backends.python_functions import names_read, python_function

_KNOWN = ("numpy", "math", "builtins", "operator", "numba")
"""Modules whose functions are known to the compiler by name."""


class _UnknownError(Exception):
    """A value that has no text."""


def fingerprint(function: Callable[..., Any]) -> str | None:
    """SHA-256 of the function's code, of the numbers it reads, and of the functions it calls; None if it reads more."""
    plain = python_function(function)
    if plain is None:
        return None
    try:
        parts = _of_functions(plain)
    except _UnknownError:
        return None
    return hashlib.sha256("\0".join((sys.version, *parts)).encode()).hexdigest()


def _of_functions(first: FunctionType) -> list[str]:
    parts, functions = [], [first]
    for function in functions:  # grows meanwhile
        parts += [function.__name__, _of_code(function.__code__), repr(_of_value(function.__defaults__))]
        for name, value in names_read(function):
            called = python_function(value)
            if called is None or _is_known(called):
                parts.append(f"{name}={_of_value(value)}")
            else:
                if called not in functions:
                    functions.append(called)
                parts.append(f"{name}=function {functions.index(called)} {_options(value)}")
    return parts


def _of_code(code: CodeType) -> str:
    constants = [_of_code(part) if isinstance(part, CodeType) else repr(part) for part in code.co_consts]
    return repr((code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_argcount))


def _of_value(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        return repr((str(value.dtype), value.shape, hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()))
    if isinstance(value, tuple):
        return repr([_of_value(part) for part in value])
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, (type, FunctionType, BuiltinFunctionType, np.ufunc)) and _is_known(value):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    raise _UnknownError


def _is_known(value: Any) -> bool:
    none = "" if isinstance(value, FunctionType) else "builtins"  # a function made by ``exec`` may be of no module
    module = getattr(value, "__module__", None) or none
    return isinstance(value, np.ufunc) or module.partition(".")[0] in _KNOWN


def _options(function: Any) -> str:
    return repr(sorted(getattr(function, "targetoptions", {}).items()))
