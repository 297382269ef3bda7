"""The additive form of a model as a table, to be summed in a spreadsheet or in SQL."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from gpuboost.backends.prediction.effects import Effect, effects
from gpuboost.export.plain import output_label
from gpuboost.types import Cuts, Ensemble

COLUMNS = ("output", "feature", "above", "up_to", "category", "feature_2", "above_2", "up_to_2", "effect")


def to_table(model: Any) -> dict[str, list[Any]]:
    """Columns of a table whose rows are to be added: a score is the sum of ``effect`` over the rows that apply.

    A row applies to a numeric value x if above < x <= up_to, None standing for no end; to a category if it is that one;
    to a missing value, and to a category that was not there in training, if all three are None and ``feature`` is not.
    The row without a feature, the start value, applies always. Rows with a ``feature_2`` apply if both conditions hold.
    ``output`` is the class of more than two, or None. ``pandas.DataFrame(to_table(model))`` is a frame of it.

    Raises:
        InputError: if the model is not additive.
    """
    parts = effects(model)
    ensemble: Ensemble = model if isinstance(model, Ensemble) else model.ensemble_
    rows: list[dict[str, Any]] = []
    for output, bias in enumerate(ensemble.bias.tolist()):
        rows.append({"output": output_label(model, ensemble, output), "effect": bias})
    for effect in parts:
        rows += _rows(effect, model, ensemble)
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def _rows(effect: Effect, model: Any, ensemble: Ensemble) -> list[dict[str, Any]]:
    which = output_label(model, ensemble, effect.output)
    places = [_places(model, feature, ensemble.cuts) for feature in effect.features]
    if len(places) == 1:
        values = effect.values.tolist()
        return [{"output": which, **head, "effect": v} for head, v in zip(places[0], values, strict=True)]
    return [
        {"output": which, **first, **{f"{k}_2": v for k, v in second.items()}, "effect": float(effect.values[i, j])}
        for i, first in enumerate(places[0])
        for j, second in enumerate(places[1])
    ]


def _places(model: Any, feature: int, cuts: Cuts) -> list[dict[str, Any]]:
    """The condition on a row for each bin of the feature, and for a missing value."""
    column = int(cuts.columns[feature])
    names = getattr(model, "feature_names_in_", None)
    head = {"feature": column if names is None else str(names[column])}
    codes = cuts.categories[feature]
    if codes is not None:
        categories = getattr(getattr(model, "columns_", None), "categories", None)
        labels = codes.tolist() if categories is None else [categories[column][code] for code in codes.tolist()]
        return [*({**head, "category": label} for label in labels), head]
    ends = [None, *cuts.thresholds[feature].tolist(), None]
    return [*({**head, "above": low, "up_to": high} for low, high in pairwise(ends)), head]
