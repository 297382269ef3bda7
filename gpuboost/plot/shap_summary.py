"""Summary of contributions: one line of points for each feature; public as ``gpuboost.plot.shap_summary``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_integer
from gpuboost.errors import RecipeError
from gpuboost.plot.axes import axes, literal
from gpuboost.plot.explained import explained

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS, HALF_WIDTH = 60, 0.4  # of the contributions of a feature, and of its line of points


def shap_summary(model: Any, X: Any, *, output: int = 0, top: int = 20, ax: Axes | None = None) -> Axes:
    """Contributions of the ``top`` features to the score of each row of X, as ``shap.summary_plot`` draws them.

    A point is a row, at its exact TreeSHAP value (``model.predict_contributions``). Features are ordered by the mean
    absolute contribution, the greatest on top; colours go from small feature values to large ones by rank, and missing
    values are grey. Points of equal contributions are spread upwards and downwards. The package shap is not needed.

    Args:
        model: fitted estimator of trees.
        X: (n, d) rows, as for ``predict``; a thousand make a clear picture.
        output: the class, of more than two; the score, of a loss of several.
        top: number of features, at most.

    Raises:
        RecipeError: if top is below 1.
        InputError: if the model is not one of trees, X does not fit it, or there is no such output.
    """
    if not is_integer(top, 1):
        raise RecipeError(f"top: must be an integer of at least 1; got {top!r}.")
    rows = explained(model, X, output)
    sizes = np.abs(rows.contributions).mean(axis=0)
    order = np.argsort(-sizes, kind="stable")[:top].tolist()[::-1]
    ax = axes(ax, height=0.8 + 0.35 * len(order))
    ax.axvline(0.0, color="grey", linewidth=0.8)
    drawn = None
    for line, column in enumerate(order):
        contributions, shades = rows.contributions[:, column], rows.shades(column)
        height = line + HALF_WIDTH * _spread(contributions)
        missing = np.isnan(shades)
        if missing.any():
            ax.scatter(contributions[missing], height[missing], s=8, color="lightgrey", rasterized=True)
        seen = ~missing
        drawn = ax.scatter(
            contributions[seen], height[seen], s=8, c=shades[seen], cmap="coolwarm", vmin=0.0, vmax=1.0, rasterized=True
        )
    ax.set_yticks(range(len(order)), [literal(rows.names[column]) for column in order])
    ax.set_xlabel("contribution to the score")
    if drawn is not None:
        bar = ax.figure.colorbar(drawn, ax=ax, label="feature value", ticks=[0.0, 1.0])
        bar.ax.set_yticklabels(["low", "high"])
    return ax


def _spread(contributions: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) from -1 to 1: points of one bin of contributions side by side, the fuller a bin the wider."""
    low, high = contributions.min(), contributions.max()
    place = ((contributions - low) / (high - low if high > low else 1.0) * BINS).astype(np.int64)
    order = np.argsort(place, kind="stable")
    counts = np.bincount(place)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    number = np.empty(len(place), np.int64)
    number[order] = np.arange(len(place)) - first[place[order]]
    side = np.where(number % 2 == 0, 1.0, -1.0)
    return np.asarray(side * ((number + 1) // 2) * 2.0 / max(2, counts.max()))
