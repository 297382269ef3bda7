"""Protocols of verbs that a machine may offer beside those of a ``Backend``; its ``Capabilities`` say which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuboost.losses.protocol import Loss
from gpuboost.scoring.answers import Answer
from gpuboost.scoring.device_metrics import ScoreMetric, ValuesOfRounds
from gpuboost.types import (
    Array,
    Candidates,
    FittedTree,
    Gradients,
    Limits,
    SampleSizes,
    Structure,
    Target,
    TrainingSet,
)


class OneTreeGrower(Protocol):
    """The verbs of one tree for several outputs, which not every machine offers: ``Capabilities.one_tree``.

    Those of sketches are defined in ``backends.numerics.sketches``.
    """

    def grow_together(
        self, data: TrainingSet, target: Target, searched: Gradients, candidates: Candidates, limits: Limits
    ) -> tuple[Structure, ...]:
        """The shape of one tree for all outputs of the target, once for each of them, depth-wise or leaf-wise.

        ``searched`` are the (s, m) gradients, or a sketch of them, whose summed gains choose the splits.
        ``backends.reference.one_tree`` is the definition. Each output has sums for leaf values of its own.

        Raises:
            InputError: if a gradient is not a finite number.
        """
        ...

    def squared_norms(self, gradients: Gradients) -> NDArray[np.float64]:
        """(k,) float64 sums over the rows of g^2, on the host."""
        ...

    def chosen_outputs(
        self, gradients: Gradients, outputs: NDArray[np.int64], factors: NDArray[np.float64]
    ) -> Gradients:
        """The gradients of (s,) outputs, g times (s,) factors."""
        ...

    def projected_outputs(self, gradients: Gradients, matrix: NDArray[np.float64]) -> Gradients:
        """Sums of the outputs' g by (k, s) factors, each with the mean of h."""
        ...


class Evaluator(Protocol):
    """The verbs of scores that stay on a device, for machines that have ``Capabilities.metrics``; others copy them.

    They return without waiting. The functions that they return wait for the value of the scores as they were.
    """

    def answer(self, answer: Answer, scores: Array) -> Array:
        """The answer of (k, n) scores by its rule, which it must have; on the device."""
        ...

    def score_metric(self, metric: ScoreMetric, scores: Array) -> Callable[[], float]:
        """The metric of (k, n) scores, with the bits of the function of ``gpuboost.metrics`` that it stands for."""
        ...

    def mean_loss(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> Callable[[], float]:
        """``Trainer.loss_value``."""
        ...


class RoundEvaluator(Protocol):
    """The verbs of metrics in a round, for machines that have ``Capabilities.recorded_metrics``.

    They are repeated with the round. Every call of a training returns the same object.
    """

    def recorded_metric(self, metric: ScoreMetric, scores: Array) -> ValuesOfRounds:
        """``Evaluator.score_metric`` of the scores now, and after later rounds."""
        ...

    def recorded_mean(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> ValuesOfRounds:
        """The same for ``Evaluator.mean_loss``."""
        ...


class Shrinkage(NamedTuple):
    """Scale of the model in a round, and factor of its trees: F <- kept F, then F <- F + length h, see ``Ensemble``."""

    kept: float  # share of the model that a round leaves
    length: float  # of the step along a round's trees
    scale: float  # of the model after the round

    @property
    def factor(self) -> float:
        """Factor of the round's trees, before the scale."""
        return self.length / self.scale

    @property
    def next(self) -> Shrinkage:
        """Scale and factor of the next round."""
        return Shrinkage(self.kept, self.length, self.scale * self.kept)


class Repeated(NamedTuple):
    """A repeated round."""

    trees: tuple[FittedTree, ...]
    sizes: SampleSizes | None = None  # of the rows that it drew; None: ``Drawn`` of the last recorded round has them


class Repeater(Protocol):
    """The verb that repeats the last round, for machines that have ``Capabilities.repeated_rounds``."""

    def repeat(self, trees: tuple[FittedTree, ...], shrinkage: Shrinkage, rounds: int, left: int) -> Sequence[Repeated]:
        """Do the verbs of the last recorded round again, on the scores as they are now, with the same arguments.

        Returns each time's result: of at most ``rounds`` rounds, and of none if the machine cannot yet. ``trees``
        are those of the last round; structures of later ones have versions that follow theirs. shrinkage: of the last
        round, from which those of later ones follow; left: rounds that are to be done in all, this time and later.
        """
        ...
