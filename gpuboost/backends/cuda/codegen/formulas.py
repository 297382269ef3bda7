"""A loss's scalar formulas, as functions that the CUDA C of ``pointwise.cu`` and others calls.

A formula is written once, in Python: the Reference backend calls it, numba compiles it for the CPU and numba.cuda for
a GPU, where it is linked into the kernel without contraction. All do the same float64 operations in the same order, so
a formula of arithmetic and ``gpuboost.elementary`` has the same bits everywhere.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from gpuboost import elementary
from gpuboost.backends.cuda.codegen.functions import DeviceFunction, Kind
from gpuboost.backends.numerics.list_gradients import SMALLEST
from gpuboost.backends.reference.smoothed_ranking import FARTHEST
from gpuboost.losses import ranking
from gpuboost.losses.protocol import DiscountedGain, Loss, is_list_loss, n_targets
from gpuboost.losses.xendcg import LEAST_REST

_ONE = """
#define MANY_OUTPUTS 0
static __device__ __forceinline__ void derivatives_of(double y, double f, double a, double &g, double &h)
{
    double both[2];
    derivatives_of_row(y, f, a, both);
    g = both[0];
    h = both[1];
}
"""

_MANY = """
#define MANY_OUTPUTS 1
struct Row { double *at; long long stride, length; };
"""

_ONE_TARGET = """
static __device__ __forceinline__ double value_at_row(const double *y, long long i, const Row f, double a)
{
    return value_of_row(y[i], f.at, f.stride, f.length, a);
}
static __device__ __forceinline__ void derivatives_at_row(const double *y, long long i, const Row f, const Row g,
                                                          const Row h, double a)
{
    derivatives_of_row(y[i], f.at, f.stride, f.length, g.at, g.stride, g.length, h.at, h.stride, h.length, a);
}
"""
"""y (n,)"""

_MANY_TARGETS = """
static __device__ __forceinline__ Row targets_of(const double *y, long long i, const Row f)
{
    return {const_cast<double *>(y) + i * f.length, 1, f.length};
}
static __device__ __forceinline__ double value_at_row(const double *y, long long i, const Row f, double a)
{
    const Row t = targets_of(y, i, f);
    return value_of_row(t.at, t.stride, t.length, f.at, f.stride, f.length, a);
}
static __device__ __forceinline__ void derivatives_at_row(const double *y, long long i, const Row f, const Row g,
                                                          const Row h, double a)
{
    const Row t = targets_of(y, i, f);
    derivatives_of_row(t.at, t.stride, t.length, f.at, f.stride, f.length, g.at, g.stride, g.length, h.at, h.stride,
                       h.length, a);
}
"""
"""y (n, k)"""


class Formulas(NamedTuple):
    """Text in front of a kernel that uses formulas, and the functions to link with it."""

    text: str
    functions: tuple[DeviceFunction, ...]


def functions_of(loss: Loss) -> tuple[DeviceFunction, ...]:
    """The functions of a loss that kernels call."""
    return (list_formulas(loss) if is_list_loss(loss) else formulas(loss)).functions


def formulas(loss: Loss) -> Formulas:
    """``value_of`` and ``derivatives_of`` of a loss."""
    if loss.n_outputs == 1:
        return _one(loss.value, loss.derivatives, getattr(loss, "argument", "loss"))
    return _many(loss.row_value, loss.row_derivatives, getattr(loss, "argument", "loss"), n_targets(loss) > 1)


@cache
def _one(value: Any, derivatives: Any, argument: str) -> Formulas:
    functions = (
        DeviceFunction("value_of", value, ("f64", "f64", "f64"), argument=argument),
        DeviceFunction("derivatives_of_row", derivatives, ("f64", "f64", "f64"), "pair", argument),
    )
    return Formulas(_ONE, functions)


@cache
def _many(row_value: Any, row_derivatives: Any, argument: str, many_targets: bool) -> Formulas:
    y: Kind = "row" if many_targets else "f64"
    functions = (
        DeviceFunction("value_of_row", row_value, (y, "row", "f64"), argument=argument),
        DeviceFunction("derivatives_of_row", row_derivatives, (y, "row", "row", "row", "f64"), "none", argument),
    )
    return Formulas(_MANY + (_MANY_TARGETS if many_targets else _ONE_TARGET), functions)


def list_formulas(loss: DiscountedGain) -> Formulas:
    """``pair_weight_of`` of a ranking loss, and its exp and log; for ``ranking.cu``."""
    return _of_lists(loss.pair_weight)


@cache
def _of_lists(pair_weight: Any) -> Formulas:
    functions = (
        DeviceFunction("pair_weight_of", pair_weight, ("f64", "f64")),
        DeviceFunction("exp_of", elementary.exp, ("f64",)),
        DeviceFunction("log_of", elementary.log, ("f64",)),
    )
    limits = {"NEAR": ranking.NEAR, "FARTHEST": ranking.FARTHEST, "FURTHEST": ranking.FURTHEST, "SMALLEST": SMALLEST}
    return Formulas("".join(f"#define {name} ({float(x).hex()})\n" for name, x in limits.items()), functions)


@cache
def cross_entropy_formulas() -> Formulas:
    """``exp_of``, for the softmax in ``cross_entropy.cu``."""
    limits = {"FARTHEST": ranking.FARTHEST, "LEAST_REST": LEAST_REST}
    text = "".join(f"#define {name} ({x.hex()})\n" for name, x in limits.items())
    return Formulas(text, (DeviceFunction("exp_of", elementary.exp, ("f64",)),))


@cache
def probability_formulas() -> Formulas:
    """``exp_of``, for the probabilities in ``one_vs_rest.cu`` and ``probabilities.cu``."""
    return Formulas("", (DeviceFunction("exp_of", elementary.exp, ("f64",)),))


@cache
def term_formulas() -> Formulas:
    """``exp_of`` and ``log_of``, for the terms in ``terms.cu``."""
    log = DeviceFunction("log_of", elementary.log, ("f64",))
    return Formulas("", (*probability_formulas().functions, log))


@cache
def density_formulas() -> Formulas:
    """``exp_of``, for the densities in ``smoothed_ranking.cu``."""
    text = f"#define FARTHEST ({FARTHEST.hex()})\n"
    return Formulas(text, (DeviceFunction("exp_of", elementary.exp, ("f64",)),))
