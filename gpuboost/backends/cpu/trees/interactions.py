"""Features that may split each node of a growing tree on the CPU, under interaction constraints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.numerics.interactions import PathRule
from gpuboost.kernels.splits.interactions import mark_allowed
from gpuboost.types import Array


def lines_of(rule: PathRule) -> NDArray[np.int64]:
    """(2 + words, d) the rule by features, as ``NodeRules`` has it below the directions."""
    return np.vstack([np.full(len(rule.columns), rule.most), rule.columns, *rule.sets.T]).astype(np.int64)


class InteractionPaths:
    """The parent of every searched node, and the rule for the features of a path."""

    def __init__(self, rule: PathRule, features: Array) -> None:
        """features (t,): the tree's candidate features."""
        self._rule, self._features = rule, features
        self._parent = np.full(1, -1, np.int64)

    def lengthen(self, new_pairs: NDArray[np.int64], node: NDArray[np.int64]) -> None:
        """Add the nodes of these pairs below their parents. The root has none."""
        more = len(node) - len(self._parent)
        if more > 0:
            self._parent = np.concatenate([self._parent, np.full(more, -1)])
        for side in range(2):
            below = new_pairs[new_pairs[:, side] > 0]
            self._parent[below[:, side]] = below[:, 2]

    def allowed(self, lines: NDArray[np.int64], node: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(c, t): the features that may split each node of ``lines`` (c,), in which -1 stands for no node."""
        may, rule = np.zeros((len(lines), len(self._features)), np.bool_), self._rule
        mark_allowed(lines, self._parent, node, self._features, rule.columns, rule.sets, rule.most, may)
        return may
