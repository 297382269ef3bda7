"""Compilation of a loss's scalar formulas to kernels. Those that few losses need are imported where they are used."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from gpuboost import elementary
from gpuboost.backends.python_functions import python_function, readers, registered, why_not_compiled
from gpuboost.backends.reference.smoothed_ranking import FARTHEST
from gpuboost.errors import RecipeError
from gpuboost.kernels.common.jit import for_this_process, kernel
from gpuboost.kernels.gradients import pointwise
from gpuboost.losses import ranking, softmax
from gpuboost.losses.custom import Custom
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.protocol import ListLoss, Loss, PairWeight
from gpuboost.losses.softmax import Softmax
from gpuboost.losses.xendcg import LEAST_REST
from gpuboost.types import Array, NoiseScale, RowScore

LossKernel = Callable[..., None]


def gradients(loss: Loss) -> LossKernel:
    """The kernel of ``derivatives``, or of ``row_derivatives`` if the loss has several outputs."""
    if loss.n_outputs == 1:
        return _compiled(pointwise.gradients_of, loss.derivatives, _parts(loss))
    if isinstance(loss, Softmax):
        return _by_classes()
    return _compiled(pointwise.row_gradients_of, loss.row_derivatives, _parts(loss), of_rows=True)


def values(loss: Loss) -> LossKernel:
    """The kernel of ``value`` or ``row_value``."""
    if loss.n_outputs == 1:
        return _compiled(pointwise.values_of, loss.value, _parts(loss))
    return _compiled(pointwise.row_values_of, loss.row_value, _parts(loss), of_rows=True)


def values_of_rounds(loss: Loss, scores: Array, y: Array, weight: Array | None) -> list[float]:
    """The mean loss of the scores (k, rounds, n) after each round, with the bits of ``Backend.loss_value``."""
    k, rounds, n = scores.shape
    if is_of_arrays(loss):
        return [loss.mean(y, np.ascontiguousarray(scores[:, i]), weight) for i in range(rounds)]
    every = np.empty(rounds * n)
    values(loss)(np.tile(y, rounds), scores.reshape(k, -1), loss.parameter, 0, rounds * n, every)
    total = n if weight is None else float(pointwise.sum_in_order(weight))
    each = [every[i : i + n] if weight is None else every[i : i + n] * weight for i in range(0, rounds * n, n)]
    return [float(pointwise.sum_in_order(weighed)) / total for weighed in each]


@cache
def _by_classes() -> LossKernel:
    from gpuboost.kernels.gradients import softmax as by_classes

    compiled: LossKernel = by_classes.gradients_of(
        (registered(softmax.odds), registered(softmax.curvature)), _stamp(softmax.odds), kernel
    )
    return compiled


@cache
def row_scores(score: RowScore) -> LossKernel:
    """The kernel of a user's sampling score.

    Raises:
        RecipeError: if numba cannot compile it, or it returns no number.
    """
    from gpuboost.kernels.sampling import row_scores as score_kernels

    _check("score", score)
    compiled: LossKernel = for_this_process(registered(score_kernels.row_scores(registered(score))))
    return compiled


@cache
def row_noise(scale: NoiseScale) -> LossKernel:
    """The kernel of noise with a user's scale; raises as ``row_scores``."""
    from gpuboost.kernels.sampling import row_noise as noise_kernels

    _check("noise_scale", scale)
    compiled: LossKernel = for_this_process(registered(noise_kernels.row_noise(registered(scale))))
    return compiled


def lambdas(loss: ListLoss) -> LossKernel:
    """The kernel of the derivatives of a ranking loss, query by query."""
    return _compiled_lists(loss.pair_weight)


@cache
def _compiled_lists(pair_weight: PairWeight) -> LossKernel:
    from gpuboost.kernels.gradients import ranking as lists

    formulas = registered(pair_weight), registered(elementary.exp), registered(elementary.log)
    limits = ranking.NEAR, ranking.FARTHEST, ranking.FURTHEST
    compiled: LossKernel = lists.lambdas_of(*formulas, *limits, _stamp(pair_weight), kernel)
    return compiled


@cache
def smoothed() -> LossKernel:
    """The kernel of the gradient estimates of smoothed ranking metrics."""
    from gpuboost.kernels.gradients import smoothed_ranking as smoothed_lists

    exp = elementary.exp
    compiled: LossKernel = smoothed_lists.smoothed_of(registered(exp), FARTHEST, _stamp(exp), kernel)
    return compiled


@cache
def cross_entropy() -> LossKernel:
    """The kernel of the derivatives of XE-NDCG."""
    from gpuboost.kernels.gradients import cross_entropy as cross_entropies

    exp, limits = elementary.exp, (ranking.FARTHEST, LEAST_REST)
    compiled: LossKernel = cross_entropies.cross_entropy_of(registered(exp), *limits, _stamp(exp), kernel)
    return compiled


def _parts(loss: Loss) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """The user's functions in a custom loss, and their names."""
    return tuple(zip(loss.roles, loss.functions, strict=True)) if isinstance(loss, Custom) else ()


@cache
def _compiled(
    make: Callable[..., LossKernel], formula: Callable[..., Any], parts: tuple[tuple[str, Callable[..., Any]], ...],
    of_rows: bool = False,
) -> LossKernel:  # fmt: skip
    registered(formula)
    for role, part in parts:
        _check(role, part, of_rows)
    if parts:  # functions of the user, whose text may not be in a file
        return make(formula, "", for_this_process)
    return make(formula, _stamp(formula), kernel)


@cache
def _check(role: str, part: Callable[..., Any], of_rows: bool = False) -> None:
    """Raise RecipeError, in the user's terms, if numba cannot compile a user's function or it returns no number.

    Inside a kernel, numba's message for the same mistake is a page about functions that the user has not written.
    """
    scores = types.float64[::1]
    writes = role in ("gradient", "hessian")
    arguments = (types.float64, scores, *([scores] * writes)) if of_rows else (types.float64,) * 2
    try:
        compiled = for_this_process(python_function(registered(part)) or part)
        compiled.compile(arguments)
    except Exception as error:  # numba raises errors of many kinds for functions that it cannot compile
        raise RecipeError(
            f"{role}: numba must be able to compile the function; {why_not_compiled(part, error)}. "
            "Use numbers, arithmetic, branches, loops, math, and functions made of the same."
        ) from error
    returned = compiled.overloads[arguments].signature.return_type
    if of_rows and writes:
        return  # it writes into an array
    if not isinstance(returned, (types.Integer, types.Float, types.Boolean)):
        raise RecipeError(f"{role}: must return a number for each row; {part!r} returns {returned}.")


def _stamp(formula: Callable[..., Any]) -> str:
    """A hash of all source text that the kernel is compiled from."""
    modules = dict.fromkeys([elementary, *(inspect.getmodule(reader) or reader for reader in readers(formula))])
    return hashlib.sha256("".join(map(inspect.getsource, modules)).encode()).hexdigest()
