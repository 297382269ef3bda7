"""Data types: frozen records of arrays. Every shape and dtype is written once, here.

The module is long so that there is one place to look them up in, and one module that all layers import.

Letters: n rows, m rows drawn for one tree, d features, t candidate features, k outputs (1, or one per class),
b value bins of a feature, v nodes of a tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError
from gpuboost.keys import Key, Stream
from gpuboost.records import dataclass

Array: TypeAlias = Any  # numpy.ndarray on the host, cupy.ndarray on the device: same calls, same names

EVERY_VALUE = float(np.finfo(np.float64).max)
"""The threshold of a split that sends every value left and only missing ones right."""

MOST_SCORE = 1e30
"""The largest score that the user may give; gradients of larger ones would overflow in float32."""


class DeviceMatrix(ABC):
    """(n, d) float32 or float64 matrix of the user on a device, and its operations for the host.

    ``x[rows]``, by number or mask, stays on the device. A class, since ``isinstance`` of a protocol takes longer than
    a launch.
    """

    array: Array  # of the device, C-ordered; None for rows in files

    @property
    @abstractmethod
    def device(self) -> str: ...  # "cuda:0"
    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]: ...
    @abstractmethod
    def __getitem__(self, rows: NDArray[Any]) -> DeviceMatrix: ...
    @abstractmethod
    def host_rows(self, rows: NDArray[np.int64] | None) -> NDArray[Any]: ...  # (m, d), of all rows if None
    @abstractmethod
    def host_column(self, f: int) -> NDArray[Any]: ...  # (n,)
    @abstractmethod
    def with_columns(self, columns: Mapping[int, NDArray[np.float64]]) -> DeviceMatrix: ...  # (n,) replacements
    @abstractmethod
    def arranged(self, columns: Sequence[int | Array]) -> DeviceMatrix: ...  # numbers of columns, or (n,) values
    @abstractmethod
    def groups(self, grouping: Any, *, to_host: bool) -> Any: ...  # category_groups.Grouping -> RowGroups
    @abstractmethod
    def first_infinite(self) -> tuple[int, int] | None: ...  # its row and column
    @abstractmethod
    def on_same_device(self, host: NDArray[Any]) -> Array: ...  # a copy of a host array
    @abstractmethod
    def wait(self) -> None: ...  # for all work on the device


@dataclass(frozen=True, slots=True)
class Cuts:
    """Bin edges of each feature, at most 255 value bins. One more bin, number b, holds missing values.

    A numeric feature has ``thresholds[f]``: bin c holds ``thresholds[f][c - 1] < x <= thresholds[f][c]``.
    A categorical one has ``categories[f]``: bin c holds the category code ``categories[f][c]``; a code that is not
    listed (rare in training, or never seen) counts as missing. A column of more than 255 bins is spread over several
    features: they share out its thresholds, increasing, or its categories, the frequent ones first. A split at a
    threshold is the same split of the rows whichever feature holds it, so no bin needs more than one byte.
    """

    thresholds: tuple[NDArray[np.float64], ...]  # d arrays, increasing, at most 254 values; empty if categorical
    categories: tuple[NDArray[np.int64] | None, ...]  # d entries; None if numeric
    source: NDArray[np.int32] | None = None  # (d,) column each feature reads, not decreasing; None: each its own
    n_bins: NDArray[np.int32] = field(init=False, repr=False, compare=False)  # (d,) value bins, without that of missing
    is_categorical: NDArray[np.bool_] = field(init=False, repr=False, compare=False)  # (d,)

    def __post_init__(self) -> None:
        # once, and not at every use: for 47,000 features it takes 10 ms, more than many a round does
        pairs = zip(self.thresholds, self.categories, strict=True)
        n_bins = np.array([len(t) + 1 if c is None else len(c) for t, c in pairs], dtype=np.int32)
        categorical = np.array([c is not None for c in self.categories], dtype=np.bool_)
        for name, array in (("n_bins", n_bins), ("is_categorical", categorical)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def n_features(self) -> int:
        return len(self.thresholds)

    @property
    def columns(self) -> NDArray[np.int32]:
        """(d,) the column of X that each feature reads."""
        return np.arange(self.n_features, dtype=np.int32) if self.source is None else self.source

    @property
    def n_columns(self) -> int:
        """Columns of X; every one is read by some feature."""
        return self.n_features if self.source is None else int(self.source[-1]) + 1

    @property
    def first_divided(self) -> int | None:
        """The first numeric column whose thresholds several features share out; None if there is none."""
        if self.source is None:
            return None
        again = np.flatnonzero((np.diff(self.source) == 0) & ~self.is_categorical[1:])
        return int(self.source[again[0]]) if len(again) else None


@dataclass(frozen=True, slots=True)
class DenseBins:
    """The bin of every value, twice: by row for histograms, by column for routing."""

    rows: Array  # (n, d) uint8, C order
    columns: Array  # (d, n) uint8, C order

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape[0], self.rows.shape[1]


@dataclass(frozen=True, slots=True)
class SparseBins:
    """Only the entries whose bin differs from ``default``, by row and by column."""

    default: Array  # (d,) uint8: the bin of an absent entry (the bin that holds 0)
    row_start: Array  # (n + 1,) int64
    feature: Array  # (nnz,) int32, increasing within a row
    row_bin: Array  # (nnz,) uint8
    column_start: Array  # (d + 1,) int64
    row: Array  # (nnz,) int32, increasing within a column
    column_bin: Array  # (nnz,) uint8

    @property
    def shape(self) -> tuple[int, int]:
        return self.row_start.shape[0] - 1, self.default.shape[0]


Bins: TypeAlias = DenseBins | SparseBins


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """m pairs of rows of one query each."""

    winner: NDArray[np.int64]  # (m,) row numbers
    loser: NDArray[np.int64]  # (m,)
    weight: NDArray[np.float64] | None = None  # (m,) not negative; None: all are 1

    def of_rows(self, rows: NDArray[np.int64], n_rows: int) -> Pairs:
        """The pairs both of whose rows are among ``rows``, increasing numbers of n_rows, counted among these."""
        place = np.full(n_rows, -1, np.int64)
        place[rows] = np.arange(len(rows))
        winner, loser = place[self.winner], place[self.loser]
        kept = (winner >= 0) & (loser >= 0)
        return Pairs(winner[kept], loser[kept], None if self.weight is None else self.weight[kept])


class PositionBias(NamedTuple):
    """Estimates of how much the position, not the document, made users click or pass over; 1 at position 0."""

    plus: NDArray[np.float64]  # (positions,) t+, of documents that were clicked
    minus: NDArray[np.float64]  # (positions,) t-, of documents that were passed over


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Training rows: bins, cuts, target and weights. Never written to.

    Weights that are whole numbers are held as ``multiplicity``: a row of weight 3 is three equal rows, to the last bit
    up to a total weight of 65,000, and to 16 bits of the gradients beyond. Any other weights are held as ``weight``.
    At most one of the two is given.
    """

    bins: Bins
    cuts: Cuts
    y: Array  # (n,) float64; (n, k) for losses of a target for each output
    weight: Array | None = None  # (n,) float64, positive
    multiplicity: Array | None = None  # (n,) int32, 1 to 4096
    query_start: Array | None = None  # (queries + 1,) int64: where the rows of each query begin, and n; for ranking
    x: Any = None  # (n, d) the unbinned numbers, for base learners that do not use bins; None otherwise
    offset: NDArray[np.float64] | None = None  # (k, n) in the host's memory, added to the scores; None: all are 0
    pairs: Pairs | None = None  # given pairs of rows, for losses that learn from them
    position: NDArray[np.int64] | None = None  # (n,) where each row was shown in its query, 0 or more

    @property
    def n_rows(self) -> int:
        return int(self.y.shape[0])

    def target_of(self, output: int) -> Array:
        """(n,) the target of one output; y itself if all outputs are of one target."""
        return self.y if self.y.ndim == 1 else self.y[:, output]

    @property
    def total_weight(self) -> float:
        """Sum of the weights; n if there are none."""
        weights = self.weight if self.weight is not None else self.multiplicity
        return float(self.n_rows if weights is None else weights.sum())

    @property
    def n_counted(self) -> int:
        """Number of rows, each as often as its weight says if weights are whole numbers."""
        return self.n_rows if self.multiplicity is None else int(np.sum(self.multiplicity, dtype=np.int64))

    def lists(self) -> Array:
        """``query_start``. Raises InputError if there is none."""
        if self.query_start is None:
            raise InputError("group: to rank, the query of each row must be known; pass group=, or a Dataset with one.")
        return self.query_start

    def row_weight(self) -> Array:
        """(n,) float64 weight of each row."""
        if self.weight is not None:
            return self.weight
        return np.ones(self.n_rows) if self.multiplicity is None else self.multiplicity.astype(np.float64)


