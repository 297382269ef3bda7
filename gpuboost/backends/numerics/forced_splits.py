"""Forced splits: the first splits of every tree, before growth goes on as usual.

A forced split is made if it satisfies the limits and gains; missing values go to the side of the larger gain. Otherwise
it is left out with all below it, and growth decides about the node. Splits of one level are made in the order of their
nodes, as long as there is room for leaves.
"""

from __future__ import annotations

import numpy as np

from gpuboost.records import dataclass
from gpuboost.types import Cuts, ForcedSplit, Nodes


@dataclass(frozen=True, slots=True)
class ForcedCut:
    """A ``ForcedSplit`` by bins, and those below it that have a cut."""

    feature: int
    bin: int  # the last one that goes left
    left: ForcedCut | None
    right: ForcedCut | None

    @property
    def below(self) -> tuple[ForcedCut | None, ForcedCut | None]:
        return self.left, self.right


def cut_of(split: ForcedSplit | None, cuts: Cuts) -> ForcedCut | None:
    """The cut of the column at the threshold, or the next one above it; None above the last one."""
    if split is None:
        return None
    for f in np.flatnonzero(cuts.columns == split.column).tolist():
        cut = int(np.searchsorted(cuts.thresholds[f], split.threshold))
        if cut < len(cuts.thresholds[f]):
            return ForcedCut(f, cut, cut_of(split.left, cuts), cut_of(split.right, cuts))
    return None


def made(cut: ForcedCut | None, nodes: Nodes, v: int = 0) -> int:
    """Number of the forced splits that the tree has, from node v down."""
    if cut is None or nodes.feature[v] != cut.feature or nodes.bin[v] != cut.bin:
        return 0
    return 1 + made(cut.left, nodes, int(nodes.left[v])) + made(cut.right, nodes, int(nodes.right[v]))
