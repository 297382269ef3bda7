"""The end of a tree in one launch: its last level, what its leaves are worth, and the step that the scores take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpuboost.backends.cuda.grower import TreeOnDevice
from gpuboost.types import Array, Limits

NEAR_NODES = 1024  # as in partition.cu


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """A last level that waits for the verbs to come. Where they are others than hoped for, it is launched by itself."""

    tree: TreeOnDevice
    values: Array | None = None  # (v,) float64, where leaf values are asked for
    record: dict[str, Any] = field(default_factory=dict)  # the kernels' arguments that say where the tree is recorded
    worth: Callable[[], None] | None = None  # launches what computes and records the values by themselves

    def fits(self, capacity: int, limits: Limits) -> bool:
        """Whether one launch can do for a tree of so many nodes, whose values are made by these limits."""
        own = self.tree.limits
        return capacity <= NEAR_NODES and (limits.reg_lambda, limits.signed) == (own.reg_lambda, own.signed)

    def launch(self) -> None:
        """One after the other."""
        self.tree.route_last()
        if self.worth is not None:
            self.worth()

    def add(self, scores: Array, factor: Array) -> None:
        """The same in one launch, and scores (n,) += factor * value of the leaf."""
        assert self.values is not None
        self.tree.route_and_add(factor, scores, self.values, **self.record)
