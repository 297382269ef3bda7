"""The offsets of rows to predict."""

from __future__ import annotations

import warnings
from typing import Any

from gpuboost.data.dataset import Dataset
from gpuboost.data.offsets import Offset, check_offset, of_scores
from gpuboost.scoring.answers import Answer
from gpuboost.training.placement.device_arrays import on_host


def offset_of(X: Any, init_score: Any, n_rows: int, n_scores: int, *, warn_of_none: bool = False) -> Offset | None:
    """(n_scores, n) float64 offsets of rows to predict, or None: ``init_score``, or those that a Dataset holds.

    warn_of_none: True where the model was fitted with offsets, and its predictions need them.

    Raises
    ------
    InputError
        If their shape is another.
    """
    if init_score is None and isinstance(X, Dataset):
        init_score = X.init_score
    if init_score is None and warn_of_none:
        warnings.warn(
            "init_score: the model was fitted with offsets, and predicts without; they count as 0. Pass init_score= "
            "(--offset of the command line), or init_score=0 if this is meant.",
            stacklevel=4,
        )
    return None if init_score is None else of_scores(check_offset(on_host(init_score), n_rows), n_scores)


def with_offset(answer: Answer, offset: Offset | None) -> Answer:
    """The answer for scores to which the host adds the (k, n) offset; the answer itself without one."""
    return answer if offset is None else Answer(lambda scores: answer(scores + offset))
