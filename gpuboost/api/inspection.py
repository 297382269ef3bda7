"""A fitted estimator's importances, slopes and log."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpuboost.backends.prediction.effects import slopes
from gpuboost.errors import InputError
from gpuboost.execution import Log
from gpuboost.model.importance import feature_importances
from gpuboost.reports.report import FitReport
from gpuboost.types import Ensemble


class InspectionMixin(ABC):
    """Mixin of ``GradientBoosting``: importances, slopes and log."""

    ensemble_: Ensemble
    fit_report_: FitReport
    _needs_trees: Callable[[str], None]
    _of_columns: Callable[[Any], Any]

    @property
    def log_(self) -> Log | None:
        """Log of the workers and the gradients of their trees: ``fit_report_.log``. A loaded model has none."""
        check_is_fitted(self)
        return self.fit_report_.log if "fit_report_" in vars(self) else None

    @property
    def coef_(self) -> NDArray[np.float64]:
        """(d,) slopes of the score in each column, or (K, d) for K scores, of a model of straight lines.

        For ``base_learner=gb.learners.Linear()`` (XGBoost: ``coef_`` of ``gblinear``). Slopes are in units of the
        column, and what ``predict`` evaluates is the line at the median of the value's bin. Other models have no such
        attribute.
        """
        check_is_fitted(self)
        try:
            return slopes(self.ensemble_)
        except InputError as error:  # so that hasattr says False
            raise AttributeError(str(error)) from error

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """(d,) share of each feature in the gain of all splits; all 0 if there is none."""
        try:
            return self.feature_importance("gain")
        except InputError as error:  # so that hasattr says False
            raise AttributeError(str(error)) from error

    def feature_importance(self, kind: str = "gain", *, normalise: bool = True) -> NDArray[np.float64]:
        """Importance of each feature to the model.

        Parameters
        ----------
        kind : "gain", "split", "cover", "mean_gain" or "mean_cover"
            "gain": the sum of the gains of its splits, which are decreases of the training loss. "split": their number.
            "cover": the sum of the training rows in the nodes that they split. "mean_gain", "mean_cover": per split.
        normalise : bool
            Divide by the sum.

        Returns
        -------
        (d,) float64

        Raises
        ------
        InputError
            If the kind is none of these, or the model has base learners other than trees.
        """
        self._needs_trees("feature_importance")
        return feature_importances(self.ensemble_, kind, normalise=normalise, fold=self._of_columns)
