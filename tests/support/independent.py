"""A predictor made from docs/model_file.md alone: plain Python on the JSON, nothing of the library."""

from __future__ import annotations

import math
from typing import Any

Json = dict[str, Any]


def scores(model: Json, rows: list[list[float]]) -> list[list[float]] | None:
    """The scores of each row, one per output; None for models of components. Rows hold values as training saw them."""
    if "trees" not in model:
        return None
    return [_scores_of(model, row) for row in rows]


def _scores_of(model: Json, row: list[float]) -> list[float]:
    past = model["scale"]
    scale = past[-1] if isinstance(past, list) else past
    one = scale == 1.0
    sums = [float(b) if one else 0.0 for b in model["bias"]]
    x = _encoded(model, row)
    for tree in model["trees"]:
        leaf = _leaf(model["features"], tree, x)
        sums[tree["output"]] += float(tree["factor"]) * float(tree["value"][leaf])
    return sums if one else [float(b) + scale * s for b, s in zip(model["bias"], sums, strict=True)]


def _encoded(model: Json, row: list[float]) -> list[float]:
    """Categories as their place in the table of their column; NaN for a value that is not in it."""
    tables = model["columns"]["categories"]
    x = list(row)
    for column, table in tables.items():
        value = row[int(column)]
        x[int(column)] = float(table.index(value)) if value in table else math.nan
    return x


def _leaf(features: list[Json], tree: Json, x: list[float]) -> int:
    node, sets = 0, dict((place, chosen) for place, chosen in tree.get("sets", []))
    while tree["feature"][node] >= 0:
        f = tree["feature"][node]
        feature = features[f]
        value = x[feature.get("column", f)]
        if "categories" in feature:
            codes = feature["categories"]
            known = not math.isnan(value) and value in codes
            left = codes.index(value) in sets[node] if known else bool(tree["missing_left"][node])
        elif math.isnan(value):
            left = bool(tree["missing_left"][node])
        else:
            cuts = feature["thresholds"]
            left = tree["bin"][node] >= len(cuts) or value <= cuts[tree["bin"][node]]
        node = tree["left" if left else "right"][node]
    return node
