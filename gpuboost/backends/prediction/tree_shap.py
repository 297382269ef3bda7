"""Shapley values of a sum of trees: the contribution of each feature to the score of a row, and of each pair.

The value of a set S of features is the expected score when only they are known: a split on an unknown feature follows
both branches, in the proportion of the training rows that did ("path-dependent" in Lundberg et al. 2020, Nature Machine
Intelligence 2; their Algorithm 2 computes the same numbers). Proportions are of rows, not of curvature.

A leaf of value v is reached if the row meets every condition on its path. Conditions on one column are merged: the row
meets the condition (o = 1) or not (o = 0), and a share z of the training rows does. If each feature is known with
probability t, independently, the leaf has weight prod_i (t o_i + (1 - t) z_i). So (Owen 1972, Management Science 18)

    contribution of feature e  =  v (o_e - z_e)  integral over t in [0, 1] of  prod_{i != e} (t o_i + (1 - t) z_i)

With m features the integrand is a polynomial of degree m - 1, for which ceil(m / 2) Gauss-Legendre points are exact.
All factors lie in [0, 1]: nothing cancels and nothing is divided.

The interaction of two features e and f is Grabisch and Roubens' index (1999, International Journal of Game Theory 28),
of which each of the two entries of a symmetric matrix has a half (Lundberg et al. 2020). In the same way

    entry (e, f)  =  v / 2 (o_e - z_e) (o_f - z_f)  integral of  prod_{i not in (e, f)} (t o_i + (1 - t) z_i)

for which floor(m / 2) points are exact. The diagonal has what is left of the contribution, so that rows sum to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.records import dataclass
from gpuboost.types import Ensemble, Nodes

MOST_STEPS = 2**25
"""Splits on the paths to all leaves of one tree, together; each takes about 150 bytes for a while."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths to all leaves, tree by tree, and the conditions on each path, column by column.

    A condition is one test per feature that reads the column (one, unless the column's categories are divided among
    features): the set of bins that pass it, including the bin of missing values. Bin c is bit c % 64 of word c // 64.
    """

    start: NDArray[np.int64]  # (leaves + 1,) first condition of each leaf
    value: NDArray[np.float64]  # (leaves,) contribution of the leaf to the score
    output: NDArray[np.int32]  # (leaves,)
    column: NDArray[np.int32]  # (conditions,)
    share: NDArray[np.float64]  # (conditions,) of the training rows that meet it, z above
    test_start: NDArray[np.int64]  # (conditions + 1,) first test of each condition
    feature: NDArray[np.int32]  # (tests,)
    accepted: NDArray[np.uint64]  # (tests, 4)
    expected: NDArray[np.float64]  # (k,) score without any known feature

    @classmethod
    def of(cls, ensemble: Ensemble) -> Paths:
        cuts = ensemble.cuts
        n_bins, is_categorical, columns = cuts.n_bins, cuts.is_categorical, cuts.columns
        ways = [
            _Ways.of(tree.nodes, _left_bins(tree.nodes, n_bins, is_categorical), columns) for tree in ensemble.trees
        ]
        expected, values = np.array(ensemble.bias, dtype=np.float64), [np.empty(0)]
        for tree, factor, way in zip(ensemble.trees, ensemble.factors, ways, strict=True):
            values.append(ensemble.scale * (factor * tree.value[tree.nodes.is_leaf]))
            expected[tree.output] += float((values[-1] * way.reached).sum())
        outputs = np.array([tree.output for tree in ensemble.trees], dtype=np.int32)
        return cls(
            start=_starts([way.conditions for way in ways]),
            value=np.concatenate(values),
            output=np.repeat(outputs, [len(way.reached) for way in ways]),
            column=np.concatenate([np.empty(0, np.int32)] + [way.column for way in ways]),
            share=np.concatenate([np.empty(0)] + [way.share for way in ways]),
            test_start=_starts([way.tests for way in ways]),
            feature=np.concatenate([np.empty(0, np.int32)] + [way.feature for way in ways]),
            accepted=np.concatenate([np.empty((0, 4), np.uint64)] + [way.accepted for way in ways]),
            expected=expected,
        )


def gauss_legendre(points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights on [0, 1], exact for polynomials of degree 2 * points - 1."""
    x, w = np.polynomial.legendre.leggauss(points)
    return (x + 1.0) / 2.0, w / 2.0


