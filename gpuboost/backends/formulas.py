"""From a loss's scalar formulas to compiled kernels."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from numba.extending import register_jitable

from gpuboost import elementary
from gpuboost.kernels import pointwise
from gpuboost.kernels import ranking as lists
from gpuboost.kernels.jit import for_this_process, kernel
from gpuboost.losses import ranking
from gpuboost.losses.custom import Custom
from gpuboost.losses.protocol import ListLoss, Loss, PairWeight

Kernel = Callable[..., None]


def gradients(loss: Loss) -> Kernel:
    """The kernel of ``derivatives``, or of ``row_derivatives`` where the loss has several outputs."""
    if loss.n_outputs == 1:
        return _compiled(pointwise.gradients_of, loss.derivatives, _parts(loss))
    return _compiled(pointwise.row_gradients_of, loss.row_derivatives, _parts(loss))


def values(loss: Loss) -> Kernel:
    """The kernel of ``value`` or ``row_value``."""
    if loss.n_outputs == 1:
        return _compiled(pointwise.values_of, loss.value, _parts(loss))
    return _compiled(pointwise.row_values_of, loss.row_value, _parts(loss))


def lambdas(loss: ListLoss) -> Kernel:
    """The kernel of derivatives of whole lists."""
    return _compiled_lists(loss.pair_weight)


@cache
def _compiled_lists(pair_weight: PairWeight) -> Kernel:
    _elementary_functions()
    formulas = register_jitable(pair_weight), elementary.exp, elementary.log
    limits = ranking.NEAR, ranking.FARTHEST, ranking.FURTHEST
    made: Kernel = lists.lambdas_of(*formulas, *limits, _stamp(pair_weight), kernel)
    return made


def _parts(loss: Loss) -> tuple[Callable[..., Any], ...]:
    """The user's functions that a custom loss is made of."""
    return loss.functions if isinstance(loss, Custom) else ()


@cache
def _compiled(
    make: Callable[..., Kernel], formula: Callable[..., Any], parts: tuple[Callable[..., Any], ...]
) -> Kernel:
    _elementary_functions()
    for part in parts:
        register_jitable(part)
    return make(register_jitable(formula), _stamp(formula), for_this_process if parts else kernel)


@cache
def _elementary_functions() -> None:
    """Tell numba, once, that the library's own exp, log and the like are to be compiled where they are called."""
    for function in elementary.SCALAR_FUNCTIONS:
        register_jitable(function)


def _stamp(formula: Callable[..., Any]) -> str:
    """A hash of the text that ends up inside the kernel."""
    text = inspect.getsource(elementary) + inspect.getsource(inspect.getmodule(formula) or formula)
    return hashlib.sha256(text.encode()).hexdigest()
