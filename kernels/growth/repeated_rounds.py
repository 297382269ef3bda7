"""Rounds of small trees that are the last one again, several in one call: gradients, shapes, leaf values, scores."""

from math import isnan

import numpy as np
from numba import types

from gpuboost.kernels.common.by_address import called_at
from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import CLOSED, END, FEATURE, NEW, STATE, SUM_G, SUM_H
from gpuboost.kernels.common.records import (
    ColumnArrays,
    Criterion,
    GrowthLimits,
    HistogramArrays,
    NodeArrays,
    RepeatedTrees,
    RoundScores,
    RowArrays,
)
from gpuboost.kernels.growth.repeated_draws import draw, settle
from gpuboost.kernels.growth.repeated_noise import disturb, disturb_values
from gpuboost.kernels.splits.competing import DIRECTIONS
from gpuboost.kernels.splits.gain import SMOOTHING
from gpuboost.kernels.splits.packed_split import MOST_RIDGE

GRADIENTS, PACK, GROW, FINISH, NEWTON, ADD, BOUND, REFRESH, SCALE, SUM, ALONG_PATHS = range(11)
"""Places of the kernels' addresses"""
LEAST_ROWS, LEAST_H, RIDGE, ALPHA, MOST, PATH_SMOOTH = range(6)  # places of the limits
ROWS_PER_H = 4  # its place in the rule
KEPT, LENGTH, MODEL_SCALE = range(3)  # places in the shrinkage
BITS_G, BITS_H = 31, 32  # of ``fixed_point.scale``

call = called_at(types.none)
call_pack = called_at(types.Tuple((types.float64, types.float64, types.int64, types.int64)))
call_number = called_at(types.float64)
call_grow = called_at(types.UniTuple(types.int64, 2))


@kernel
def _smoothing(limits, h, weight):
    """S of path smoothing: see ``Limits.smoothing``."""
    return limits[PATH_SMOOTH] * h / max(weight, 1.0)


@kernel
def _make_root(table, used, rows, slots, free_slots, criterion, weight, limits, max_depth, sum_g, sum_h):
    """Forget the first ``used`` nodes, and make a root of all rows. Returns True if it may be split."""
    for v in range(used):
        table.node[v, :] = 0
        table.gain[v] = 0.0
        table.left_set[v, :] = 0
    for i in range(rows.shape[0]):
        rows[i] = i
    for i in range(free_slots.shape[0]):
        slots[i] = free_slots[i]
    criterion.rule[ROWS_PER_H] = weight / max(sum_h, 1)
    criterion.rule[SMOOTHING] = _smoothing(limits, sum_h * criterion.units[1], weight)
    heavy = sum_h > 0 and sum_h * criterion.units[1] >= 2.0 * limits[LEAST_H]
    can_split = max_depth > 0 and rows.shape[0] >= limits[LEAST_ROWS] and heavy
    root = table.node[0]
    root[END], root[FEATURE], root[SUM_G], root[SUM_H] = rows.shape[0], -1, sum_g, sum_h
    root[STATE] = NEW if can_split else CLOSED
    return can_split


@kernel
def _grow(addresses, growth, free_slots, limits, used, units, weight, sum_g, sum_h):
    """Grow a tree in the table, which holds ``used`` nodes of the one before.

    units: value of one unit of g and of h; weight: sum of the multiplicities; sum_g, sum_h: of all rows, as integers.
    Returns its number of nodes, and 0 if it is finished.
    """
    table, criterion, slots = NodeArrays(*growth[9]), Criterion(*growth[14]), HistogramArrays(*growth[13]).slots
    rows, max_depth = RowArrays(*growth[12]).rows, GrowthLimits(*growth[8]).max_depth
    criterion.units[0], criterion.units[1] = units
    of_root = (weight, limits, max_depth, sum_g, sum_h)
    if not _make_root(table, used, rows, slots, free_slots, criterion, *of_root):
        return np.int64(1), np.int64(0)
    return call_grow(addresses[GROW], growth)


@kernel
def _take_out(addresses, growth, v, trees, begin, sums, leaf_of_row):
    """Copy a tree of v nodes from the table to ``trees``, from line ``begin`` on. leaf_of_row: see ``finish``."""
    nodes, columns, of_rows, criterion = growth[9], growth[11], growth[12], growth[14]
    max_depth, end = GrowthLimits(*growth[8]).max_depth, begin + v
    for i in range(begin, end):
        trees.feature[i], trees.bin[i], trees.missing_left[i] = 0, 0, False
        trees.left[i], trees.right[i], trees.gain[i] = 0, 0, 0.0
        trees.left_set[i, :] = 0
    arrays = (
        trees.feature[begin:end], trees.bin[begin:end], trees.missing_left[begin:end], trees.left[begin:end],
        trees.right[begin:end], trees.gain[begin:end], trees.cover[begin:end], trees.count[begin:end],
        trees.left_set[begin:end],
    )  # fmt: skip
    of_sums, units = (sums[0, :v], sums[1, :v]), Criterion(*criterion).units
    of_tree = (columns, RowArrays(*of_rows).rows, nodes, v, max_depth, units, leaf_of_row, arrays, of_sums)
    call(addresses[FINISH], of_tree)


