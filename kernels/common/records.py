"""Records of arrays that go together, as arguments of the kernels that grow a tree.

numba takes a named tuple apart, so a record costs no more inside a kernel than its fields. Each record is flat and has
at most ten fields: nested or longer ones take long to compile and to dispatch. Where Python calls a kernel for every
tree or level, it passes plain tuples of the fields, which numba recognizes in less than half the time, and the kernel
makes the records of them. A field is never None, since numba leaves out branches on arguments that are None, but not
on fields.

t: features that compete for the tree; d: all features; m: rows of the tree; n: rows of the columns; v: nodes that there
is room for; p: pairs of nodes.
"""

from typing import Any, NamedTuple


class HistogramLayout(NamedTuple):
    """Cells of a histogram, by the features that compete."""

    features: Any  # (t,) int32
    starts: Any  # (t + 1,) uint64: first cell of each; the last cell of a feature is for missing values
    n_bins: Any  # (t,) int32
    kinds: Any  # (t,) uint8: 1 if categorical
    defaults: Any  # (t,) int64: bin of an absent entry, -1 if dense


class RowArrays(NamedTuple):
    """Rows of a tree and what is summed of them. Dense bins have ``bins``, sparse ones ``row_start`` and ``cells``."""

    bins: Any  # (m, d) uint8, (0, 0) if sparse
    row_start: Any  # (m + 1,) int64, (0,) if dense
    cells: Any  # (entries,) uint32: cell of each stored entry, (0,) if dense
    packed: Any  # (m,) int64: integers of g and h of each row in one
    rows: Any  # (m,) int32: numbers of the rows, in the order of the nodes
    scratch: Any  # (m,) int32


class ColumnArrays(NamedTuple):
    """Bins by feature, to send rows to children. Sparse bins have no lines in ``columns``, dense ones only these."""

    columns: Any  # (d, n) uint8, (0, 0) if sparse
    default: Any  # (d,) uint8: bin of an absent entry
    column_start: Any  # (d + 1,) int64
    row: Any  # (entries,) int32
    column_bin: Any  # (entries,) uint8
    buffer: Any  # (n,) uint8: scratch memory for one column, (0,) if dense
    drawn: Any  # (m,) int32: row k of the tree is row drawn[k] of the columns; (0,) if they are the same
    n_bins: Any  # (d,) int32
    kinds: Any  # (d,) uint8: 1 if categorical


class NodeArrays(NamedTuple):
    """The nodes of a growing tree."""

    node: Any  # (v, nodes.COLUMNS) int64
    gain: Any  # (v,) float64
    left_set: Any  # (v, 8) uint32: a bit for each bin that goes left, if the split is categorical
    chosen: Any  # (v,) int64: scratch memory for a list of nodes


class HistogramArrays(NamedTuple):
    """Histograms of nodes, by slot."""

    of: Any  # (slots, 2 * cells) int64
    counts: Any  # (slots, cells) int32: numbers of rows; (1, 0) if a leaf may have one row
    scratch: Any  # (threads, cells) int64: zeros
    spare: Any  # (threads, 2 * cells + 1) int64: parts of nodes that several threads sum, and 1 if packed, else 0
    slots: Any  # (slots + 2,) int64: stack of free slots, its height first
    packed_rows: Any  # int: nodes of up to so many rows have packed histograms


class Criterion(NamedTuple):
    """Rule that a split is chosen by."""

    units: Any  # (2,) float64: value of one unit of g and of h
    rule: Any  # (13,) float64: see ``cuts.general_cut``, ``categories`` and ``gain``
    root: Any  # (t, 8) uint32: bits of the cuts that the root may be split by, (0, 8) for all


class Splits(NamedTuple):
    """Best splits of a search, by node and feature: lines 2i and 2i + 1 for the nodes of pair i."""

    gains: Any  # (2p, t) float64
    splits: Any  # (2p, t, 4) int64: bin, missing_left, left g, left h
    left_sets: Any  # (2p, t, 8) uint32, (2p, 0, 8) if no feature is categorical


