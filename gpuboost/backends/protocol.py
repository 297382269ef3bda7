"""Protocols of a machine: ``Session``, ``Trainer``, ``Predictor`` and ``ControlVariates`` make up a ``Backend``.

``Reference`` is the definition; the other machines match it bit for bit. A machine that lacks some of the verbs says so
in its ``offers``, and a recipe that needs them is refused. Verbs of few machines: ``backends.optional_verbs``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.backends.smoothing import Smoothing
from gpuboost.keys import Key
from gpuboost.losses.protocol import DrawnLoss, Loss
from gpuboost.records import dataclass
from gpuboost.types import (
    Array,
    Bins,
    Candidates,
    Cuts,
    Ensemble,
    FittedTree,
    Gradients,
    Limits,
    Noise,
    RowScore,
    Sample,
    Structure,
    Target,
    TrainingSet,
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The parts of a recipe that a machine runs, beyond growing trees from all rows. By default, all of them.

    A recipe that asks for more is refused before its fit begins: by ``gpuboost.composition`` where the execution alone
    decides on the machine, else by ``gpuboost.training``.
    """

    sampling: bool = True  # rows drawn for each tree: ``sample``, ``draw``, ``losses``, ``weigh``, ``ControlVariates``
    langevin: bool = True  # ``noise``, and ``grow`` with a key
    line_search: bool = True  # ``line_search`` and ``length_along``
    base_learners: bool = True  # base learners other than trees: ``smoothing``
    list_losses: bool = True  # losses of whole queries
    one_tree: bool = True  # one tree for several outputs: ``OneTreeGrower``
    metrics: bool = False  # metrics and answers of scores that stay on the machine: ``Evaluator``
    recorded_metrics: bool = False  # metrics that are part of the verbs of a round: ``RoundEvaluator``
    repeated_rounds: bool = False  # rounds like the last one without its verbs: ``Repeater``
    counted_rounds: bool = False  # also rounds of other numbers in their random streams: ``rounds_are_counted``
    scores_of_rounds: bool = False  # scores of few rows after each of several rounds: ``several_rounds.RoundScorer``
    worker_streams: bool = False  # ``slots``: an execution context for each of several workers beside the server


CPU_SHARDS = Capabilities(line_search=False, base_learners=False)
GPU_SHARDS = Capabilities(sampling=False, langevin=False, line_search=False, base_learners=False, list_losses=False)


class Session(Protocol):
    """A machine and the arrays that it holds. Callers pass arrays from verb to verb and do not read them."""

    name: str
    offers: Capabilities

    def recorded(self, step: int, sequence: int = 0) -> AbstractContextManager[None]:
        """Context of the verbs of one round, which are the same in every round of a sequence of trees.

        Several sequences grow in turn, each from scores of its own, on the same rows.
        A device records their launches once and replays them; a host does nothing.
        """
        ...

    def collect(self, ensemble: Ensemble) -> Ensemble:
        """The ensemble with its trees in the host's memory.

        Raises:
            InputError: if a gradient of a round since the last call was not a finite number.
        """
        ...

    def to_host(self, result: Array) -> Array:
        """A verb's result as a numpy array, without a copy if it is one. Waits for the device."""
        ...


