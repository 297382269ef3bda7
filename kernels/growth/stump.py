"""A tree of one split, of all rows in order: laid out, split and routed without a table of nodes.

The search is ``split.search``, and the node that is split its root; definition: Reference.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import COLUMNS, END, SUM_G, SUM_H
from gpuboost.kernels.splits.split import search

LEFT, RIGHT = 1, 2  # numbers of the two leaves


@kernel
def stored(entries, features):
    """The sum of entries[f] over the features. entries (d,) int64, features (t,) int32."""
    total = np.int64(0)
    for j in range(features.shape[0]):
        total += entries[features[j]]
    return total


@kernel
def lay_out(features, n_bins, categorical, default, starts, own_bins, kinds, defaults):
    """Fill in the candidates' first cells, bin counts, kinds and defaults (-1 if dense). True if one is categorical.

    features (t,) int32; n_bins (d,) int32, categorical (d,) bool, default (d,) uint8 or (0,) of all features; out
    starts (t + 1,) uint64, own_bins (t,) int32, kinds (t,) uint8, defaults (t,) int64.
    """
    first_cell, some = np.uint64(0), False
    for j in range(features.shape[0]):
        f = features[j]
        starts[j], own_bins[j], kinds[j] = first_cell, n_bins[f], categorical[f]
        defaults[j] = default[f] if default.shape[0] > 0 else -1
        first_cell += np.uint64(n_bins[f] + 1)
        some = some or categorical[f]
    starts[features.shape[0]] = first_cell
    return some


@kernel
def best_of(gains, first, last):
    """The first of the largest of gains[first:last], -1 if none is above 0. gains (t,)."""
    best, top = -1, 0.0
    for j in range(first, last):
        if gains[j] > top:
            best, top = j, gains[j]
    return best


@kernel
def as_root(rows, totals, units, limits, signed):
    """A table of one node, which is new, and what ``split.search`` asks of it: node, new_pairs, units, rule.

    totals: sums of g and of h and of the rows' multiplicity; units: the value of one unit of both; limits: reg_lambda,
    min_child_weight, min_split_gain.
    """
    node, new_pairs = np.zeros((1, COLUMNS), np.int64), np.zeros((1, 3), np.int64)
    node[0, END], node[0, SUM_G], node[0, SUM_H] = rows, totals[0], totals[1]
    new_pairs[0, 1] = -1
    value, rule = np.empty(2), np.empty(13)
    value[0], value[1] = units[0], units[1]
    rule[0], rule[1], rule[2], rule[3] = limits[0], limits[1], limits[2], 1.0
    rule[4], rule[5] = totals[2] / max(totals[1], 1), 1.0 if signed else 0.0
    rule[6:10], rule[10], rule[11], rule[12] = limits[3:], 0.0, np.inf, 0.0
    return node, new_pairs, value, rule


@kernel
def search_root(
    histogram, rows, totals, layout, kinds, units, limits, signed, packed_rows, first, last, general, root, by_node,
    words, results,
):  # fmt: skip
    """Features [first, last) of the root. Returns the first of those that gain most, -1 if none gains.

    histogram (1, 2 * n_cells) int64; layout, results: the fields of HistogramLayout and of Splits; the rest as for
    ``as_root`` and ``split.search``.
    """
    node, new_pairs, value, rule = as_root(rows, totals, units, limits, signed)
    search(
        layout, kinds, new_pairs, np.empty((1, 0), np.int64), node, only_slot(histogram, packed_rows),
        (value, rule, root), first, last, general, by_node, words, results,
    )  # fmt: skip
    return best_of(results[0][0], first, last)


@kernel
def only_slot(histogram, packed_rows):
    """The root's histogram, as a HistogramArrays of one slot, as a plain tuple."""
    none = np.empty((1, 0), np.int64)
    return histogram, np.empty((1, 0), np.int32), none, none, np.empty(0, np.int64), packed_rows


@kernel
def route(codes, cut, missing, missing_left, left_set, is_categorical, start, stop, leaf_of_row):
    """leaf_of_row[start:stop] from the split column's bins, (n,) uint8. Returns how many went left."""
    codes, out, lefts = codes[start:stop], leaf_of_row[start:stop], 0
    if is_categorical:
        for i in range(codes.size):
            code = codes[i]
            left = (left_set[code >> np.uint8(5)] >> np.uint32(code & np.uint8(31))) & np.uint32(1) == 1
            out[i] = LEFT if left else RIGHT
            lefts += left
        return lefts
    # Missing values have the largest code. Turned round by 256 - missing, modulo 256, they have the smallest.
    turn = 256 - missing if missing_left else 0
    shift, limit = np.uint8(turn), np.uint8(cut + turn)
    for i in range(codes.size):
        left = np.uint8(codes[i] + shift) <= limit
        out[i] = LEFT if left else RIGHT
        lefts += left
    return lefts


@kernel
def route_entries(row, bins, default, cut, missing, missing_left, leaf_of_row):
    """The same for all rows of a sparse numeric column: its entries' rows (m,) int32 and bins (m,) uint8."""
    n, turn = leaf_of_row.shape[0], 256 - missing if missing_left else 0
    shift, limit = np.uint8(turn), np.uint8(cut + turn)
    absent = np.uint8(default + shift) <= limit
    lefts = (n - row.size) * absent
    leaf_of_row[:] = LEFT if absent else RIGHT
    for e in range(row.size):
        left = np.uint8(bins[e] + shift) <= limit
        leaf_of_row[np.uint64(row[e])] = LEFT if left else RIGHT
        lefts += left
    return lefts