class LevelScores(NamedTuple):
    """Scores of the cuts of a level, summed over its nodes: see ``shared_splits.packed_search``."""

    numbers: Any  # (2, 2, cells) float64: sums and steps with missing values on the right, and what the left adds
    used: Any  # (2, 2, t) bool: whether there are such numbers of a feature
    missing: Any  # (t,) int64: packed sums of the missing values of each feature
    running: Any  # (packed_split.ROOM,) int64: scratch memory, as the rest is
    places: Any  # (packed_split.ROOM,) int64
    about: Any  # (packed_split.ROOM,) float32
    other: Any  # (packed_split.ROOM,) float32


class Level(NamedTuple):
    """Nodes that are new, and so not searched yet."""

    n_nodes: Any  # int: nodes of the tree
    new_pairs: Any  # (p, 3) int64: a node whose histogram is summed, its sibling or -1, and their parent
    shared: Any  # (p, threads) int64: lines of ``spare`` that hold a part of the summed node, or -1
    left: Any  # (v, 3) int64: output, the pairs that are left to search


class Team(NamedTuple):
    """Threads that grow a small tree together, inside one call; see ``kernels.growth.team``."""

    words: Any  # (team.WORDS,) int64: zeros at first; (0,) for a thread alone
    bounds: Any  # (chunks + 1,) int64: features of each chunk of a level's work
    gains: Any  # the fields of ``Splits``, of as many pairs as a level may have
    splits: Any
    left_sets: Any


class NodeRules(NamedTuple):
    """Further rules for the splits of a small tree. The types are those of ``Team``: one kernel repeats rounds of both.

    Without a rule its arrays are empty.
    """

    cuts: Any  # (4,) int64: ``Key.words`` of the stream of the one cut of each feature
    features: Any  # (5 + s,) int64: how many a node draws, 1 if by level, seed low and high, iteration, and streams
    bounds: Any  # (v, 3) float64: see ``monotone_split``
    of_features: Any  # (1, lines, d) int64: of all features, see ``splits.competing`` for the lines
    noise: Any  # (1, 1, 6 + s) uint32: ``Key.words`` of the noise on gains, and bits of its deviation and its table


class TreeGradients(NamedTuple):
    """Gradients of the rows of a large tree, and what they become integers by."""

    g: Any  # (m,) float32
    h: Any  # (m,) float32
    multiplicity: Any  # (m,) int32, (0,) for all ones
    weight: Any  # float: sum of the multiplicities
    found: Any  # (2, blocks, 3) float64: ``fixed_point.extents`` of g and of h
    totals: Any  # (stretches, 8) int64: sums of the integers of each stretch, on a cache line of its own


class Shares(NamedTuple):
    """Arrays that the threads of a large tree write together, and bounds of chunks; see ``growth.large_trees``."""

    words: Any  # (large_trees.WORDS,) int64: zeros at first
    stretches: Any  # (most stretches + 1,) int64: bounds of the rows of each stretch
    groups: Any  # (groups + 1,) int64: features that are summed at once
    bounds: Any  # (chunks + 1,) int64: features that are searched at once
    left: Any  # (v, 3) int64: the new pairs
    shared: Any  # (v, most stretches) int64: see ``Level``
    counts: Any  # (most stretches, v) int64: rows of each chosen node that go left
    gains: Any  # the fields of ``Splits``, of as many pairs as a level may have
    splits: Any
    left_sets: Any


class GrowthLimits(NamedTuple):
    """Limits of a tree, and sizes from which a step is divided among threads."""

    max_leaves: Any  # int
    at_once: Any  # int: nodes that are split before the next ones are chosen
    max_depth: Any  # int
    least_rows: Any  # int: rows that a node needs to be split
    most_summed: Any  # int: rows
    most_searched: Any  # int: nodes
    most_work: Any  # int: (row, feature) pairs after which a call for a large tree ends, so that an interrupt is seen
    most_slots: Any  # int: histograms of a large leaf-wise tree, after which waiting leaves lose theirs


class ChildLimits(NamedTuple):
    """Limits that decide whether a child may be split."""

    max_depth: Any  # int
    least_rows: Any  # int: rows that it needs
    least_h: Any  # float: sum of h that each of its children needs
    unit_h: Any  # float: value of one unit of h