class Trainer(Protocol):
    """The verbs of a round."""

    # the data, once
    def quantise(self, x: Any, cuts: Cuts) -> Bins:
        """The bin of every value. x: (n, d) float32 or float64, or scipy CSR/CSC (absent entries are 0)."""
        ...

    # the target, once a round
    def start(self, data: TrainingSet, bias: Array) -> Array:
        """(k, n) float64 scores, all equal to the bias (k,); or a copy of it if it is (k, n), a number for each row."""
        ...

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        """g and h of every row. ``curvature`` is None for the loss's own h, or a constant that replaces it.

        They may be ``disposable``, if no other round and no caller has the same arrays.
        """
        ...

    def drawn_gradients(
        self, loss: DrawnLoss, scores: Array, data: TrainingSet, curvature: float | None, key: Key
    ) -> Gradients:
        """g and h of every row for a loss of lists whose gradients are drawn, g being an unbiased estimate.

        h is the ``curvature``; if that is None, g and h make Newton's direction, which smoothed metrics do not have.
        Number i of stream ``key / draw`` is the noise of row i. ``reference/smoothed_ranking.py`` and
        ``reference/cross_entropy.py`` are the definitions.
        """
        ...

    def sample(self, probability: float, n_rows: int, key: Key) -> Sample:
        """Uniform sample: row i is drawn iff its number of the stream is below the probability."""
        ...

    def draw(
        self, gradients: Gradients, kappa: float, rule: ProbabilityRule, key: Key,
        losses: Array | RowScore | None = None,
    ) -> Sample:  # fmt: skip
        """Sample of rows, each drawn by its own number of the stream with the probability ``rule`` gives its score.

        A score is sqrt(sum g^2 + kappa sum h^2) over outputs, sqrt(sum h^2) for an infinite kappa, or the row's entry
        of ``losses`` if they are passed; times the row's multiplicity. ``reference/sampling.py`` is the definition.
        ``losses`` may be a Python function (g, h) -> number, which numba compiles: its sum over the outputs is the
        score, a negative one counts as 0.

        Raises:
            InputError: if a gradient or a score is not a number.
            RecipeError, DeviceError: if the function does not compile.
        """
        ...

    def losses(self, loss: Loss, scores: Array, data: TrainingSet) -> Array:
        """(n,) float64: the loss of each row, or of its list (``reference.ranking.list_losses``), times its weight.

        A GPU has no losses of lists.
        """
        ...

    def score_rows(
        self, gradients: Gradients, kappa: float, losses: Array | None = None, factor: Array | None = None
    ) -> Array:
        """(n,) float64: the scores of ``draw`` without the rows' multiplicities, times (n,) float64 factors if any.

        A later draw takes them as its ``losses``. On a device they are valid until the next call.
        """
        ...

    def weigh(self, gradients: Gradients, sample: Sample) -> Gradients:
        """The gradients of the drawn rows, times 1 / p."""
        ...

    def noise(self, gradients: Gradients, rows: Array | None, noise: Noise) -> Gradients:
        """g + deviation sqrt(h) z, z being each row's own Gaussian number (``keys``) of ``noise.key / output``.

        ``rows`` are the row numbers of the gradients, None for every row. A row of multiplicity m gets one number for m
        independent ones: z is divided by sqrt(m).
        """
        ...

    # the tree
    def grow(
        self, data: TrainingSet, target: Target, output: int, candidates: Candidates, limits: Limits,
        key: Key | None = None,
    ) -> Structure:  # fmt: skip
        """A tree's shape, fitted to the target's gradients in the order of ``limits.growth``.

        With a ``key`` the shape is drawn from stream ``key / output``, independent of the gradients
        (``backends.numerics.random_trees``). ``backends.reference.growth`` is the definition. Ties between splits:
        lowest feature, then lowest bin, then missing values right; between nodes: the older one. ``disposable``
        gradients of this output may be overwritten, where the structure has the sums that leaf values are made of.

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
    ) -> tuple[FittedTree, Array]:
        """Exact -G / (H + lambda) of each leaf over all rows, and the (n,) int32 leaf of every row.

        ``gradients`` are those of all rows at ``version``, which may be newer than the structure's target. Cover and
        count of the nodes of a randomly drawn structure (``blind``) are computed here too. ``noise`` adds
        deviation / sqrt(H + lambda) z to a leaf, z being number v of ``noise.key / output`` for node v: the same
        distribution as noise on the gradient of every row (section 2.3 of docs/theory/langevin.md).
        """
        ...

    def leaf_quantiles(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        """The tree with the loss's quantile of the residuals y - F in each leaf."""
        ...

    def line_search(
        self, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet, per_leaf: bool
    ) -> FittedTree:
        """The tree with its values times the step length >= 0 that minimises the loss of all rows.

        With ``per_leaf`` each leaf has its own step length. Definition: ``backends.numerics.line_search``.
        """
        ...

    def length_along(self, loss: Loss, scores: Array, output: int, along: Array, data: TrainingSet) -> float:
        """Step length >= 0 along the direction ``along`` that minimises the loss of all rows.

        along: (n,) float64 in the host's memory.
        """
        ...

    def bound_leaves(
        self, tree: FittedTree, leaf_of_row: Array, data: TrainingSet, limits: Limits, *, refined: bool = False
    ) -> FittedTree:
        """The tree with leaf values that satisfy ``limits.directions`` (``backends.numerics.monotone``).

        refined: each leaf value took a step of its own; a tree that satisfies the constraints stays as it is.
        """
        ...

    # the model
    def add_leaves(self, scores: Array, tree: FittedTree, factor: float, leaf_of_row: Array) -> None:
        """scores[tree.output] <- scores[tree.output] + factor * tree, in place, by the known leaf of each row."""
        ...

    def add_tree(self, scores: Array, tree: FittedTree, factor: float, bins: Bins, cuts: Cuts) -> None:
        """``add_leaves`` for rows whose leaves are not known."""
        ...

    def scores(self, sums: Array, bias: Array, scale: float, out: Array) -> None:
        """out <- bias + scale * sums, (k, n) float64: scores of a shrunken ensemble, from running sums of its trees."""
        ...

    def loss_value(self, loss: Loss, scores: Array, y: Array, weight: Array | None) -> float:
        """Weighted mean of the loss, summed in a fixed order."""
        ...


