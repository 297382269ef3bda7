"""Source text of a Python function, and the values of the global names in it."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from gpuboost.errors import DeviceError

ACCEPTED = (
    "Accepted are numbers, bools, local variables, arithmetic, comparisons, and / or / not, conditional expressions, "
    "if, while, for i in range(...), tuples that are returned or unpacked, functions of math, the scalar functions of "
    "numpy (exp, log, sqrt, tanh, abs, where, clip ...), and other Python functions made of the same. "
    "Rewrite it so, or pass device='cpu'"
)

FunctionNode = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class FunctionSource:
    """A function as its author wrote it."""

    name: str
    file: str
    node: FunctionNode
    names: Mapping[str, Any]  # its global names: builtins, its module, and its closure

    @property
    def parameters(self) -> list[str]:
        return [argument.arg for argument in self.node.args.args]

    @property
    def body(self) -> list[ast.stmt]:
        """Statements; those of a lambda are one return."""
        if isinstance(self.node, ast.FunctionDef):
            return self.node.body
        returned = ast.Return(self.node.body)
        return [ast.copy_location(returned, self.node.body)]

    def refuse(self, node: ast.AST, what: str) -> NoReturn:
        """Raise DeviceError with the construct, its place, and its possible replacement."""
        line = getattr(node, "lineno", self.node.lineno)
        raise DeviceError(f"loss: {self.name} ({self.file}, line {line}) {what}. {ACCEPTED}.")

    def meaning(self, node: ast.expr) -> Any:
        """The object of a name or of a module's attribute. Raises LookupError if it is neither."""
        if isinstance(node, ast.Name):
            return self.names[node.id]
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value)
            if isinstance(owner, ModuleType) and hasattr(owner, node.attr):
                return getattr(owner, node.attr)
        raise LookupError


def source_of(function: Callable[..., Any]) -> FunctionSource:
    """Source text of a function written in Python.

    Raises:
        DeviceError: if it is not such a function, or its text cannot be found.
    """
    function = getattr(function, "py_func", function)  # the Python function behind a numba dispatcher
    if not isinstance(function, FunctionType):
        raise DeviceError(
            f"loss: {function!r} is not a function written in Python, so a GPU cannot run it. {ACCEPTED}."
        )
    code, name = function.__code__, function.__qualname__
    try:
        lines, _ = inspect.findsource(code)
    except OSError:
        raise DeviceError(
            f"loss: the text of {name} cannot be found, and a GPU needs it to compile it. "
            "Define it in a file or a notebook cell, or pass device='cpu'."
        ) from None
    nodes = [node for node in _functions("".join(lines)) if _is_of(node, code)]
    if len(nodes) != 1:
        raise DeviceError(
            f"loss: {name} ({code.co_filename}, line {code.co_firstlineno}) cannot be told from other functions there. "
            "Give each a line of its own; if the file was changed, import it again."
        )
    _check_signature(nodes[0], name, code)
    return FunctionSource(name, code.co_filename, nodes[0], _names(function))


@cache
def _functions(text: str) -> list[FunctionNode]:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a file that was changed since, or magics of a notebook
        return []
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))]


def _is_of(node: FunctionNode, code: CodeType) -> bool:
    """True if the code object was compiled from this node: same name, first line, arguments and span of the body."""
    if isinstance(node, ast.Lambda) != (code.co_name == "<lambda>"):
        return False
    if [argument.arg for argument in node.args.args] != list(code.co_varnames[: code.co_argcount]):
        return False
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    begin = node.body.lineno, node.body.col_offset
    end = node.body.end_lineno or 0, node.body.end_col_offset or 0
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column]
    if node.lineno != code.co_firstlineno:
        return False
    return all(begin <= position <= end for position in places)


def _check_signature(node: FunctionNode, name: str, code: CodeType) -> None:
    arguments = node.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs:
        raise DeviceError(
            f"loss: {name} ({code.co_filename}, line {code.co_firstlineno}) must take plain positional arguments. "
            f"{ACCEPTED}."
        )


def _names(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closed = {}
    for name, cell in cells:
        try:
            closed[name] = cell.cell_contents
        except ValueError:  # a name that is bound later, or never
            continue
    return {**vars(builtins), **function.__globals__, **closed}
