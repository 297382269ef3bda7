"""The nodes of a model's trees as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.errors import InputError
from gpuboost.export.plain import ensemble_of, output_label
from gpuboost.types import Ensemble, FittedTree

COLUMNS = (
    "tree_index", "output", "node_depth", "node_index", "left_child", "right_child", "parent_index", "split_feature",
    "split_gain", "threshold", "categories", "missing_left", "value", "weight", "count",
)  # fmt: skip


def trees_to_table(model: Any) -> dict[str, list[Any]]:
    """Columns of a table with a row for each node; ``pandas.DataFrame(trees_to_table(model))`` is a frame of it.

    The columns are those of LightGBM's ``trees_to_dataframe``, and more.

    tree_index: from 0, round by round, output by output; output: class of more than two, or None. node_depth: 1 at the
    root. node_index, left_child, right_child, parent_index: the tree and the node, as in "3-0"; None where there is
    none. split_feature: name or number of the column, None at a leaf; "city+job: mean" and "city: rows" of
    target statistics. threshold: x goes left if x <= threshold; None at
    leaves and for categorical splits. categories: list of the values that go left, or None. missing_left: whether
    missing values go left; None at a leaf. value: the leaf's contribution to the score, learning rate and shrinkage
    included; 0 at inner nodes. weight: sum of hessians of the training rows of the node. count: number of these rows.

    Raises
    ------
    InputError
        If the model is not of trees.
    """
    ensemble = ensemble_of(model)
    if ensemble.components:
        raise InputError("trees_to_table: the model is not of trees; gb.export.to_table shows additive models.")
    rows = [
        row
        for number, (tree, factor) in enumerate(zip(ensemble.trees, ensemble.factors, strict=True))
        for row in _rows(model, ensemble, number, tree, factor * ensemble.scale)
    ]
    return {name: [row[name] for row in rows] for name in COLUMNS}


def _rows(model: Any, ensemble: Ensemble, number: int, tree: FittedTree, factor: float) -> list[dict[str, Any]]:
    nodes = tree.nodes
    parent, depth = np.full(len(nodes.feature), -1), np.ones(len(nodes.feature), np.int64)
    rows = []
    for v, feature in enumerate(nodes.feature.tolist()):
        is_leaf, left, right = feature < 0, int(nodes.left[v]), int(nodes.right[v])
        if not is_leaf:
            parent[[left, right]], depth[[left, right]] = v, depth[v] + 1
        rows.append(
            {
                "tree_index": number,
                "output": output_label(model, ensemble, tree.output),
                "node_depth": int(depth[v]),
                "node_index": f"{number}-{v}",
                "left_child": None if is_leaf else f"{number}-{left}",
                "right_child": None if is_leaf else f"{number}-{right}",
                "parent_index": None if v == 0 else f"{number}-{parent[v]}",
                "split_feature": None if is_leaf else _column(model, ensemble, feature),
                "split_gain": None if is_leaf else float(nodes.gain[v]),
                "threshold": None if is_leaf else _threshold(ensemble, feature, int(nodes.bin[v])),
                "categories": None if is_leaf else _categories(model, ensemble, feature, nodes.left_set[v]),
                "missing_left": None if is_leaf else bool(nodes.missing_left[v]),
                "value": float(tree.value[v]) * factor,
                "weight": float(nodes.cover[v]),
                "count": int(nodes.count[v]),
            }
        )
    return rows


def _column(model: Any, ensemble: Ensemble, feature: int) -> Any:
    column = int(ensemble.cuts.columns[feature])
    names = getattr(model, "feature_names_in_", None)
    columns = getattr(model, "columns_", None)
    if columns is not None and columns.statistics is not None:
        shown = columns.seen_names(getattr(model, "classes_", None))[column]
        return int(shown) if names is None and shown.isdecimal() else shown
    return column if names is None else str(names[column])


def _threshold(ensemble: Ensemble, feature: int, bin_number: int) -> float | None:
    """The largest value that goes left; infinity if only missing values go right."""
    if ensemble.cuts.categories[feature] is not None:
        return None
    thresholds = ensemble.cuts.thresholds[feature]
    return float(thresholds[bin_number]) if bin_number < len(thresholds) else float("inf")


def _categories(model: Any, ensemble: Ensemble, feature: int, left_set: Any) -> list[Any] | None:
    codes = ensemble.cuts.categories[feature]
    if codes is None:
        return None
    left = [int(code) for b, code in enumerate(codes) if int(left_set[b // 32]) >> (b % 32) & 1]
    table = getattr(getattr(model, "columns_", None), "categories", None)
    return left if table is None else [table[int(ensemble.cuts.columns[feature])][code] for code in left]
