"""The part of a model, and the offsets of rows, that a prediction asks for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

from gpuboost.data.dataset import Dataset
from gpuboost.data.offsets import Offset, check_offset, of_scores
from gpuboost.errors import InputError, shown
from gpuboost.training.devices import on_host
from gpuboost.types import Array, Ensemble


def rounds_of(ensemble: Ensemble, n_rounds: Any) -> Ensemble:
    """The ensemble itself for None, its first rounds for an integer, rounds begin .. end - 1 for a pair (begin, end).

    The bias is part of each. Trees of rounds from ``begin`` > 0 on have the factors that they have in the model of
    ``end`` rounds.

    Raises
    ------
    InputError
        If it is none of these, or there are not so many rounds.
    """
    if n_rounds is None:
        return ensemble
    begin, end = _range(n_rounds, ensemble.n_rounds)
    part = ensemble.first(end)
    if not begin:
        return part
    k = begin * ensemble.n_outputs
    scales = part.scales[begin:]
    return replace(
        part, trees=part.trees[k:], components=part.components[k:], factors=part.factors[k:], scales=scales
    )  # fmt: skip


def _range(asked: Any, n_rounds: int) -> tuple[int, int]:
    pair = tuple(asked) if isinstance(asked, (tuple, list)) else (0, asked)
    whole = len(pair) == 2 and all(isinstance(end, Integral) and not isinstance(end, bool) for end in pair)
    if not whole or not 0 <= pair[0] <= pair[1] <= n_rounds:
        raise InputError(
            f"n_rounds: must be None, a number of rounds, or a pair (begin, end) of them; this model has {n_rounds}, "
            f"and {shown(asked)} was given."
        )
    return int(pair[0]), int(pair[1])


def offset_of(X: Any, init_score: Any, n_rows: int, n_scores: int, *, fitted_with: bool) -> Offset | None:
    """(n_scores, n) float64 offsets of rows to predict, or None: ``init_score``, or those that a Dataset holds.

    Warns if there are none, and the model was fitted with offsets.

    Raises
    ------
    InputError
        If their shape is another.
    """
    if init_score is None and isinstance(X, Dataset):
        init_score = X.init_score
    if init_score is None and fitted_with:
        warnings.warn(
            "init_score: the model was fitted with offsets, and predicts without; they count as 0. Pass init_score=, "
            "or init_score=0 if this is meant.",
            stacklevel=4,
        )
    return of_scores(check_offset(on_host(init_score), n_rows), n_scores)


def beside(offset: Offset | None, finish: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """``finish`` of the scores plus the offset."""
    return finish if offset is None else lambda scores: finish(scores + offset)
