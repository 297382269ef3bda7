"""Draws of repeated rounds: features and rows of their trees, and then the leaves of all rows and sums of these.

The kernels that draw are called by address, as those of ``repeated_rounds``. A stream's iteration goes up by one from
round to round. of_draws: addresses of these kernels, and the fields of ``FeatureDraw``, ``RowDraw`` and ``SampleSums``.
"""

from math import isnan

import numpy as np
from numba import types

from gpuboost.kernels.common.by_address import called_at
from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.records import ColumnArrays, FeatureDraw, RowArrays, RowDraw, SampleSums

SUBSET, DRAW, GATHER, WEIGH, WALK, SCALE, SUM = range(7)  # places of the kernels' addresses
BITS_G, BITS_H = 31, 32  # of ``fixed_point.scale``

call = called_at(types.none)
call_draw = called_at(types.int64)
call_scale = called_at(types.float64)


@kernel
def _iteration(words, time):
    """The iteration of a stream in a round of this call."""
    return (words[2] + time) & np.int64(0x7FFF_FFFF)


@kernel
def _draw_features(addresses, draw, time, layout, columns):
    """Draw the features of a round's trees: write the arrays of ``layout``, fields of ``HistogramLayout``.

    draw: FeatureDraw; columns: fields of ``ColumnArrays``.
    """
    features, starts, n_bins, kinds, _ = layout
    of_all, words, chosen = ColumnArrays(*columns), draw.words, draw.chosen
    iteration, d = _iteration(words, time), np.int64(chosen.shape[0])
    call(addresses[SUBSET], (d, words[0], words[1], iteration, words[3], features))
    chosen[:] = False
    for j in range(features.shape[0]):
        chosen[features[j]] = True
    place = 0
    for f in range(d):
        if chosen[f]:
            features[place], n_bins[place], kinds[place] = f, of_all.n_bins[f], of_all.kinds[f]
            starts[place + 1] = starts[place] + np.uint64(n_bins[place] + 1)
            place += 1


@kernel
def _draw_rows(addresses, draw, time, g, h, multiplicity, bins):
    """Draw the rows of a round's trees; return their number, and the sum of their multiplicities.

    Their bins are written to ``bins``, (n, d) uint8, their weighed gradients and multiplicities to ``draw``, a RowDraw.
    g, h (k, n) float32 and multiplicity (n,) int32, (0,) for all ones: of all rows.
    """
    words, k, n = draw.words, g.shape[0], np.int64(draw.rows.shape[0])
    of_draw = (np.int64(0), n, draw.limit, words[0], words[1], _iteration(words, time), words[3], draw.rows)
    m = call_draw(addresses[DRAW], of_draw)
    rows, inverse = draw.rows[:m], draw.inverse[:m]
    call(addresses[GATHER], (draw.bins, rows, np.int64(0), m, bins[:m]))
    call(addresses[WEIGH], (g, rows, inverse, np.int64(0), m, draw.g[: k * m].reshape(k, m)))
    call(addresses[WEIGH], (h, rows, inverse, np.int64(0), m, draw.h[: k * m].reshape(k, m)))
    weight = np.float64(m)
    if multiplicity.shape[0] > 0:
        weight = 0.0
        for i in range(m):
            times = draw.multiplicity[i] = multiplicity[rows[i]]
            weight += times
    return m, weight


@kernel
def _with_rows(growth, m, drawn):
    """The arguments of ``small_trees.grow`` for a tree of m rows. drawn (n,) int32: their numbers, (0,) for all."""
    columns, rows = ColumnArrays(*growth[11]), RowArrays(*growth[12])
    of_columns = (
        columns.columns, columns.default, columns.column_start, columns.row, columns.column_bin, columns.buffer,
        drawn[:m], columns.n_bins, columns.kinds,
    )  # fmt: skip
    of_rows = rows.bins[:m], rows.row_start, rows.cells, rows.packed[:m], rows.rows[:m], rows.scratch[:m]
    return (
        growth[0], growth[1], growth[2], growth[3], m, growth[5], growth[6], growth[7], growth[8], growth[9],
        growth[10], of_columns, of_rows, growth[13], growth[14], growth[15],
    )  # fmt: skip


@kernel
def _find_leaves(addresses, draw, trees, begin, end, n_bins, leaf_of_row):
    """Write the leaf of each row, drawn or not. trees: RepeatedTrees, of which lines [begin, end) are the tree's."""
    of_tree = (
        trees.feature[begin:end], trees.bin[begin:end], trees.missing_left[begin:end], trees.left[begin:end],
        trees.right[begin:end], trees.left_set[begin:end],
    )  # fmt: skip
    call(
        addresses[WALK],
        (
            draw.bins, of_tree[0], of_tree[1], of_tree[2], of_tree[3], of_tree[4], of_tree[5], n_bins,
            draw.is_categorical, leaf_of_row,
        ),
    )  # fmt: skip


