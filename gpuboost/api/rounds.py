"""``model[:k]``: a fitted estimator of its first rounds."""

from __future__ import annotations

import copy
from abc import ABC
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from gpuboost.errors import InputError
from gpuboost.training.files import Saved
from gpuboost.training.fit_record import FitRecord
from gpuboost.types import Ensemble


class RoundsMixin(ABC):
    """Mixin of ``GradientBoosting``: slices of rounds."""

    ensemble_: Ensemble
    evals_result_: dict[str, dict[str, list[float]]]
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
            If it is not a slice from the first round, with steps of 1, of at most as many rounds as there are.
        """
        check_is_fitted(self)
        stop = _stop(rounds, self.ensemble_.n_rounds)
        saved = self._saved()
        part: Self = copy.copy(self)
        vars(part).pop("fit_report_", None)
        history, chain = self.evals_result_, saved.record.chain
        best = saved.best_iteration
        kept = best is not None and best < stop
        part._restore(
            replace(
                saved,
                ensemble=self.ensemble_.first(stop),
                best_iteration=best if kept else None,
                best_score=saved.best_score if kept else None,
                record=FitRecord(
                    chain=None if chain is None or chain.start > stop else chain, params=saved.record.params
                ),
            )
        )
        part.evals_result_ = {
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
