"""Trees from JSON, with every rule of ``gpuboost.types.Nodes`` checked.

All trees of a file are converted and checked at once: a NumPy call on the 120 nodes of one tree takes mostly its
overhead, and a tree needs sixty of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.model import strict_json as strict
from gpuboost.model.tree_json import SHARING, TREE, TreeFeatures
from gpuboost.types import FittedTree, Nodes

_INT64 = 2**63
_ONLY_LEAVES = "it is 0 but at leaves"
_Read = Callable[[list[Any], str, int | None], NDArray[Any]]


def trees_from(
    values: Sequence[Any], places: Sequence[str], outputs: Sequence[int], features: TreeFeatures
) -> list[tuple[FittedTree, float]]:
    """The inverse of ``tree_json.tree_line`` for trees with nodes of their own: each tree and its factor.

    places: where each tree stands in the file. outputs: the output that each is for.
    """
    if not values:
        return []
    heads = [strict.record(value, place, TREE) for value, place in zip(values, places, strict=True)]
    versions = [_version_and_factor(*each) for each in zip(heads, places, outputs, strict=True)]
    forest = _Forest(heads, places, features.cuts.n_features)
    nodes, value = _nodes(forest, features)
    pairs = []
    for t, (begin, end) in enumerate(zip(forest.starts.tolist(), (forest.starts + forest.sizes).tolist(), strict=True)):
        own = Nodes(*(column[begin:end] for column in nodes))
        version, factor = versions[t]
        pairs.append((FittedTree(own, value[begin:end], outputs[t], version), factor))
    return pairs


def sharing_tree_from(value: Any, place: str, output: int, nodes: Nodes) -> tuple[FittedTree, float]:
    """The inverse of ``tree_json.tree_line`` for a tree that shares the nodes of another."""
    record = strict.record(value, place, SHARING)
    version, factor = _version_and_factor(record, place, output)
    values = strict.numbers(record["value"], f"{place}.value", len(nodes.feature))
    wrong = ~nodes.is_leaf & (values != 0.0)
    if wrong.any():
        node = int(wrong.argmax())
        strict.refuse(f"{place}.value[{node}]", _ONLY_LEAVES, values[node].item())
    return FittedTree(nodes, values, output, version), factor


def _version_and_factor(record: dict[str, Any], place: str, output: int) -> tuple[int, float]:
    strict.integer(record["output"], f"{place}.output", output, output)
    version = strict.integer(record["version"], f"{place}.version", -1, _INT64 - 1)
    return version, strict.number(record["factor"], f"{place}.factor")


class _Forest:
    """The nodes of many trees, one tree after another."""

    def __init__(self, records: Sequence[dict[str, Any]], places: Sequence[str], n_features: int) -> None:
        self.records, self.places = records, places
        listed = [strict.items(record["feature"], f"{place}.feature") for record, place in self._each()]
        self.sizes = np.array([len(entries) for entries in listed])
        if not self.sizes.all():
            strict.refuse(f"{places[int(self.sizes.argmin())]}.feature", "a tree has at least one node")
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.tree = np.repeat(np.arange(len(records)), self.sizes)
        self.node = np.arange(len(self.tree)) - self.starts[self.tree]
        self.feature = self.integers("feature", -1, n_features - 1)
        self.inner, self.leaf = np.flatnonzero(self.feature >= 0), np.flatnonzero(self.feature < 0)

    def integers(self, name: str, low: int, high: int) -> NDArray[np.int64]:
        """A column of integers of low .. high."""
        return self._column(name, lambda entries, where, size: strict.integers(entries, where, low, high, size))

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column of finite numbers."""
        return self._column(name, strict.numbers)

    def children(self, name: str) -> NDArray[np.int64]:
        """A column of nodes of the same tree."""
        nodes = self.integers(name, -_INT64, _INT64 - 1)
        if ((nodes < 0) | (nodes >= self.sizes[self.tree])).any():
            for (record, place), size in zip(self._each(), self.sizes.tolist(), strict=True):
                strict.integers(record[name], f"{place}.{name}", 0, size - 1)
        return nodes

    def demand(self, holds: NDArray[Any], nodes: NDArray[Any], name: str, rule: str, column: NDArray[Any]) -> None:
        """Refuse the first of the nodes where the rule does not hold. name: the column's, or "" for the node itself."""
        if not holds.all():
            first = int(nodes[np.argmin(holds)])
            place = self.places[self.tree[first]] + (f".{name}" if name else "")
            strict.refuse(f"{place}[{self.node[first]}]", rule, column[first].item())

    def _each(self) -> zip[tuple[dict[str, Any], str]]:
        return zip(self.records, self.places, strict=True)

    def _column(self, name: str, read: _Read) -> NDArray[Any]:
        listed = [strict.items(record[name], f"{place}.{name}") for record, place in self._each()]
        if [len(entries) for entries in listed] == self.sizes.tolist():
            with suppress(InputError):
                return read(list(chain.from_iterable(listed)), name, None)
        for entries, place, size in zip(listed, self.places, self.sizes.tolist(), strict=True):
            read(entries, f"{place}.{name}", size)
        raise AssertionError(f"{name}: refused together, and each tree accepted")  # pragma: no cover


