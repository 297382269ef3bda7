"""Cuts and trees as JSON, and back with every rule of ``gpuboost.types`` checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.model import strict_json as strict
from gpuboost.records import dataclass
from gpuboost.types import Cuts, FittedTree, Nodes

_COLUMNS = ("feature", "bin", "missing_left", "left", "right", "gain", "cover", "count", "value")
_HEAD = ("output", "version", "factor")
_TREE, _SHARING = (*_HEAD, *_COLUMNS, "sets"), (*_HEAD, "value")
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


def sharing_tree_from(value: Any, where: str, output: int, nodes: Nodes) -> tuple[FittedTree, float]:
    """The inverse of ``tree_line`` for a tree that shares the nodes of another."""
    record = strict.record(value, where, _SHARING)
    version, factor = _head(record, where, output)
    values, inner = (
        strict.numbers(record["value"], f"{where}.value", len(nodes.feature)),
        np.flatnonzero(~nodes.is_leaf),
    )
    _demand(values[inner] == 0, inner, f"{where}.value", "it is 0 but at leaves", values)
    return FittedTree(nodes, values, output, version), factor


def tree_from(value: Any, where: str, output: int, columns: TreeFeatures) -> tuple[FittedTree, float]:
    """The inverse of ``tree_line``, for the tree of one output of one round."""
    record = strict.record(value, where, _TREE)
    version, factor = _head(record, where, output)
    feature = strict.integers(record["feature"], f"{where}.feature", -1, columns.cuts.n_features - 1)
    v = len(feature)
    if not v:
        strict.refuse(f"{where}.feature", "a tree has at least one node")
    integer = {
        name: strict.integers(record[name], f"{where}.{name}", 0, high, v)
        for name, high in (("bin", 255), ("missing_left", 1), ("left", v - 1), ("right", v - 1), ("count", _INT64 - 1))
    }
    real = {name: strict.numbers(record[name], f"{where}.{name}", v) for name in ("gain", "cover", "value")}
    _check_shape(where, feature, integer["left"], integer["right"])
    _check_columns(where, feature, integer, real, columns)
    nodes = Nodes(
        feature=feature.astype(np.int32),
        bin=integer["bin"].astype(np.int32),
        missing_left=integer["missing_left"].astype(np.bool_),
        left=integer["left"].astype(np.int32),
        right=integer["right"].astype(np.int32),
        gain=real["gain"],
        cover=real["cover"],
        count=integer["count"],
        left_set=_left_set(record["sets"], f"{where}.sets", feature, columns),
    )
    return FittedTree(nodes, real["value"], output, version), factor


def _head(record: dict[str, Any], where: str, output: int) -> tuple[int, float]:
    """Version and factor."""
    strict.integer(record["output"], f"{where}.output", output, output)
    version = strict.integer(record["version"], f"{where}.version", -1, _INT64 - 1)
    return version, strict.number(record["factor"], f"{where}.factor")


def _check_shape(where: str, feature: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]) -> None:
    """Children after their parent, and every node but the root the child of exactly one: a tree, whole."""
    inner = np.flatnonzero(feature >= 0)
    for name, child in (("left", left), ("right", right)):
        _demand(child[inner] > inner, inner, f"{where}.{name}", "a child comes after its parent", child)
        leaf = np.flatnonzero(feature < 0)
        _demand(child[leaf] == 0, leaf, f"{where}.{name}", "a leaf has no child, written 0", child)
    parents = np.bincount(np.concatenate([left[inner], right[inner]]), minlength=len(feature))
    every = np.arange(1, len(feature))
    _demand(parents[1:] == 1, every, where, "every node but the first is the child of one other", parents)


def _check_columns(
    where: str,
    feature: NDArray[np.int64],
    integer: dict[str, NDArray[np.int64]],
    real: dict[str, NDArray[np.float64]],
    columns: TreeFeatures,
) -> None:
    inner, leaf, every = np.flatnonzero(feature >= 0), np.flatnonzero(feature < 0), np.arange(len(feature))
    numeric = inner[~columns.is_categorical[feature[inner]]]
    in_cuts = integer["bin"][numeric] < columns.n_bins[feature[numeric]]
    _demand(in_cuts, numeric, f"{where}.bin", "a split is at one of its feature's bins", integer["bin"])
    for name in ("bin", "missing_left"):
        _demand(integer[name][leaf] == 0, leaf, f"{where}.{name}", "it is 0 at a leaf", integer[name])
    _demand(real["gain"][leaf] == 0, leaf, f"{where}.gain", "it is 0 at a leaf", real["gain"])
    _demand(real["cover"] >= 0, every, f"{where}.cover", "it is not negative", real["cover"])
    _demand(real["value"][inner] == 0, inner, f"{where}.value", "it is 0 but at leaves", real["value"])


def _demand(holds: NDArray[Any], nodes: NDArray[Any], where: str, rule: str, column: NDArray[Any]) -> None:
    if not holds.all():
        node = int(nodes[np.argmin(holds)])
        strict.refuse(f"{where}[{node}]", rule, column[node].item())


def _sets(nodes: Nodes, is_categorical: NDArray[np.bool_]) -> list[list[Any]]:
    """[node, [bins that go left]] of every categorical node."""
    inner = np.flatnonzero(nodes.feature >= 0)
    some = inner[is_categorical[nodes.feature[inner]]]
    words = np.ascontiguousarray(nodes.left_set[some].astype("<u4"))
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    return [[int(node), np.flatnonzero(row).tolist()] for node, row in zip(some, bits, strict=True)]


def _left_set(value: Any, where: str, feature: NDArray[np.int64], columns: TreeFeatures) -> NDArray[np.uint32]:
    """The inverse of ``_sets``: every categorical node in turn, with bins of its feature in increasing order."""
    words = np.zeros((len(feature), 8), np.uint32)
    inner = np.flatnonzero(feature >= 0)
    expected = inner[columns.is_categorical[feature[inner]]].tolist()
    pairs = strict.items(value, where)
    if len(pairs) != len(expected):
        strict.refuse(where, f"there are {len(expected)} categorical nodes in this tree", len(pairs))
    for i, (pair, node) in enumerate(zip(pairs, expected, strict=True)):
        if len(strict.items(pair, f"{where}[{i}]")) != 2:
            strict.refuse(f"{where}[{i}]", "a pair of a node and a list of bins was expected")
        strict.integer(pair[0], f"{where}[{i}][0]", node, node)
        bins = strict.integers(pair[1], f"{where}[{i}][1]", 0, int(columns.n_bins[feature[node]]) - 1)
        if not (bins[1:] > bins[:-1]).all():
            strict.refuse(f"{where}[{i}][1]", "increasing bins were expected")
        np.bitwise_or.at(words[node], bins // 32, np.uint32(1) << (bins % 32).astype(np.uint32))
    return words