@dataclass(frozen=True, slots=True)
class Gradients:
    """First derivative and curvature of the loss with respect to the scores, times ``weight`` if there is one."""

    g: Array  # (k, m) float32
    h: Array  # (k, m) float32
    multiplicity: Array | None = None  # (m,) int32
    disposable: bool = False  # True: made for the trees of one round, whose growth may overwrite g and h

    @property
    def weight(self) -> int:
        """Sum of the multiplicities of the rows, for gradients in the host's memory."""
        return int(self.g.shape[1] if self.multiplicity is None else self.multiplicity.sum())


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows with q_i = 1, and 1 / p_i for each, by which sampled sums are unbiased. None stands for every row."""

    rows: Array | None = None  # (m,) int32, increasing
    inverse_probability: Array | None = None  # (m,) float32
    n_excluded: int = 0  # rows whose probability was 0


@dataclass(frozen=True, slots=True)
class Target:
    """Input of a worker: the gradients at the scores of ``version``, on the rows drawn."""

    version: int
    rows: Array | None  # (m,) int32, or None for every row
    gradients: Gradients
    noisy: bool = False  # True: noise was added, so leaf values cannot be computed from their sums
    own_leaves: bool = False  # True: leaf values are computed from their sums, even on a sample

    @property
    def gives_leaf_sums(self) -> bool:
        """True if leaf values may be computed from the sums of these gradients."""
        return not self.noisy and (self.rows is None or self.own_leaves)


@dataclass(frozen=True, slots=True)
class Noise:
    """Gaussian noise on gradients: independent from row to row, of standard deviation ``deviation * sqrt(h)``.

    The sum over rows of curvature H then has noise of ``deviation * sqrt(H)``, however the rows are weighted. With a
    ``scale`` the standard deviation of a row is ``deviation * scale(g, h)``, and that of m equal rows sqrt(m) times it.
    """

    deviation: float
    key: Key
    scale: NoiseScale | None = None


RowScore: TypeAlias = Callable[[float, float], float]
"""(g, h) -> sampling score of a row, in the Python that numba compiles"""

NoiseScale: TypeAlias = Callable[[float, float], float]
"""(g, h) -> standard deviation of the noise on a row's gradient, in the Python that numba compiles"""


