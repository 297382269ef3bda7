"""Bounds of the leaf values below a growing tree's nodes on the CPU, and values of nodes for path smoothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.numerics.monotone import of_features
from gpuboost.kernels.splits import monotone_split
from gpuboost.types import Array, Cuts, Limits


class Bounds:
    """Bounds of every searched node, computed from its parent's bounds and split."""

    def __init__(self, cuts: Cuts, features: Array, limits: Limits, units: Array, smoothing: float) -> None:
        """features (t,): the tree's candidate features; units (2,): value of one unit of g and of h.

        smoothing: ``Limits.smoothing`` of the whole tree.
        """
        self._of_all = of_features(limits.directions, cuts)
        self._of_some, self._units, self._limits = self._of_all[features], units, limits
        self._smoothing = smoothing
        self._bounds = np.array([[-limits.largest_value, limits.largest_value, 0.0]])

    def search_below(self, new_pairs: NDArray[np.int64], node: NDArray[np.int64]) -> Callable[..., None]:
        """The function to call in place of ``split.search`` for these pairs, with the same arguments."""
        self._inherit(new_pairs, node)
        return partial(monotone_split.search, self._bounds, self._of_some)

    def of_pairs(
        self, new_pairs: NDArray[np.int64], node: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The bounds (v, 3) of all nodes, with those of these pairs, and the directions of the features."""
        self._inherit(new_pairs, node)
        return self._bounds, self._of_some

    def with_room(self, most_nodes: int) -> NDArray[np.float64]:
        """The bounds (v, 3), with room for so many nodes."""
        self._make_room(most_nodes)
        return self._bounds

    def search_of(self, v: int) -> Callable[..., None]:
        """As ``search_below``, for node v, which has bounds already, as the only node of a table."""
        return partial(monotone_split.search, self._bounds[v : v + 1], self._of_some)

    def values_of(self, new_pairs: NDArray[np.int64], node: NDArray[np.int64]) -> NDArray[np.float64]:
        """(v,) values of the nodes, those of these pairs computed: path smoothing draws their children towards them."""
        self._inherit(new_pairs, node)
        return self._bounds[:, 2].copy()

    def _inherit(self, new_pairs: NDArray[np.int64], node: NDArray[np.int64]) -> None:
        self._make_room(len(node))
        penalties = self._limits.reg_lambda, self._limits.reg_alpha, self._smoothing
        monotone_split.inherit(new_pairs, node, self._of_all, self._units, *penalties, self._bounds)

    def _make_room(self, most_nodes: int) -> None:
        more = most_nodes - len(self._bounds)
        if more > 0:
            self._bounds = np.concatenate([self._bounds, np.empty((more, 3))])
