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
    RowArrays,
)
from gpuboost.kernels.growth.repeated_draws import draw, settle
from gpuboost.kernels.splits.gain import SMOOTHING
from gpuboost.kernels.splits.packed_split import MOST_RIDGE

GRADIENTS, PACK, GROW, FINISH, NEWTON, ADD, BOUND = range(7)  # places of the kernels' addresses
LEAST_ROWS, LEAST_H, RIDGE, ALPHA, MOST = range(5)  # places of the limits
ROWS_PER_H = 4  # its place in the rule

call = called_at(types.none)
call_pack = called_at(types.Tuple((types.float64, types.float64, types.int64, types.int64)))
call_grow = called_at(types.UniTuple(types.int64, 2))


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
    criterion.rule[ROWS_PER_H], criterion.rule[SMOOTHING] = weight / max(sum_h, 1), 0.0
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
def _add(addresses, value, factor, steps, leaf_of_row, scores):
    """scores += factor * value of the leaf of each row. steps: scratch memory of the length of ``value``."""
    for v in range(value.shape[0]):
        steps[v] = factor * value[v]
    call(addresses[ADD], (scores, steps, leaf_of_row, np.int64(0), np.int64(scores.shape[0])))


@kernel
def _value(addresses, v, trees, begin, sums, limits, directions):
    """Compute the leaf values of a tree of v nodes. directions (1, 1, d): of all features, if some have one."""
    end = begin + v
    feature, value = trees.feature[begin:end], trees.value[begin:end]
    of_values = (feature, sums[0, :v], sums[1, :v], limits[RIDGE], limits[ALPHA], limits[MOST], value)
    call(addresses[NEWTON], of_values)
    if addresses[BOUND] == 0:
        return
    of_nodes = (feature, trees.left[begin:end], trees.right[begin:end], trees.cover[begin:end])
    for refined in range(2):  # the values of this step, and those that a refinement of it would leave
        ridge = 0.0 if refined == 1 else limits[RIDGE]
        call(addresses[BOUND], (*of_nodes, directions[0, 0], ridge, refined == 1, value))


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
           scores, factor, sizes, of_draws):  # fmt: skip
    """Do up to ``times`` rounds; return the number of those that were done, with nothing done of the next one.

    A round is not done if a gradient is no number, if the tables have no room for one of its trees, or if units are so
    coarse that its splits need the general search: the caller's verbs know what to do then.

    addresses: (7,) int64 of kernels, the last one 0 if leaf values need not be in order. of_gradients: arguments of the
    loss's, which writes g and h, (k, n) float32; of_packing: multiplicities, their sum, and the integers, for
    ``scale_and_pack``. growth: arguments of ``small_trees.grow`` for the first level of a tree, or of a kernel of
    ``small_general_trees``, of which the streams go on with each round; free_slots: the stack of slots that it begins
    with.
    limits: (5,) float64: least rows of a split, least h of a child, ridge, alpha, largest leaf value.
    trees: fields of ``RepeatedTrees``, with room for ``times`` * k of the largest trees; sums (2, v) float64, with room
    for one, and leaves (k, n) int32 are scratch memory. scores (k, n) float64: factor times the leaf values are added.
    sizes (times * k,) int64: output, numbers of nodes of the trees, which follow one another. of_draws: see
    ``repeated_draws``; None if neither rows nor features are drawn.
    """
    multiplicity, weight, _ = of_packing
    made, n_bins, (k, n) = RepeatedTrees(*trees), ColumnArrays(*growth[11]).n_bins, scores.shape
    used, end, settled = np.int64(growth[9][0].shape[0]), np.int64(0), n
    if of_draws is not None:
        settled = 0 if of_draws[2][2].shape[0] > 0 else n  # rows whose leaves are known once the tree is grown
    for time in range(times):
        begin_of_round = end
        call(addresses[GRADIENTS], of_gradients)
        if of_draws is None:
            of_tree, tree_g, tree_h, of_rows = growth, g, h, of_packing
        else:
            are_numbers, of_tree, tree_g, tree_h, of_rows = draw(of_draws, time, growth, g, h, of_packing)
            if not are_numbers:
                return time
        for output in range(k):
            of_output = (tree_g[output], tree_h[output], of_rows[0], of_rows[1], of_rows[2])
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
                of_all = (g[output], h[output], multiplicity, weight)
                of_drawn = (tree_h[output], of_rows[0])
                if not settle(of_draws, made, begin, end, n_bins, of_all, *of_drawn, leaf_of_row, sums):
                    return time
            _value(addresses, used, made, begin, sums, limits, growth[15][3])
            sizes[time * k + output] = used
        for output in range(k):
            end_of_tree = begin_of_round + sizes[time * k + output]
            value = made.value[begin_of_round:end_of_tree]
            _add(addresses, value, factor, sums[0, : value.shape[0]], leaves[output], scores[output])
            begin_of_round = end_of_tree
        _advance(growth[15])
    return times
