"""Terms of CUDA C with the value and the type that Python gives them: numbers, arithmetic, and known functions.

Numbers are float64, int64 or bool. Operations that Python defines differently from C are spelt out: true division, //
and % that round down, min and max that keep the first of equals, powers by repeated squaring for integer exponents.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

NumberKind: TypeAlias = Literal["bool", "int", "float"]
ORDER: tuple[NumberKind, ...] = ("bool", "int", "float")
C_TYPE: Mapping[NumberKind, str] = {"bool": "bool", "int": "long long", "float": "double"}


@dataclass(frozen=True, slots=True)
class Term:
    """An expression without side effects."""

    code: str
    kind: NumberKind

    def to(self, kind: NumberKind) -> str:
        return self.code if kind == self.kind else f"({C_TYPE[kind]}){self.code}"

    @property
    def truth(self) -> str:
        return self.code if self.kind == "bool" else f"({self.code} != 0)"


def joined(*kinds: NumberKind) -> NumberKind:
    """The narrowest kind that holds all of them."""
    return max(kinds, key=ORDER.index)


def constant(value: Any) -> Term | None:
    """A number as a term; None if it is not a number of these kinds."""
    if isinstance(value, (bool, np.bool_)):
        return Term("true" if value else "false", "bool")
    if isinstance(value, (int, np.integer)):
        if -(2**63) < int(value) < 2**63:
            return Term(f"({int(value)}LL)", "int")
        return None
    if isinstance(value, (float, np.floating)):
        x = float(value)
        if math.isfinite(x):
            return Term(f"({x.hex()})", "float")
        bits = 0x7FF8000000000000 if math.isnan(x) else 0x7FF0000000000000
        infinite = f"__longlong_as_double({bits:#x}LL)"
        return Term(f"(-{infinite})" if x < 0.0 else infinite, "float")
    return None


PRELUDE = """
static __device__ double py_floor_mod(double x, double y)
{
    double rest = fmod(x, y);
    if (rest != 0.0) {
        if ((y < 0.0) != (rest < 0.0))
            rest += y;
    } else {
        rest = copysign(0.0, y);
    }
    return rest;
}
static __device__ double py_floor_divide(double x, double y)
{
    double rest = fmod(x, y), whole = (x - rest) / y;
    if (rest != 0.0 && (y < 0.0) != (rest < 0.0))
        whole -= 1.0;
    if (whole == 0.0)
        return copysign(0.0, x / y);
    const double down = floor(whole);
    return whole - down > 0.5 ? down + 1.0 : down;
}
static __device__ long long py_floor_mod(long long x, long long y)
{
    const long long rest = y == 0 ? 0 : x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
static __device__ long long py_floor_divide(long long x, long long y)
{
    const long long whole = y == 0 ? 0 : x / y;
    return y != 0 && x % y != 0 && (x < 0) != (y < 0) ? whole - 1 : whole;
}
static __device__ double py_power(double x, long long n)
{
    double result = 1.0;
    for (unsigned long long left = n < 0 ? 0ULL - (unsigned long long)n : n; left != 0; left >>= 1, x *= x)
        if (left & 1)
            result *= x;
    return n < 0 ? 1.0 / result : result;
}
static __device__ long long py_power_int(long long x, long long n)
{
    unsigned long long result = 1, factor = (unsigned long long)x;
    for (; n > 0; n >>= 1, factor *= factor)
        if (n & 1)
            result *= factor;
    return (long long)result;
}
static __device__ double py_sign(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; }
static __device__ double py_max(double x, double y) { return x >= y || x != x ? x : y; }
static __device__ double py_min(double x, double y) { return x <= y || x != x ? x : y; }
struct Row { double *at; long long stride, length; };
static __device__ double &py_item(const Row &row, long long i)
{
    return row.at[(i < 0 ? i + row.length : i) * row.stride];
}
"""
"""Functions that terms call; they precede every text of terms."""


def binary(operator: ast.operator, left: Term, right: Term) -> Term | None:
    """``left operator right``; None if there is no such operation on numbers of these kinds."""
    name, kind = type(operator).__name__, joined(left.kind, right.kind, "int")
    if name in _PLAIN:
        return Term(f"({left.to(kind)} {_PLAIN[name]} {right.to(kind)})", kind)
    if name == "Div":
        return Term(f"({left.to('float')} / {right.to('float')})", "float")
    if name in _ROUNDED:
        return Term(f"{_ROUNDED[name]}({left.to(kind)}, {right.to(kind)})", kind)
    if name == "Pow":
        return _power(left, right)
    if name in _BITWISE and kind == "int":
        return _bits(name, left, right)
    return None


_PLAIN = {"Add": "+", "Sub": "-", "Mult": "*"}
_ROUNDED = {"FloorDiv": "py_floor_divide", "Mod": "py_floor_mod"}
_BITWISE = {"BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>"}


def _bits(name: str, left: Term, right: Term) -> Term:
    kind: NumberKind = "bool" if left.kind == right.kind == "bool" and name.startswith("Bit") else "int"
    if name == "LShift":  # of a negative number it is not defined in C++17
        return Term(f"(long long)((unsigned long long){left.to('int')} << {right.to('int')})", "int")
    return Term(f"({C_TYPE[kind]})({left.to('int')} {_BITWISE[name]} {right.to('int')})", kind)


def _power(left: Term, right: Term) -> Term:
    if right.kind == "float":
        return Term(f"pow({left.to('float')}, {right.to('float')})", "float")
    negative = right.code.startswith("(-")
    if joined(left.kind, "int") == "int" and not negative:
        return Term(f"py_power_int({left.to('int')}, {right.to('int')})", "int")
    return Term(f"py_power({left.to('float')}, {right.to('int')})", "float")


Rule: TypeAlias = Callable[..., Term]


def _float_function(name: str) -> Rule:
    return lambda *arguments: Term(f"{name}({', '.join(argument.to('float') for argument in arguments)})", "float")


def _predicate(name: str) -> Rule:
    return lambda x: Term(f"(bool){name}({x.to('float')})", "bool")


def _to_int(x: Term) -> Term:
    return Term(x.to("int"), "int")


def _to_float(x: Term) -> Term:
    return Term(x.to("float"), "float")


def _absolute(x: Term) -> Term:
    if x.kind == "float":
        return Term(f"fabs({x.code})", "float")
    return Term(f"({x.code} < 0 ? -{x.to('int')} : {x.to('int')})", "int")


def _whole(name: str) -> Rule:
    return lambda x: Term(f"(long long){name}({x.to('float')})" if x.kind == "float" else x.to("int"), "int")


def _extreme(sign: str) -> Rule:
    def rule(first: Term, *others: Term) -> Term:
        for other in others:
            kind = joined(first.kind, other.kind)
            a, b = first.to(kind), other.to(kind)
            first = Term(f"({b} {sign} {a} ? {b} : {a})", kind)
        return first

    return rule


def chosen(condition: Term, left: Term, right: Term) -> Term:
    """``left if condition else right``."""
    kind = joined(left.kind, right.kind)
    return Term(f"({condition.truth} ? {left.to(kind)} : {right.to(kind)})", kind)


def _clip(x: Term, low: Term, high: Term) -> Term:
    return Term(f"py_min(py_max({x.to('float')}, {low.to('float')}), {high.to('float')})", "float")


def _square(x: Term) -> Term:
    kind = joined(x.kind, "int")
    return Term(f"({x.to(kind)} * {x.to(kind)})", kind)


_SAME_NAME = (
    "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "expm1", "log1p", "log2", "log10", "exp2", "cbrt", "atan2", "hypot", "copysign", "erf", "erfc", "lgamma",
    "fmod", "fabs",
)  # fmt: skip
_NUMPY_NAMES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "atan2": "arctan2",
}  # fmt: skip


def _table() -> dict[Any, Rule]:
    table: dict[Any, Rule] = {}
    for name in _SAME_NAME:
        for owner, called in ((math, name), (np, _NUMPY_NAMES.get(name, name))):
            if hasattr(owner, called):
                table[getattr(owner, called)] = _float_function(name)
    for name in ("isnan", "isinf", "isfinite"):
        table[getattr(math, name)] = table[getattr(np, name)] = _predicate(name)
    for name in ("floor", "ceil", "trunc"):
        table[getattr(math, name)] = _whole(name)
        table[getattr(np, name)] = _float_function(name)
    table |= {builtins.abs: _absolute, np.abs: _absolute, np.absolute: _absolute, builtins.round: _whole("rint")}
    table |= {builtins.int: _to_int, builtins.float: _to_float, np.int64: _to_int, np.float64: _to_float}
    table |= {builtins.bool: lambda x: Term(x.truth, "bool"), builtins.min: _extreme("<"), builtins.max: _extreme(">")}
    table |= {math.gamma: _float_function("tgamma"), math.pow: _float_function("pow")}
    table |= {np.rint: _float_function("rint"), np.power: _float_function("pow"), np.sign: _float_function("py_sign")}
    table |= {np.maximum: _float_function("py_max"), np.minimum: _float_function("py_min"), np.where: chosen}
    table |= {np.clip: _clip, np.square: _square, np.negative: lambda x: Term(f"(-{x.to('float')})", "float")}
    return table


FUNCTIONS: Mapping[Any, Rule] = _table()
"""Functions that may be called, and the terms of their calls."""
