"""Contribution of a feature by its value; public as ``gpuboost.plot.dependence``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_one_of
from gpuboost.plot.axes import axes, literal
from gpuboost.plot.explained import ExplainedRows, column_of, explained, interactions_with, kept

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def dependence(
    model: Any,
    X: Any,
    feature: int | str | tuple[int | str, int | str],
    *,
    colour_by: int | str | None = None,
    output: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Contribution of one feature to the score of each row of X, by its value, as ``shap.dependence_plot`` draws it.

    A point is a row, at its exact TreeSHAP value (``model.predict_contributions``). Points above one another differ by
    interactions; ``colour_by`` shows which other feature they are with. Of a pair of features the points are at their
    interaction (``model.predict_interactions``, both halves), by the value of the first, coloured by the second. Rows
    that lack the value are crosses at the left edge. The package shap is not needed.

    Args:
        model: fitted estimator of trees.
        X: (n, d) rows, as for ``predict``.
        feature: name or number of a column, or a pair of them.
        colour_by: name or number of the column whose values, by rank, are the colours of the points; "strongest": the
            one whose interactions with the feature are greatest in these rows.
        output: the class, of more than two; the score, of a loss of several.

    Raises:
        InputError: if the model is not one of trees, X does not fit it, or there is no such column or output.
    """
    X = kept(X)
    rows = explained(model, X, output)
    first, second = feature if isinstance(feature, tuple) and len(feature) == 2 else (feature, None)
    column = column_of(rows.names, first)
    heights, label = rows.contributions[:, column], f"contribution of {rows.names[column]}"
    if second is not None:
        partner = column_of(rows.names, second)
        halves = 1.0 if partner == column else 2.0
        heights = halves * interactions_with(model, X, column, output)[:, partner]
        label = f"interaction of {rows.names[column]} and {rows.names[partner]}"
        colour_by = partner if colour_by is None else colour_by
    if is_one_of(colour_by, ("strongest",)) and "strongest" not in rows.names:
        strength = np.abs(interactions_with(model, X, column, output)).sum(axis=0)
        strength[column] = -1.0
        colour_by = int(strength.argmax())
    other = None if colour_by is None else column_of(rows.names, colour_by, "colour_by")
    ax = axes(ax)
    _draw(ax, rows, column, heights, other)
    ax.set_xlabel(literal(rows.names[column]))
    ax.set_ylabel(literal(label))
    return ax


def _draw(ax: Axes, rows: ExplainedRows, column: int, heights: NDArray[np.float64], other: int | None) -> None:
    """A point for each row at (value, height), coloured by another column."""
    values = rows.values[:, column]
    seen = ~np.isnan(values)
    ax.axhline(0.0, color="grey", linewidth=0.8)
    colours: dict[str, Any] = {}
    if other is not None:
        colours = {"c": rows.shades(other)[seen], "cmap": "coolwarm", "vmin": 0.0, "vmax": 1.0, "plotnonfinite": True}
    drawn = ax.scatter(values[seen], heights[seen], s=12, rasterized=True, **colours)
    if not seen.all():
        left = values[seen].min() - 0.05 * max(1e-9, np.ptp(values[seen])) if seen.any() else 0.0
        missing = heights[~seen]
        ax.scatter(np.full(len(missing), left), missing, s=16, marker="x", color="grey", label="missing")
        ax.legend()
    levels = rows.levels[column]
    if levels is not None:
        ax.set_xticks(range(len(levels)), [literal(level) for level in levels], rotation=90 if len(levels) > 6 else 0)
    if other is not None:
        bar = ax.figure.colorbar(drawn, ax=ax, label=literal(rows.names[other]), ticks=[0.0, 1.0])
        bar.ax.set_yticklabels(["low", "high"])
