"""Draws of repeated rounds: features and rows of their trees, and then the leaves of all rows.

The kernels that draw are called by address, as those of ``repeated_rounds``. A stream's iteration goes up by one from
round to round. of_draws: addresses of these kernels, and the fields of ``FeatureDraw``, ``RowDraw``, ``ScoreDraw`` and
``SampleSums``.
"""

import numpy as np
from numba import types

from gpuboost.kernels.common.by_address import called_at
from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.records import ColumnArrays, FeatureDraw, RowArrays, RowDraw, SampleSums, ScoreDraw
from gpuboost.kernels.sampling.importance import GOSS, SOLVED_THRESHOLD, TRIMMING

SUBSET, SCORE, SEARCH, DRAW, GATHER, WEIGH, WALK = range(7)  # places of the kernels' addresses

call = called_at(types.none)
call_count = called_at(types.int64)
call_counts = called_at(types.UniTuple(types.int64, 2))
call_number = called_at(types.float64)
call_rank = called_at(types.Tuple((types.float64, types.int64, types.int64)))


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
def _solve(addresses, score):
    """The parameters of the rule, as its ``solve`` finds them."""
    first, second = score.settings
    counts, significands, bits = score.counts[0], score.counts[1], score.scores.view(np.uint32)
    parameters = score.parameters
    parameters[0], parameters[1], parameters[2] = first, second, 0.0  # those of a fixed threshold
    if score.kind == SOLVED_THRESHOLD:
        of_scores = (score.scores, counts, significands, score.room)
        parameters[0] = call_number(addresses[SEARCH], (first, second, *of_scores))
    elif score.kind == GOSS:
        rank = first * score.scores.shape[0]
        parameters[0], above, ties = call_rank(addresses[SEARCH], (rank, bits, counts, significands))
        among_top = min(1.0, (rank - above) / ties)
        parameters[1], parameters[2] = among_top + (1.0 - among_top) * second, second
    elif score.kind == TRIMMING:
        parameters[0] = call_number(addresses[SEARCH], (first, bits, counts, significands))
        parameters[1] = 1.0


@kernel
def _choose_rows(addresses, draw, score, time, g, h, multiplicity):
    """Draw rows; return the numbers of those drawn and of those of p 0; -1 and 0 if a score is no number."""
    words, n, zero = draw.words, np.int64(draw.rows.shape[0]), np.int64(0)
    iteration = _iteration(words, time)
    if score.scores.shape[0] == 0:
        of_draw = (zero, n, draw.limit, words[0], words[1], iteration, words[3], draw.rows)
        return call_count(addresses[DRAW], of_draw), zero
    score.counts[:] = 0
    of_rows, of_scores = (g, h, multiplicity), (score.scores, score.counts[0], score.counts[1])
    if call_count(addresses[SCORE], (*of_rows, score.made_of, score.kappa, zero, n, *of_scores)) != 0:
        return np.int64(-1), zero
    _solve(addresses, score)
    of_rule = (score.scores, zero, n, score.kind, score.parameters)
    of_stream = (words[0], words[1], iteration, words[3])
    return call_counts(addresses[DRAW], (*of_rule, *of_stream, draw.rows, draw.inverse))


@kernel
def _take_rows(addresses, draw, m, g, h, multiplicity, bins):
    """Copy what a tree reads of the drawn rows; return the sum of their multiplicities.

    Their bins are written to ``bins``, (n, d) uint8, their weighed gradients and multiplicities to ``draw``, a RowDraw.
    g, h (k, n) float32 and multiplicity (n,) int32, (0,) for all ones: of all rows.
    """
    rows, inverse, k, zero = draw.rows[:m], draw.inverse[:m], g.shape[0], np.int64(0)
    call(addresses[GATHER], (draw.bins, rows, zero, m, bins[:m]))
    call(addresses[WEIGH], (g, rows, inverse, zero, m, draw.g[: k * m].reshape(k, m)))
    call(addresses[WEIGH], (h, rows, inverse, zero, m, draw.h[: k * m].reshape(k, m)))
    if multiplicity.shape[0] == 0:
        return np.float64(m)
    weight = 0.0
    for i in range(m):
        times = draw.multiplicity[i] = multiplicity[rows[i]]
        weight += times
    return weight


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

    time: number of the round in this call. growth, g, h and of_packing: see ``repeated_rounds.repeat``. Returns True
    unless a row's score is no number, growth for the drawn rows, their g and h, and their of_packing.
    """
    addresses, features, rows = of_draws[0], FeatureDraw(*of_draws[1]), RowDraw(*of_draws[2])
    (k, n), sums = g.shape, SampleSums(*of_draws[4])
    multiplicity, weight, packed = of_packing
    if features.chosen.shape[0] > 0:
        _draw_features(addresses, features, time, growth[10], growth[11])
    if rows.rows.shape[0] == 0:
        return True, _with_rows(growth, np.int64(n), rows.rows), g, h, (multiplicity, weight, packed)
    m, excluded = _choose_rows(addresses, rows, ScoreDraw(*of_draws[3]), time, g, h, multiplicity)
    are_numbers, m = m >= 0, max(m, np.int64(0))
    weight = _take_rows(addresses, rows, m, g, h, multiplicity, RowArrays(*growth[12]).bins)
    drawn_g, drawn_h = rows.g[: k * m].reshape(k, m), rows.h[: k * m].reshape(k, m)
    multiplicity = rows.multiplicity[:m]
    sums.rows[time, 0], sums.rows[time, 1], sums.largest[time] = m, excluded, 0.0
    for i in range(m):
        sums.largest[time] = max(sums.largest[time], np.float64(rows.inverse[i]))
    _weigh_sample(drawn_h, multiplicity, sums.of_round[time])
    return are_numbers, _with_rows(growth, m, rows.rows), drawn_g, drawn_h, (multiplicity, weight, packed[:m])


@kernel
def settle(of_draws, trees, begin, end, n_bins, h, multiplicity, leaf_of_row):
    """Find the leaf of every row after a tree of drawn rows, whose h and multiplicities are given."""
    addresses, rows, sample = of_draws[0], RowDraw(*of_draws[2]), SampleSums(*of_draws[4])
    if rows.rows.shape[0] == 0:
        return
    _find_leaves(addresses, rows, trees, begin, end, n_bins, leaf_of_row)
    drawn, of_leaf = rows.rows[: h.shape[0]], sample.of_leaf
    _weigh_leaves(drawn, h, multiplicity, leaf_of_row, of_leaf[0, begin:end], of_leaf[1, begin:end])
