"""Components as JSON, and back with every rule of ``gpuboost.components`` checked. Version 2 of the model file.

Spaces are written once, each function as its coefficients. A model reads the same bits; what only fitting needs, the
penalty, is not written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.components import EmptyComponent, Grid, SmoothTerm, Space, TreeComponent
from gpuboost.errors import InputError
from gpuboost.model import strict_json as strict
from gpuboost.model.forest_json import trees_from
from gpuboost.model.tree_json import TreeFeatures, tree_line
from gpuboost.public import SMOOTH_FAMILIES
from gpuboost.records import dataclass
from gpuboost.types import Component, Ensemble

KEYS = ("spaces", "centres", "components")

FAMILIES = tuple(SMOOTH_FAMILIES)

_SPACE = ("family", "features", "cells", "n_cells", "first", "basis", "mean")
_SMOOTH = ("kind", "output", "version", "factor", "space", "coefficients")
_NOTHING = ("kind", "output", "version", "factor")
_MOST_CELLS, _INT64 = 1 << 16, 2**63


@dataclass(frozen=True, slots=True)
class ComponentLines:
    """The components of a model file, one line of the file each."""

    spaces: list[dict[str, Any]]
    centres: list[list[float]]
    components: list[dict[str, Any]]


def lines_of(ensemble: Ensemble) -> ComponentLines:
    """The entries.

    Raises:
        InputError: if there is an estimator among the components, which only Python can hold.
    """
    number: dict[Space, int] = {}
    centres: list[list[float]] = []
    lines = []
    is_set = ensemble.cuts.is_categorical
    for component, factor in zip(ensemble.components, ensemble.factors, strict=True):
        head = {"output": int(component.output), "version": int(component.version), "factor": float(factor)}
        if isinstance(component, SmoothTerm):
            index = number.setdefault(component.space, len(number))
            lines.append({"kind": "smooth", **head, "space": index, "coefficients": component.coefficients.tolist()})
        elif isinstance(component, EmptyComponent):
            lines.append({"kind": "nothing", **head})
        elif isinstance(component, TreeComponent):
            line = {"kind": "tree", **tree_line(component.tree, factor, is_set)}
            if component.features is not None and component.slopes is not None and component.centres is not None:
                line |= {"kind": "lines", "along": component.features.tolist(), "slopes": component.slopes.tolist()}
                centres = centres or component.centres.tolist()
            lines.append(line)
        else:
            raise InputError(
                "base_learner: a model file is JSON and holds no estimator of another library; use pickle or joblib "
                "for this model. It is read by the same Python packages only."
            )
    return ComponentLines([_space_line(space) for space in number], centres, lines)


def _space_line(space: Space) -> dict[str, Any]:
    return {
        "family": space.family,
        "features": list(space.grid.features),
        "cells": [cells.tolist() for cells in space.grid.cells],
        "n_cells": space.grid.n_cells,
        "first": space.first.tolist(),
        "basis": space.basis.tolist(),
        "mean": space.mean.tolist(),
    }


def components_from(document: dict[str, Any], k: int, columns: TreeFeatures) -> list[tuple[Component, float]]:
    """The inverse of ``lines_of``: components of k outputs, each with its factor."""
    grids: dict[tuple[Any, ...], Grid] = {}
    spaces = [
        _space_from(entry, f"spaces[{i}]", columns, grids)
        for i, entry in enumerate(strict.items(document["spaces"], "spaces"))
    ]
    centres = _matrix(document["centres"], "centres", columns.cuts.n_features, 256) if document["centres"] else None
    lines = strict.items(document["components"], "components")
    return [_from(entry, f"components[{i}]", i % k, spaces, centres, columns) for i, entry in enumerate(lines)]


def largest(component: Component) -> float:
    """Bound on the absolute value that the component adds to a score, before its factor; inf if float64 overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(component, SmoothTerm):
            space = component.space
            reach = np.abs(space.basis).sum(axis=1).max(initial=0.0) * np.abs(component.coefficients).max(initial=0.0)
            mean = np.abs(space.mean * component.coefficients).sum()
            return float(np.nan_to_num(reach + mean, nan=np.inf, posinf=np.inf))
        if isinstance(component, TreeComponent):
            reach = np.abs(component.tree.value).max(initial=0.0)
            if component.slopes is not None and component.centres is not None:
                furthest = 2.0 * np.abs(component.centres).max(initial=0.0)
                reach = reach + np.abs(component.slopes).sum(axis=1).max(initial=0.0) * furthest
            return float(np.nan_to_num(reach, nan=np.inf, posinf=np.inf))
    return 0.0


