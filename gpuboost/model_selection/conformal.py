"""Conformal prediction: intervals and sets of classes whose coverage is guaranteed in finite samples.

A fitted model is calibrated on rows that it has not seen. If these rows and a new one are exchangeable, the new target
lies in its interval with probability ``coverage`` at least, and ``coverage + 1 / (n + 1)`` at most if no scores tie.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import floats
from gpuboost.errors import InputError, shown
from gpuboost.model_selection import conformal_file
from gpuboost.model_selection.conformal_methods import (
    CLASSIFICATION,
    REGRESSION,
    bounds,
    centre_of,
    check_models,
    class_scores,
    method_of,
    offset_of,
    scores_of_classes,
    scores_of_numbers,
)
from gpuboost.model_selection.conformal_scores import CalibrationScores
from gpuboost.posterior import check_coverage
from gpuboost.training.placement.device_arrays import on_host

Floats = NDArray[np.float64]


class ConformalRegressor:
    """Calibrated prediction intervals of one regressor, or of two of a low and a high quantile. See ``gb.conformal``.

    Attributes
    ----------
    models : tuple of one or two fitted regressors
    method : "absolute", "scaled" or "cqr"
    coverage : float
        Default of ``predict_interval``.
    calibration : scores of the calibration rows, in increasing order, with their weights
    """

    def __init__(self, models: tuple[Any, ...], method: str, coverage: float, calibration: CalibrationScores) -> None:
        self.models, self.method, self.coverage, self.calibration = models, method, coverage, calibration

    def predict(self, X: Any, *, init_score: Any = None) -> Floats:
        """(n,) the model's own predictions; of several quantiles the one nearest to the median, of two models their
        mean."""
        offset = offset_of(self.models, init_score)
        if len(self.models) == 2:
            low, high, _ = bounds(self.models, "cqr", self.coverage, X, **offset)
            return 0.5 * low + 0.5 * high
        return centre_of(self.models[0], X, **offset)

    def predict_interval(
        self, X: Any, coverage: float | None = None, *, sample_weight: Any = 1.0, init_score: Any = None
    ) -> Floats:
        """(n, 2) float64 bounds of intervals that hold a new target with probability ``coverage`` at least.

        Parameters
        ----------
        coverage : float or None
            None: that of the calibration.
        sample_weight : (n,) numbers or one number
            The new rows' weights on the scale of the calibration's. 1 for weights that are numbers of equal rows;
            for weights that correct a covariate shift, the likelihood ratios of the new rows. Rows whose weight is too
            large for the calibration rows have infinite intervals.
        init_score : (n,) numbers, or one number, optional
            Offsets of the new rows, as for ``predict`` of the estimators.

        Raises
        ------
        InputError
            If coverage is not between 0 and 1, the calibration rows are too few for it, or the model has no offsets.
        """
        asked = _checked(self.coverage if coverage is None else coverage, self.calibration)
        low, high, unit = bounds(self.models, self.method, self.coverage, X, **offset_of(self.models, init_score))
        by = self.calibration.quantile(asked, _weight_of(sample_weight, len(low))) * unit
        intervals = np.column_stack([low - by, high + by])
        # calibration has taken more than the width: a point, which covers no less
        empty = intervals[:, 0] > intervals[:, 1]
        intervals[empty] = intervals[empty].mean(axis=1, keepdims=True)
        return intervals

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write models and scores as one JSON file, which ``gb.load_conformal`` reads.

        Raises
        ------
        TypeError, InputError
            If a model is none of this library, or cannot be written.
        """
        _save(self, path)

    def __repr__(self) -> str:
        return _shown(self)


class ConformalClassifier:
    """Calibrated sets of classes of a classifier. See ``gb.conformal``.

    Attributes
    ----------
    models : tuple of one fitted classifier
    method : "lac" or "aps"
    coverage : float
        Default of ``predict_set``.
    calibration : scores of the calibration rows, in increasing order, with their weights
    classes_ : (K,) labels of the columns of ``predict_set``
    """

    def __init__(self, models: tuple[Any, ...], method: str, coverage: float, calibration: CalibrationScores) -> None:
        self.models, self.method, self.coverage, self.calibration = models, method, coverage, calibration
        self.classes_ = np.asarray(models[0].classes_)

    def predict(self, X: Any, *, init_score: Any = None) -> NDArray[Any]:
        """(n,) the model's own predictions."""
        return np.asarray(on_host(self.models[0].predict(X, **offset_of(self.models, init_score))))

    def predict_proba(self, X: Any, *, init_score: Any = None) -> Floats:
        """(n, K) the model's own probabilities."""
        predicted = self.models[0].predict_proba(X, **offset_of(self.models, init_score))
        return np.asarray(on_host(predicted), dtype=np.float64)

    def predict_set(
        self, X: Any, coverage: float | None = None, *, sample_weight: Any = 1.0, init_score: Any = None
    ) -> NDArray[np.bool_]:
        """(n, K) True for the classes of a set that holds the true one with probability ``coverage`` at least.

        A set may be empty: no class conforms to the calibration rows. Parameters and errors are those of
        ``ConformalRegressor.predict_interval``.
        """
        asked = _checked(self.coverage if coverage is None else coverage, self.calibration)
        scores = class_scores(self.predict_proba(X, init_score=init_score), self.method)
        limit = self.calibration.quantile(asked, _weight_of(sample_weight, len(scores)))
        return scores <= np.broadcast_to(limit, len(scores))[:, None]

    def save(self, path: str | os.PathLike[str]) -> None:
        """As ``ConformalRegressor.save``."""
        _save(self, path)

    def __repr__(self) -> str:
        return _shown(self)