class SplitCosts(NamedTuple):
    """Costs of the splits of one tree, in units of gain: see ``backends.numerics.split_costs``."""

    by_feature: NDArray[np.float64]  # (d,) not negative
    by_row: float  # times the rows of the node


@dataclass(frozen=True, slots=True)
class Candidates:
    """RGBM's J: the weak learners that compete in one tree.

    ``root`` holds the cuts by which each feature may split the root: bit c of 256 allows the split that sends bins
    0 .. c left; a feature without a bit may not split the root. ``by_tree`` is the draw that has ``features`` for
    its result, out of all features, so that a machine can repeat it with another number. ``by_node`` draws that
    many features for every node, or, with ``by_level``, for every level; with ``weights``, each in proportion to
    its weight.
    """

    features: NDArray[np.int32]  # (t,) increasing; at least one
    root: NDArray[np.uint32] | None = None  # (t, 8); None: every cut of every feature
    by_node: tuple[int, Key] | None = None  # number of features, and their stream: see ``node_key``
    noise: Noise | None = None  # on each feature's gain in a node: ``backends.numerics.random_strength``
    by_level: bool = False  # True: the nodes of one depth have the same features
    cuts: Key | None = None  # stream of the one cut of each feature that competes in a node; None: all compete
    weights: NDArray[np.float64] | None = None  # (t,) positive, of the draws of ``by_node``; None: equal ones
    costs: SplitCosts | None = None  # None: splits cost nothing
    by_tree: tuple[int, Key] | None = None  # number of features, and their stream; None: not drawn, or otherwise

    @property
    def chooses_by_more(self) -> bool:
        """True if features are chosen by more than their gains: noise on them, or costs."""
        return self.noise is not None or self.costs is not None

    def node_key(self, v: int, depth: int) -> Key:
        """The stream from which node v of this depth draws its features; for the root, that of a tree's draw."""
        assert self.by_node is not None
        if depth == 0:
            return self.by_node[1]
        return self.by_node[1] / Stream.LEVEL / depth if self.by_level else self.by_node[1] / Stream.NODE / v

    def disturbed(self, strength: float, key: Key) -> Candidates:
        """The candidates, with noise of this strength on their gains."""
        return replace(self, noise=Noise(strength, key)) if strength > 0.0 else self

    def random_cuts(self, output: int) -> Key | None:
        """``cuts`` for one output's tree: see ``backends.numerics.extra_trees``."""
        return None if self.cuts is None else self.cuts / output

    def gain_noise(self, output: int) -> Noise | None:
        """``noise`` with the stream of one output's tree."""
        return None if self.noise is None else replace(self.noise, key=self.noise.key / output)


