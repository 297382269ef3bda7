"""Translation of a loss's scalar formulas to the CUDA C that ``pointwise.cu`` is compiled with.

A formula is written once, in Python: the Reference backend calls it, numba compiles it for the CPU, and this module
translates it to text that NVRTC compiles with ``--fmad=false``. All do the same float64 operations in the same order,
so a formula of arithmetic and ``gpuboost.elementary`` has the same bits everywhere.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from gpuboost import elementary
from gpuboost.backends.cuda.codegen.functions import Library
from gpuboost.backends.cuda.codegen.terms import constant
from gpuboost.backends.reference.ranking import SMALLEST
from gpuboost.losses import ranking
from gpuboost.losses.protocol import ListLoss, Loss

_ONE = """
#define MANY_OUTPUTS 0
static __device__ double value_of(double y, double f, double a) {{ return {value}(y, f, a); }}
static __device__ void derivatives_of(double y, double f, double a, double &g, double &h)
{{
    const auto both = {derivatives}(y, f, a);
    g = both.r0;
    h = both.r1;
}}
"""

_MANY = """
#define MANY_OUTPUTS 1
static __device__ double value_of(double y, const Row f, double a) {{ return {value}(y, f, a); }}
static __device__ void derivatives_of(double y, const Row f, const Row g, const Row h, double a)
{{
    {derivatives}(y, f, g, h, a);
}}
"""

_LISTS = """
#define NEAR {near}
#define FARTHEST {farthest}
#define FURTHEST {furthest}
#define SMALLEST {smallest}
static __device__ double exp_of(double x) {{ return {exp}(x); }}
static __device__ double log_of(double x) {{ return {log}(x); }}
static __device__ double pair_weight_of(double gain, double discount) {{ return {weight}(gain, discount); }}
"""


def formulas(loss: Loss) -> str:
    """``value_of`` and ``derivatives_of`` of a loss, with all functions that they call.

    Raises:
        DeviceError: if a formula uses a construct without translation; with the function, the line and the construct.
    """
    if loss.n_outputs == 1:
        return _one(loss.value, loss.derivatives)
    return _many(loss.row_value, loss.row_derivatives)


@cache
def _one(value: Any, derivatives: Any) -> str:
    library = Library()
    three = ("float", "float", "float")
    value_name, returned = library.function(value, three)
    derivatives_name, both = library.function(derivatives, three)
    _expect(value, returned, 1)
    _expect(derivatives, both, 2)
    return library.text + _ONE.format(value=value_name, derivatives=derivatives_name)


@cache
def _many(row_value: Any, row_derivatives: Any) -> str:
    library = Library()
    value_name, returned = library.function(row_value, ("float", "row", "float"))
    derivatives_name, nothing = library.function(row_derivatives, ("float", "row", "row", "row", "float"))
    _expect(row_value, returned, 1)
    _expect(row_derivatives, nothing, 0)
    return library.text + _MANY.format(value=value_name, derivatives=derivatives_name)


def list_formulas(loss: ListLoss) -> str:
    """``pair_weight_of`` of a ranking loss, and its exp and log; for ``ranking.cu``.

    Raises:
        DeviceError: as ``formulas``.
    """
    return _of_lists(loss.pair_weight)


@cache
def _of_lists(pair_weight: Any) -> str:
    library, pair = Library(), ("float", "float")
    weight, returned = library.function(pair_weight, pair)
    _expect(pair_weight, returned, 1)
    exp, log = (library.function(function, pair[:1])[0] for function in (elementary.exp, elementary.log))
    limits = {"near": ranking.NEAR, "farthest": ranking.FARTHEST, "furthest": ranking.FURTHEST, "smallest": SMALLEST}
    texts = {name: term.code for name, term in ((name, constant(x)) for name, x in limits.items()) if term is not None}
    return library.text + _LISTS.format(weight=weight, exp=exp, log=log, **texts)


def _expect(function: Any, returned: tuple[Any, ...], count: int) -> None:
    if len(returned) != count:
        name = function.__qualname__
        raise TypeError(f"{name} returns {len(returned)} values; gpuboost.losses.protocol asks for {count}.")
