"""histograms: exact integer sums of (g, h) per bin. Definition: reference.growth.

A histogram has one cell per bin of each candidate feature, and two forms. A node of at most TILE rows has it *packed*,
one packed pair a cell; a larger one has it *unpacked*, all sums of g and then all sums of h, each an int64. (Where the
scale is such that no sum over all rows can overflow a packed pair, every node is packed.)

Rows are taken in batches, four features at a time: the four features' cells stay in the first-level cache while a
batch passes, and the next batch is asked for meanwhile. Additions to different features do not wait for each other.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel, prefetch
from gpuboost.kernels.common.nodes import BEGIN, END, SLOT
from gpuboost.kernels.common.records import HistogramArrays, HistogramLayout, RowArrays

TILE = 65_535  # rows: 65,535 * 32,767 < 2**31 and 65,535 * 65,535 < 2**32
BATCH = np.uint64(128)  # rows
LINE = 64  # bytes that come into the cache at once
PREFETCH_DISTANCE = np.uint64(8)  # sparse rows asked for before their turn

_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_LOW = np.int64(0xFFFF_FFFF)


@kernel
def _take_batch(bins, packed, rows, begin, stop, end, places, pairs):
    """Write the offsets of the bins of rows[begin:stop] and their gradients; prefetch the rows after them."""
    width = np.intp(bins.shape[1])
    base, base_packed = bins.ctypes.data, packed.ctypes.data
    last = end - _1
    for k in range(begin, stop):
        row = np.uint64(rows[k])
        places[k - begin] = row * np.uint64(width)
        pairs[k - begin] = packed[row]
        later = np.intp(rows[min(k + BATCH, last)])
        address = base + later * width
        for ahead in range(0, width, LINE):
            prefetch(address + ahead)
        prefetch(address + width - 1)
        prefetch(base_packed + 8 * later)


@kernel
def _add_dense(bins, features, starts, packed, rows, begin, end, out):
    """out[starts[j] + bins[row, features[j]]] += packed[row] for rows[begin:end]."""
    flat, t = bins.reshape(-1), np.uint64(len(features))
    places, pairs = np.empty(BATCH, np.uint64), np.empty(BATCH, np.int64)
    begin, end = np.uint64(begin), np.uint64(end)
    while begin < end:
        stop = min(begin + BATCH, end)
        _take_batch(bins, packed, rows, begin, stop, end, places, pairs)
        size, j = stop - begin, np.uint64(0)
        while j < t & ~_3:
            a, b, c, d = starts[j], starts[j + _1], starts[j + _2], starts[j + _3]
            f0, f1 = np.uint64(features[j]), np.uint64(features[j + _1])
            f2, f3 = np.uint64(features[j + _2]), np.uint64(features[j + _3])
            for k in range(size):
                pair, place = pairs[k], places[k]
                out[a + np.uint64(flat[place + f0])] += pair
                out[b + np.uint64(flat[place + f1])] += pair
                out[c + np.uint64(flat[place + f2])] += pair
                out[d + np.uint64(flat[place + f3])] += pair
            j += _4
        while j < t:
            a, f0 = starts[j], np.uint64(features[j])
            for k in range(size):
                out[a + np.uint64(flat[places[k] + f0])] += pairs[k]
            j += _1
        begin = stop


@kernel
def _add_and_count(bins, features, starts, packed, rows, begin, end, out, counts):
    """``_add_dense``, and counts[...] += 1 of the same cells, two features at a time."""
    flat, t = bins.reshape(-1), np.uint64(len(features))
    places, pairs = np.empty(BATCH, np.uint64), np.empty(BATCH, np.int64)
    begin, end = np.uint64(begin), np.uint64(end)
    while begin < end:
        stop = min(begin + BATCH, end)
        _take_batch(bins, packed, rows, begin, stop, end, places, pairs)
        size, j = stop - begin, np.uint64(0)
        while j < t & ~_1:
            a, b = starts[j], starts[j + _1]
            f0, f1 = np.uint64(features[j]), np.uint64(features[j + _1])
            for k in range(size):
                pair, place = pairs[k], places[k]
                first, second = a + np.uint64(flat[place + f0]), b + np.uint64(flat[place + f1])
                out[first] += pair
                counts[first] += np.int32(1)
                out[second] += pair
                counts[second] += np.int32(1)
            j += _2
        if j < t:
            a, f0 = starts[j], np.uint64(features[j])
            for k in range(size):
                first = a + np.uint64(flat[places[k] + f0])
                out[first] += pairs[k]
                counts[first] += np.int32(1)
        begin = stop


@kernel
def _add_sparse(row_start, cells, packed, rows, begin, end, out):
    """out[cell] += packed[row] for every stored entry of rows[begin:end]. For absent entries see split.spread."""
    base, base_packed, last = cells.ctypes.data, packed.ctypes.data, np.uint64(end) - _1
    for k in range(np.uint64(begin), np.uint64(end)):
        later = np.uint64(rows[min(k + PREFETCH_DISTANCE, last)])
        entry = base + 4 * np.intp(row_start[later])
        prefetch(entry)
        prefetch(entry + LINE)
        prefetch(base_packed + 8 * np.intp(later))
        row = np.uint64(rows[k])
        pair = packed[row]
        for e in range(np.uint64(row_start[row]), np.uint64(row_start[row + _1])):
            out[np.uint64(cells[e])] += pair


@kernel
def _unpack(packed, unpacked, begin, end, first):
    """Move packed pairs of cells [begin, end) into (or, unless ``first``, onto) an unpacked histogram; clear them."""
    cells = packed.shape[0]
    for c in range(begin, end):
        pair = packed[c]
        g, h = pair >> 32, pair & _LOW
        unpacked[c] = g if first else unpacked[c] + g
        unpacked[cells + c] = h if first else unpacked[cells + c] + h
        packed[c] = 0


@kernel
def build(rows, layout, node, new_pairs, histograms, part, first, last):
    """``build_some`` for every feature."""
    every = np.int64(0), np.int64(layout[0].shape[0])
    return build_some(rows, layout, node, new_pairs, histograms, part, first, last, *every)


@kernel
def build_some(rows, layout, node, new_pairs, histograms, part, first, last, first_feature, last_feature):
    """Sum rows [first, last) of the built nodes of all new pairs, the nodes laid end to end, as thread ``part``.

    Only features [first_feature, last_feature) are summed, of which sparse bins have all.

    A node whose first rows belong to another thread is summed into the thread's line of ``spare`` instead of its slot,
    packed if so many rows may be; the line of its pair is returned, or -1. rows: RowArrays; layout: HistogramLayout;
    histograms: HistogramArrays; new_pairs (p, 3) int64: built node first.
    """
    rows, layout, histograms = RowArrays(*rows), HistogramLayout(*layout), HistogramArrays(*histograms)
    shared, offset = -1, 0
    of, packed_rows = histograms.of, histograms.packed_rows
    scratch, spare = histograms.scratch[part], histograms.spare[part]
    bins, packed, order = rows.bins, rows.packed, rows.rows
    features, starts = layout.features[first_feature:last_feature], layout.starts[first_feature:last_feature]
    a, b = np.int64(layout.starts[first_feature]), np.int64(layout.starts[last_feature])
    for i in range(new_pairs.shape[0]):
        v = new_pairs[i, 0]
        size = node[v, END] - node[v, BEGIN]
        begin, end = max(first - offset, 0), min(last - offset, size)
        offset += size
        if size == 0 and first == 0:  # the empty side of a split that several nodes share
            of[node[v, SLOT], a:b] = 0
        if begin >= end:
            continue
        out, is_packed = of[node[v, SLOT]], size <= packed_rows
        if begin > 0:
            shared, out, is_packed = i, spare, end - begin <= packed_rows
            spare[spare.shape[0] - 1] = is_packed
        begin, end = node[v, BEGIN] + begin, node[v, BEGIN] + end
        target = out[: scratch.shape[0]] if is_packed else scratch
        if is_packed:
            target[a:b] = 0
        new_tile = True
        while begin < end:
            stop = end if is_packed else min(begin + TILE, end)
            if bins.shape[1] > 0:
                _add_dense(bins, features, starts, packed, order, begin, stop, target)
            else:
                _add_sparse(rows.row_start, rows.cells, packed, order, begin, stop, target)
            if not is_packed:
                _unpack(scratch, out, a, b, new_tile)
            new_tile = False
            begin = stop
    return shared


@kernel
def build_features(rows, layout, node, new_pairs, histograms, first, last):
    """Features [first, last) of the packed histograms of the built nodes of all new pairs, from dense bins."""
    rows, layout, histograms = RowArrays(*rows), HistogramLayout(*layout), HistogramArrays(*histograms)
    starts, features = layout.starts[first:last], layout.features[first:last]
    begin, end = np.int64(layout.starts[first]), np.int64(layout.starts[last])
    for i in range(new_pairs.shape[0]):
        v = new_pairs[i, 0]
        out = histograms.of[node[v, SLOT]]
        out[begin:end] = 0
        _add_dense(rows.bins, features, starts, rows.packed, rows.rows, node[v, BEGIN], node[v, END], out)


@kernel
def count(rows, layout, node, new_pairs, first, last, counts):
    """Rows per cell for features [first, last): the built node of every new pair, and its sibling by subtraction.

    counts (slots, n_cells) int32. Needed only where a leaf must hold more than one row.
    """
    for i in range(new_pairs.shape[0]):
        built, sibling = new_pairs[i, 0], new_pairs[i, 1]
        node_counts = counts[node[built, SLOT]]
        for j in range(first, last):
            begin, end = np.int64(layout.starts[j]), np.int64(layout.starts[j + 1])
            node_counts[begin:end] = 0
            f = layout.features[j]
            for k in range(node[built, BEGIN], node[built, END]):
                node_counts[begin + np.int64(rows.bins[rows.rows[k], f])] += 1
            if sibling >= 0:
                other = counts[node[sibling, SLOT]]
                for c in range(begin, end):
                    other[c] -= node_counts[c]


@kernel
def count_sparse(rows, layout, node, new_pairs, counts):
    """The same for sparse bins, all features at once."""
    for i in range(new_pairs.shape[0]):
        built, sibling = new_pairs[i, 0], new_pairs[i, 1]
        node_counts = counts[node[built, SLOT]]
        node_counts[:] = 0
        for k in range(node[built, BEGIN], node[built, END]):
            row = rows.rows[k]
            for e in range(rows.row_start[row], rows.row_start[row + 1]):
                node_counts[rows.cells[e]] += 1
        for j in range(layout.defaults.shape[0]):
            begin, end = np.int64(layout.starts[j]), np.int64(layout.starts[j + 1])
            node_counts[begin + layout.defaults[j]] += (
                node[built, END] - node[built, BEGIN] - node_counts[begin:end].sum()
            )
        if sibling >= 0:
            counts[node[sibling, SLOT]] -= node_counts


@kernel
def build_and_count(rows, layout, node, new_pairs, histograms):
    """The packed histograms and the counts of the built nodes of all new pairs; and of their siblings, the counts."""
    of_rows, of_layout, of_nodes = RowArrays(*rows), HistogramLayout(*layout), HistogramArrays(*histograms)
    starts, features = of_layout.starts, of_layout.features
    counts, cells = of_nodes.counts, np.int64(starts[features.shape[0]])
    if of_rows.bins.shape[1] == 0:
        build(rows, layout, node, new_pairs, histograms, 0, 0, of_rows.rows.shape[0])
        count_sparse(of_rows, of_layout, node, new_pairs, counts)
        return
    for i in range(new_pairs.shape[0]):
        built, sibling = new_pairs[i, 0], new_pairs[i, 1]
        out, own_counts = of_nodes.of[node[built, SLOT]], counts[node[built, SLOT]]
        out[:cells] = 0
        own_counts[:cells] = 0
        begin, end = node[built, BEGIN], node[built, END]
        _add_and_count(of_rows.bins, features, starts, of_rows.packed, of_rows.rows, begin, end, out, own_counts)
        if sibling >= 0:
            other = counts[node[sibling, SLOT]]
            for c in range(cells):
                other[c] -= own_counts[c]


@kernel
def cells_of(feature, row_bin, start_of_feature, out):
    """out[e] = the histogram cell of a stored entry. start_of_feature (d,) int64, out (nnz,) uint32."""
    for e in range(feature.shape[0]):
        out[e] = start_of_feature[feature[e]] + row_bin[e]


@kernel
def select_columns(column_start, row, column_bin, features, starts, row_start, cells):
    """The stored entries of some features, by row. row_start (n + 1,) int64, zeros; cells (their number,) uint32."""
    n = row_start.shape[0] - 1
    for f in features:
        for e in range(column_start[f], column_start[f + 1]):
            row_start[row[e] + 1] += 1
    for i in range(n):
        row_start[i + 1] += row_start[i]
    place = row_start[:n].copy()
    for j in range(features.shape[0]):
        f = features[j]
        for e in range(column_start[f], column_start[f + 1]):
            cells[place[row[e]]] = starts[j] + np.uint64(column_bin[e])
            place[row[e]] += 1
