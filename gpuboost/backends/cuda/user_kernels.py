"""Kernels of numba.cuda: sampling scores, draws and noise, row by row, most of them with a user's function."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from gpuboost.backends.cuda.codegen.formulas import functions_of
from gpuboost.backends.cuda.codegen.functions import Kind
from gpuboost.backends.cuda.codegen.row_kernels import row_kernel
from gpuboost.backends.cuda.device.runtime import Functions
from gpuboost.kernels.sampling.row_draws import row_draws
from gpuboost.kernels.sampling.row_factors import row_factors
from gpuboost.kernels.sampling.row_noise import Derivatives, DrawnRows, Streams, row_noise
from gpuboost.kernels.sampling.row_scores import row_scores
from gpuboost.losses.custom import Custom
from gpuboost.losses.protocol import Loss
from gpuboost.types import NoiseScale, RowScore

RowKernel = tuple[str, str, Functions]  # text, name and functions of a kernel, for ``Launcher``

_GRADIENTS: dict[str, Kind] = {"g": "const u32*", "h": "const u32*"}
_TIMES: dict[str, Kind] = {"times": "const i32*", "has_times": "i32"}


@cache
def factors_kernel() -> RowKernel:
    """The score of each row times its factor."""
    parameters: dict[str, Kind] = {
        **_GRADIENTS, "losses": "const f64*", "made_of": "i32", "kappa": "f64", "factor": "const f64*",
        "has_factor": "i32", "n": "i32", "k": "i32", "out": "f64*",
    }  # fmt: skip
    return row_kernel("row_factors", row_factors, parameters)


@cache
def scores_kernel(score: RowScore) -> RowKernel:
    """The score of each row."""
    return row_kernel("row_scores", row_scores(score), {**_GRADIENTS, "n": "i32", "k": "i32", "out": "f64*"}, "score")


@cache
def draws_kernel(score: RowScore) -> RowKernel:
    """Rows drawn by the score, with probabilities that need no search."""
    parameters: dict[str, Kind] = {
        **_GRADIENTS, **_TIMES, "rows": "i32", "k": "i32", "n": "i32", "rho": "f64", "floor": "f64",
        "stream": "const u32*", "scores": "u32*", "masks": "u16*", "bad": "u32*",
    }  # fmt: skip
    return row_kernel("row_draws", row_draws(score), parameters, "score")


@cache
def noise_kernel(scale: NoiseScale) -> RowKernel:
    """Gradients with noise of that scale."""
    parameters: dict[str, Kind] = {
        **_GRADIENTS, **_TIMES, "rows": "const i32*", "drawn": "i32", "m": "const i32*", "n": "i32", "k": "i32",
        "deviation": "f64", "seed_low": "u32", "seed_high": "u32", "iteration": "const u32*", "names": "const u32*",
        "table": "const f64*", "out": "u32*",
    }  # fmt: skip
    return row_kernel("row_noise", row_noise(scale), parameters, "noise_scale", Derivatives, DrawnRows, Streams)


def functions_of_metrics(losses: Iterable[Loss]) -> Functions:
    """The functions of a user among those of losses whose means are metrics."""
    return tuple(function for loss in losses if isinstance(loss, Custom) for function in functions_of(loss))
