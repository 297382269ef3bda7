"""The library's own Python functions that headers of CUDA C call, by header."""

from __future__ import annotations

from collections.abc import Mapping

from gpuboost.backends import numba_setting  # noqa: F401  before the kernels
from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.kernels.common.normal import noisy, normal
from gpuboost.kernels.common.philox import philox
from gpuboost.kernels.sampling.control_variates import leaf_gradient, node_gradient
from gpuboost.kernels.sampling.probability import (
    by_border,
    by_threshold,
    inverse,
    is_below,
    is_drawn,
    magnitude,
    normal_score,
    weighted,
)

Functions = tuple[DeviceFunction, ...]

_INVERSE = DeviceFunction("inverse", inverse, ("f64",))
_WEIGHTED = DeviceFunction("weighted", weighted, ("f64", "f64"))

CALLED: Mapping[str, Functions] = {
    "common/philox.cuh": (DeviceFunction("philox_words", philox, ("u32",) * 6, "words"),),
    "common/normal.cuh": (DeviceFunction("normal_of", normal, ("u32", "const f64*")),),
    "sampling/threshold.cuh": (
        DeviceFunction("by_threshold", by_threshold, ("f64", "f64", "f64")),
        DeviceFunction("by_border", by_border, ("u32", "u32", "f64", "f64")),
    ),
    "sampling/draw.cu": (DeviceFunction("is_below", is_below, ("u32", "u64"), "i32"),),
    "sampling/importance.cu": (
        _INVERSE,
        DeviceFunction("magnitude", magnitude, ("f64", "f64", "f64", "i32")),
        DeviceFunction("normal_score", normal_score, ("f64",), "f32"),
        DeviceFunction("is_drawn", is_drawn, ("u32", "f64"), "i32"),
    ),
    "sampling/control_variates.cu": (
        _INVERSE,
        _WEIGHTED,
        DeviceFunction("node_gradient", node_gradient, ("f64",) * 4),
        DeviceFunction("leaf_gradient", leaf_gradient, ("f64",) * 5),
    ),
    "sampling/sample.cu": (_WEIGHTED,),
    "sampling/noise.cu": (DeviceFunction("noisy", noisy, ("f64", "f64", "f64", "f64")),),
}
"""File of ``gpuboost.kernels`` -> the functions that it calls"""


def called_by(*files: str) -> Functions:
    """The functions that these files call, to be linked with their module."""
    return tuple(function for file in dict.fromkeys(files) for function in CALLED.get(file, ()))
