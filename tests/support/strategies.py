"""Random but valid objects: ensembles of every shape, and rows that probe their decisions."""

from __future__ import annotations

import numpy as np

from gpuboost.types import Cuts, Ensemble, FittedTree, Nodes

Array = np.ndarray


def random_cuts(rng: np.random.Generator, n_columns: int, categorical: float = 0.25, most: int = 254) -> Cuts:
    """Thresholds from none to ``most``; categories in any order, with gaps between their codes, some shared out."""
    thresholds, categories, source = [], [], []
    for column in range(n_columns):
        count = int(rng.choice([rng.integers(0, most + 1), rng.integers(0, min(most, 20) + 1), most]))
        if rng.random() < categorical:
            codes = rng.choice(2 * count + 3, size=count + 1, replace=False).astype(np.int64)
            shares = np.array_split(codes, rng.integers(2, 4)) if len(codes) > 2 and rng.random() < 0.4 else [codes]
            for share in shares:
                thresholds.append(np.empty(0))
                categories.append(share)
                source.append(column)
        else:
            scale = float(rng.choice([1.0, 1e-3, 1e6]))
            values = np.unique(rng.normal(size=count) * scale)
            thresholds.append(np.unique(np.round(values, 2)) if rng.random() < 0.3 else values)
            categories.append(None)
            source.append(column)
    spread = len(source) > n_columns
    return Cuts(tuple(thresholds), tuple(categories), np.array(source, np.int32) if spread else None)


def random_nodes(rng: np.random.Generator, cuts: Cuts, max_leaves: int, max_depth: int = 64) -> Nodes:
    """A tree grown by splitting leaves at random; about a third of the trees are nearly chains."""
    counts, n_bins, lopsided = [int(rng.integers(1, 100_000))], cuts.n_bins, rng.random() < 0.3
    feature, bins, missing_left, left, right, depth = [-1], [0], [False], [0], [0], [0]
    left_set = [np.zeros(8, np.uint32)]
    splittable = np.flatnonzero(n_bins >= 1)
    for _ in range(max_leaves - 1):
        leaves = [i for i, f in enumerate(feature) if f < 0 and depth[i] < max_depth]
        if not leaves or not len(splittable):
            break
        i = leaves[-1] if lopsided else int(rng.choice(leaves))
        f = int(rng.choice(splittable))
        feature[i], missing_left[i] = f, bool(rng.random() < 0.5)
        if cuts.categories[f] is None:
            bins[i] = int(rng.integers(n_bins[f]))
        else:
            chosen = rng.random(n_bins[f]) < 0.5
            left_set[i] = np.packbits(chosen, bitorder="little", axis=0).tobytes().ljust(32, b"\0")
            left_set[i] = np.frombuffer(left_set[i], "<u4").astype(np.uint32)
        left[i], right[i] = len(feature), len(feature) + 1
        share = int(rng.integers(0, counts[i] + 1))
        for count in (share, counts[i] - share):
            for column, value in ((feature, -1), (bins, 0), (missing_left, False), (left, 0), (right, 0)):
                column.append(value)
            counts.append(count)
            depth.append(depth[i] + 1)
            left_set.append(np.zeros(8, np.uint32))
    is_leaf = np.array(feature) < 0
    return Nodes(
        feature=np.array(feature, np.int32),
        bin=np.array(bins, np.int32),
        missing_left=np.array(missing_left, np.bool_),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        gain=np.where(is_leaf, 0.0, rng.exponential(size=len(feature))),
        cover=np.array(counts) * 0.25,
        count=np.array(counts, np.int64),
        left_set=np.stack(left_set),
    )


def random_ensemble(
    seed: int,
    *,
    n_columns: int = 5,
    rounds: int = 4,
    n_outputs: int = 1,
    max_leaves: int = 12,
    max_depth: int = 64,
    categorical: float = 0.25,
    most_cuts: int = 254,
    scale: float = 1.0,
) -> Ensemble:
    """A valid ensemble: missing values to either side, categorical sets, single leaves, any number of outputs."""
    rng = np.random.default_rng(seed)
    cuts = random_cuts(rng, n_columns, categorical, most_cuts)
    trees = []
    for round_ in range(rounds):
        for output in range(n_outputs):
            size = 1 if rng.random() < 0.05 else int(rng.integers(1, max_leaves + 1))
            nodes = random_nodes(rng, cuts, size, max_depth)
            value = np.where(nodes.is_leaf, rng.normal(size=len(nodes.feature)), 0.0)
            trees.append(FittedTree(nodes, value, output, round_))
    factors = tuple(float(f) for f in rng.uniform(0.01, 1.0, rounds).repeat(n_outputs))
    return Ensemble(rng.normal(size=n_outputs), cuts, tuple(trees), factors, scale)


def probing_rows(ensemble: Ensemble, n: int, seed: int, dtype: type = np.float64, missing: float = 0.15) -> Array:
    """(n, d) values at every kind of place: on a cut, next to it, far out, 0, -0, missing, categories not listed."""
    rng, cuts = np.random.default_rng(seed), ensemble.cuts
    x = np.empty((n, cuts.n_columns), dtype)
    for column in range(cuts.n_columns):
        first, last = np.flatnonzero(cuts.columns == column)[[0, -1]]
        thresholds = cuts.thresholds[first]
        if cuts.categories[first] is not None:
            highest = max(int(codes.max()) for codes in cuts.categories[first : last + 1] if codes is not None)
            x[:, column] = rng.integers(-1, highest + 3, n)
        else:
            places = np.concatenate([thresholds, [0.0, -0.0, 1e-40, -1e-40, 1e30, -1e30]]).astype(dtype)
            near = np.concatenate([places, np.nextafter(places, dtype(np.inf)), np.nextafter(places, dtype(-np.inf))])
            x[:, column] = rng.choice(near, n)
    x[rng.random(x.shape) < missing] = np.nan
    return x
