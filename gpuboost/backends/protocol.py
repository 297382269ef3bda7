"""Protocols of a machine: ``Session``, ``Trainer``, ``Predictor`` and ``ControlVariates`` make up a ``Backend``.

``Reference`` is the definition; the others are held to it bit for bit. A machine that has only some of the verbs says
so in its ``offers``, and is never given a recipe that asks for the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from gpuboost.backends.capabilities import Capabilities
from gpuboost.backends.numerics.probabilities import Odds
from gpuboost.backends.smoothing import Smoothing
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
    Noise,
    Sample,
    Structure,
    Target,
    TrainingSet,
    Tree,
)


class Session(Protocol):
    """A machine, and the arrays that it holds. Those that a verb returns are passed on, and not looked into."""

    name: str
    offers: Capabilities

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

    def to_host(self, found: Array) -> Array:
        """A numpy array of what a verb returned: itself if it is one. A device is waited for."""
        ...


class Trainer(Protocol):
    """The verbs of a round."""

    # the data, once
    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        """The bin of every value. x: (n, d) float32 or float64, or scipy CSR/CSC (absent entries are 0)."""
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

    def draw(self, gradients: Gradients, kappa: float, odds: Odds, key: Key, losses: Array | None = None) -> Sample:
        """Rows drawn each by its own number of the stream, with the probability that ``odds`` give to its score.

        A score is sqrt(sum g^2 + kappa sum h^2) over outputs, sqrt(sum h^2) for an infinite kappa, or, if ``losses``
        are given, these; times the row's multiplicity. ``reference_sampling`` is the definition.

        Raises:
            InputError: if a gradient is not a number.
        """
        ...

    def losses(self, loss: Loss, scores: Array, data: TrainingSet) -> Array:
        """(n,) float64: the loss of each row, times its weight."""
        ...

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        """The gradients of the drawn rows, times 1 / p."""
        ...

    def noise(self, gradients: Gradients, rows: Array | None, noise: Noise) -> Gradients:
        """g + deviation sqrt(h) z, z being each row's own Gaussian number (``keys``) of ``noise.key / output``.

        ``rows`` are those that the gradients are of, None for every row. Of a row of multiplicity m one number stands
        for m independent ones: it is divided by sqrt(m).
        """
        ...

    # the tree
    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        """A tree's shape, fitted to the target's gradients in the order of ``limits.growth``.

        With a ``key`` the shape is drawn from stream ``key / output``, whatever the gradients are
        (``backends.numerics.random_trees``). ``backends.reference.growth`` is the definition. Ties between splits:
        lowest feature, then lowest bin, then missing values right; between nodes: the older one.

        Raises:
            InputError: if a gradient is not a finite number; on a device, from ``collect``.
        """
        ...

    def leaf_values(
        self,
        structure: Structure,
        gradients: Gradients,
        data: TrainingSet,
        limits: Limits,
        version: int,
        noise: Noise | None = None,
    ) -> tuple[Tree, Array]:
        """Exact -G / (H + lambda) of each leaf over all rows, and the (n,) int32 leaf of every row.

        ``gradients`` are those of all rows at ``version``, which may be newer than what the structure was fitted to.
        Of a structure drawn at random (``blind``), cover and count of the nodes are found here too.
        With ``noise`` a leaf has deviation / sqrt(H + lambda) z more, z being number v of ``noise.key / output`` for
        node v: in law the same as noise on the gradient of every row (section 2.3 of docs/theory/langevin.md).
        """
        ...

    def leaf_quantiles(self, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet) -> Tree:
        """The tree with the loss's quantile of the residuals y - F in each leaf."""
        ...

    def line_search(
        self, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool
    ) -> Tree:
        """The tree with its values times a length >= 0, or each leaf's times one of its own, that lowers the loss of
        all rows most (``backends.numerics.line_search``)."""
        ...

    def length_along(self, loss: Loss, scores: Array, output: int, along: Array, data: TrainingSet) -> float:
        """How many times ``along``, (n,) float64 in the host's memory, lowers the loss of all rows most; at least 0."""
        ...

    def bound_leaves(
        self, tree: Tree, leaf_of_row: Array, data: TrainingSet, limits: Limits, *, refined: bool = False
    ) -> Tree:
        """The tree with leaf values in the order that ``limits.directions`` ask for (``backends.numerics.monotone``).

        refined: its values took a step each by itself; those that are in order already stay as they are.
        """
        ...

    # the model
    def add_leaves(self, scores: Array, tree: Tree, factor: float, leaf_of_row: Array) -> None:
        """scores[tree.output] <- scores[tree.output] + factor * tree, in place, leaves being known."""
        ...

    def add_tree(self, scores: Array, tree: Tree, factor: float, bins: Bins, cuts: Cuts) -> None:
        """The same where the leaf of a row is still to be found."""
        ...

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        """out <- bias + scale * sums, (k, n) float64: scores of a shrunken ensemble, from running sums of its trees."""
        ...

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        """Weighted mean of the loss, summed in a fixed order."""
        ...


class ControlVariates(Protocol):
    """The verbs for gradients of an earlier round, beside those of this one: see ``gpuboost.sampling.target``."""

    def keep(self, gradients: Gradients, rounds: int) -> Gradients:
        """The g of all rows for a verb of the round that comes ``rounds`` later, as its ``before``.

        In every round up to that one, since a device has room for as many as are under way.
        """
        ...

    def node_control(self, gradients: Gradients, sample: Sample, before: Gradients, eta: float) -> Gradients:
        """Of every row: q / p (g - g') + eta g' and q / p h, g' being those ``before``."""
        ...

    def leaf_control(
        self, gradients: Gradients, sample: Sample, before: Gradients, eta: float, leaves: tuple[Array, ...],
        sizes: tuple[int, ...],
    ) -> Gradients:  # fmt: skip
        """Of the drawn rows: (g - g' + eta m) / p and h / p, m being the mean of g' over the row's leaf.

        ``leaves`` are the (n,) leaf of every row, of one tree per output, and ``sizes`` how many nodes it has
        at most. ``before`` of both controls: see ``keep``.
        """
        ...


class Predictor(Protocol):
    """The verbs of a finished model, on raw values."""

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
        """(n, k, columns + 1) float64: contribution of each column to each score, and the mean score.

        Definition: ``backends.prediction.tree_shap``.
        """
        ...


class Backend(Session, Trainer, Predictor, ControlVariates, Protocol):
    """A machine with all its verbs."""

    def smoothing(self) -> Smoothing:
        """The verbs for components."""
        ...