@kernel
def _sum_nodes(addresses, g, h, multiplicity, weight, leaf_of_row, left, right, sum_g, sum_h):
    """The exact sums of all rows of each node; False, and nothing written, if a gradient is no number.

    g, h (n,) float32; weight: sum of the multiplicities; left, right (v,) int32, 0 at leaves, and sum_g, sum_h (v,)
    float64.
    """
    n = np.int64(g.shape[0])
    scale_g = call_number(addresses[SCALE], (g, multiplicity, weight, np.int64(BITS_G)))
    scale_h = call_number(addresses[SCALE], (h, multiplicity, weight, np.int64(BITS_H)))
    if isnan(scale_g) or isnan(scale_h):
        return False
    sums = np.zeros((sum_g.shape[0], 2), np.int64)
    call(addresses[SUM], (g, h, multiplicity, scale_g, scale_h, leaf_of_row, np.int64(0), n, sums))
    unit_g, unit_h = 1.0 / scale_g, 1.0 / scale_h
    for v in range(sum_g.shape[0] - 1, -1, -1):  # children come after their parent
        if left[v] > 0:
            for i in range(2):
                sums[v, i] = sums[left[v], i] + sums[right[v], i]
    for v in range(sum_g.shape[0]):
        sum_g[v], sum_h[v] = sums[v, 0] * unit_g, sums[v, 1] * unit_h
    return True


@kernel
def _add(addresses, value, factor, steps, leaf_of_row, scores):
    """scores += factor * value of the leaf of each row. steps: scratch memory of the length of ``value``."""
    for v in range(value.shape[0]):
        steps[v] = factor * value[v]
    call(addresses[ADD], (scores, steps, leaf_of_row, np.int64(0), np.int64(scores.shape[0])))


@kernel
def _score(addresses, value, sizes, room, leaves, scores):
    """Shrink the scores, and add the trees of a round. value, sizes: theirs, one after the other; room: for one."""
    begin, scale, (k, n) = np.int64(0), scores.shrinkage[MODEL_SCALE] * scores.shrinkage[KEPT], scores.values.shape
    for output in range(k):
        end = begin + sizes[output]
        step = scores.shrinkage[LENGTH] / scale
        _add(addresses, value[begin:end], step, room[: end - begin], leaves[output], scores.sums[output])
        begin = end
        if n > 0:
            of_output = (scores.sums[output], scores.values[output], scores.bias[output], scale)
            call(addresses[REFRESH], (*of_output, np.int64(0), np.int64(n)))
    scores.shrinkage[MODEL_SCALE] = scale


@kernel
def _value(addresses, time, output, trees, begin, end, sums, weight, limits, of_features, of_noise):
    """Compute the leaf values of a tree. weight: of the rows of the sums; of_features: see NodeRules."""
    v, feature, value = end - begin, trees.feature[begin:end], trees.value[begin:end]
    left, right, sum_g, sum_h = trees.left[begin:end], trees.right[begin:end], sums[0, :v], sums[1, :v]
    penalties = limits[RIDGE], limits[ALPHA], limits[MOST]
    if addresses[ALONG_PATHS] == 0:
        call(addresses[NEWTON], (feature, sum_g, sum_h, *penalties, value))
    else:
        smoothing = _smoothing(limits, sum_h[0], weight)
        call(addresses[ALONG_PATHS], (feature, left, right, sum_g, sum_h, *penalties, smoothing, value))
    if of_noise is not None:
        disturb_values(of_noise, time, output, feature, sum_h, limits[RIDGE], value)
    if addresses[BOUND] == 0:
        return
    of_nodes = (feature, left, right, trees.cover[begin:end])
    for refined in range(2):  # the values of this step, and those that a refinement of it would leave
        ridge = 0.0 if refined == 1 else limits[RIDGE]
        call(addresses[BOUND], (*of_nodes, of_features[0, DIRECTIONS], ridge, refined == 1, value))


