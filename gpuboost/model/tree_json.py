"""Cuts and trees as JSON, and cuts back with every rule of ``gpuboost.types`` checked; trees: ``forest_json``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.model import strict_json as strict
from gpuboost.records import dataclass
from gpuboost.types import Cuts, FittedTree, Nodes

_COLUMNS = ("feature", "bin", "missing_left", "left", "right", "gain", "cover", "count", "value")
_HEAD = ("output", "version", "factor")
TREE = (*_HEAD, *_COLUMNS, "sets")
"""The entries of a tree with nodes of its own."""
SHARING = (*_HEAD, "value")
"""The entries of a tree with the nodes of another."""
_MOST_THRESHOLDS, _MOST_CATEGORIES = 254, 255
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class TreeFeatures:
    """The features that a tree is checked against: cuts, number of value bins, and which are categorical."""

    cuts: Cuts
    n_bins: NDArray[np.int32]
    is_categorical: NDArray[np.bool_]

    @classmethod
    def of(cls, cuts: Cuts) -> TreeFeatures:
        return cls(cuts, cuts.n_bins, cuts.is_categorical)


def cuts_lines(cuts: Cuts) -> list[dict[str, Any]]:
    """One object per feature: "thresholds" or "categories", and its "column" if some column has several features."""
    columns = [{}] * cuts.n_features if cuts.source is None else [{"column": int(column)} for column in cuts.source]
    triples = zip(columns, cuts.thresholds, cuts.categories, strict=True)
    return [
        {**c, "thresholds": t.tolist()} if codes is None else {**c, "categories": codes.tolist()}
        for c, t, codes in triples
    ]


def cuts_from(value: Any) -> Cuts:
    """The inverse of ``cuts_lines``."""
    lines = strict.items(value, "features")
    has_columns = any("column" in line for line in lines if isinstance(line, dict))
    thresholds: list[NDArray[np.float64]] = []
    categories: list[NDArray[np.int64] | None] = []
    source: list[int] = []
    for f, line in enumerate(lines):
        where = f"features[{f}]"
        kind = "categories" if isinstance(line, dict) and "categories" in line else "thresholds"
        strict.record(line, where, ("column", kind) if has_columns else (kind,))
        thresholds.append(_thresholds(line[kind], f"{where}.{kind}") if kind == "thresholds" else np.empty(0))
        categories.append(_categories(line[kind], f"{where}.{kind}") if kind == "categories" else None)
        if has_columns:  # the next column, or, between features of one kind, the same again
            last = source[-1] if source else -1
            again = f > 0 and (categories[-1] is None) == (categories[-2] is None)
            source.append(strict.integer(line["column"], f"{where}.column", last if again else last + 1, last + 1))
    return Cuts(tuple(thresholds), tuple(categories), np.array(source, dtype=np.int32) if has_columns else None)


def _thresholds(value: Any, where: str) -> NDArray[np.float64]:
    thresholds = strict.numbers(value, where)
    if len(thresholds) > _MOST_THRESHOLDS or not (thresholds[1:] > thresholds[:-1]).all():
        strict.refuse(where, f"up to {_MOST_THRESHOLDS} increasing numbers were expected")
    return thresholds


def _categories(value: Any, where: str) -> NDArray[np.int64]:
    codes = strict.integers(value, where, -_INT64, _INT64 - 1)
    if len(codes) > _MOST_CATEGORIES or len(np.unique(codes)) < len(codes):
        strict.refuse(where, f"up to {_MOST_CATEGORIES} different codes were expected")
    return codes


def tree_line(
    tree: FittedTree, factor: float, is_categorical: NDArray[np.bool_], *, sharing: bool = False
) -> dict[str, Any]:
    """One object per tree: a list per column of ``types.Nodes``, and the bins that categorical nodes send left.

    sharing: its nodes are those of the round's first tree, and are left out.
    """
    nodes = tree.nodes
    head = {"output": int(tree.output), "version": int(tree.version), "factor": float(factor)}
    if sharing:
        return {**head, "value": tree.value.tolist()}
    columns = {name: getattr(nodes, name).tolist() for name in _COLUMNS if name not in ("missing_left", "value")}
    columns["missing_left"], columns["value"] = nodes.missing_left.astype(int).tolist(), tree.value.tolist()
    return {**head, **{name: columns[name] for name in _COLUMNS}, "sets": _sets(nodes, is_categorical)}


def shares(value: Any) -> bool:
    """True of an object without nodes."""
    return isinstance(value, dict) and "feature" not in value and "value" in value


def _sets(nodes: Nodes, is_categorical: NDArray[np.bool_]) -> list[list[Any]]:
    """[node, [bins that go left]] of every categorical node."""
    if not is_categorical.any():
        return []
    inner = np.flatnonzero(nodes.feature >= 0)
    some = inner[is_categorical[nodes.feature[inner]]]
    words = np.ascontiguousarray(nodes.left_set[some].astype("<u4"))
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    return [[int(node), np.flatnonzero(row).tolist()] for node, row in zip(some, bits, strict=True)]
