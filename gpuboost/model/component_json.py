"""Components as JSON, and back with every rule of ``gpuboost.components`` checked. Version 2 of the model file.

Spaces are written once, each function as its coefficients. A model reads the same bits; what only fitting needs, the
penalty, is not written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.components import EmptyComponent, Grid, SmoothTerm, Space, TreeComponent
from gpuboost.errors import InputError
from gpuboost.model import strict_json as strict
from gpuboost.model.tree_json import TreeFeatures, tree_from, tree_line
from gpuboost.types import Component, Ensemble

KEYS = ("spaces", "centres", "components")

FAMILIES = ("linear", "spline", "tensor", "categorical")

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
    made = []
    is_set = ensemble.cuts.is_categorical
    for one, factor in zip(ensemble.components, ensemble.factors, strict=True):
        head = {"output": int(one.output), "version": int(one.version), "factor": float(factor)}
        if isinstance(one, SmoothTerm):
            place = number.setdefault(one.space, len(number))
            made.append({"kind": "smooth", **head, "space": place, "coefficients": one.coefficients.tolist()})
        elif isinstance(one, EmptyComponent):
            made.append({"kind": "nothing", **head})
        elif isinstance(one, TreeComponent):
            line = {"kind": "tree", **tree_line(one.tree, factor, is_set)}
            if one.features is not None and one.slopes is not None and one.centres is not None:
                line |= {"kind": "lines", "along": one.features.tolist(), "slopes": one.slopes.tolist()}
                centres = centres or one.centres.tolist()
            made.append(line)
        else:
            raise InputError(
                "base_learner: a model file is JSON and holds no estimator of another library; use pickle or joblib "
                "for this model. It is read by the same Python packages only."
            )
    return ComponentLines([_space_line(space) for space in number], centres, made)


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


def components_from(found: dict[str, Any], k: int, columns: TreeFeatures) -> list[tuple[Component, float]]:
    """The inverse of ``lines_of``: components of k outputs, each with its factor."""
    grids: dict[tuple[int, ...], Grid] = {}
    spaces = [
        _space_from(one, f"spaces[{i}]", columns, grids)
        for i, one in enumerate(strict.items(found["spaces"], "spaces"))
    ]
    centres = _matrix(found["centres"], "centres", columns.cuts.n_features, 256) if found["centres"] else None
    lines = strict.items(found["components"], "components")
    return [_from(one, f"components[{i}]", i % k, spaces, centres, columns) for i, one in enumerate(lines)]


def _space_from(value: Any, where: str, columns: TreeFeatures, grids: dict[tuple[int, ...], Grid]) -> Space:
    found = strict.record(value, where, _SPACE)
    if found["family"] not in FAMILIES:
        strict.refuse(f"{where}.family", f"one of {', '.join(FAMILIES)} was expected", found["family"])
    features = strict.integers(found["features"], f"{where}.features", 0, columns.cuts.n_features - 1)
    if len(features) not in (1, 2):
        strict.refuse(f"{where}.features", "one feature or two were expected", len(features))
    n_cells = strict.integer(found["n_cells"], f"{where}.n_cells", 1, _MOST_CELLS)
    listed = strict.items(found["cells"], f"{where}.cells")
    if len(listed) != len(features):
        strict.refuse(f"{where}.cells", "there is a list for each feature", len(listed))
    cells = tuple(
        strict.integers(one, f"{where}.cells[{i}]", 0, n_cells - 1, 256).astype(np.int32)
        for i, one in enumerate(listed)
    )
    if sum(int(one.max()) for one in cells) >= n_cells:
        strict.refuse(f"{where}.cells", f"sums below the number of cells, {n_cells}, were expected")
    mean = strict.numbers(found["mean"], f"{where}.mean")
    q = len(mean)
    if not q:
        strict.refuse(f"{where}.mean", "there is one number for each coefficient, so at least one")
    first = strict.integers(found["first"], f"{where}.first", 0, q - 1, n_cells - 1).astype(np.int32)
    basis = _matrix(found["basis"], f"{where}.basis", n_cells - 1, None)
    own = Grid(tuple(features.tolist()), cells, n_cells)
    known = grids.setdefault(own.features, own)
    same = known.n_cells == n_cells and all(map(np.array_equal, known.cells, cells))
    return Space(found["family"], known if same else own, first, basis, mean, np.zeros((q, basis.shape[1])), 0.0)


def _from(
    value: Any, where: str, output: int, spaces: list[Space], centres: NDArray[np.float64] | None, columns: TreeFeatures
) -> tuple[Component, float]:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind in ("tree", "lines"):
        return _leaves_from(value, where, output, centres, columns)
    found = strict.record(value, where, _NOTHING if kind == "nothing" else _SMOOTH)
    if kind not in ("nothing", "smooth"):
        strict.refuse(f"{where}.kind", "one of smooth, nothing, tree, lines was expected", kind)
    strict.integer(found["output"], f"{where}.output", output, output)
    version = strict.integer(found["version"], f"{where}.version", -1, _INT64 - 1)
    factor = strict.number(found["factor"], f"{where}.factor")
    if kind == "nothing":
        return EmptyComponent(output, version), factor
    space = spaces[strict.integer(found["space"], f"{where}.space", 0, len(spaces) - 1)]
    coefficients = strict.numbers(found["coefficients"], f"{where}.coefficients", space.size)
    return SmoothTerm(space, coefficients, output, version), factor


def _leaves_from(
    value: dict[str, Any], where: str, output: int, centres: NDArray[np.float64] | None, columns: TreeFeatures
) -> tuple[Component, float]:
    extra = ("kind", "along", "slopes") if value["kind"] == "lines" else ("kind",)
    tree, factor = tree_from({k: v for k, v in value.items() if k not in extra}, where, output, columns)
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
    along = [strict.integers(one, f"{where}.along[{i}]", -1, d - 1, s) for i, one in enumerate(rows)]
    return TreeComponent(tree, output, tree.version, np.array(along, np.int32).reshape(v, s), slopes, centres), factor


def _matrix(value: Any, where: str, rows: int, width: int | None) -> NDArray[np.float64]:
    """(rows, width) numbers; of any width, the same in every row, if it is None."""
    lines = strict.items(value, where)
    if len(lines) != rows:
        strict.refuse(where, f"{rows} lists were expected", len(lines))
    if width is None:
        width = len(strict.items(lines[0], f"{where}[0]")) if lines else 0
    return np.array([strict.numbers(one, f"{where}[{i}]", width) for i, one in enumerate(lines)]).reshape(rows, width)
