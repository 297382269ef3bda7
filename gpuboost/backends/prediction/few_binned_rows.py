"""The leaves of few rows, without the preparations of a tree that many rows are worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuboost.kernels.leaves.walk_rows import add_rounds, walk_rows
from gpuboost.types import Array, Bins, Component, Cuts, DenseBins, FittedTree, Nodes

MOST = 12_288  # rows: trees of 64 leaves take 110 us to walk and ``FlatForest`` 175, those of 255 leaves 270 and 290
MOST_AFTER_ROUNDS = 4_096  # rows: scores after each round are kept for all rounds of a call
FIELDS = ("feature", "bin", "missing_left", "left", "right", "left_set")  # of ``types.Nodes``, in the kernels' order


def walked(nodes: Nodes, bins: Bins, cuts: Cuts, out: Array) -> bool:
    """out (n,) int32 = leaf of each row, if they are few and their bins dense; else False."""
    if not isinstance(bins, DenseBins) or len(out) > MOST:
        return False
    of_tree = [getattr(nodes, name) for name in FIELDS]
    walk_rows(*map(to_read, (bins.rows, *of_tree, cuts.n_bins, cuts.is_categorical)), out)
    return True


def scores_after(
    scores: Array, rounds: Sequence[tuple[FittedTree | Component, ...]], factor: float, bins: Bins, cuts: Cuts
) -> Array | None:
    """Add the trees of several rounds to the scores (k, n); (k, rounds, n): the scores after each round.

    None, and nothing done, if the rows are not few, their bins not dense, or the learners not one tree for each output.
    """
    k, n = scores.shape
    if not isinstance(bins, DenseBins) or n > MOST_AFTER_ROUNDS:
        return None
    trees = [tree for of_round in rounds for tree in of_round if isinstance(tree, FittedTree)]
    if [tree.output for tree in trees] != [*range(k)] * len(rounds):
        return None
    nodes = tuple(to_read(np.concatenate([getattr(tree.nodes, name) for tree in trees])) for name in FIELDS)
    values, first = np.concatenate([tree.value for tree in trees]), np.zeros(len(trees) + 1, np.int64)
    np.cumsum([len(tree.value) for tree in trees], out=first[1:])
    after = np.empty((k, len(rounds), n))
    rows, *of_cuts = map(to_read, (bins.rows, cuts.n_bins, cuts.is_categorical))
    add_rounds(rows, nodes, values, first, *of_cuts, factor, scores, after)
    return after


def to_read(array: Array) -> Array:
    """A view that cannot be written to: numba compiles a kernel anew where an array can, and models of files cannot."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