GrowthName: TypeAlias = Literal["depthwise", "leafwise", "oblivious", "sign_stump"]
"""The order in which nodes are split: see ``gpuboost.growth``."""


class CategoryLimits(NamedTuple):
    """Further limits of a split by sets of categories; see ``gb.CategoricalSplits``. Rows are estimated by h."""

    smoothing: float = 10.0  # added to a category's H before categories are sorted by G / H
    reg_lambda: float = 10.0  # added to ``Limits.reg_lambda`` in the gain
    min_category_rows: float = 10.0  # a category of fewer rows in the node follows the rest
    min_group_rows: float = 100.0  # of each side, and between two candidates


CATEGORY_LIMITS = CategoryLimits()


class Interactions(NamedTuple):
    """The columns that may split the nodes of one path from the root to a leaf.

    A path has the columns of one of the sets, and at most so many different ones.
    """

    sets: tuple[tuple[int, ...], ...]  # numbers of columns; a column of no set splits no node
    most: int = 0  # different columns of a path: 1 or 2; 0: no limit
    same: tuple[int, ...] | None = None  # (columns,) number that columns of one origin share; None: each its own


class ColumnCosts(NamedTuple):
    """The penalties of ``gb.FeatureCosts``, its trade-off multiplied in, in units of gain."""

    columns: tuple[float, ...]  # (columns of X,) paid in every round until a tree is split by the column
    by_row: float  # paid by every split, for each row of its node
    made_of: tuple[tuple[int, ...], ...] | None = None  # the columns of X of each column that trees see; None: itself


class ForcedSplit(NamedTuple):
    """A split that every tree begins with: values up to the threshold go left."""

    column: int
    threshold: float
    left: ForcedSplit | None = None
    right: ForcedSplit | None = None

    @property
    def size(self) -> int:
        """Number of splits, with those below."""
        return 1 + sum(side.size for side in (self.left, self.right) if side is not None)


