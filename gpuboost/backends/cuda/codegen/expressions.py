"""Translation of a Python expression to a term of CUDA C."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gpuboost.backends.cuda.codegen.source import FunctionSource
from gpuboost.backends.cuda.codegen.terms import FUNCTIONS, NumberKind, Term, binary, chosen, constant, joined

ROW = "row"
"""The type of an array argument; not a number, so not a kind."""

Called: TypeAlias = "Callable[[Callable[..., Any], Sequence[Argument]], tuple[str, tuple[NumberKind, ...]]]"
Argument: TypeAlias = "Term | str"  # a number, or the C name of an array
"""Translates a Python function for arguments of these types: the text of the call, and its result type."""

_COMPARED = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class Expressions:
    """Translates the expressions of one function. ``kinds``: its local numbers so far; ``rows``: its arrays."""

    def __init__(
        self, source: FunctionSource, kinds: dict[str, NumberKind], rows: Mapping[str, str], call: Called
    ) -> None:
        self.source, self.kinds, self.rows = source, kinds, rows
        self._call_python = call

    def term(self, node: ast.expr) -> Term:
        """The term of an expression that is one number."""
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            self.source.refuse(node, f"holds {_described(node)}, which does not become CUDA")
        term: Term = handler(node)
        return term

    def terms(self, node: ast.expr) -> tuple[str, tuple[NumberKind, ...]] | list[Term]:
        """Several numbers: the terms of a tuple, or a call that returns a tuple with the kinds of its parts."""
        if isinstance(node, ast.Tuple):
            return [self.term(part) for part in node.elts]
        if isinstance(node, ast.Call):
            function = self._meaning(node.func)
            if function is not None and not _known(function):
                text, kinds = self._call_python(function, self._arguments(node))
                if len(kinds) > 1:
                    return text, kinds
        return [self.term(node)]

    # one method per kind of node, found by its name

    def _constant(self, node: ast.Constant) -> Term:
        return self._number(node, node.value)

    def _name(self, node: ast.Name) -> Term:
        if node.id in self.kinds:
            return Term(local(node.id), self.kinds[node.id])
        if node.id in self.rows:
            self.source.refuse(node, f"uses the array {node.id} as a number; index it")
        value = self._meaning(node)
        if value is None:
            self.source.refuse(node, f"uses {node.id}, which has no value there")
        return self._number(node, value)

    def _attribute(self, node: ast.Attribute) -> Term:
        return self._number(node, self._meaning(node))

    def _number(self, node: ast.expr, value: Any) -> Term:
        term = constant(value)
        if term is None:
            self.source.refuse(node, f"uses {ast.unparse(node)}, which is {value!r} and not a number of 64 bits")
        return term

    def _binop(self, node: ast.BinOp) -> Term:
        left, right = self.term(node.left), self.term(node.right)
        term = binary(node.op, left, right)
        if term is None:
            self.source.refuse(node, f"holds {ast.unparse(node)}, an operation that is not known for these numbers")
        return term

    def _unaryop(self, node: ast.UnaryOp) -> Term:
        operand = self.term(node.operand)
        kind = joined(operand.kind, "int")
        if isinstance(node.op, ast.Not):
            return Term(f"(!{operand.truth})", "bool")
        if isinstance(node.op, ast.USub):
            return Term(f"(-{operand.to(kind)})", kind)
        if isinstance(node.op, ast.Invert):
            if kind == "float":
                self.source.refuse(node, f"holds {ast.unparse(node)}, which is for whole numbers")
            return Term(f"(~{operand.to(kind)})", kind)
        return Term(operand.to(kind), kind)

    def _compare(self, node: ast.Compare) -> Term:
        parts, left = [], self.term(node.left)
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.term(comparator)
            if type(operator) not in _COMPARED:
                self.source.refuse(node, f"holds {ast.unparse(node)}; numbers are compared by ==, !=, <, <=, > and >=")
            kind = joined(left.kind, right.kind)
            parts.append(f"({left.to(kind)} {_COMPARED[type(operator)]} {right.to(kind)})")
            left = right
        return Term(f"({' && '.join(parts)})", "bool")

    def _boolop(self, node: ast.BoolOp) -> Term:
        term = self.term(node.values[0])
        for value in node.values[1:]:
            other = self.term(value)
            if term.kind == other.kind == "bool":
                sign = "&&" if isinstance(node.op, ast.And) else "||"
                term = Term(f"({term.code} {sign} {other.code})", "bool")
            else:  # Python's answer is one of the two
                term = chosen(term, *((other, term) if isinstance(node.op, ast.And) else (term, other)))
        return term

    def _ifexp(self, node: ast.IfExp) -> Term:
        return chosen(self.term(node.test), self.term(node.body), self.term(node.orelse))

    def _subscript(self, node: ast.Subscript) -> Term:
        return Term(self.item(node), "float")

    def _call(self, node: ast.Call) -> Term:
        function = self._meaning(node.func)
        if function is None:
            return self._method(node)
        if function is len and len(node.args) == 1 and self._row(node.args[0]) is not None:
            return Term(f"{self._row(node.args[0])}.length", "int")
        arguments = self._arguments(node)
        if _known(function):
            return self._known_call(node, function, arguments)
        if not callable(function):
            self.source.refuse(node, f"calls {ast.unparse(node.func)}, which is {function!r} and not a function")
        text, kinds = self._call_python(function, arguments)
        if len(kinds) != 1:
            self.source.refuse(node, f"takes what {ast.unparse(node.func)} returns, {len(kinds)} values, as one number")
        return Term(text, kinds[0])

    def _known_call(self, node: ast.Call, function: Any, arguments: list[Argument]) -> Term:
        numbers = [argument for argument in arguments if isinstance(argument, Term)]
        if len(numbers) != len(arguments):
            self.source.refuse(node, f"hands an array to {ast.unparse(node.func)}")
        try:
            return FUNCTIONS[function](*numbers)
        except TypeError:
            self.source.refuse(node, f"calls {ast.unparse(node)} with {len(numbers)} arguments")

    def _method(self, node: ast.Call) -> Term:
        """``np.float64(x).view(np.int64)`` and back: a number's bits."""
        owner = node.func
        if not (isinstance(owner, ast.Attribute) and owner.attr == "view" and len(node.args) == 1):
            self.source.refuse(node, f"calls {ast.unparse(node.func)}, which is not known there")
        number, target = self.term(owner.value), self._meaning(node.args[0])
        if target is np.int64 and number.kind == "float":
            return Term(f"__double_as_longlong({number.code})", "int")
        if target is np.float64 and number.kind == "int":
            return Term(f"__longlong_as_double({number.code})", "float")
        self.source.refuse(node, f"holds {ast.unparse(node)}; a number's bits are seen as np.int64 or np.float64")

    def item(self, node: ast.Subscript) -> str:
        """An element of an array argument, to be read or written."""
        row = self._row(node.value)
        if row is None:
            self.source.refuse(node, f"indexes {ast.unparse(node.value)}, which is not an array argument")
        index = self.term(node.slice)
        if index.kind == "float":
            self.source.refuse(node, f"has the index {ast.unparse(node.slice)}, which is not a whole number")
        return f"py_item({row}, {index.to('int')})"

    # parts of the above

    def _row(self, node: ast.expr) -> str | None:
        return self.rows.get(node.id) if isinstance(node, ast.Name) else None

    def _arguments(self, node: ast.Call) -> list[Argument]:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            self.source.refuse(node, f"calls {ast.unparse(node.func)} with more than plain positional arguments")
        return [self._row(argument) or self.term(argument) for argument in node.args]

    def _meaning(self, node: ast.expr) -> Any:
        """The value of a name from outside the function, or None."""
        if isinstance(node, ast.Name) and (node.id in self.kinds or node.id in self.rows):
            return None
        try:
            return self.source.meaning(node)
        except LookupError:
            return None


def local(name: str) -> str:
    """A Python variable's name in C, such that it is not a keyword."""
    return f"v_{name}" if name.isascii() else "v_" + "".join(f"{ord(letter):x}_" for letter in name)


def _known(function: Any) -> bool:
    try:
        return function in FUNCTIONS
    except TypeError:  # cannot be hashed
        return False


def _described(node: ast.expr) -> str:
    names = {
        ast.List: "a list", ast.Dict: "a dict", ast.Set: "a set", ast.Tuple: "a tuple in an expression",
        ast.ListComp: "a list comprehension", ast.GeneratorExp: "a generator", ast.JoinedStr: "a formatted string",
        ast.Lambda: "a lambda", ast.NamedExpr: "an assignment in an expression", ast.Slice: "a slice",
    }  # fmt: skip
    return f"{names.get(type(node), type(node).__name__)}, {ast.unparse(node)}"
