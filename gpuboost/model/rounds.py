"""The rounds of a model that a prediction uses."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

from gpuboost.errors import InputError, shown
from gpuboost.types import Ensemble


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