@dataclass(frozen=True, slots=True)
class Limits:
    """Order of growth, and what a split and a leaf must satisfy. ``reg_lambda`` is the L2 term in -G / (H + lambda)."""

    max_leaves: int
    max_depth: int = 6
    min_samples_leaf: int = 1
    min_child_weight: float = 1e-3
    reg_lambda: float = 1.0
    min_split_gain: float = 0.0
    growth: GrowthName = "depthwise"
    random_strength: float = 0.0  # of the noise on the features' split gains
    categories: CategoryLimits = CATEGORY_LIMITS
    directions: tuple[int, ...] | None = None  # (columns,) 1 rising, -1 falling, 0 free; None: all are free
    interactions: Interactions | None = None  # None: any columns may split the nodes of a path
    reg_alpha: float = 0.0  # G is brought nearer to 0 by so much in leaf values and gains
    max_delta_step: float = 0.0  # leaf values are clipped to so much on either side of 0; 0: they are not
    extra_trees: bool = False  # True: one random cut of each feature competes in a node
    forced: ForcedSplit | None = None  # the first splits of every tree
    path_smooth: float = 0.0  # rows of the node above that each node's value is computed with
    costs: ColumnCosts | None = None  # None: splits cost nothing

    @property
    def bounded(self) -> bool:
        """True if leaf values are not -G / (H + lambda) alone."""
        return self.directions is not None or self.regularised

    @property
    def of_values(self) -> tuple[float, ...]:
        """The limits that leaf values are computed with."""
        return self.reg_lambda, self.signed, self.reg_alpha, self.max_delta_step, self.path_smooth

    @property
    def regularised(self) -> bool:
        """True if leaf values are regularised by more than lambda."""
        return self.reg_alpha > 0.0 or self.max_delta_step > 0.0 or self.path_smooth > 0.0

    def smoothing(self, h: float, weight: int) -> float:
        """The curvature of ``path_smooth`` average rows, of rows whose curvatures add up to h."""
        return self.path_smooth * h / max(weight, 1)

    @property
    def largest_value(self) -> float:
        """``max_delta_step``, infinite without one."""
        return self.max_delta_step or inf

    @property
    def of_stump(self) -> tuple[float, ...]:
        """``reg_lambda``, ``min_child_weight``, ``min_split_gain`` and the limits of categorical splits."""
        least = self.reg_lambda, self.min_child_weight, self.min_split_gain
        return tuple(float(number) for number in (*least, *self.categories))

    @property
    def symmetric(self) -> bool:
        """Oblivious trees: all nodes of a level share one split."""
        return self.growth == "oblivious"

    @property
    def signed(self) -> bool:
        """Stumps that predict +v on one side of the split and -v on the other."""
        return self.growth == "sign_stump"


@dataclass(frozen=True, slots=True)
class Nodes:
    """A tree without values: node 0 is the root, children come after their parent.

    Row x goes left at an inner node if its bin is at most ``bin`` (numeric) or in ``left_set`` (categorical);
    if the value is missing, ``missing_left`` decides.
    """

    feature: NDArray[np.int32]  # (v,) -1 at a leaf
    bin: NDArray[np.int32]  # (v,) 0 where unused
    missing_left: NDArray[np.bool_]  # (v,)
    left: NDArray[np.int32]  # (v,) 0 at a leaf
    right: NDArray[np.int32]  # (v,) 0 at a leaf
    gain: NDArray[np.float64]  # (v,) 0 at a leaf
    cover: NDArray[np.float64]  # (v,) sum of the curvature of the rows that reached the node
    count: NDArray[np.int64]  # (v,) rows that reached the node in training
    left_set: NDArray[np.uint32]  # (v, 8) 256 bits, bin c is bit c % 32 of word c // 32; zeros if numeric

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        return np.asarray(self.feature < 0)


@dataclass(frozen=True, slots=True)
class Structure:
    """A tree shape, with by-products of its growth."""

    nodes: Nodes
    output: int  # the score it is for, 0 .. k - 1
    version: int  # of the target it was fitted to
    leaf_of_row: Array | None  # (n,) int32 node id, if every row took part; None if only a sample did; of many rows
    # on a CPU uint8 or uint16, if the round has several trees
    sums: tuple[NDArray[np.float64], NDArray[np.float64]] | None  # (v,) G and H per node, under the same condition
    blind: bool = False  # True: made without the data, so cover and count are not yet computed
    weight: int = 0  # sum of the multiplicities of the rows that ``sums`` are of


Grow: TypeAlias = Callable[[Any, TrainingSet, Target, int, Candidates], Structure]
"""(backend, data, target, output, candidates) -> the shape of a tree, or the fit of another base learner"""


@dataclass(frozen=True, slots=True)
class FittedTree:
    """A weak learner: a step function of the bins."""

    nodes: Nodes
    value: NDArray[np.float64]  # (v,) 0 except at leaves; before the learning rate
    output: int
    version: int

    @property
    def size(self) -> int:
        """Number of nodes; on a device, an upper bound of it."""
        return len(self.value)


Tree = FittedTree  # its name in version 0.1, which pickles hold


