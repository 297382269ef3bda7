"""Scalar functions of numpy that numba.cuda does not have, from those of ``math`` that it has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def _sign(x: float) -> float:
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else x)


def _rint(x: float) -> float:
    """Round to the nearest whole number, halves to the even one."""
    whole = 4503599627370496.0  # 2**52: a larger number is whole
    if not abs(x) < whole:
        return x
    return math.copysign((abs(x) + whole) - whole, x)


NUMPY_FUNCTIONS: Mapping[np.ufunc, Callable[..., Any]] = {
    np.exp: math.exp,
    np.exp2: lambda x: math.pow(2.0, x),
    np.expm1: math.expm1,
    np.log1p: math.log1p,
    np.sqrt: math.sqrt,
    np.square: lambda x: x * x,
    np.power: math.pow,
    np.negative: lambda x: -x,
    np.absolute: math.fabs,
    np.fabs: math.fabs,
    np.sign: _sign,
    np.floor: lambda x: float(math.floor(x)),
    np.ceil: lambda x: float(math.ceil(x)),
    np.trunc: lambda x: float(math.trunc(x)),
    np.rint: _rint,
    np.copysign: math.copysign,
    np.add: lambda x, y: x + y,
    np.subtract: lambda x, y: x - y,
    np.multiply: lambda x, y: x * y,
    np.reciprocal: lambda x: 1.0 / x,
}
"""A ufunc, and the Python function of float64 that numba.cuda compiles for it."""