class ControlVariates(Protocol):
    """The verbs that combine gradients with those of an earlier round: see ``gpuboost.sampling.control_variates``."""

    def keep_gradients(self, gradients: Gradients, rounds: int) -> Gradients:
        """Keep g of all rows, as the argument ``before`` of a verb ``rounds`` rounds later.

        Call it in every round up to that one: a device has memory for ``rounds`` of them.
        """
        ...

    def node_control_variate(self, gradients: Gradients, sample: Sample, before: Gradients, eta: float) -> Gradients:
        """q / p (g - g') + eta g' and q / p h of every row, g' being ``before``."""
        ...

    def horvitz_thompson(self, gradients: Gradients, sample: Sample) -> Gradients:
        """q / p g and h of every row: sums over the sample, divided by the curvature of all rows of a leaf."""
        ...

    def leaf_control_variate(
        self, gradients: Gradients, sample: Sample, before: Gradients, eta: float, leaves: tuple[Array, ...],
        sizes: tuple[int, ...],
    ) -> Gradients:  # fmt: skip
        """(g - g' + eta m) / p and h / p of the drawn rows, m being the mean of g' over the row's leaf.

        ``leaves`` are the (n,) leaves of every row in one tree per output, ``sizes`` upper bounds on the trees' numbers
        of nodes. ``before`` of both verbs: see ``keep_gradients``.
        """
        ...


class Predictor(Protocol):
    """The verbs of a finished model, on raw values."""

    def predict(self, ensemble: Ensemble, x: Any) -> Array:
        """(k, n) float64 scores of raw values, with the same decisions and bits as from bins."""
        ...

    def staged_predict(self, ensemble: Ensemble, x: Any) -> Iterator[Array]:
        """(k, n) float64 scores after each round."""
        ...

    def leaves(self, ensemble: Ensemble, x: Any) -> Array:
        """(n, number of trees) int32: the leaf of each row in each tree."""
        ...

    def contributions(self, ensemble: Ensemble, x: Any) -> Array:
        """(n, k, columns + 1) float64: contribution of each column to each score, and the mean score.

        Definition: ``backends.prediction.tree_shap``.
        """
        ...

    def interactions(self, ensemble: Ensemble, x: Any) -> Array:
        """(n, k, columns + 1, columns + 1) float64: interactions of each pair of columns, and last the mean score.

        Definition: ``backends.prediction.tree_shap``.
        """
        ...


class Backend(Session, Trainer, Predictor, ControlVariates, Protocol):
    """A machine with all its verbs."""

    def smoothing(self) -> Smoothing:
        """The verbs for components."""
        ...