class RepeatedTrees(NamedTuple):
    """The trees of repeated rounds, one after the other: the arrays of ``types.Nodes``, and leaf values."""

    feature: Any  # (v,) int32
    bin: Any  # (v,) int32
    missing_left: Any  # (v,) bool
    left: Any  # (v,) int32
    right: Any  # (v,) int32
    gain: Any  # (v,) float64
    cover: Any  # (v,) float64
    count: Any  # (v,) int64
    left_set: Any  # (v, 8) uint32
    value: Any  # (v,) float64


class RoundScores(NamedTuple):
    """The scores of repeated rounds, bias + scale * sums."""

    sums: Any  # (k, n) float64, to which the trees of each round are added
    values: Any  # (k, n) float64: the scores; (k, 0) if they are the sums
    bias: Any  # (k,) float64
    shrinkage: Any  # (3,) float64: fields of ``optional_verbs.Shrinkage``, of the last round


class RowDraw(NamedTuple):
    """Rows that are drawn for the trees of repeated rounds."""

    words: Any  # (4,) int64: ``Key.words`` of the stream in the first round of a call
    limit: Any  # uint64: rows are drawn whose numbers are below, if all have one probability
    rows: Any  # (n,) int32: the drawn ones are written first; (0,) if trees grow from all rows
    inverse: Any  # (n,) float32: 1 / p
    bins: Any  # (n, d) uint8: of all rows
    g: Any  # (k * n,) float32: room for the drawn rows' g times 1 / p
    h: Any  # (k * n,) float32
    multiplicity: Any  # (n,) int32: room for theirs, (0,) for all ones
    is_categorical: Any  # (d,) bool


class ScoreDraw(NamedTuple):
    """Probabilities by the rows' scores, as ``ProbabilityRule`` has them; see ``sampling.importance``."""

    kind: Any  # int
    settings: Any  # (2,) float64
    made_of: Any  # int: what a score is made of
    kappa: Any  # float
    scores: Any  # (n,) float32; (0,) if all rows have one probability
    counts: Any  # (2, 2048) int64: rows and significands by bucket
    room: Any  # (3, 2048) float64: scratch memory
    parameters: Any  # (3,) float64: those of the rule


class FeatureDraw(NamedTuple):
    """Features that are drawn for the trees of repeated rounds."""

    words: Any  # (4,) int64: ``Key.words`` of the stream in the first round of a call
    chosen: Any  # (d,) bool: scratch memory; (0,) if all features compete


class NoiseStreams(NamedTuple):
    """Noise on the gradients and leaf values of repeated rounds."""

    of_gradients: Any  # (k, 4) int64: ``Key.words`` of each output in the first round of a call; (0, 4) for none
    of_leaves: Any  # the same of leaf values
    deviations: Any  # (2,) float64: of gradients, times sqrt(h), and of leaf values
    table: Any  # of ``normal.normal``
    room: Any  # (n,) float32: for g with noise


class SampleSums(NamedTuple):
    """Sums over the drawn rows of repeated rounds: of h times 1 / p, and of its square."""

    rows: Any  # (rounds, 2) int64: numbers of drawn rows, and of rows whose p is 0
    largest: Any  # (rounds,) float64: largest 1 / p of a drawn row, or 0
    of_round: Any  # (rounds, 2) float64, of h summed over the outputs
    of_leaf: Any  # (2, v) float64: of each leaf of the trees, one after the other


class NodeSums(NamedTuple):
    """Rows and exact sums of a node."""

    rows: Any  # int
    is_packed: Any  # bool: form of its histogram
    g: Any  # int
    h: Any  # int


class SearchScratch(NamedTuple):
    """Scratch memory to search one feature at a time."""

    g: Any  # (257,) int64
    h: Any  # (257,) int64
    n: Any  # (257,) int64, (0,) if rows are not counted
    gains: Any  # (257,) float64
    running: Any  # (packed_split.ROOM,) int64
    about: Any  # (packed_split.ROOM,) float32
    places: Any  # (packed_split.ROOM,) int64
    bits: Any  # (8,) uint32: the cuts of one feature that compete
