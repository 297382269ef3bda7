"""Classes, probabilities and decisions from the scores of a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.losses.per_output import MULTILABEL
from gpuboost.losses.protocol import Loss, LossTraits
from gpuboost.records import declared
from gpuboost.types import Array


def probabilities(loss: Loss, scores: Array) -> NDArray[np.float64]:
    """(n, K) float64 from (k, n) scores, of labels those of class 1. Raises InputError if a custom loss has no link."""
    if loss.task == "any" and declared(LossTraits, loss).link is None:
        raise InputError(
            f"predict_proba: the loss {loss.name!r} does not say how scores become probabilities; make it "
            "with gb.losses.custom(..., inverse_link=), or ask for decision_function."
        )
    p = np.asarray(loss.inverse_link(scores))
    return p if p.ndim == 2 else np.column_stack([1.0 - p, p])


def labels(loss: Loss, classes: NDArray[Any], scores: Array) -> NDArray[Any]:
    """(n,) the class of the highest of (k, n) scores, the first one on a tie; of one score, its sign decides.

    Of k labels of a row, (n, k) 0 and 1 by the signs of the scores.
    """
    if loss.task == MULTILABEL:
        return np.ascontiguousarray((scores > 0.0).T).astype(np.int64)
    chosen: NDArray[Any] = classes[scores.argmax(axis=0) if len(scores) > 1 else (scores[0] > 0.0).astype(int)]
    return chosen


def decision(loss: Loss, scores: Array) -> NDArray[np.float64]:
    """(n,) scores for two classes, positive if the second is more probable; (n, K) for K > 2, or for K labels of a row.

    scores: (k, n).
    """
    if len(scores) > 2 or loss.task == MULTILABEL:
        return np.ascontiguousarray(scores.T)
    return np.asarray(scores[0] if len(scores) == 1 else scores[1] - scores[0])