def conformal(
    model: Any,
    X_cal: Any,
    y_cal: Any,
    coverage: float = 0.9,
    *,
    method: str = "auto",
    sample_weight: Any = None,
    init_score: Any = None,
) -> ConformalRegressor | ConformalClassifier:
    """Calibrate a fitted model on rows that it was not trained on: intervals, or sets of classes, of known coverage.

    Parameters
    ----------
    model : fitted estimator, or a pair of fitted regressors
        With scikit-learn's interface; a ``Pipeline`` has its last step's method. A pair: of a low and a high quantile.
    X_cal, y_cal : (n, d) rows and (n,) targets
        At least coverage / (1 - coverage) rows, 9 for 0.9; some hundreds make the coverage vary little.
    coverage : float
        Probability that an interval or a set holds the target of a new row.
    method : str
        Regressors: "absolute", split conformal prediction by the residual \\|y - prediction\\| (Lei et al. 2018), whose
        intervals are all equally wide; "scaled", by the residual over the predicted spread, for the loss
        ``gaussian_nll`` and models with ``langevin`` (same paper, section 5.2); "cqr", by the distance to the nearer
        of two predicted quantiles (Romano, Patterson and Candes 2019, arXiv 1905.03222). Classifiers: "lac", by
        1 - p of the true class, with the smallest sets on average (Sadinle, Lei and Wasserman 2019); "aps", by the
        probability of the true class and all more probable ones, without randomisation, with larger sets that adapt
        to the row (Romano, Sesia and Candes 2020). "auto": "cqr" for quantiles, "scaled" for models with a spread,
        "absolute" for others; "lac" for classifiers.
    sample_weight : (n,) numbers, optional
        Weight 3 is three equal rows; or likelihood ratios, for a covariate shift between calibration and new rows
        (Tibshirani et al. 2019, arXiv 1904.06019), which ``predict_interval`` then needs too.
    init_score : (n,) or (n, K) numbers, or one number, optional
        Offsets of the calibration rows, for a model that was fitted with offsets; predictions take those of their rows.

    Returns
    -------
    ConformalRegressor or ConformalClassifier

    Raises
    ------
    InputError
        If the rows do not fit the model, hold censored times, or are too few (the message has the number needed).
    RecipeError
        If the method does not fit the model.
    """
    models = tuple(model) if isinstance(model, (tuple, list)) else (model,)
    check_models(models)
    check_coverage(coverage)
    classify = hasattr(models[0], "classes_")
    chosen = method_of(models, method, CLASSIFICATION if classify else REGRESSION)
    y = _targets(on_host(y_cal))
    offset = offset_of(models, init_score)
    if classify:
        scores = scores_of_classes(models[0], chosen, X_cal, y, **offset)
    else:
        scores = scores_of_numbers(models, chosen, coverage, X_cal, y, **offset)
    calibration = CalibrationScores.of(scores, on_host(sample_weight))
    calibration.check_enough(coverage)
    return (ConformalClassifier if classify else ConformalRegressor)(models, chosen, float(coverage), calibration)


def load_conformal(path: str | os.PathLike[str]) -> ConformalRegressor | ConformalClassifier:
    """The conformal predictor that ``save`` wrote; it predicts the same bits.

    Raises
    ------
    InputError
        If the file is damaged, or is none of a conformal predictor.
    OSError
        If it cannot be read.
    """
    saved = conformal_file.read(path)
    kind = ConformalClassifier if hasattr(saved.models[0], "classes_") else ConformalRegressor
    return kind(saved.models, saved.method, saved.coverage, saved.calibration)


def _save(predictor: ConformalRegressor | ConformalClassifier, path: str | os.PathLike[str]) -> None:
    parts = predictor.models, predictor.method, predictor.coverage, predictor.calibration
    conformal_file.save(conformal_file.SavedPredictor(*parts), path)


def _shown(predictor: ConformalRegressor | ConformalClassifier) -> str:
    name, rows = type(predictor).__name__, len(predictor.calibration.scores)
    return f"{name}(method={predictor.method!r}, coverage={predictor.coverage:g}, calibrated on {rows:,} rows)"


def _targets(y: Any) -> NDArray[Any]:
    try:
        targets: NDArray[Any] = np.asarray(y)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"y_cal: must hold one target for each calibration row; {error}") from None
    if targets.ndim != 1 or len(targets) == 0:
        raise InputError(f"y_cal: must hold one target for each calibration row; the shape is {targets.shape}.")
    return targets


def _checked(coverage: float, calibration: CalibrationScores) -> float:
    check_coverage(coverage)
    calibration.check_enough(coverage)
    return float(coverage)


def _weight_of(weight: Any, n: int) -> Floats:
    """A number or (n,) weights of new rows."""
    weights = floats("sample_weight", on_host(weight))
    if weights.shape not in ((), (n,)) or not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise InputError(
            f"sample_weight: must be a number, or one for each of {n} rows, finite and not negative; got "
            f"{shown(weight)[:80]}."
        )
    return weights