def gauss_legendre_rules(paths: Paths) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(q, q) points and weights: row i holds the rule of i + 1 points on [0, 1]; q: the most that a path needs."""
    q = (int(np.diff(paths.start).max(initial=0)) + 1) // 2
    points, weights = np.zeros((q, q)), np.zeros((q, q))
    for i in range(q):
        points[i, : i + 1], weights[i, : i + 1] = gauss_legendre(i + 1)
    return points, weights


def contributions_by_definition(paths: Paths, bins: NDArray[np.uint8], n_columns: int) -> NDArray[np.float64]:
    """(n, k, n_columns + 1) contributions of each column and the expected score, by the formula above.

    The kernels do the same operations in the same order. bins: (n, d) uint8.
    """
    phi = np.zeros((len(paths.expected), n_columns + 1, len(bins)))
    phi[:, -1] = paths.expected[:, None]
    for leaf, value in enumerate(paths.value):
        first, m = paths.start[leaf], int(paths.start[leaf + 1] - paths.start[leaf])
        if not m:
            continue
        met, z = _met(paths, bins, first, m), paths.share[first : first + m]
        total = np.zeros_like(met)
        for t, weight in zip(*gauss_legendre((m + 1) // 2), strict=True):
            factor = t * met + ((1.0 - t) * z)[:, None]
            before = np.cumprod(np.concatenate([np.full((1, len(bins)), weight), factor[:-1]]), axis=0)
            after = np.ones(len(bins))
            for e in range(m - 1, -1, -1):
                total[e] += before[e] * after
                after = after * factor[e]
        for e in range(m):
            phi[paths.output[leaf], paths.column[first + e]] += value * ((met[e] - z[e]) * total[e])
    return np.ascontiguousarray(phi.transpose(2, 0, 1))


def interactions_by_definition(paths: Paths, bins: NDArray[np.uint8], n_columns: int) -> NDArray[np.float64]:
    """(n, k, n_columns + 1, n_columns + 1) interactions of each pair of columns, and last the expected score.

    The kernels do the same operations in the same order. bins: (n, d) uint8.
    """
    phi = np.zeros((len(paths.expected), n_columns + 1, n_columns + 1, len(bins)))
    for leaf in range(len(paths.value)):
        _add_interactions(paths, leaf, bins, phi[paths.output[leaf]])
    alone = contributions_by_definition(paths, bins, n_columns).transpose(1, 2, 0)
    for e in range(n_columns + 1):
        phi[:, e, e] = alone[:, e]
        for f in range(n_columns):
            if f != e:
                phi[:, e, e] -= phi[:, min(e, f), max(e, f)]
    for e in range(n_columns):
        phi[:, e + 1 :, e] = phi[:, e, e + 1 :]
    return np.ascontiguousarray(phi.transpose(3, 0, 1, 2))


def _add_interactions(paths: Paths, leaf: int, bins: NDArray[np.uint8], pairs: NDArray[np.float64]) -> None:
    """pairs[a, b] += interaction of the columns a < b, of one leaf. pairs: (n_columns + 1, n_columns + 1, n)."""
    first, m = paths.start[leaf], int(paths.start[leaf + 1] - paths.start[leaf])
    if m < 2:
        return
    met, z, column = _met(paths, bins, first, m), paths.share[first : first + m], paths.column[first : first + m]
    half = 0.5 * paths.value[leaf]
    for t, weight in zip(*gauss_legendre(m // 2), strict=True):
        factor = t * met + ((1.0 - t) * z)[:, None]
        after = np.ones((m + 1, len(bins)))
        for e in range(m - 1, 0, -1):
            after[e] = after[e + 1] * factor[e]
        before = np.full(len(bins), weight)
        for e in range(m - 1):
            both = before
            for f in range(e + 1, m):
                without = both * after[f + 1]
                pairs[column[e], column[f]] += half * (met[e] - z[e]) * ((met[f] - z[f]) * without)
                both = both * factor[f]
            before = before * factor[e]


def _met(paths: Paths, bins: NDArray[np.uint8], first: int, m: int) -> NDArray[np.float64]:
    """(m, n) 1 where a row meets a condition of a leaf, 0 elsewhere."""
    met = np.ones((m, len(bins)))
    for e in range(m):
        for test in range(paths.test_start[first + e], paths.test_start[first + e + 1]):
            code = bins[:, paths.feature[test]]
            met[e] *= paths.accepted[test][code >> 6] >> (code & 63).astype(np.uint64) & np.uint64(1)
    return met


class _Ways(NamedTuple):
    """``Paths`` of one tree, with counts instead of starts."""

    reached: NDArray[np.float64]  # (leaves,) share of the training rows
    conditions: NDArray[np.int64]  # (leaves,) how many
    column: NDArray[np.int32]
    share: NDArray[np.float64]
    tests: NDArray[np.int64]  # (conditions,) how many
    feature: NDArray[np.int32]
    accepted: NDArray[np.uint64]

    @classmethod
    def of(cls, nodes: Nodes, left_bins: NDArray[np.uint64], columns: NDArray[np.int32]) -> _Ways:
        parent, share = _upwards(nodes)
        leaf = np.flatnonzero(nodes.feature < 0)
        way, current, steps = np.arange(len(leaf)), leaf, []
        n_steps = 0
        while len(current):  # one step up from all leaves at once, until every one is at the root
            way, current = way[current > 0], current[current > 0]
            n_steps += len(current)
            if n_steps > MOST_STEPS:
                raise InputError(
                    f"predict_contributions, predict_interactions: a tree of {len(leaf):,} leaves is too deep; the "
                    f"paths to all leaves of a tree may have up to {MOST_STEPS:,} splits together."
                )
            steps.append((way, parent[current], nodes.left[parent[current]] == current, share[current]))
            current = parent[current]
        way, node, is_left, shares = (np.concatenate(part) for part in zip(*steps, strict=True))

        order = np.lexsort((nodes.feature[node], way))  # features that read one column are next to each other
        way, node, is_left, shares = way[order], node[order], is_left[order], shares[order]
        feature, bins = nodes.feature[node], np.where(is_left[:, None], left_bins[node], ~left_bins[node])
        test, condition = _firsts(way, feature), _firsts(way, columns[feature])
        tests = np.bincount(np.searchsorted(condition, test, side="right") - 1, minlength=len(condition))
        reached = np.ones(len(leaf))
        np.multiply.at(reached, way, shares)
        return cls(
            reached=reached,
            conditions=np.bincount(way[condition], minlength=len(leaf)),
            column=columns[feature[condition]],
            share=np.multiply.reduceat(shares, condition) if len(condition) else shares,
            tests=tests,
            feature=feature[test],
            accepted=np.bitwise_and.reduceat(bins, test, axis=0) if len(test) else bins,
        )


def _upwards(nodes: Nodes) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(v,) parents, and (v,) shares of each node in its parent's training rows."""
    inner = np.flatnonzero(nodes.feature >= 0)
    parent, share = np.zeros(len(nodes.feature), np.int64), np.ones(len(nodes.feature))
    left, right = nodes.left[inner], nodes.right[inner]
    both = (nodes.count[left] + nodes.count[right]).astype(np.float64)
    for child in (left, right):
        parent[child] = inner
        # where no training row came by, either way is as good
        share[child] = np.divide(nodes.count[child], both, out=np.full(len(inner), 0.5), where=both > 0)
    return parent, share


def _firsts(way: NDArray[np.int64], name: NDArray[np.int32]) -> NDArray[np.int64]:
    """Start of each run of equal pairs (way, name) in a sorted list of them."""
    if not len(way):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], (way[1:] != way[:-1]) | (name[1:] != name[:-1])]))


def _starts(counts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, np.int64), *counts]))]).astype(np.int64)


def _left_bins(nodes: Nodes, n_bins: NDArray[np.int32], is_categorical: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """(v, 4) bins that go left at each node, including the bin of missing values."""
    bins, feature = np.arange(256), np.maximum(nodes.feature, 0)
    missing = n_bins[feature][:, None]
    bits = np.unpackbits(np.ascontiguousarray(nodes.left_set.astype("<u4")).view(np.uint8), axis=1, bitorder="little")
    goes = np.where(is_categorical[feature][:, None], bits == 1, bins <= nodes.bin[:, None]) & (bins < missing)
    goes |= (bins == missing) & nodes.missing_left[:, None]
    return np.packbits(goes, axis=1, bitorder="little").view("<u8").astype(np.uint64)
