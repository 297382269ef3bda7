"""Names and types of the parameters of kernels, read from the text of their module.

Macros continue some parameter lists (``WITHIN``, ``ROWS_HERE``), and conditions decide how they are defined. So this
module supports ``#define`` of names without parameters and ``#if``, and nothing else of the preprocessor.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

SCALARS: dict[str, type[np.generic]] = {
    "u8": np.uint8, "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
    "f32": np.float32, "f64": np.float64, "int": np.int32, "unsigned int": np.uint32, "float": np.float32,
    "double": np.float64,
}  # fmt: skip

_BOUNDS = r"(?:__cluster_dims__\s*\([^()]*\)\s*)?__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)"
_BEFORE, _AFTER = rf"(?:(?P<before>{_BOUNDS})\s*)?", rf"(?:(?P<after>{_BOUNDS})\s*)?"
KERNEL = rf'extern\s+"C"\s+__global__\s+{_BEFORE}void\s+{_AFTER}(?P<kernel>\w+)\s*\((?P<parameters>[^)]*)\)'
"""The head of a kernel's definition."""

_DIRECTIVE = r"^[ \t]*#[ \t]*(?P<directive>define|ifdef|ifndef|if|elif|else|endif)\b(?P<rest>[^\n]*)"
_PART = re.compile(f"{_DIRECTIVE}|{KERNEL}", re.MULTILINE)
_DEFINED = re.compile(r"defined\s*\(?\s*(\w+)\s*\)?")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class Parameter(NamedTuple):
    """One parameter of a kernel. ``scalar``: the NumPy type of a number; None for a pointer."""

    name: str
    scalar: type[np.generic] | None
    c_type: str  # without __restrict__


class Declaration(NamedTuple):
    """The head of a kernel. ``bounds``: its __launch_bounds__(...), and its cluster if it has one; "" without."""

    bounds: str
    parameters: tuple[Parameter, ...]


def parameters(text: str) -> dict[str, tuple[Parameter, ...]]:
    """The parameters of every kernel of ``declarations``."""
    return {name: declared.parameters for name, declared in declarations(text).items()}


@lru_cache(maxsize=256)
def declarations(text: str) -> dict[str, Declaration]:
    """Every extern "C" kernel that a module's text defines, by its name.

    Raises:
        ValueError: if a parameter is neither a pointer nor a number of ``SCALARS``.
    """
    macros: dict[str, str] = {}
    taken: list[bool] = []  # of every open #if: whether the current branch is compiled
    earlier: list[bool] = []  # whether one of its branches so far was
    kernels: dict[str, Declaration] = {}
    for part in _PART.finditer(text):
        directive, rest = part["directive"], _COMMENT.sub("", part["rest"] or "").strip()
        if directive in ("if", "ifdef", "ifndef"):
            taken.append(_holds(directive, rest, macros))
            earlier.append(taken[-1])
        elif directive in ("elif", "else"):
            taken[-1] = not earlier[-1] and (directive == "else" or _holds("if", rest, macros))
            earlier[-1] |= taken[-1]
        elif directive == "endif":
            taken.pop()
            earlier.pop()
        elif all(taken) and directive == "define":
            name, _, value = rest.partition(" ")
            macros[name] = value.strip()
        elif all(taken):
            listed = _listed(_expanded(_COMMENT.sub(" ", part["parameters"]), macros))
            kernels[part["kernel"]] = Declaration(part["before"] or part["after"] or "", listed)
    return kernels


def _holds(directive: str, condition: str, macros: dict[str, str]) -> bool:
    if directive != "if":
        return (condition in macros) == (directive == "ifdef")
    known = _DEFINED.sub(lambda match: str(int(match[1] in macros)), condition)
    numbers = _NAME.sub("0", _expanded(known, macros))  # as in C, a name that is not defined is 0
    python = re.sub(r"!(?!=)", " not ", numbers.replace("&&", " and ").replace("||", " or "))
    return bool(eval(python, {"__builtins__": {}}))


def _expanded(text: str, macros: dict[str, str]) -> str:
    """The text with the names of macros replaced by their definitions until none is left."""
    for _ in range(len(macros) + 1):
        replaced = _NAME.sub(lambda match: macros.get(match[0], match[0]), text)
        if replaced == text:
            break
        text = replaced
    return text


def _listed(text: str) -> tuple[Parameter, ...]:
    declarations = [part.strip() for part in text.split(",") if part.strip()]
    return tuple(_parameter(declaration) for declaration in declarations if declaration != "void")


def _parameter(declaration: str) -> Parameter:
    words = _NAME.findall(declaration)
    c_type = " ".join(declaration[: declaration.rindex(words[-1])].replace("__restrict__", "").split())
    if "*" in declaration:
        return Parameter(words[-1], None, c_type)
    kind = " ".join(word for word in words[:-1] if word != "const")
    if kind not in SCALARS:
        raise ValueError(f"parameter {declaration!r}: must be a pointer, or one of {', '.join(SCALARS)}.")
    return Parameter(words[-1], SCALARS[kind], c_type)