@kernel
def _sum_leaves(addresses, of_all, leaf_of_row, sum_g, sum_h):
    """The exact sums of all rows of each leaf; False, and nothing written, if a gradient is no number.

    of_all: g and h, (n,) float32, multiplicities and their sum; sum_g, sum_h (v,) float64.
    """
    g, h, multiplicity, weight = of_all
    n = np.int64(g.shape[0])
    scale_g = call_scale(addresses[SCALE], (g, multiplicity, weight, np.int64(BITS_G)))
    scale_h = call_scale(addresses[SCALE], (h, multiplicity, weight, np.int64(BITS_H)))
    if isnan(scale_g) or isnan(scale_h):
        return False
    sums = np.zeros((sum_g.shape[0], 2), np.int64)
    call(addresses[SUM], (g, h, multiplicity, scale_g, scale_h, leaf_of_row, np.int64(0), n, sums))
    unit_g, unit_h = 1.0 / scale_g, 1.0 / scale_h
    for v in range(sum_g.shape[0]):
        sum_g[v], sum_h[v] = sums[v, 0] * unit_g, sums[v, 1] * unit_h
    return True


@kernel
def _weigh_leaves(rows, h, multiplicity, leaf_of_row, sums, squares):
    """sums[leaf] = sum of the weights of its drawn rows, and squares[leaf] of their squares. rows, h: of these."""
    sums[:], squares[:] = 0.0, 0.0
    for i in range(rows.shape[0]):
        weight, leaf = np.float64(h[i]), np.uint64(leaf_of_row[np.uint64(rows[i])])
        if multiplicity.shape[0] > 0:
            weight *= multiplicity[i]
        sums[leaf] += weight
        squares[leaf] += weight * weight


@kernel
def _weigh_sample(h, multiplicity, out):
    """out[0] = sum of the drawn rows' weights, out[1] of their squares. h (k, m) float32, summed over the outputs."""
    out[0] = out[1] = 0.0
    for i in range(h.shape[1]):
        of_row = h[0, i]
        for output in range(1, h.shape[0]):
            of_row = np.float32(of_row + h[output, i])
        weight = np.float64(of_row)
        if multiplicity.shape[0] > 0:
            weight *= multiplicity[i]
        out[0] += weight
        out[1] += weight * weight


@kernel
def draw(of_draws, time, growth, g, h, of_packing):
    """Draw what the trees of a round are grown from.

    time: number of the round in this call. growth, g, h and
    of_packing: see ``repeated_rounds.repeat``. Returns growth for these rows, their g and h, and their of_packing.
    """
    addresses, features, rows, sample = of_draws[0], FeatureDraw(*of_draws[1]), RowDraw(*of_draws[2]), of_draws[3]
    (k, n), sums = g.shape, SampleSums(*sample)
    multiplicity, weight, packed = of_packing
    if features.chosen.shape[0] > 0:
        _draw_features(addresses, features, time, growth[10], growth[11])
    if rows.rows.shape[0] == 0:
        return _with_rows(growth, np.int64(n), rows.rows), g, h, (multiplicity, weight, packed)
    m, weight = _draw_rows(addresses, rows, time, g, h, multiplicity, RowArrays(*growth[12]).bins)
    drawn_g, drawn_h = rows.g[: k * m].reshape(k, m), rows.h[: k * m].reshape(k, m)
    sums.rows[time], multiplicity = m, rows.multiplicity[:m]
    _weigh_sample(drawn_h, multiplicity, sums.of_round[time])
    return _with_rows(growth, m, rows.rows), drawn_g, drawn_h, (multiplicity, weight, packed[:m])


@kernel
def settle(of_draws, trees, begin, end, n_bins, of_all, drawn_h, drawn_multiplicity, leaf_of_row, sums):
    """Find the leaf of every row after a tree of drawn rows, and the sums that its leaf values are computed from.

    of_all: g, h, multiplicities and their sum, of all rows; drawn_h, drawn_multiplicity: of those of the tree.
    Returns False if a gradient is no number.
    """
    addresses, rows, sample = of_draws[0], RowDraw(*of_draws[2]), SampleSums(*of_draws[3])
    if rows.rows.shape[0] == 0:
        return True
    _find_leaves(addresses, rows, trees, begin, end, n_bins, leaf_of_row)
    of_leaf, v = sample.of_leaf, end - begin
    drawn = rows.rows[: drawn_h.shape[0]]
    _weigh_leaves(drawn, drawn_h, drawn_multiplicity, leaf_of_row, of_leaf[0, begin:end], of_leaf[1, begin:end])
    return rows.own_leaves or _sum_leaves(addresses, of_all, leaf_of_row, sums[0, :v], sums[1, :v])
