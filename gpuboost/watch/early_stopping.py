"""Stop when the held-out metric no longer improves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

from gpuboost.arguments import is_integer, is_real
from gpuboost.errors import InputError, RecipeError
from gpuboost.watch.record import Plan, Round


class EarlyStopping:
    """Stops after ``rounds`` rounds in a row without a new best of one metric of one eval set.

    The arguments are those of XGBoost's ``EarlyStopping``, ``metric_name`` and ``data_name`` being ``metric`` and
    ``data`` here: names of one of ``eval_metric`` and of one of ``eval_set``; None for the first metric and the last
    set. A value is a new best if it is better than the best so far by more than ``min_delta`` (smaller, or greater for
    metrics such as ``auc`` that grow with quality). The fitted model keeps the trees up to the best round.

    Raises
    ------
    RecipeError
        If an argument is out of its range, or the fit has no eval set or none of these names.
    InputError
        If the metric is not a number.
    """

    def __init__(
        self, rounds: int, min_delta: float = 0.0, *, metric: str | None = None, data: str | None = None
    ) -> None:
        if not is_integer(rounds, 1):
            raise RecipeError(f"rounds: early stopping needs at least 1 round of patience; got {rounds!r}.")
        if not is_real(min_delta, 0.0):
            raise RecipeError(f"min_delta: must be a finite number, 0 or more; got {min_delta!r}.")
        self.rounds = rounds
        for name, value in (("metric", metric), ("data", data)):
            if value is not None and not isinstance(value, str):
                raise RecipeError(f"{name}: must be a name or None; got {value!r}.")
        self.min_delta = min_delta
        self.metric, self.data = metric, data
        self.least_share = 0.0
        self._forget()

    def __repr__(self) -> str:
        chosen = {"metric": self.metric, "data": self.data}
        more = "".join(f", {name}={value!r}" for name, value in chosen.items() if value is not None)
        return f"EarlyStopping(rounds={self.rounds}, min_delta={self.min_delta}{more})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"metric": None, "data": None, "least_share": 0.0} | state)  # older pickles lack them

    def with_least_share(self, share: float) -> EarlyStopping:
        """The same rule, by which a new best is better by more than this share of the first value, too."""
        rule = copy(self)
        rule.least_share = share
        return rule

    def with_rounds(self, rounds: int) -> EarlyStopping:
        """The same rule with another patience."""
        rule = copy(self)
        rule.rounds = rounds
        return rule

    def _forget(self) -> None:
        self._least_gain = self.min_delta
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
        self._metric, self._set = self.watched(plan.metrics, plan.eval_sets)
        self._greater_is_better = plan.metrics[self._metric]

    def watched(self, metrics: Iterable[str], eval_sets: Sequence[str]) -> tuple[str, str]:
        """The names of the metric and of the eval set that decide. Raises RecipeError if the fit has none of a name."""
        metric = _among("metric", self.metric, metrics, next(iter(metrics)))
        return metric, _among("data", self.data, eval_sets, eval_sets[-1])

    def followed(self, metric: str, values: Iterable[float], *, greater_is_better: bool) -> tuple[int, int | None]:
        """The best round of a mean curve, 0 for the first, and the number of rounds until the rule stops, if it does.

        Raises
        ------
        InputError
            If a value until then is not a number.
        """
        rule = copy(self)
        rule._forget()
        rule._greater_is_better = greater_is_better
        for round_, value in enumerate(values):
            if math.isnan(value):
                raise InputError(f"eval_metric: the mean of {metric} is nan in round {round_}; choose another one.")
            if rule._stops_at(value, round_ + 1):
                return (rule.best_rounds or 1) - 1, round_ + 1
        return (rule.best_rounds or 1) - 1, None

    def __call__(self, record: Round) -> bool:
        value = record.evals[self._set][self._metric]
        if math.isnan(value):
            raise InputError(
                f"eval_set: early stopping needs a number; {self._metric} of {self._set} is nan in round "
                f"{record.round}. Check that set, or choose another eval_metric."
            )
        return self._stops_at(value, record.n_rounds)

    def _stops_at(self, value: float, n_rounds: int) -> bool:
        """True if the rule stops, having seen the value of an ensemble of so many rounds."""
        if self._is_new_best(value):
            self.best_score, self.best_rounds, self.worse_in_a_row = value, n_rounds, 0
        else:
            self.worse_in_a_row += 1
        return self.worse_in_a_row >= self.rounds

    def _is_new_best(self, value: float) -> bool:
        if self.best_score is None:
            self._least_gain = max(self.min_delta, self.least_share * abs(value))
            return True
        gain = value - self.best_score if self._greater_is_better else self.best_score - value
        return gain > self._least_gain

    def end(self) -> None:
        """Do nothing: no resource is held."""


def _among(argument: str, name: str | None, names: Iterable[str], default: str) -> str:
    """The name, or the default for None. Raises RecipeError if the fit has none of this name."""
    if name is None:
        return default
    if name not in names:
        raise RecipeError(f"{argument}: early stopping by {name!r}, of which the fit has none; it has {[*names]}.")
    return name


def stops_early(callbacks: Any) -> bool:
    """True if one of them is ``EarlyStopping``."""
    listed = callbacks if isinstance(callbacks, (list, tuple)) else ()
    return any(isinstance(callback, EarlyStopping) for callback in listed)
