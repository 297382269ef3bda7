"""``model[:k]``: a fitted estimator of its first rounds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from gpuboost.errors import InputError
from gpuboost.reports.guarantee import NOT_KNOWN
from gpuboost.training.files import Saved
from gpuboost.types import Ensemble

FITTED_BY_ROUNDS = ("fit_report_",)
"""Attributes of a fit that do not hold for its first rounds."""


class RoundsMixin:
    """Mixin of ``GradientBoosting``: slices of rounds."""

    ensemble_: Ensemble
    _saved: Callable[[], Saved]
    _restore: Callable[[Saved], None]
    __iter__ = None  # slices alone do not make a sequence

    def __getitem__(self, rounds: slice) -> Self:
        """The estimator as it was after its first rounds: ``model[:100]`` predicts, explains and saves 100 rounds.

        It is a fitted copy that shares trees with this one (``iteration_range=(0, k)`` of XGBoost's predictions,
        ``num_iteration=k`` of LightGBM's). Its ``guarantee_`` is not known.

        Raises
        ------
        InputError
            If it is no slice from the first round, of at most as many rounds as there are, in steps of 1.
        """
        check_is_fitted(self)
        stop = _stop(rounds, self.ensemble_.n_rounds)
        saved = self._saved()
        part: Self = copy.copy(self)
        for name in FITTED_BY_ROUNDS:
            vars(part).pop(name, None)
        history = getattr(self, "evals_result_", {})
        best = saved.best_iteration
        kept = best is not None and best < stop
        part._restore(
            replace(
                saved,
                ensemble=self.ensemble_.first(stop),
                best_iteration=best if kept else None,
                best_score=saved.best_score if kept else None,
                record=replace(saved.record, guarantee=NOT_KNOWN),
            )
        )
        part.evals_result_ = {  # type: ignore[attr-defined]
            data: {metric: values[:stop] for metric, values in metrics.items()} for data, metrics in history.items()
        }
        return part


def _stop(rounds: Any, n_rounds: int) -> int:
    """The number of rounds that a slice keeps."""
    if not isinstance(rounds, slice) or rounds.start not in (None, 0) or rounds.step not in (None, 1):
        raise InputError(f"model[...]: the first rounds are taken by a slice such as model[:100]; got {rounds!r}.")
    stop = n_rounds if rounds.stop is None else rounds.stop
    whole = isinstance(stop, Integral) and not isinstance(stop, bool)
    if not whole or not -n_rounds <= int(stop) <= n_rounds:
        raise InputError(f"model[:{stop!r}]: the model has {n_rounds} rounds; give a number from 0 to {n_rounds}.")
    return int(stop) if stop >= 0 else n_rounds + int(stop)
