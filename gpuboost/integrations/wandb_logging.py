"""Curves of a fit in Weights & Biases."""

from __future__ import annotations

from typing import Any

import wandb

from gpuboost.errors import RecipeError, shown
from gpuboost.watch.record import Plan, Round


class WandbLogging:
    """Callback that logs the metrics of all eval sets after each round, as "validation_0-rmse" and so on.

    At the end it writes the last values' rounds to the summary (XGBoost and LightGBM: ``WandbCallback``,
    ``wandb_callback``).

    Parameters
    ----------
    run : wandb.Run, optional
        None for the run that is active, ``wandb.run``.
    """

    def __init__(self, run: Any = None) -> None:
        self.run = run
        self._active: Any = None

    def begin(self, plan: Plan) -> None:
        self._active = wandb.run if self.run is None else self.run
        if self._active is None:
            raise RecipeError("run: there is no active run of Weights & Biases; call wandb.init() first, or pass one.")
        if not (hasattr(self._active, "log") and hasattr(self._active, "define_metric")):
            raise RecipeError(f"run: must be a run of Weights & Biases, or None; got {shown(self._active)}.")
        self._rounds = 0
        for metric, higher in plan.metrics.items():
            for data in plan.eval_sets:
                self._active.define_metric(f"{data}-{metric}", summary="max" if higher else "min")

    def __call__(self, record: Round) -> None:
        self._rounds = record.n_rounds
        values = {f"{data}-{metric}": value for data, of in record.evals.items() for metric, value in of.items()}
        self._active.log({**values, "round": record.round})

    def end(self) -> None:
        """Write the number of rounds to the summary."""
        self._active.summary["rounds"] = self._rounds
