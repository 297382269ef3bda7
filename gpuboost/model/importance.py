"""Feature importance of an ensemble, from the splits made in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_one_of
from gpuboost.errors import InputError
from gpuboost.types import Ensemble, Nodes

Floats: TypeAlias = NDArray[np.float64]

KINDS = ("gain", "split", "cover", "mean_gain", "mean_cover")


def feature_importances(
    ensemble: Ensemble, kind: str = "gain", *, normalise: bool = True, fold: Callable[[Floats], Floats] = lambda v: v
) -> Floats:
    """(d,) float64, one number per feature.

    Args:
        ensemble: the model; shrinking and step lengths do not count, as the gain is that of the unscaled tree.
        kind: "gain", the sum of the gains of the feature's splits; "split", their number; "cover", the sum of the
            training rows in the nodes that they split; "mean_gain" and "mean_cover", these sums per split.
        fold: sums by column that trees see -> sums by column of X, where they differ.
        normalise: divide by the sum, so that the numbers sum to 1. All are 0 if no tree has a split.

    Raises:
        InputError: if the kind is not one of these.
    """
    if not is_one_of(kind, KINDS):
        raise InputError(f"kind: importances are {', '.join(map(repr, KINDS))}; got {kind!r}.")
    splits, total = np.zeros(ensemble.cuts.n_columns), np.zeros(ensemble.cuts.n_columns)
    columns = ensemble.cuts.columns
    for tree in ensemble.trees:
        inner = ~tree.nodes.is_leaf
        feature = columns[tree.nodes.feature[inner]]
        np.add.at(splits, feature, 1.0)
        np.add.at(total, feature, _counted(tree.nodes, kind)[inner])
    splits, total = fold(splits), fold(total)
    if kind.startswith("mean_"):
        total = np.divide(total, splits, out=np.zeros_like(total), where=splits > 0)
    whole = total.sum()
    return total / whole if normalise and whole > 0 else total


def _counted(nodes: Nodes, kind: str) -> NDArray[Any]:
    """(v,) importance of each split by this kind."""
    if kind == "split":
        return np.ones(len(nodes.feature))
    return nodes.gain if kind.endswith("gain") else nodes.count.astype(np.float64)
