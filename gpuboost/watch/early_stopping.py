"""Stop when the held-out metric no longer improves."""

from __future__ import annotations

import math
from typing import Any

from gpuboost.arguments import is_integer, is_real
from gpuboost.errors import InputError, RecipeError
from gpuboost.watch.record import Plan, Round


class EarlyStopping:
    """Stops after ``rounds`` rounds in a row without a new best of the first metric of the last eval set.

    A value is a new best if it is better than the best so far by more than ``min_delta`` (smaller, or greater for
    metrics such as ``auc`` that grow with quality). The fitted model keeps the trees up to the best round.

    Raises
    ------
    RecipeError
        If ``rounds`` or ``min_delta`` is out of range, or the fit has no eval set.
    InputError
        If the metric is not a number.
    """

    def __init__(self, rounds: int, min_delta: float = 0.0) -> None:
        if not is_integer(rounds, 1):
            raise RecipeError(f"rounds: early stopping needs at least 1 round of patience; got {rounds!r}.")
        if not is_real(min_delta, 0.0):
            raise RecipeError(f"min_delta: must be a finite number, 0 or more; got {min_delta!r}.")
        self.rounds = rounds
        self.min_delta = min_delta
        self._forget()

    def __repr__(self) -> str:
        return f"EarlyStopping(rounds={self.rounds}, min_delta={self.min_delta})"

    def _forget(self) -> None:
        self.best_score: float | None = None
        self.best_rounds: int | None = None  # rounds of the ensemble when it was best
        self.worse_in_a_row = 0

    def begin(self, plan: Plan) -> None:
        if not plan.eval_sets:
            raise RecipeError(
                "early_stopping_rounds: needs rows that are not trained on; there is no eval set. "
                "Pass eval_set=(X, y) to fit, or set validation_fraction=0.1."
            )
        self._forget()
        self._set = plan.eval_sets[-1]
        self._metric, self._greater_is_better = next(iter(plan.metrics.items()))

    def __call__(self, record: Round) -> bool:
        value = record.evals[self._set][self._metric]
        if math.isnan(value):
            raise InputError(
                f"eval_set: early stopping needs a number; {self._metric} of {self._set} is nan in round "
                f"{record.round}. Check that set, or choose another eval_metric."
            )
        if self._is_new_best(value):
            self.best_score, self.best_rounds, self.worse_in_a_row = value, record.n_rounds, 0
        else:
            self.worse_in_a_row += 1
        return self.worse_in_a_row >= self.rounds

    def _is_new_best(self, value: float) -> bool:
        if self.best_score is None:
            return True
        gain = value - self.best_score if self._greater_is_better else self.best_score - value
        return gain > self.min_delta

    def end(self) -> None:
        """Do nothing: no resource is held."""


def stops_early(callbacks: Any) -> bool:
    """True if one of them is ``EarlyStopping``."""
    listed = callbacks if isinstance(callbacks, (list, tuple)) else ()
    return any(isinstance(callback, EarlyStopping) for callback in listed)
