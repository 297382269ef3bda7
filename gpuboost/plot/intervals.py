"""Plots of prediction intervals; public in ``gpuboost.plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuboost.arguments import floats
from gpuboost.errors import InputError
from gpuboost.plot.axes import axes
from gpuboost.posterior import check_coverage
from gpuboost.posterior.intervals import check_not_censored, is_inside

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def intervals(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    coverage: float = 0.9,
    along: Any = None,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw the interval of each row as a vertical line, with its target.

    Parameters
    ----------
    model : fitted regressor, ``gb.Chains`` or conformal predictor
        Anything with ``predict_interval(X, coverage)``.
    X, y : (n, d) rows and (n,) targets, optional
        Targets outside their interval are crosses; the title has the share of those inside, and the mean width.
    coverage : float
    along : (n,) numbers, optional
        Places of the rows on the horizontal axis. None: rows are in the order of the middles of their intervals.
    **options
        Passed to ``predict_interval``: ``kind="observation"`` for models with ``langevin``.

    Raises
    ------
    InputError
        If the model has no intervals or several of a row, or y or along do not fit the rows.
    """
    if isinstance(model, type) or not hasattr(model, "predict_interval"):
        raise InputError(f"model: must have predict_interval, and a {type(model).__name__} has not.")
    check_coverage(coverage)
    bounds = floats("bounds", model.predict_interval(X, coverage, **options))
    if bounds.ndim != 2:
        raise InputError(
            f"model: one interval of a row is drawn, and this model has {bounds.shape[1]}; fit one to a column of y."
        )
    low, high = bounds.T
    place = np.argsort(np.argsort(low + high, kind="stable")) if along is None else floats("along", along)
    if place.shape != (len(low),):
        raise InputError(f"along: must be one number for each of {len(low)} rows; the shape is {place.shape}.")
    ax = axes(ax)
    ax.vlines(place, low, high, alpha=0.4, label=f"{coverage:.0%} interval")
    title = f"mean width {np.mean(high - low):.4g}"
    if y is not None:
        target = floats("y", y)
        check_not_censored(model, target)
        inside = is_inside(target, bounds)
        ax.plot(place[inside], target[inside], ".", color="black", markersize=4, label="target inside")
        ax.plot(place[~inside], target[~inside], "x", color="tab:red", markersize=5, label="target outside")
        title = f"{np.mean(inside):.1%} inside, {title}"
    ax.set_title(title, fontsize="medium")
    ax.set_xlabel("rows by the middle of the interval" if along is None else "")
    ax.legend(fontsize="small")
    return ax
