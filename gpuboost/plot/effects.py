"""Plots of the effect of one feature, or of a pair, on a score; public in ``gpuboost.plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_integer
from gpuboost.backends.prediction.effects import Effect, effects
from gpuboost.errors import InputError
from gpuboost.plot.axes import axes, check_estimator, literal, names_of
from gpuboost.types import Cuts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


def partial_effect(
    model: Any, feature: int | str | tuple[int | str, int | str], output: int = 0, *, ax: Axes | None = None
) -> Axes:
    """Effect of one feature on the score of an output, with its mean over the bins removed.

    For additive models: families of ``gb.learners``, and stumps. A dashed line is the effect of a missing value, if it
    has one of its own. A feature that the model does not use has a line at 0 that says so. For a pair of features,
    their interaction (``gb.learners.TensorSpline``) is drawn as a map.

    Raises:
        InputError: if there is no such feature or output, or the model has no additive form.
    """
    check_estimator(model, "ensemble_")
    of = feature if isinstance(feature, tuple) else (feature,)
    columns = [_column(model, part, feature) for part in of]
    if len(set(columns)) != len(of) or len(of) not in (1, 2):
        raise InputError(f"feature: must be one feature, or a pair of two different ones; got {feature!r}.")
    cuts = model.ensemble_.cuts
    if not is_integer(output, 0, model.ensemble_.n_outputs - 1):
        raise InputError(f"output: must be from 0 to {model.ensemble_.n_outputs - 1}; got {output!r}.")
    parts = [part for part in effects(model) if part.output == output and len(part.features) == len(columns)]
    parts = [part for part in parts if {int(cuts.columns[f]) for f in part.features} == set(columns)]
    names = [names_of(model)[column] for column in columns]
    if len(of) == 1:
        return _curve(model, parts, names[0], axes(ax))
    if not parts:
        raise InputError(f"feature: {names[0]} and {names[1]} add nothing together in this model; draw one of them.")
    return _map(parts, columns, names, cuts, axes(ax))


def _column(model: Any, name: Any, asked: Any) -> int:
    names = names_of(model)
    column = names.index(name) if isinstance(name, str) and name in names else name
    if isinstance(column, bool) or not isinstance(column, (int, np.integer)) or not -len(names) <= column < len(names):
        raise InputError(f"feature: must be one of {', '.join(names)}, or its number; got {asked!r}.")
    return int(column) % len(names)


def _curve(model: Any, effects_of_feature: list[Effect], name: str, ax: Axes) -> Axes:
    ax.set_xlabel(literal(name))
    ax.set_ylabel("effect on the score")
    if not effects_of_feature:
        ax.axhline(0.0)
        ax.text(0.5, 0.6, "not used by the model", transform=ax.transAxes, ha="center")
        return ax
    cuts = model.ensemble_.cuts
    parts = [(effect.features[0], effect.values - effect.values[:-1].mean()) for effect in effects_of_feature]
    if cuts.categories[parts[0][0]] is not None:
        return _bars(parts, cuts, model.columns_.categories[int(cuts.columns[parts[0][0]])], name, ax)
    f, values = parts[0]
    ax.stairs(values[:-1], _edges(cuts, f), baseline=None)
    if any(effect.has_missing for effect in effects_of_feature):
        ax.axhline(values[-1], linestyle="--", color="grey", label="missing")
        ax.legend()
    return ax


def _bars(parts: list[tuple[int, Floats]], cuts: Cuts, labels: Any, name: str, ax: Axes) -> Axes:
    categories = [cuts.categories[f] for f, _ in parts]
    pairs = [
        (literal(labels[code]), v)
        for codes, (_, values) in zip(categories, parts, strict=True)
        if codes is not None
        for code, v in zip(codes.tolist(), values[:-1].tolist(), strict=True)
    ]
    pairs.sort(key=lambda pair: pair[1])
    ax.barh([label for label, _ in pairs], [v for _, v in pairs])
    ax.set_xlabel("effect on the score")
    ax.set_ylabel(literal(name))
    return ax


def _map(effects_of_pair: list[Effect], columns: list[int], names: list[str], cuts: Cuts, ax: Axes) -> Axes:
    """The first feature to the right, the second upwards."""
    ax.set_xlabel(literal(names[0]))
    ax.set_ylabel(literal(names[1]))
    (effect,) = effects_of_pair
    across, up = effect.features
    values = effect.values[:-1, :-1] - effect.values[:-1, :-1].mean()
    if int(cuts.columns[across]) != columns[0]:
        across, up, values = up, across, values.T
    limit = float(np.abs(values).max())
    drawn = ax.pcolormesh(_edges(cuts, across), _edges(cuts, up), values.T, cmap="RdBu_r", vmin=-limit, vmax=limit)
    ax.figure.colorbar(drawn, ax=ax, label="effect on the score")
    return ax


def _edges(cuts: Cuts, f: int) -> Floats:
    """(bins + 1,) where the bins of a numeric feature begin and end, the outer ones of the mean width."""
    thresholds = cuts.thresholds[f]
    width = float(thresholds[-1] - thresholds[0]) / max(1, len(thresholds)) if len(thresholds) else 1.0
    ends = thresholds if len(thresholds) else np.zeros(1)
    return np.array([ends[0] - (width or 1.0), *thresholds, ends[-1] + (width or 1.0)])
