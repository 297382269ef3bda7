"""What a machine must be able to do. ``Reference`` is the definition; the others are held to it bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from gpuboost.keys import Key
from gpuboost.losses.protocol import Loss
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    Ensemble,
    Gradients,
    Limits,
    Sample,
    Structure,
    Target,
    TrainingSet,
    Tree,
)

Frontier: TypeAlias = Any
"""A tree while it grows: where its rows are, and the nodes that may still be split. Private to a backend."""


class Backend(Protocol):
    """The verbs. Arrays that a verb returns belong to the backend; callers pass them on and do not look inside."""

    name: str

    # the data, once
    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        """The bin of every value. x: (n, d) float32 or float64, or scipy CSR/CSC (absent entries are 0)."""
        ...

    # the round
    def recorded(self, step: int) -> AbstractContextManager[None]:
        """Encloses the verbs of one round, which are the same in every round.

        A device records what they launch, once, and replays it; for a host there is nothing to do.
        """
        ...

    def collect(self, ensemble: Ensemble) -> Ensemble:
        """The ensemble with its trees in the host's memory.

        Raises:
            InputError: if a gradient of a round since the last call was not a finite number.
        """
        ...

    # the target, once a round
    def start(self, data: TrainingSet, bias: Array) -> Array:
        """(k, n) float64 scores, all equal to the bias."""
        ...

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        """g and h of every row. ``curvature`` is None for the loss's own h, or a constant to take in its place."""
        ...

    def sample(self, probability: float, n_rows: int, key: Key) -> Sample:
        """Row i is drawn iff its number of the stream is below the probability."""
        ...

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        """The gradients of the drawn rows, times 1 / p."""
        ...

    # the tree
    def plant(self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits) -> Frontier:
        """All rows of the target in the root, gradients turned to integers."""
        ...

    def histograms(self, frontier: Frontier) -> None:
        """Exact integer sums per bin for every new node: the smaller child built, its sibling by subtraction."""
        ...

    def best_splits(self, frontier: Frontier) -> None:
        """The best split of every new node. Ties: lowest feature, then lowest bin, then missing values right."""
        ...

    def partition(self, frontier: Frontier, most: int | None = None) -> bool:
        """Split the open nodes that gain, ``most`` of them (those that gain most), and send their rows on.

        Returns False if there was nothing to split.
        """
        ...

    def harvest(self, frontier: Frontier, data: TrainingSet, target: Target) -> Structure: ...

    def leaf_values(
        self, structure: Structure, gradients: Gradients, data: TrainingSet, limits: Limits, version: int
    ) -> tuple[Tree, Array]:
        """Exact -G / (H + lambda) of each leaf over all rows, and the (n,) int32 leaf of every row.

        ``gradients`` are those of all rows at ``version``, which may be newer than what the structure was fitted to.
        """
        ...

    def leaf_quantiles(self, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet) -> Tree:
        """The tree with the loss's quantile of the residuals y - F in each leaf."""
        ...

    # the model
    def add_leaves(self, scores: Array, tree: Tree, factor: float, leaf_of_row: Array) -> None:
        """scores[tree.output] <- scores[tree.output] + factor * tree, in place, leaves being known."""
        ...

    def add_tree(self, scores: Array, tree: Tree, factor: float, bins: Bins, cuts: Cuts) -> None:
        """The same where the leaf of a row is still to be found."""
        ...

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        """Weighted mean of the loss, summed in a fixed order."""
        ...

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        """(k, n) float64 scores of raw values: the same decisions, and the same bits, as by bins."""
        ...

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        """(k, n) float64 scores after each round."""
        ...

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        """(n, number of trees) int32: the node each row comes to rest in."""
        ...

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        """(n, k, columns + 1) float64: what each column adds to each score (``backends.paths``), and the mean score."""
        ...
