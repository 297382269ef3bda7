"""Start values F_0 other than the loss's best constant, as published algorithms have them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_real
from gpuboost.errors import RecipeError, shown
from gpuboost.losses.averages import constant, weighted_mean
from gpuboost.losses.base import BaseLoss
from gpuboost.losses.binary import log_odds
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.types import MOST_SCORE, Array

OPTIMUM, MEAN, HALF_LOG_ODDS = "optimum", "mean", "half_log_odds"

StartRule: TypeAlias = str | float
"""One of the three names, or a score."""


def start_rule(value: Any, loss: Loss) -> StartRule:
    """The value, checked.

    Raises
    ------
    RecipeError
        If it is no name and no number within ``MOST_SCORE``, or the loss has no such start.
    """
    if is_real(value, -MOST_SCORE, MOST_SCORE):
        return float(value)
    if not isinstance(value, str) or value not in (OPTIMUM, MEAN, HALF_LOG_ODDS):
        raise RecipeError(
            f"start: must be 'optimum', 'mean', 'half_log_odds' or a number from {-MOST_SCORE:g} to {MOST_SCORE:g}; "
            f"got {shown(value)}."
        )
    binary = " Only binary classification is supported." * (loss.task == "multiclass")  # scikit-learn's words
    if value == MEAN and (loss.n_outputs > 1 or is_list_loss(loss)):
        kind = "whole lists" if is_list_loss(loss) else f"{loss.n_outputs} scores a row"
        raise RecipeError(
            f"start: 'mean' is for losses of one target and one score a row; {loss.name!r} has {kind}.{binary}"
        )
    if value == HALF_LOG_ODDS and loss.task != "binary":
        raise RecipeError(f"start: 'half_log_odds' is for losses of two classes; got loss {loss.name!r}.{binary}")
    return value


def needs_one_score(value: Any) -> bool:
    """True if losses of several scores a row have no such start."""
    return isinstance(value, str) and value in (MEAN, HALF_LOG_ODDS)


def start_value(
    rule: StartRule, loss: Loss, y: Array, weight: Array, offset: Array | None = None
) -> NDArray[np.float64]:
    """(k,) float64 F_0 of the rule, on the scale of the scores. y, weight: (n,); there are rows of both classes.

    offset: (k, n), added to F_0 of each row. The optimum beside offsets is 0 if the loss has no formula for it; the
    other rules do not look at offsets.
    """
    if isinstance(rule, float):
        return np.full(loss.n_outputs, rule + 0.0)  # no negative zero
    if rule == MEAN:
        return constant(weighted_mean(y, weight))
    if rule == HALF_LOG_ODDS:
        return constant(0.5 * log_odds(weighted_mean(y, weight)))
    if offset is None:
        return np.asarray(loss.start(y, weight), np.float64)
    if is_list_loss(loss) or not isinstance(loss, BaseLoss):
        return np.zeros(loss.n_outputs)
    return np.asarray(loss.start_beside(y, weight, offset), np.float64)
