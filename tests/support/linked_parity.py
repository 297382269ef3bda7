"""Functions that are linked into kernels: Python, and what numba compiles for callers in C, give the same bits.

``cd tests && python -m support.linked_parity`` writes kernels/PARITY.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from emulator.functions import on_the_cpu

from gpuboost.backends.cuda.codegen.formulas import (
    cross_entropy_formulas,
    density_formulas,
    functions_of,
    probability_formulas,
    term_formulas,
)
from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.codegen.row_functions import CALLED
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.losses import registry
from gpuboost.losses.protocol import is_on_host

WRITTEN = Path(__file__).resolve().parents[2] / "kernels" / "PARITY.md"
INPUTS, OUTPUTS = 20_000, 3
SPECIAL = (0.0, -0.0, 1.0, -1.0, 5e-324, -1e-310, 1e308, -1e308, np.inf, -np.inf, np.nan)
OF_LOSSES = ("value_of", "derivatives_of_row", "value_of_row")  # whose last argument is the loss's parameter
_TABLE = np.ascontiguousarray(TABLE.reshape(-1))


def functions() -> Iterator[tuple[str, DeviceFunction, float]]:
    """Where each function is called, the function, and the loss's parameter."""
    for file, called in CALLED.items():
        yield from ((file, function, 0.0) for function in called)
    yield from (("gradients/smoothed_ranking.cu", function, 0.0) for function in density_formulas().functions)
    yield from (("gradients/cross_entropy.cu", function, 0.0) for function in cross_entropy_formulas().functions)
    yield from (("metrics/one_vs_rest.cu", function, 0.0) for function in probability_formulas().functions)
    yield from (("prediction/probabilities.cu", function, 0.0) for function in probability_formulas().functions)
    yield from (("metrics/terms.cu", function, 0.0) for function in term_formulas().functions)
    for name in registry.NAMES:
        loss = registry.get(name, n_classes=OUTPUTS)
        of_device = () if is_on_host(loss) else functions_of(loss)
        yield from ((name, function, getattr(loss, "parameter", 0.0)) for function in of_device)


def disagreements(function: DeviceFunction, parameter: float, inputs: int, seed: int = 0) -> int:
    """Number of inputs at which Python and the compiled function differ in a bit; all NaN are alike."""
    rng = np.random.default_rng(seed)
    python, compiled = getattr(function.function, "py_func", function.function), on_the_cpu(function).ctypes
    differ = 0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(inputs):
            given = [_argument(kind, rng) for kind in function.kinds]
            if function.name in OF_LOSSES:
                given[-1] = parameter
            if "row" in function.kinds:
                given[0] = float(rng.integers(0, OUTPUTS))  # a class
            differ += _of_python(function, python, given) != _of_c(function, compiled, given)
    return differ


def _of_python(function: DeviceFunction, python: Any, given: list[Any]) -> bytes:
    own = [argument.copy() if kind == "row" else argument for kind, argument in zip(function.kinds, given, strict=True)]
    answer = python(*own)
    return _bits(np.concatenate(own[2:4]) if function.returned == "none" else answer, function.returned)


def _of_c(function: DeviceFunction, compiled: Any, given: list[Any]) -> bytes:
    own: list[Any] = []
    rows = []
    for kind, argument in zip(function.kinds, given, strict=True):
        if kind == "row":
            rows.append(argument.copy())
            own += [rows[-1], 1, len(argument)]
        else:
            own.append(argument.item() if isinstance(argument, np.generic) else argument)
    out = {"pair": np.zeros(2), "words": np.zeros(4, np.uint32)}.get(function.returned)
    own += [] if out is None else [out]
    answer = compiled(*(
        argument.ctypes.data_as(kind) if isinstance(argument, np.ndarray) else argument
        for kind, argument in zip(compiled.argtypes, own, strict=True)
    ))  # fmt: skip
    made = np.concatenate(rows[1:]) if function.returned == "none" else answer if out is None else out
    return _bits(made, function.returned)


def _bits(answer: Any, returned: str) -> bytes:
    kind = {"f32": np.float32, "i32": np.int32, "words": np.uint32}.get(returned, np.float64)
    numbers = np.array(answer, kind)
    return (
        np.where(np.isnan(numbers), kind(np.nan), numbers).tobytes() if numbers.dtype.kind == "f" else numbers.tobytes()
    )


def _argument(kind: str, rng: np.random.Generator) -> Any:
    """A number of this kind, or an array."""
    if kind == "f64":
        special = rng.random() < 0.1  # np.float64: division by zero is no error
        return np.float64(rng.choice(SPECIAL) if special else rng.normal() * 10.0 ** rng.integers(-3, 4))
    if kind == "u32":
        return np.uint32(rng.integers(0, 2**32))
    if kind == "u64":
        return int(rng.integers(0, 2**32 + 1))
    if kind == "i32":
        return int(rng.integers(0, 2))
    return _TABLE if kind == "const f64*" else rng.normal(size=OUTPUTS) * 3.0


def table() -> str:
    """The counts of all functions, as Markdown."""
    lines = [
        "# Linked functions, bit by bit",
        "",
        "Python functions that are linked into kernels, called by Python and as numba compiles them for callers in C,",
        f"which is how the emulator calls them, with {INPUTS:,} inputs each: Gaussian numbers of seven magnitudes,",
        "zeros, denormal numbers, infinities and NaN, and random words. numba.cuda compiles the same text without",
        "contraction ([LINKED.md](LINKED.md)); `tests/device` compares models on a GPU. Written by",
        "`cd tests && python -m support.linked_parity`; `tests/cuda/test_linked_parity.py` holds the zeros.",
        "",
        "| called in, or loss | function | inputs that differ in a bit |",
        "|---|---|--:|",
    ]
    for of, function, parameter in functions():
        lines.append(f"| {of} | `{function.name}` | {disagreements(function, parameter, INPUTS)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    WRITTEN.write_text(table(), encoding="utf-8")
