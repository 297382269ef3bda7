"""Python functions that a backend compiles with numba: what they read, and why numba refuses one."""

from __future__ import annotations

import builtins
import linecache
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from numba.extending import register_jitable

_PLACE = re.compile(r'File "([^"]+)", line (\d+):')


def python_function(function: Callable[..., Any]) -> FunctionType | None:
    """The Python function itself, or the one behind a numba dispatcher; None if it is neither."""
    plain = getattr(function, "py_func", function)
    return plain if isinstance(plain, FunctionType) else None


def names_read(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Names from outside a function that its code reads, with their values: globals, closure, attributes of modules.

    A name that is not bound yet has no value and is left out.
    """
    known = {**vars(builtins), **function.__globals__, **_closure(function)}
    names = [name for name in dict.fromkeys(_names_in(function.__code__)) if name in known]
    yield from ((name, known[name]) for name in names)
    for module in (known[name] for name in names if isinstance(known[name], ModuleType)):
        attributes = vars(module)
        for name in dict.fromkeys(_names_in(function.__code__)):
            if name in attributes:
                yield f"{module.__name__}.{name}", attributes[name]


def _closure(function: FunctionType) -> dict[str, Any]:
    closed = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # bound later, or never
            closed[name] = cell.cell_contents
    return closed


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names_in(part)


@cache
def registered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which compiled functions may call from now on, and so all plain Python functions that it calls.

    They need no decorator: numba compiles each where it is called.
    """
    for reader in readers(function):
        _register(reader)
    return function


@cache
def _register(function: FunctionType) -> None:
    register_jitable(function)


def readers(function: Callable[..., Any]) -> list[FunctionType]:
    """The function, and the Python functions that it calls, directly or not; empty if it is not written in Python."""
    plain = python_function(function)
    if plain is None:
        return []
    seen = [plain]
    for reader in seen:
        for _, value in names_read(reader):
            called = python_function(value)
            if called is not None and called not in seen and not _belongs_to_numpy(called):
                seen.append(called)
    return seen


def _belongs_to_numpy(function: FunctionType) -> bool:
    """True for functions that numba knows by name."""
    return function.__module__.partition(".")[0] in ("numpy", "numba", "math")


def why_not_compiled(
    function: Callable[..., Any], error: Exception, compiled: Callable[[FunctionType], object] | None = None
) -> str:
    """Numba's reason for refusing a function, in one sentence without its full stop, with the line of the source.

    A function that another one calls is refused by the name of the call. ``compiled`` compiles one function for
    float64 arguments: the innermost function that it refuses has the reason.
    """
    for reader in reversed(readers(function) if compiled is not None else []):
        try:
            compiled(reader)  # type: ignore[misc]
        except Exception as own:  # of numba's several classes
            return _sentence(reader, own)
    return _sentence(function, error)


def _sentence(function: Callable[..., Any], error: Exception) -> str:
    message = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip(" |") for line in message.splitlines()]
    lines = [line for line in lines if line and not line.startswith("Failed in ")]
    reason = " ".join(lines[:2] if lines[1:] and lines[0].endswith(":") else lines[:1]) or repr(error)
    place = _place(function, message)
    return f"{reason.rstrip('.')} ({place})" if place else reason.rstrip(".")


def _place(function: Callable[..., Any], message: str) -> str:
    """The last line that the message names of the function's file; else the function's first line."""
    plain = python_function(function)
    if plain is None:
        return ""
    file, number = plain.__code__.co_filename, plain.__code__.co_firstlineno
    for name, line in _PLACE.findall(message):
        if Path(name).name == Path(file).name:
            number = int(line)
    text = linecache.getline(file, number).strip()
    return f"{Path(file).name}, line {number}" + (f": {text}" if text else "")