@kernel
def _advance(rules):
    """Move the streams of a NodeRules on to the next round."""
    cuts, features, noise = rules[0], rules[1], rules[4]
    if cuts.shape[0] > 0:
        cuts[2] = (cuts[2] + 1) & np.int64(0x7FFF_FFFF)
    if features.shape[0] > 0:
        features[4] = (features[4] + 1) & np.int64(0x7FFF_FFFF)
    if noise.shape[0] > 0:
        noise[0, 0, 2] = (np.int64(noise[0, 0, 2]) + 1) & np.int64(0x7FFF_FFFF)


@kernel
def repeat(times, addresses, of_gradients, g, h, of_packing, growth, free_slots, limits, trees, sums, leaves,
           of_scores, sizes, of_draws, of_noise):  # fmt: skip
    """Do up to ``times`` rounds; return the number of those that were done, with nothing done of the next one.

    A round is not done if a gradient is no number, if the tables have no room for one of its trees, or if units are so
    coarse that its splits need the general search: the caller's verbs know what to do then.

    addresses: (11,) int64 of kernels, 0 for those that are not called. of_gradients: arguments of the loss's, which
    writes g and h, (k, n) float32; of_packing: multiplicities, their sum, and the integers, for ``scale_and_pack``.
    growth: arguments of ``small_trees.grow`` for the first level of a tree, or of a kernel of ``small_general_trees``,
    of which the streams go on with each round; free_slots: the stack of slots that it begins with.
    limits: (6,) float64: least rows of a split, least h of a child, ridge, alpha, largest leaf value, path smoothing.
    trees: fields of ``RepeatedTrees``, with room for ``times`` * k of the largest trees; sums (2, v) float64, with room
    for one, and leaves (k, n) int32 are scratch memory.
    of_scores: fields of ``RoundScores``. sizes (times * k,) int64: output, numbers of nodes of the trees, which follow
    one another. of_draws: see ``repeated_draws``; None if neither rows nor features are drawn. of_noise: see
    ``repeated_noise``; None if there is none.
    """
    multiplicity, weight, _ = of_packing
    made, n_bins, (k, n) = RepeatedTrees(*trees), ColumnArrays(*growth[11]).n_bins, g.shape
    used, end, settled = np.int64(growth[9][0].shape[0]), np.int64(0), n
    if of_draws is not None:
        settled = 0 if of_draws[2][2].shape[0] > 0 else n  # rows whose leaves are known once the tree is grown
    for time in range(times):
        begin_of_round = end
        call(addresses[GRADIENTS], of_gradients)
        if of_draws is None:
            of_tree, tree_g, tree_h, of_rows, rows = growth, g, h, of_packing, multiplicity[:0]
        else:
            are_numbers, of_tree, tree_g, tree_h, of_rows = draw(of_draws, time, growth, g, h, of_packing)
            rows = of_draws[2][2][: tree_g.shape[1]]
            if not are_numbers:
                return time
        for output in range(k):
            of_output = (tree_g[output], tree_h[output], of_rows[0], of_rows[1], of_rows[2])
            if of_noise is not None:
                noisy = disturb(of_noise, time, output, tree_g[output], tree_h[output], of_rows[0], rows)
                of_output = (noisy, tree_h[output], of_rows[0], of_rows[1], of_rows[2])
            scale_g, scale_h, sum_g, sum_h = call_pack(addresses[PACK], of_output)
            units, leaf_of_row, begin = (1.0 / scale_g, 1.0 / scale_h), leaves[output], end
            if isnan(scale_g) or isnan(scale_h) or not limits[RIDGE] < MOST_RIDGE * units[1]:
                return time
            used, pairs = _grow(addresses, of_tree, free_slots, limits, used, units, of_rows[1], sum_g, sum_h)
            if pairs != 0:
                return time
            end += used
            _take_out(addresses, of_tree, used, made, begin, sums, leaf_of_row[:settled])
            if of_draws is not None:
                settle(of_draws, made, begin, end, n_bins, tree_h[output], of_rows[0], leaf_of_row)
            of_sums = of_rows[1]
            if addresses[SUM] != 0:  # the tree's own sums are of other gradients
                of_all, of_sums = (g[output], h[output], multiplicity, weight, leaf_of_row), weight
                children = made.left[begin:end], made.right[begin:end]
                if not _sum_nodes(addresses, *of_all, *children, sums[0, :used], sums[1, :used]):
                    return time
            _value(addresses, time, output, made, begin, end, sums, of_sums, limits, growth[15][3], of_noise)
            sizes[time * k + output] = used
        _score(addresses, made.value[begin_of_round:], sizes[time * k :], sums[0], leaves, RoundScores(*of_scores))
        _advance(growth[15])
    return times
