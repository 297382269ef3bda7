"""A predictor made from docs/model_file.md alone: plain Python on the JSON, nothing of the library.

It gives exact sums (``math.fsum``) and the size of what was added, which bounds the rounding of any other order.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Row = list[Any]


@dataclass(frozen=True)
class Score:
    """A score, and the sum of the absolute values of its terms."""

    value: float
    size: float


def scores(model: Json, rows: list[Row], rounds: int | None = None) -> list[list[Score]]:
    """The scores of each row, one per output; after the first ``rounds`` rounds only, if given."""
    return [_scores_of_row(model, row, rounds) for row in rows]


def _scores_of_row(model: Json, row: Row, rounds: int | None) -> list[Score]:
    k = len(model["bias"])
    parts = model["trees"] if "trees" in model else model["components"]
    parts = parts if rounds is None else parts[: rounds * k]
    past = model["scale"]
    scale = past if not isinstance(past, list) else past[-1 if rounds is None else rounds - 1]
    x = _encoded(model, row)
    terms: list[list[float]] = [[bias] for bias in model["bias"]]
    first: Json = {}
    for part in parts:
        first = part if part["output"] == 0 else first
        whole = part if "trees" not in model or "feature" in part else {**first, **part}
        terms[part["output"]] += [scale * part["factor"] * term for term in _terms(model, whole, x)]
    return [Score(math.fsum(each), math.fsum(map(abs, each))) for each in terms]


def _encoded(model: Json, row: Row) -> list[float]:
    """Categories as their place in the list of their column; NaN for a value that is not in it."""
    tables = model["columns"]["categories"]
    coded = [value if str(f) not in tables else math.nan for f, value in enumerate(row)]
    for f, table in tables.items():
        if row[int(f)] in table:
            coded[int(f)] = float(table.index(row[int(f)]))
    x = [math.nan if value is None else float(value) for value in coded]
    return _with_statistics(model["columns"], x) if "statistics" in model["columns"] else x


def _with_statistics(columns: Json, x: list[float]) -> list[float]:
    """The columns that trees see: those of X, encoded ones as their mean, and after them those of each table."""
    statistics, seen, added = columns["statistics"], list(x), []
    priors = statistics["prior"]
    for number, table in enumerate(statistics["tables"]):
        key = 0
        for f in table["columns"]:
            size = len(columns["categories"][str(f)])
            key = key * (size + 1) + (size if math.isnan(x[f]) else int(x[f]))
        place = table["keys"].index(key) if key in table["keys"] else -1
        weight = table["weight"][place] if place >= 0 else 0
        sums = [listed[place] if place >= 0 else 0 for listed in table["sums"]]
        given = statistics["prior_weight"]
        each = given[number] if isinstance(given, list) else [given] * len(priors)
        means = [_float32((s + a * prior) / (weight + a)) for s, a, prior in zip(sums, each, priors, strict=True)]
        if len(table["columns"]) == 1:
            seen[table["columns"][0]] = means.pop(0)
        added += [*means, *([_float32(weight)] if statistics["counts"] else [])]
    return seen + added


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _terms(model: Json, part: Json, x: list[float]) -> list[float]:
    """Numbers whose sum is what a tree or component adds for this row, before its factor."""
    kind = part.get("kind", "tree")
    if kind == "nothing":
        return []
    if kind == "smooth":
        return _smooth(model, part, x)
    leaf = _leaf(model["features"], part, x)
    terms = [part["value"][leaf]]
    if kind == "lines":
        for feature, slope in zip(part["along"][leaf], part["slopes"][leaf], strict=True):
            if feature >= 0:
                terms.append(slope * model["centres"][feature][_bin(model["features"], feature, x)])
    return terms


def _smooth(model: Json, part: Json, x: list[float]) -> list[float]:
    space = model["spaces"][part["space"]]
    cell = sum(cells[_bin(model["features"], f, x)] for f, cells in zip(space["features"], space["cells"], strict=True))
    if cell == space["n_cells"] - 1:
        functions = list(enumerate(space["mean"]))
    else:
        functions = list(enumerate(space["basis"][cell], start=space["first"][cell]))
    return [part["coefficients"][i] * value for i, value in functions if i < len(space["mean"])]


def _leaf(features: list[Json], tree: Json, x: list[float]) -> int:
    node, left_sets = 0, {place: chosen for place, chosen in tree["sets"]}
    while (f := tree["feature"][node]) >= 0:
        bin_of_x = _bin(features, f, x)
        if bin_of_x == _missing_bin(features[f]):
            left = tree["missing_left"][node] == 1
        elif "categories" in features[f]:
            left = bin_of_x in left_sets[node]
        else:
            left = bin_of_x <= tree["bin"][node]
        node = tree["left" if left else "right"][node]
    return node


def _bin(features: list[Json], f: int, x: list[float]) -> int:
    """The first threshold that is not below the value; the place of a category; or the bin of missing values."""
    feature, value = features[f], x[features[f].get("column", f)]
    if "categories" in feature:
        known = not math.isnan(value) and value in feature["categories"]
        return feature["categories"].index(value) if known else _missing_bin(feature)
    if math.isnan(value):
        return _missing_bin(feature)
    return sum(1 for threshold in feature["thresholds"] if value > threshold)


def _missing_bin(feature: Json) -> int:
    return len(feature["categories"]) if "categories" in feature else len(feature["thresholds"]) + 1
