"""Training sets of every kind, gradients of every kind, and the bytes by which trees and models are compared."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.reference.backend import Reference
from gpuboost.types import Cuts, DenseBins, Ensemble, FittedTree, Gradients, Nodes, SparseBins, Structure, TrainingSet

Array = NDArray[Any]


GRADIENT_KINDS = ("plain", "zero", "huge", "tiny", "heavy", "ties", "flat", "spike")
"""Kinds of gradients that ``random_gradients`` makes."""


@dataclass(frozen=True)
class Case:
    """A training set, and the raw values that its bins were made from."""

    x: Array  # (n, d) float64
    data: TrainingSet


def random_case(
    seed: int,
    n: int = 300,
    d: int = 5,
    *,
    most_cuts: int = 20,
    missing: float = 0.1,
    categorical: float = 0.3,
    target: str = "real",
    weights: str = "none",
    full: bool = False,
) -> Case:
    """Numeric, constant, tied and categorical features; categories that are rare, unlisted and unordered.

    target: "real", "positive", "times", "shares", "binary", or a number of classes. weights: "none", "real", "whole".
    full: every numeric feature has ``most_cuts`` cuts, as far as its values allow, and no ties.
    """
    rng = np.random.default_rng(seed)
    x = np.empty((n, d))
    thresholds: list[Array] = []
    categories: list[Array | None] = []
    for f in range(d):
        if rng.random() < categorical:
            count = int(rng.choice([1, 2, 3, 4, 5, 12, 60, 254]))
            listed = rng.choice(2 * count + 2, size=count, replace=False).astype(np.int64)
            x[:, f] = rng.choice(np.append(listed, [2 * count + 5, -1]), n)
            thresholds.append(np.empty(0))
            categories.append(listed)
        else:
            count = most_cuts if full else int(rng.choice([0, 1, 2, int(rng.integers(0, most_cuts + 1)), most_cuts]))
            x[:, f] = np.round(rng.normal(size=n), 9 if full else int(rng.choice([0, 1, 6])))
            distinct = np.unique(x[:, f])
            thresholds.append(np.sort(rng.choice(distinct, min(count, len(distinct)), replace=False)))
            categories.append(None)
    signal = x[:, 0] * 0.3 + np.sin(3.0 * x[:, -1]) + (x[:, d // 2] > 0.2)
    rates = rng.choice([0.0, missing, 3.0 * missing], d)
    x[rng.random((n, d)) < rates] = np.nan
    y = _target(target, signal, rng)
    cuts = Cuts(tuple(thresholds), tuple(categories))
    data = TrainingSet(Reference().quantise(x, cuts), cuts, y)
    return Case(x, weighted(data, weights, rng))


def _target(target: str, signal: Array, rng: np.random.Generator) -> Array:
    noisy = np.tanh(signal) + 0.3 * rng.normal(size=len(signal))
    if target == "real":
        return noisy
    if target == "positive":
        return np.exp(noisy)
    if target == "times":
        return np.exp(signal) * np.where(rng.random(len(signal)) < 0.3, -1.0, 1.0)
    if target == "shares":
        return np.clip(0.5 + 0.5 * noisy, 0.0, 1.0)
    if target == "binary":
        return (noisy > 0.3).astype(np.float64)
    classes = int(target)
    return np.digitize(noisy, np.linspace(-0.7, 1.0, classes - 1)).astype(np.float64)


def weighted(data: TrainingSet, weights: str, rng: np.random.Generator) -> TrainingSet:
    """The set with "real" or "whole" weights, or "none"."""
    if weights == "real":
        return replace(data, weight=rng.exponential(size=data.n_rows) + 0.01)
    if weights == "whole":
        return replace(data, multiplicity=rng.integers(1, 5, data.n_rows).astype(np.int32))
    return data


def as_sparse(bins: DenseBins, n_bins: Array, seed: int = 0) -> SparseBins:
    """The same bins, listed by entry. What is absent is a feature's most frequent value bin, or any value bin."""
    rows, rng = bins.rows, np.random.default_rng(seed)
    default = np.empty(rows.shape[1], np.uint8)
    for f, b in enumerate(n_bins):
        frequent = int(np.argmax(np.bincount(rows[:, f], minlength=b)[:b]))
        default[f] = frequent if rng.random() < 0.7 else rng.integers(b)
    stored = rows != default
    row, feature = np.nonzero(stored)
    by_column = np.lexsort((row, feature))
    codes = rows[row, feature]
    return SparseBins(
        default,
        np.concatenate([[0], np.cumsum(stored.sum(axis=1))]).astype(np.int64),
        feature.astype(np.int32),
        codes,
        np.concatenate([[0], np.cumsum(stored.sum(axis=0))]).astype(np.int64),
        row[by_column].astype(np.int32),
        codes[by_column],
    )


