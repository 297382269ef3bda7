"""The end of a tree in one launch: its last level, its leaf values, and the update of the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpuboost.backends.cuda.trees.grower import TreeOnDevice
from gpuboost.types import Array, Limits

NEAR_NODES = 1024  # as in partition.cu


@dataclass(frozen=True, slots=True, eq=False)
class FusedLeafUpdate:
    """A postponed last level, fused with the next verbs if they allow it; otherwise it is launched by itself."""

    tree: TreeOnDevice
    values: Array | None = None  # (v,) float64, for leaf values
    record: dict[str, Any] = field(default_factory=dict)  # the kernels' arguments for the tree's record
    compute_values: Callable[[], None] | None = None  # launches what computes and records the values by themselves

    def fits(self, capacity: int, limits: Limits) -> bool:
        """True if one launch suffices for a tree of at most ``capacity`` nodes with leaf values by these limits."""
        tree_limits = self.tree.limits
        return capacity <= NEAR_NODES and limits.of_values == tree_limits.of_values and limits.path_smooth == 0.0

    def launch(self) -> None:
        """Launch the last level, then the values."""
        self.tree.route_last()
        if self.compute_values is not None:
            self.compute_values()

    def add(self, scores: Array, factor: Array) -> None:
        """Launch both at once, with scores (n,) += factor * value of the leaf."""
        assert self.values is not None
        self.tree.route_and_add(factor, scores, self.values, **self.record)