def _space_from(value: Any, where: str, columns: TreeFeatures, grids: dict[tuple[Any, ...], Grid]) -> Space:
    record = strict.record(value, where, _SPACE)
    if record["family"] not in FAMILIES:
        strict.refuse(f"{where}.family", f"one of {', '.join(FAMILIES)} was expected", record["family"])
    features = strict.integers(record["features"], f"{where}.features", 0, columns.cuts.n_features - 1)
    if len(features) not in (1, 2):
        strict.refuse(f"{where}.features", "one feature or two were expected", len(features))
    n_cells = strict.integer(record["n_cells"], f"{where}.n_cells", 1, _MOST_CELLS)
    listed = strict.items(record["cells"], f"{where}.cells")
    if len(listed) != len(features):
        strict.refuse(f"{where}.cells", "there is a list for each feature", len(listed))
    cells = tuple(
        strict.integers(numbers, f"{where}.cells[{i}]", 0, n_cells - 1, 256).astype(np.int32)
        for i, numbers in enumerate(listed)
    )
    if sum(int(numbers.max()) for numbers in cells) >= n_cells:
        strict.refuse(f"{where}.cells", f"sums below the number of cells, {n_cells}, were expected")
    mean = strict.numbers(record["mean"], f"{where}.mean")
    q = len(mean)
    if not q:
        strict.refuse(f"{where}.mean", "there is one number for each coefficient, so at least one")
    first = strict.integers(record["first"], f"{where}.first", 0, q - 1, n_cells - 1).astype(np.int32)
    basis = _matrix(record["basis"], f"{where}.basis", n_cells - 1, None)
    content = (tuple(features.tolist()), n_cells, *(numbers.tobytes() for numbers in cells))
    grid = grids.setdefault(content, Grid(tuple(features.tolist()), cells, n_cells))  # equal grids are one
    return Space(record["family"], grid, first, basis, mean, np.zeros((q, basis.shape[1])), 0.0)


def _from(
    value: Any, where: str, output: int, spaces: list[Space], centres: NDArray[np.float64] | None, columns: TreeFeatures
) -> tuple[Component, float]:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind in ("tree", "lines"):
        return _leaves_from(value, where, output, centres, columns)
    record = strict.record(value, where, _NOTHING if kind == "nothing" else _SMOOTH)
    if kind not in ("nothing", "smooth"):
        strict.refuse(f"{where}.kind", "one of smooth, nothing, tree, lines was expected", kind)
    strict.integer(record["output"], f"{where}.output", output, output)
    version = strict.integer(record["version"], f"{where}.version", -1, _INT64 - 1)
    factor = strict.number(record["factor"], f"{where}.factor")
    if kind == "nothing":
        return EmptyComponent(output, version), factor
    space = spaces[strict.integer(record["space"], f"{where}.space", 0, len(spaces) - 1)]
    coefficients = strict.numbers(record["coefficients"], f"{where}.coefficients", space.size)
    return SmoothTerm(space, coefficients, output, version), factor


def _leaves_from(
    value: dict[str, Any], where: str, output: int, centres: NDArray[np.float64] | None, columns: TreeFeatures
) -> tuple[Component, float]:
    extra = ("kind", "along", "slopes") if value["kind"] == "lines" else ("kind",)
    plain = {name: entry for name, entry in value.items() if name not in extra}
    ((tree, factor),) = trees_from([plain], [where], [output], columns)
    if value["kind"] == "tree":
        return TreeComponent(tree, output, tree.version), factor
    for name in extra:
        if name not in value:
            strict.refuse(where, f"the entry {name!r} is missing")
    if centres is None:
        strict.refuse("centres", "lines in leaves need them")
    rows, v = strict.items(value["along"], f"{where}.along"), len(tree.value)
    slopes = _matrix(value["slopes"], f"{where}.slopes", v, None)
    if len(rows) != v:
        strict.refuse(f"{where}.along", f"{v} lists were expected, one for each node", len(rows))
    d, s = columns.cuts.n_features, slopes.shape[1]
    along = [strict.integers(numbers, f"{where}.along[{i}]", -1, d - 1, s) for i, numbers in enumerate(rows)]
    return TreeComponent(tree, output, tree.version, np.array(along, np.int32).reshape(v, s), slopes, centres), factor


def _matrix(value: Any, where: str, rows: int, width: int | None) -> NDArray[np.float64]:
    """(rows, width) float64. width None: any width, equal in all rows."""
    lines = strict.items(value, where)
    if len(lines) != rows:
        strict.refuse(where, f"{rows} lists were expected", len(lines))
    if width is None:
        width = len(strict.items(lines[0], f"{where}[0]")) if lines else 0
    return np.array([strict.numbers(numbers, f"{where}[{i}]", width) for i, numbers in enumerate(lines)]).reshape(
        rows, width
    )