def sparse(data: TrainingSet, seed: int = 0) -> TrainingSet:
    """The set with its dense bins listed by entry."""
    dense: Any = data.bins
    return replace(data, bins=as_sparse(dense, data.cuts.n_bins, seed))


def stump(
    feature: int, cut: int, missing_left: bool, values: tuple[float, float], output: int = 0, categorical: bool = False
) -> FittedTree:
    """Two leaves; bins up to ``cut`` go left. values: of the left leaf and of the right one."""
    left_set = np.zeros((3, 8), np.uint32)
    if categorical:
        bits = np.packbits(np.arange(256) <= cut, bitorder="little")
        left_set[0] = np.frombuffer(bits.tobytes(), "<u4")
    nodes = Nodes(
        np.array([feature, -1, -1], np.int32), np.array([0 if categorical else cut, 0, 0], np.int32),
        np.array([missing_left, False, False]), np.array([1, 0, 0], np.int32), np.array([2, 0, 0], np.int32),
        np.array([1.0, 0.0, 0.0]), np.ones(3), np.array([4, 2, 2]), left_set,
    )  # fmt: skip
    return FittedTree(nodes, np.array([0.0, *values]), output, 0)


def random_gradients(rng: np.random.Generator, n: int, kind: str, multiplicity: Array | None = None) -> Gradients:
    """One output. Kinds: "plain", "zero", "huge", "tiny", "heavy" (Cauchy), "ties", "flat" (no curvature at most rows),
    "spike" (one row is everything)."""
    g, h = rng.normal(size=n), rng.exponential(size=n)
    if kind == "zero":
        g[:] = 0.0
    elif kind == "huge":
        g, h = g * 1e30, h * 1e30
    elif kind == "tiny":
        g, h = g * 1e-30, h * 1e-30
    elif kind == "heavy":
        g, h = rng.standard_cauchy(n) * 1e3, np.abs(rng.standard_cauchy(n))
    elif kind == "ties":
        g, h = rng.choice([-1.0, 0.0, 1.0], n), np.ones(n)
    elif kind == "flat":
        h[rng.random(n) < 0.8] = 0.0
        g[h == 0.0] *= 1e-9
    elif kind == "spike":
        g[:], h[:] = 1e-8, 1e-8
        g[: min(n, 1)], h[: min(n, 1)] = 1e8, 1e8
    return Gradients(g.astype(np.float32)[None], h.astype(np.float32)[None], multiplicity)


def node_bytes(nodes: Nodes, counts: bool = True) -> bytes:
    """All arrays of a tree, with their dtypes; two trees are equal if and only if these are."""
    named = [(field.name, getattr(nodes, field.name)) for field in fields(Nodes) if counts or field.name != "count"]
    return b"|".join(f"{name} {a.dtype} {a.shape} ".encode() + a.tobytes() for name, a in named)


def structure_bytes(structure: Structure, counts: bool = True) -> bytes:
    """All that a host's structure holds."""
    parts = [node_bytes(structure.nodes, counts), f"{structure.output} {structure.version}".encode()]
    if structure.sums is not None:
        parts += [np.asarray(sums, np.float64).tobytes() for sums in structure.sums]
    if structure.leaf_of_row is not None:
        parts.append(f"{structure.leaf_of_row.dtype}".encode() + structure.leaf_of_row.tobytes())
    return b"|".join(parts)


def model_bytes(ensemble: Ensemble, counts: bool = True) -> bytes:
    """Everything a model file holds."""
    parts = [ensemble.bias.tobytes(), np.array(ensemble.factors).tobytes(), np.float64(ensemble.scale).tobytes()]
    for tree in ensemble.trees:
        parts += [node_bytes(tree.nodes, counts), tree.value.tobytes(), f"{tree.output} {tree.version}".encode()]
    return b"|".join(parts)
