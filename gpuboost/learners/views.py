"""Features of several permutations: a tree is grown on those of one of them."""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from gpuboost.keys import Key
from gpuboost.learners.selection import Selection, prepared
from gpuboost.records import dataclass
from gpuboost.types import Candidates, Cuts


@dataclass(frozen=True, slots=True, eq=False)
class FeatureViews:
    """The features of each permutation, equally many: those that differ between permutations, and all others."""

    features: NDArray[np.int32]  # (permutations, m), increasing

    def prepared(self, rule: Selection, cuts: Cuts) -> ViewDraw:
        """The selection rule, prepared to draw from the features of one permutation."""
        n = self.features.shape[1]
        return ViewDraw(self.features, tuple(prepared(rule, _of(cuts, view), n) for view in self.features))


@dataclass(frozen=True, slots=True, eq=False)
class ViewDraw:
    """Draws of candidates: in turn from the features of each permutation, by the number of the ticket."""

    features: NDArray[np.int32]
    rules: tuple[Selection, ...]
    last: dict[int, tuple[Candidates, Candidates]] = field(default_factory=dict)

    def draw(self, n_groups: int, key: Key) -> Candidates:
        view = key.iteration % len(self.rules)
        drawn = self.rules[view].draw(self.features.shape[1], key)
        known = self.last.get(view)
        if known is None or known[0] is not drawn:  # the same object again, so that a backend recognises it
            known = drawn, replace(drawn, features=self.features[view][drawn.features], by_tree=None)
            self.last[view] = known
        return known[1]


def _of(cuts: Cuts, features: NDArray[np.int32]) -> Cuts:
    """The cuts of some features, whose columns are numbered anew."""
    source = None if cuts.source is None else np.unique(cuts.source[features], return_inverse=True)[1].astype(np.int32)
    if source is not None and (np.diff(source) == 1).all() and len(source):
        source = None
    return Cuts(tuple(cuts.thresholds[f] for f in features), tuple(cuts.categories[f] for f in features), source)
