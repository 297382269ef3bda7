"""Verbs that take several rounds at once, for eval sets of few rows: a call for each takes longer than its work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gpuboost.losses.protocol import Loss
from gpuboost.types import Array, Bins, Component, Cuts, FittedTree

PAYS = 32  # rounds that must be left, or the kernel that repeats them on a CPU is not compiled


class RoundScorer(Protocol):
    """The verbs of scores after each of several rounds, for machines that have ``Capabilities.scores_of_rounds``."""

    def scores_after(
        self, scores: Array, rounds: Sequence[tuple[FittedTree | Component, ...]], factor: float, bins: Bins, cuts: Cuts
    ) -> Array | None:
        """Add the trees of several rounds, times the factor, to scores (k, n). Returns (k, rounds, n): after each one.

        The bits are those of ``add_tree``, called for one after the other. None, and nothing done, if the machine does
        not do that for these rows or learners.
        """
        ...

    def loss_values(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> list[float]:
        """``Trainer.loss_value`` of the scores (k, rounds, n) after each round."""
        ...