def _nodes(forest: _Forest, features: TreeFeatures) -> tuple[tuple[NDArray[Any], ...], NDArray[np.float64]]:
    """The columns of ``Nodes``, in their order, and the leaf values, of all trees."""
    bins, missing = forest.integers("bin", 0, 255), forest.integers("missing_left", 0, 1)
    left, right = forest.children("left"), forest.children("right")
    count = forest.integers("count", 0, _INT64 - 1)
    gain, cover, value = map(forest.numbers, ("gain", "cover", "value"))
    _check_shape(forest, left, right)
    inner, leaf, feature = forest.inner, forest.leaf, forest.feature
    is_set = np.zeros(len(feature), np.bool_)
    is_set[inner] = features.is_categorical[feature[inner]]
    numeric = inner[~is_set[inner]]
    in_cuts = bins[numeric] < features.n_bins[feature[numeric]]
    forest.demand(in_cuts, numeric, "bin", "a split is at one of its feature's bins", bins)
    for name, column in (("bin", bins), ("missing_left", missing), ("gain", gain)):
        forest.demand(column[leaf] == 0, leaf, name, "it is 0 at a leaf", column)
    forest.demand(cover >= 0, np.arange(len(cover)), "cover", "it is not negative", cover)
    forest.demand(value[inner] == 0, inner, "value", _ONLY_LEAVES, value)
    splits, thresholds, lefts, rights = (column.astype(np.int32) for column in (feature, bins, left, right))
    sets = _left_sets(forest, is_set, features)
    return (splits, thresholds, missing.astype(np.bool_), lefts, rights, gain, cover, count, sets), value


def _check_shape(forest: _Forest, left: NDArray[np.int64], right: NDArray[np.int64]) -> None:
    """Children after their parent, and every node but the root the child of exactly one: a tree, whole."""
    inner, leaf = forest.inner, forest.leaf
    for name, child in (("left", left), ("right", right)):
        forest.demand(child[inner] > forest.node[inner], inner, name, "a child comes after its parent", child)
        forest.demand(child[leaf] == 0, leaf, name, "a leaf has no child, written 0", child)
    start = forest.starts[forest.tree[inner]]
    children = np.concatenate([start + left[inner], start + right[inner]])
    parents, others = np.bincount(children, minlength=len(left)), np.flatnonzero(forest.node > 0)
    forest.demand(parents[others] == 1, others, "", "every node but the first is the child of one other", parents)


def _left_sets(forest: _Forest, is_set: NDArray[np.bool_], features: TreeFeatures) -> NDArray[np.uint32]:
    """The inverse of ``tree_json``'s sets: every categorical node in turn, with bins in increasing order."""
    words = np.zeros((len(is_set), 8), np.uint32)
    of_tree = np.split(np.flatnonzero(is_set), np.searchsorted(np.flatnonzero(is_set), forest.starts[1:]))
    for record, place, start, nodes in zip(forest.records, forest.places, forest.starts, of_tree, strict=True):
        pairs, where = strict.items(record["sets"], f"{place}.sets"), f"{place}.sets"
        if len(pairs) != len(nodes):
            strict.refuse(where, f"there are {len(nodes)} categorical nodes in this tree", len(pairs))
        for i, (pair, node) in enumerate(zip(pairs, nodes.tolist(), strict=True)):
            n_bins = int(features.n_bins[forest.feature[node]])
            words[node] = _left_set(pair, f"{where}[{i}]", node - int(start), n_bins)
    return words


def _left_set(pair: Any, where: str, node: int, n_bins: int) -> NDArray[np.uint32]:
    if len(strict.items(pair, where)) != 2:
        strict.refuse(where, "a pair of a node and a list of bins was expected")
    strict.integer(pair[0], f"{where}[0]", node, node)
    bins = strict.integers(pair[1], f"{where}[1]", 0, n_bins - 1)
    if not (bins[1:] > bins[:-1]).all():
        strict.refuse(f"{where}[1]", "increasing bins were expected")
    words = np.zeros(8, np.uint32)
    np.bitwise_or.at(words, bins // 32, np.uint32(1) << (bins % 32).astype(np.uint32))
    return words
