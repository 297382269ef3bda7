"""The cells of a node's histogram, as a search needs them: completed, and read as sums of g and of h.

A packed histogram has both sums of a cell in one number, an unpacked one has all of g before all of h: see
``histogram``.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.nodes import BEGIN, END, SLOT, SUM_G, SUM_H

CELLS_AT_ONCE = 2048  # of a node, so that those of three nodes lie in the nearest cache

_LOW = np.int64(0xFFFF_FFFF)


@kernel
@inlined
def next_features(starts, begin, last):
    """The end of the features from ``begin`` on that are completed and searched together, before ``last``."""
    end = begin + 1
    while end < last and starts[end] - starts[begin] < CELLS_AT_ONCE:
        end += 1
    return end


@kernel
def _join(histogram, part, is_packed, begin, end):
    """Add another thread's part of a histogram, and after it 1 if that is packed, to cells [begin, end)."""
    cells = histogram.shape[0] // 2
    if is_packed:  # then the part is, too
        for c in range(begin, end):
            histogram[c] += part[c]
    elif part[2 * cells] == 1:
        for c in range(begin, end):
            pair = part[c]
            histogram[c] += pair >> 32
            histogram[cells + c] += pair & _LOW
    else:
        for c in range(begin, end):
            histogram[c] += part[c]
        for c in range(cells + begin, cells + end):
            histogram[c] += part[c]


@kernel
def _spread(histogram, is_packed, starts, first, last, defaults, total_g, total_h):
    """Sparse features [first, last): the default bin holds what the stored entries do not."""
    cells = histogram.shape[0] // 2
    for j in range(first, last):
        g, h = total_g, total_h
        begin = np.int64(starts[j])
        if is_packed:
            pair = (total_g << 32) + total_h
            for c in range(begin, np.int64(starts[j + 1])):
                pair -= histogram[c]
            histogram[begin + defaults[j]] += pair
        else:
            for c in range(begin, np.int64(starts[j + 1])):
                g -= histogram[c]
                h -= histogram[cells + c]
            histogram[begin + defaults[j]] += g
            histogram[cells + begin + defaults[j]] += h


@kernel
def _subtract(parent, built, parent_packed, built_packed, is_packed, begin, end):
    """Cells [begin, end) of the parent's histogram become those of the built child's sibling, in its form."""
    cells = parent.shape[0] // 2
    if parent_packed:  # then both children are
        for c in range(begin, end):
            parent[c] -= built[c]
        return
    for c in range(begin, end):
        if built_packed:
            pair = built[c]
            g, h = parent[c] - (pair >> 32), parent[cells + c] - (pair & _LOW)
        else:
            g, h = parent[c] - built[c], parent[cells + c] - built[cells + c]
        parent[c] = (g << 32) + h if is_packed else g
        parent[cells + c] = h


@kernel
@inlined
def complete(i, histograms, shared, new_pairs, node, layout, first, last):
    """Features [first, last) of new pair i: the histograms of both its nodes, from what ``histogram.build`` left.

    histograms: HistogramArrays; layout: HistogramLayout; the rest as for ``split.search``.
    """
    starts, defaults, packed_rows = layout.starts, layout.defaults, histograms.packed_rows
    begin, end = np.int64(starts[first]), np.int64(starts[last])
    built, sibling, parent = new_pairs[i, 0], new_pairs[i, 1], new_pairs[i, 2]
    histogram = histograms.of[node[built, SLOT]]
    own_packed = node[built, END] - node[built, BEGIN] <= packed_rows
    for p in range(shared.shape[1]):
        if shared[i, p] >= 0:
            _join(histogram, histograms.spare[shared[i, p]], own_packed, begin, end)
    if defaults[0] >= 0:
        _spread(histogram, own_packed, starts, first, last, defaults, node[built, SUM_G], node[built, SUM_H])
    if sibling >= 0:
        _subtract(
            histograms.of[node[sibling, SLOT]], histogram, node[parent, END] - node[parent, BEGIN] <= packed_rows,
            own_packed, node[sibling, END] - node[sibling, BEGIN] <= packed_rows, begin, end,
        )  # fmt: skip


@kernel
def read(own, is_packed, begin, size, g, h):
    """g[:size], h[:size]: the sums of cells begin, begin + 1, ..."""
    cells = own.shape[0] // 2
    if is_packed:
        for c in range(size):
            pair = own[begin + c]
            g[c], h[c] = pair >> 32, pair & _LOW
    else:
        for c in range(size):
            g[c], h[c] = own[begin + c], own[cells + begin + c]


@kernel
def read_running(own, is_packed, begin, n_bins, g, h):
    """The same as running sums of the value bins; cell n_bins, of the missing values, stays by itself."""
    cells, sum_g, sum_h = own.shape[0] // 2, np.int64(0), np.int64(0)
    if is_packed:
        for c in range(n_bins):
            pair = own[begin + c]
            sum_g += pair >> 32
            sum_h += pair & _LOW
            g[c], h[c] = sum_g, sum_h
        pair = own[begin + n_bins]
        g[n_bins], h[n_bins] = pair >> 32, pair & _LOW
    else:
        for c in range(n_bins):
            sum_g += own[begin + c]
            sum_h += own[cells + begin + c]
            g[c], h[c] = sum_g, sum_h
        g[n_bins], h[n_bins] = own[begin + n_bins], own[cells + begin + n_bins]


@kernel
def seen(g, h, n, b):
    """True if the node has rows of bin b. Rows that add nothing to any sum are seen only where rows are counted."""
    return (g[b] | h[b]) != 0 or (n.shape[0] > 0 and n[b] != 0)
