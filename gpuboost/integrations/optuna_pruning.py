"""Pruning of Optuna's trials (Akiba et al. 2019)."""

from __future__ import annotations

from typing import Any

import optuna

from gpuboost.errors import RecipeError
from gpuboost.integrations.chosen_metric import chosen
from gpuboost.watch.record import Plan, Round


class OptunaPruning:
    """Callback that reports a metric to a trial after each round, and ends the trial where its pruner says so.

    The counterpart of ``optuna_integration.XGBoostPruningCallback`` and ``LightGBMPruningCallback``.

    Parameters
    ----------
    trial : optuna.trial.Trial
    metric, data : str, optional
        Names of the metric and of the eval set; None for the first metric and the last set.

    Raises
    ------
    optuna.TrialPruned
        From ``fit``, if the trial is to end.
    RecipeError
        From ``fit``, if there is no such metric, the study's direction is not that of the metric, or it has several.
    """

    def __init__(self, trial: Any, metric: str | None = None, data: str | None = None) -> None:
        if not isinstance(trial, optuna.trial.BaseTrial):
            raise RecipeError(f"trial: must be a trial of Optuna; got {trial!r}.")
        self.trial, self.metric, self.data = trial, metric, data

    def begin(self, plan: Plan) -> None:
        self._set, self._metric = chosen(plan, self.metric, self.data)
        wanted = "maximize" if plan.metrics[self._metric] else "minimize"
        study = getattr(self.trial, "study", None)
        if study is not None and len(study.directions) > 1:  # Optuna prunes by one value
            raise RecipeError(
                f"trial: a study of one value is needed, as Optuna prunes by one; this one has {len(study.directions)}."
            )
        direction = wanted if study is None else study.direction.name.lower()
        if direction != wanted:
            raise RecipeError(
                f"trial: the study is to {direction} its value, and {self._metric} is one to {wanted}. Make it with "
                f"optuna.create_study(direction={wanted!r})."
            )

    def __call__(self, record: Round) -> None:
        self.trial.report(record.evals[self._set][self._metric], step=record.round)
        if self.trial.should_prune():
            raise optuna.TrialPruned(f"pruned in round {record.round}")

    def end(self) -> None:
        """Do nothing: no resource is held."""
