"""Judgement of intervals and of predicted distributions on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import floats
from gpuboost.errors import InputError, shown
from gpuboost.losses.base import facts_of
from gpuboost.losses.residual import Quantiles
from gpuboost.posterior.calibration import COVERAGES, Calibration
from gpuboost.posterior.uncertainty import check_coverage, interval_coverages

Floats = NDArray[np.float64]


def interval_calibration(
    model: Any, X: Any, y: Any, coverages: Sequence[float] | None = None, **options: Any
) -> Calibration:
    """Compare the coverages of a model's intervals with the shares of targets that lie in them.

    Parameters
    ----------
    model : fitted regressor, ``gb.Chains`` or conformal predictor
        Anything with ``predict_interval(X, coverage)``.
    X, y : (n, d) rows and (n,) targets that the model was neither trained nor calibrated on
    coverages : numbers between 0 and 1
        None: those of the levels of a model of several quantiles; 0.1, 0.2, ... 0.9 and 0.95 for others.
    **options
        Passed to ``predict_interval``: ``kind="observation"`` for models with ``langevin``.

    Raises
    ------
    InputError
        If the model has no intervals, or y or coverages are invalid, or y has censored times.
    """
    if isinstance(model, type) or not hasattr(model, "predict_interval"):
        raise InputError(f"model: must have predict_interval, and a {type(model).__name__} has not.")
    target = _targets(y)
    check_not_censored(model, target)
    loss = getattr(model, "loss_", None)
    usual: Sequence[float] = interval_coverages(loss) if isinstance(loss, Quantiles) else COVERAGES
    if coverages is not None and np.ndim(floats("coverages", coverages)) != 1:
        raise InputError(f"coverages: must be a list of numbers between 0 and 1; got {shown(coverages)}.")
    asked = list(usual if coverages is None else coverages)
    for coverage in asked:
        check_coverage(coverage)
    if not asked:
        raise InputError("coverages: at least one is needed; no two levels of the model are as far from 0.5.")
    inside = [np.mean(is_inside(target, model.predict_interval(X, coverage, **options))) for coverage in asked]
    return Calibration(np.array(asked, dtype=np.float64), np.array(inside), np.full(len(asked), len(target), np.int64))


def is_inside(y: Any, bounds: Any) -> NDArray[np.bool_]:
    """(n,) True where the target lies between its (n, 2) bounds, these included."""
    target, both = _targets(y), _bounds(bounds, len(np.asarray(y)))
    inside: NDArray[np.bool_] = (both[:, 0] <= target) & (target <= both[:, 1])
    return inside


def check_not_censored(model: Any, y: Floats, name: str = "y") -> None:
    """Raise InputError if the model is of the loss "aft" and y (n,) holds censored times, which are negative.

    model: a regressor, or an object with regressors as ``models``. name: of the argument that y comes from.
    """
    first = getattr(model, "models", (model,))[0]
    loss: Any = getattr(first, "loss_", None)
    if not facts_of(loss).censored_target:
        return
    row = int(np.argmax(y < 0.0))
    if y[row] < 0.0:
        raise InputError(
            f"{name}: intervals are compared with times of events; row {row} holds {float(y[row])!r}, "
            "a censored time. Leave such rows out: the result is then one of events alone."
        )


def interval_score(y: Any, bounds: Any, coverage: float) -> float:
    """Mean of the width, and 2 / (1 - coverage) times the distance of targets outside (Gneiting and Raftery 2007, 6.2).

    y (n,); bounds (n, 2). Lower is better: narrow intervals, and few targets far outside.

    Raises:
        InputError: if shapes differ, or coverage is not between 0 and 1.
    """
    check_coverage(coverage)
    target, both = _targets(y), _bounds(bounds, len(np.asarray(y)))
    outside = np.maximum(np.maximum(both[:, 0] - target, target - both[:, 1]), 0.0)
    return float(np.mean(both[:, 1] - both[:, 0] + 2.0 / (1.0 - coverage) * outside))


def crps(y: Any, mean: Any, std: Any) -> float:
    """Mean continuous ranked probability score of normal predictions (Gneiting and Raftery 2007, equation 21).

    y, mean, std (n,), as of ``predict(X, output="all")``. In the unit of y; of sharp predictions the absolute error.

    Raises:
        InputError: if shapes differ, or a standard deviation is not positive.
    """
    from scipy.special import ndtr

    target, centre, spread = _targets(y), floats("mean", mean), floats("std", std)
    if not centre.shape == spread.shape == target.shape:
        raise InputError(f"mean, std: one for each of {len(target)} rows; got {centre.shape} and {spread.shape}.")
    if not (spread > 0.0).all():
        raise InputError(f"std: must be positive; the least is {float(spread.min())!r}.")
    z = (target - centre) / spread
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return float(np.mean(spread * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi))))


def _targets(y: Any) -> Floats:
    target = floats("y", y)
    if target.ndim != 1 or not len(target) or not np.isfinite(target).all():
        raise InputError(f"y: must be finite numbers, one for each row; the shape is {target.shape}.")
    return target


def _bounds(bounds: Any, n: int) -> Floats:
    both = floats("bounds", bounds)
    if both.ndim == 2 and len(both) != n:
        raise InputError(f"y: must hold one target for each of {len(both)} rows; it holds {n}.")
    if both.shape != (n, 2) or np.isnan(both).any():
        raise InputError(f"bounds: must be two numbers for each of {n} rows; the shape is {both.shape}.")
    return both