class Component(ABC):
    """A weak learner that is no tree, or a tree in a competition with such. Immutable."""

    __slots__ = ()
    output: int
    version: int  # of the target it was fitted to

    @abstractmethod
    def add(self, machine: Any, scores: Array, factor: float, data: TrainingSet) -> None:
        """scores[output] <- scores[output] + factor * component, in place; ``machine`` is a ``backends.Backend``."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """F(x) = bias + scale * sum of factor * tree(x); shrinking touches one number, not every tree.

    With base learners other than trees it holds ``components`` instead of trees.
    """

    bias: NDArray[np.float64]  # (k,)
    cuts: Cuts
    trees: tuple[FittedTree, ...] = ()  # round by round, output by output
    factors: tuple[float, ...] = ()
    scale: float = 1.0
    scales: tuple[float, ...] = ()  # scale after each round; () if it never changed
    components: tuple[Component, ...] = ()  # round by round, output by output

    @property
    def n_outputs(self) -> int:
        return len(self.bias)

    @property
    def n_rounds(self) -> int:
        return (len(self.trees) + len(self.components)) // len(self.bias)

    def first(self, rounds: int) -> Ensemble:
        """The ensemble as it was after that many rounds, to the last bit."""
        stop = rounds * self.n_outputs
        kept = replace(self, trees=self.trees[:stop], components=self.components[:stop], factors=self.factors[:stop])
        if not self.scales:
            return kept
        return replace(kept, scale=self.scales[rounds - 1] if rounds else 1.0, scales=self.scales[:rounds])


@dataclass(frozen=True, slots=True)
class Drawn:
    """Gradients and rows that a round's trees were fitted to; on a device, so for the backend's verbs only."""

    gradients: Gradients  # of every row
    sample: Sample
    target: Target
    leaves: tuple[Array, ...]  # (n,) int32 the leaf of every row, tree by tree


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Sums for a report over the rows that a round's trees were fitted to, where the rows themselves are gone.

    The weight of a drawn row is its h times 1 / p.
    """

    rows: int
    n_excluded: int  # rows whose probability was 0
    largest: float  # 1 / p of a drawn row
    effective: float  # (sum of the weights)^2 / sum of their squares
    of_leaves: Array  # (2, leaves) float64: the same two sums for the leaves of all trees; 0 without drawn rows


@dataclass(frozen=True, slots=True)
class Built:
    """Outcome of one order to build a round's trees: a line of a run's log."""

    ticket: int  # identifies the random numbers of the trees
    worker: int
    pulled: int  # version of the gradients they were fitted to
    applied: int | None  # version they were added to, which made the next one; None if not applied
    share: float = 1.0  # of the learning rate
    outcome: str = "applied"  # or "dropped", as it was too stale, or "failed"
    began: float = 0.0  # seconds since the fit's workers were started
    built: float = 0.0
    ended: float = 0.0  # when the server processed it

    @property
    def staleness(self) -> int:
        """Rounds applied between the pull and the application; 0 if it was not applied."""
        return 0 if self.applied is None else self.applied - self.pulled


@dataclass(frozen=True, slots=True)
class Progress:
    """State of the fit after a round, as a watcher sees it."""

    round: int  # 0 for the first
    trees: tuple[Any, ...]  # FittedTree or Component, of this round; on a device, so for the backend's verbs only
    factor: float  # factor of their values in the running sums
    scores: Array  # (k, n) float64, of the training rows; not to be written to
    n_rounds: int  # of the ensemble so far
    collect: Callable[[], Ensemble]  # the ensemble so far, in the host's memory; a device has to be waited for
    scale: float = 1.0  # of the ensemble so far: its scores are bias + scale * running sum
    drawn: Drawn | None = None
    log: tuple[Built, ...] = ()  # since the round before; the last one is this round's
    sizes: SampleSizes | None = None  # in the place of ``drawn``, of rounds that a kernel repeated

    @property
    def ensemble(self) -> Ensemble:
        return self.collect()


Watch: TypeAlias = Callable[[Progress], bool]
"""Called after each round; True asks for a stop after it."""

Evaluate: TypeAlias = Callable[[Sequence["FittedTree | Component"], float, float], None]
"""(trees of a round, their factor, scale of the ensemble): called among the verbs of the round"""

Expect: TypeAlias = Callable[[Sequence[tuple["FittedTree | Component", ...]], float], None]
"""(trees of several rounds, their factor): called when these are done, before the watch is called for each"""
