"""Python functions that a backend compiles with numba: what they read, and why numba refuses one."""

from __future__ import annotations

import builtins
import dis
import linecache
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from numba.core.compiler import run_frontend
from numba.extending import register_jitable

_PLACE = re.compile(r'File "([^"]+)", line (\d+):')
_FAILED = re.compile(r"Failed in \w+ mode pipeline \(step: [^)]*\)\n")
_UNKNOWN = re.compile(r"NameError: name '(\w+)' is not defined")


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
    """True for functions that numba compiles without their source."""
    module = function.__module__ or ""  # that of ``exec`` has none
    return module.partition(".")[0] in ("numpy", "numba", "math")


def why_not_compiled(function: Callable[..., Any], error: Exception) -> str:
    """Numba's reason for refusing a function, in one sentence without its full stop, with the line of the source.

    The message of a function that another one calls is inside that of the call: the innermost has the reason. Python
    that numba cannot even read has no line in its message; then each function is read by itself.
    """
    functions = readers(function)
    for reader in functions:
        try:
            run_frontend(reader)
        except Exception as reader_error:  # of numba's several classes
            return _sentence([reader], reader_error)
    return _sentence(functions, error)


def _sentence(functions: list[FunctionType], error: Exception) -> str:
    message = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    innermost = _FAILED.split(message)[-1]
    lines = [line.strip(" |") for line in innermost.splitlines()]
    lines = [line for line in lines if line]
    reason = " ".join(lines[:2] if lines[1:] and lines[0].endswith(":") else lines[:1]) or repr(error)
    place = _place(functions, innermost)
    return f"{reason.rstrip('.')} ({place})" if place else reason.rstrip(".")


def _place(functions: list[FunctionType], message: str) -> str:
    """The line that reads an unknown name; else the first line in the message of a function's file; else the first."""
    if not functions:
        return ""
    codes = [function.__code__ for function in functions]
    file, number = codes[0].co_filename, codes[0].co_firstlineno
    unknown = _UNKNOWN.search(message)
    reading = [location for code in codes if unknown for location in _lines_that_read(code, unknown[1])]
    named = [
        (code.co_filename, int(line))
        for name, line in _PLACE.findall(message)
        for code in codes
        if Path(name).name == Path(code.co_filename).name
    ]
    file, number = (reading or named or [(file, number)])[0]
    text = linecache.getline(file, number).strip()
    return f"{Path(file).name}, line {number}" + (f": {text}" if text else "")


def _lines_that_read(code: CodeType, name: str) -> Iterator[tuple[str, int]]:
    number = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        number = (instruction.positions and instruction.positions.lineno) or number
        if instruction.argval == name:
            yield code.co_filename, number
