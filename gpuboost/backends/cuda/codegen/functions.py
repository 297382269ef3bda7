"""Translation of Python functions to CUDA C functions, with all functions that they call.

A function is translated once for each combination of argument types it is called with. The types of its variables are
found by translating it again until they no longer widen (bool to int to float), which takes two or three passes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuboost.backends.cuda.codegen.expressions import ROW, Argument, Expressions, local
from gpuboost.backends.cuda.codegen.source import FunctionSource, source_of
from gpuboost.backends.cuda.codegen.terms import C_TYPE, PRELUDE, NumberKind, Term, binary, joined


class Library:
    """The functions translated so far. ``text`` has every function before its callers, as C needs it."""

    def __init__(self) -> None:
        self._parts = [PRELUDE]
        self._known: dict[tuple[Any, tuple[str, ...]], tuple[str, tuple[NumberKind, ...]]] = {}
        self._open: list[Any] = []

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def function(self, function: Callable[..., Any], types: tuple[str, ...]) -> tuple[str, tuple[NumberKind, ...]]:
        """C name and result type of a function for arguments of these types ("bool", "int", "float", "row").

        One value is returned as it is, several as a struct with members r0, r1, ...; none as void.

        Raises:
            DeviceError: if it uses a construct without translation; with the function, the line and the construct.
        """
        key = (function, types)
        if key not in self._known:
            source = source_of(function)
            if function in self._open:
                source.refuse(source.node, "calls itself")
            self._open.append(function)
            self._known[key] = self._translated(source, types)
            self._open.pop()
        return self._known[key]

    def _translated(self, source: FunctionSource, types: tuple[str, ...]) -> tuple[str, tuple[NumberKind, ...]]:
        names = source.parameters
        if len(names) != len(types):
            source.refuse(source.node, f"takes {len(names)} arguments and is given {len(types)}")
        pairs = zip(names, types, strict=True)
        parameters: dict[str, NumberKind] = {name: kind for name, kind in pairs if kind in C_TYPE}  # type: ignore[misc]
        kinds, returned = dict(parameters), tuple[NumberKind, ...]()
        rows = {name: local(name) for name, kind in zip(names, types, strict=True) if kind == ROW}
        while True:
            before = dict(kinds), returned
            body = _Body(source, Expressions(source, kinds, rows, self._call), returned)
            lines = body.block(source.body, 1)
            returned = body.returned
            if (kinds, returned) == before:
                break
        if returned and not _always_returns(source.body):
            source.refuse(source.node, "may end without a return")
        return self._written(source, types, parameters, kinds, returned, lines)

    def _written(
        self, source: FunctionSource, types: tuple[str, ...], parameters: dict[str, NumberKind],
        kinds: dict[str, NumberKind], returned: tuple[NumberKind, ...], lines: list[str],
    ) -> tuple[str, tuple[NumberKind, ...]]:  # fmt: skip
        name = (
            f"py{len(self._known) + len(self._parts)}_{''.join(c for c in source.name.split('.')[-1] if c.isalnum())}"
        )
        result = "void" if not returned else C_TYPE[returned[0]] if len(returned) == 1 else f"{name}_result"
        text = "\n"
        if len(returned) > 1:
            members = " ".join(f"{C_TYPE[kind]} r{i};" for i, kind in enumerate(returned))
            text += f"struct {name}_result {{ {members} }};\n"
        pairs = zip(source.parameters, types, strict=True)
        taken = (
            f"const Row {local(p)}" if kind == ROW else f"{C_TYPE[parameters[p]]} given_{local(p)}" for p, kind in pairs
        )
        text += f"static __device__ {result} {name}({', '.join(taken)})\n{{\n"
        for variable, kind in kinds.items():
            start = f"given_{local(variable)}" if variable in parameters else "0"
            text += f"    {C_TYPE[kind]} {local(variable)} = {start};\n"
        self._parts.append(text + "\n".join(lines) + "\n}\n")
        return name, returned

    def _call(self, function: Callable[..., Any], arguments: Sequence[Argument]) -> tuple[str, tuple[NumberKind, ...]]:
        types = tuple(argument.kind if isinstance(argument, Term) else ROW for argument in arguments)
        name, returned = self.function(function, types)
        texts = ", ".join(argument.code if isinstance(argument, Term) else argument for argument in arguments)
        return f"{name}({texts})", returned


@dataclass
class _Body:
    """One pass over the statements of a function."""

    source: FunctionSource
    expressions: Expressions
    returned: tuple[NumberKind, ...]
    temporaries: int = field(default=0)

    def block(self, statements: list[ast.stmt], depth: int) -> list[str]:
        lines = []
        for statement in statements:
            handler = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if handler is None:
                what = ast.unparse(statement).splitlines()[0]
                self.source.refuse(statement, f"holds the statement {what!r}, which does not become CUDA")
            lines += ["    " * depth + line for line in handler(statement)]
        return lines

    def _nested(self, statements: list[ast.stmt]) -> list[str]:
        return ["{", *self.block(statements, 1), "}"]

    def _pass(self, _: ast.Pass) -> list[str]:
        return []

    def _break(self, _: ast.Break) -> list[str]:
        return ["break;"]

    def _continue(self, _: ast.Continue) -> list[str]:
        return ["continue;"]

    def _expr(self, node: ast.Expr) -> list[str]:
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.source.refuse(node, f"computes {ast.unparse(node)!r} and drops it")
        return []  # a docstring

    def _assign(self, node: ast.Assign) -> list[str]:
        if len(node.targets) != 1:
            self.source.refuse(node, "assigns to several targets at once")
        return self._stored(node.targets[0], node.value)

    def _annassign(self, node: ast.AnnAssign) -> list[str]:
        return [] if node.value is None else self._stored(node.target, node.value)

    def _augassign(self, node: ast.AugAssign) -> list[str]:
        target = node.target
        if isinstance(target, (ast.Name, ast.Subscript)):
            term = binary(node.op, self.expressions.term(target), self.expressions.term(node.value))
            if term is not None:
                return [self._store(target, term)]
        self.source.refuse(node, f"holds {ast.unparse(node)!r}, which does not become CUDA")

    def _stored(self, target: ast.expr, value: ast.expr) -> list[str]:
        if not isinstance(target, ast.Tuple):
            return [self._store(target, self.expressions.term(value))]
        terms, lines = self.expressions.terms(value), []
        self.temporaries += 1
        prefix = f"t{self.temporaries}"
        if isinstance(terms, tuple):
            text, kinds = terms
            lines.append(f"const auto {prefix} = {text};")
            parts = [Term(f"{prefix}.r{i}", kind) for i, kind in enumerate(kinds)]
        else:  # all are computed before the first is stored
            parts = [Term(f"{prefix}_{i}", part.kind) for i, part in enumerate(terms)]
            lines += [f"const {C_TYPE[p.kind]} {t.code} = {p.code};" for p, t in zip(terms, parts, strict=True)]
        if len(parts) != len(target.elts):
            self.source.refuse(target, f"unpacks {len(parts)} values into {len(target.elts)}")
        return lines + [self._store(element, part) for element, part in zip(target.elts, parts, strict=True)]

    def _store(self, target: ast.expr, value: Term) -> str:
        if isinstance(target, ast.Subscript):
            return f"{self.expressions.item(target)} = {value.to('float')};"
        if not isinstance(target, ast.Name) or target.id in self.expressions.rows:
            self.source.refuse(target, f"assigns to {ast.unparse(target)}; only variables and array elements can be")
        kinds = self.expressions.kinds
        kinds[target.id] = joined(kinds.get(target.id, value.kind), value.kind)
        return f"{local(target.id)} = {value.to(kinds[target.id])};"

    def _return(self, node: ast.Return) -> list[str]:
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            if self.returned:
                self.source.refuse(node, "returns a value in one place and none in another")
            return ["return;"]
        terms = self.expressions.terms(node.value)
        if isinstance(terms, tuple):
            text, kinds = terms
            parts = [Term(f"r.r{i}", kind) for i, kind in enumerate(kinds)]
            return [f"{{ const auto r = {text}; return {self._packed(node, parts)}; }}"]
        return [f"return {self._packed(node, terms)};"]

    def _packed(self, node: ast.Return, parts: list[Term]) -> str:
        if self.returned and len(parts) != len(self.returned):
            self.source.refuse(node, f"returns {len(parts)} values, and {len(self.returned)} elsewhere")
        before = self.returned or tuple(part.kind for part in parts)
        self.returned = tuple(joined(part.kind, kind) for part, kind in zip(parts, before, strict=True))
        texts = [part.to(kind) for part, kind in zip(parts, self.returned, strict=True)]
        return texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}"

    def _if(self, node: ast.If) -> list[str]:
        lines = [f"if ({self.expressions.term(node.test).truth})", *self._nested(node.body)]
        return [*lines, "else", *self._nested(node.orelse)] if node.orelse else lines

    def _while(self, node: ast.While) -> list[str]:
        if node.orelse:
            self.source.refuse(node, "has an else after a loop")
        return [f"while ({self.expressions.term(node.test).truth})", *self._nested(node.body)]

    def _for(self, node: ast.For) -> list[str]:
        call, target = node.iter, node.target
        if node.orelse:
            self.source.refuse(node, "has an else after a loop")
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
            self.source.refuse(node, f"loops over {ast.unparse(call)}; loops run over range(...)")
        bounds = [self.expressions.term(one) for one in call.args]
        if not isinstance(target, ast.Name) or call.keywords or not 1 <= len(bounds) <= 3:
            self.source.refuse(
                node, f"loops as {ast.unparse(node).splitlines()[0]!r}; write for i in range(start, stop)"
            )
        if any(one.kind == "float" for one in bounds):
            self.source.refuse(node, f"loops over {ast.unparse(call)}, which has a bound that is not a whole number")
        zero, one = Term("0LL", "int"), Term("1LL", "int")
        start, stop, step = (zero, *bounds, one) if len(bounds) == 1 else (*bounds, one)[:3]
        self.temporaries += 1
        i, end, by = (f"{name}{self.temporaries}" for name in ("i", "end", "by"))
        head = f"for (long long {i} = {start.to('int')}, {end} = {stop.to('int')}, {by} = {step.to('int')};"
        head += f" {by} > 0 ? {i} < {end} : {i} > {end}; {i} += {by}) {{"
        return [head, "    " + self._store(target, Term(i, "int")), *self.block(node.body, 1), "}"]


def _always_returns(statements: list[ast.stmt]) -> bool:
    last = statements[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _always_returns(last.body) and _always_returns(last.orelse)
    return isinstance(last, ast.Return)
