"""partition: send the rows of split nodes to their children, keeping their order.

Threads share the rows of all chosen nodes, laid end to end. Each first sorts its own stretch of a node into the
scratch list, lefts from the front and rights from the back; once every thread's count is known, each copies its two
pieces to their places:

    rows     [ a b c d e | f g h i j ]      two threads' stretches of one node
    scratch  [ a d . e c b | g j . i h f ]  (lefts up, rights down)
    rows     [ a d g j | b c e f h i ]
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel, prefetch
from gpuboost.kernels.common.nodes import (
    BEGIN,
    BIN,
    CLOSED,
    DEPTH,
    END,
    FEATURE,
    LEFT,
    LEFT_G,
    LEFT_H,
    MISSING_LEFT,
    NEW,
    OPEN,
    RIGHT,
    SLOT,
    SPLIT,
    STATE,
    SUM_G,
    SUM_H,
)
from gpuboost.kernels.common.records import ChildLimits, ColumnArrays
from gpuboost.kernels.histograms.histogram import TILE

PREFETCH_DISTANCE = 32
NEAR = 1 << 18  # bins of a column up to which nothing has to be asked for before its turn
_1 = np.uint64(1)


@kernel
def rows_in(node, some):
    """Number of rows of these nodes. some (c,) int64."""
    total = 0
    for v in some:
        total += node[v, END] - node[v, BEGIN]
    return total


@kernel
def choose(node, n_nodes, gain, most, chosen):
    """The ``most`` open nodes that gain most (ties: the older first), in order of age. Returns how many.

    chosen: (at least n_nodes,) int64.
    """
    count = 0
    for v in range(n_nodes):
        if node[v, STATE] == OPEN:
            chosen[count] = v
            count += 1
    if count <= most:
        return count
    if most == 0:
        return 0
    if most == 1:
        best = chosen[0]
        for i in range(1, count):
            if gain[chosen[i]] > gain[best]:
                best = chosen[i]
        chosen[0] = best
        return 1
    open_nodes, taken = chosen[:count].copy(), 0
    for i in range(count):  # the place of each among all decides; numpy's sort would cost two seconds of compiling
        before = 0
        for j in range(count):
            ahead = gain[open_nodes[j]] > gain[open_nodes[i]]
            before += ahead or (j < i and gain[open_nodes[j]] == gain[open_nodes[i]])
        if before < most:
            chosen[taken] = open_nodes[i]
            taken += 1
    return most


@kernel
def count_above(node, some, depth):
    """Number of these nodes above that depth. some (c,) int64."""
    count = 0
    for v in some:
        count += node[v, DEPTH] < depth
    return count


@kernel
def _sort_stretch(codes, drawn, begin, end, rows, front, back, cut, missing, missing_left, left_set, is_categorical):
    """Move the left rows of rows[begin:end] to front[begin], ..., the right ones to back[end - 1], ...; count the left.

    codes (n,) uint8: the split feature's bin of each row. ``front`` may be ``rows``: no left moves up.
    """
    sampled = drawn.shape[0] > 0
    low, high = np.uint64(begin), np.uint64(end) - _1
    last = np.uint64(end - 1)
    base = codes.ctypes.data
    if is_categorical:
        for k in range(np.uint64(begin), np.uint64(end)):
            row = rows[k]
            code = codes[np.uint64(drawn[np.uint64(row)] if sampled else row)]
            left = np.uint64((left_set[code >> np.uint8(5)] >> np.uint32(code & np.uint8(31))) & np.uint32(1))
            front[low] = row
            back[high] = row
            low += left
            high -= _1 - left
        return low - np.uint64(begin)
    # Missing values have the largest code. Turned round by 256 - missing, modulo 256, they have the smallest.
    turn = 256 - missing if missing_left else 0
    shift, limit = np.uint8(turn), np.uint8(cut + turn)
    if sampled:
        for k in range(np.uint64(begin), np.uint64(end)):
            prefetch(base + np.intp(drawn[np.uint64(rows[min(np.uint64(k + np.uint64(PREFETCH_DISTANCE)), last)])]))
            row = rows[k]
            left = np.uint64(np.uint8(codes[np.uint64(drawn[np.uint64(row)])] + shift) <= limit)
            front[low] = row
            back[high] = row
            low += left
            high -= _1 - left
    elif codes.shape[0] > NEAR:
        for k in range(np.uint64(begin), np.uint64(end)):
            prefetch(base + np.intp(rows[min(np.uint64(k + np.uint64(PREFETCH_DISTANCE)), last)]))
            row = rows[k]
            left = np.uint64(np.uint8(codes[np.uint64(row)] + shift) <= limit)
            front[low] = row
            back[high] = row
            low += left
            high -= _1 - left
    else:
        for k in range(np.uint64(begin), np.uint64(end)):
            row = rows[k]
            left = np.uint64(np.uint8(codes[np.uint64(row)] + shift) <= limit)
            front[low] = row
            back[high] = row
            low += left
            high -= _1 - left
    return low - np.uint64(begin)


@kernel
def _column(columns, f):
    """The bins of one feature; a sparse column is laid out in ``buffer``. columns: ColumnArrays."""
    if columns.columns.shape[0] > 0:
        return columns.columns[f]
    buffer = columns.buffer
    buffer[:] = columns.default[f]
    for e in range(columns.column_start[f], columns.column_start[f + 1]):
        buffer[columns.row[e]] = columns.column_bin[e]
    return buffer


@kernel
def sort_stretches(columns, rows, scratch, chosen, node, left_set, first, last, counts):
    """Rows [first, last) of the chosen nodes, laid end to end, into the scratch. counts (c,) int64: lefts of each.

    columns: ColumnArrays; rows, scratch (m,) int32; chosen (c,) int64; node and left_set: see ``NodeArrays``.
    """
    offset = 0
    for c in range(chosen.shape[0]):
        v = chosen[c]
        size = node[v, END] - node[v, BEGIN]
        begin, end = max(first - offset, 0), min(last - offset, size)
        offset += size
        counts[c] = 0
        if begin >= end:
            continue
        f = node[v, FEATURE]
        codes = _column(columns, f)
        counts[c] = _sort_stretch(
            codes, columns.drawn, node[v, BEGIN] + begin, node[v, BEGIN] + end, rows, scratch, scratch, node[v, BIN],
            columns.n_bins[f], node[v, MISSING_LEFT] == 1, left_set[v], columns.kinds[f] == 1,
        )  # fmt: skip


@kernel
def copy_stretches(chosen, node, rows, scratch, bounds, part, counts):
    """Part number ``part`` of the scratch to its places in ``rows``. bounds (parts + 1,), counts (parts, c) int64."""
    first, last = bounds[part], bounds[part + 1]
    offset = 0
    for c in range(chosen.shape[0]):
        v = chosen[c]
        size = node[v, END] - node[v, BEGIN]
        begin, end = max(first - offset, 0), min(last - offset, size)
        offset += size
        if begin >= end:
            continue
        lefts, before_left, before = 0, 0, 0
        for p in range(counts.shape[0]):
            if p < part:
                before_left += counts[p, c]
            lefts += counts[p, c]
        before = begin - before_left
        a, b = node[v, BEGIN] + begin, node[v, BEGIN] + end
        here = counts[part, c]
        to = node[v, BEGIN] + before_left
        for i in range(here):
            rows[np.uint64(to + i)] = scratch[np.uint64(a + i)]
        to = node[v, BEGIN] + lefts + before
        for i in range(b - a - here):
            rows[np.uint64(to + i)] = scratch[np.uint64(b - 1 - i)]


@kernel
def give_back(node, v, slots):
    """Free the slot of a node, if it has one. slots: a stack of free slots, its height first."""
    if node[v, SLOT] >= 0:
        slots[0] += 1
        slots[slots[0]] = node[v, SLOT]
        node[v, SLOT] = -1


@kernel
def _take_slot(slots, rows):
    """A free slot for a node of so many rows.

    Unpacked histograms get those at the bottom of the stack: few slots have their second half in memory then.
    """
    slot = slots[slots[0]]
    if rows > TILE:
        slot = slots[1]
        for i in range(1, slots[0]):
            slots[i] = slots[i + 1]
    slots[0] -= 1
    return slot


@kernel
def add_children(chosen, node, n_nodes, slots, counts, limits, new_pairs):
    """Make the children of the chosen nodes. Those of the last level keep no rows of their own: see ``settle_rows``.

    limits: ChildLimits. new_pairs (c, 3) int64 gets the pairs to build: smaller, larger, parent.

    The larger child takes over its parent's histogram, the smaller one gets a free slot. A pair of which neither can be
    split needs none. Where the parent's histogram is not kept, each child that can be split is a pair by itself, its
    larger one -1. slots: a stack of free slots, its height first. Returns the new number of nodes, and that of the new
    pairs.
    """
    pairs = 0
    for c in range(chosen.shape[0]):
        v = chosen[c]
        lefts = 0
        for p in range(counts.shape[0]):
            lefts += counts[p, c]
        left, right = n_nodes, n_nodes + 1
        n_nodes += 2
        node[v, LEFT], node[v, RIGHT], node[v, STATE] = left, right, SPLIT
        middle = node[v, BEGIN] + lefts
        node[left, BEGIN], node[left, END] = node[v, BEGIN], middle
        node[right, BEGIN], node[right, END] = middle, node[v, END]
        node[left, SUM_G], node[left, SUM_H] = node[v, LEFT_G], node[v, LEFT_H]
        node[right, SUM_G] = node[v, SUM_G] - node[v, LEFT_G]
        node[right, SUM_H] = node[v, SUM_H] - node[v, LEFT_H]
        some = False
        for child in (left, right):
            node[child, DEPTH] = node[v, DEPTH] + 1
            node[child, FEATURE], node[child, SLOT] = -1, -1
            rows = node[child, END] - node[child, BEGIN]
            can = (
                node[child, DEPTH] < limits.max_depth
                and rows >= limits.least_rows
                and node[child, SUM_H] > 0
                and node[child, SUM_H] * limits.unit_h >= 2.0 * limits.least_h
            )
            node[child, STATE] = NEW if can else CLOSED
            some = some or can
        if not some:
            give_back(node, v, slots)
            continue
        if node[v, SLOT] < 0:
            for child in (left, right):
                if node[child, STATE] == NEW:
                    node[child, SLOT] = _take_slot(slots, node[child, END] - node[child, BEGIN])
                    new_pairs[pairs, 0], new_pairs[pairs, 1], new_pairs[pairs, 2] = child, -1, v
                    pairs += 1
            continue
        small = left if 2 * lefts <= node[v, END] - node[v, BEGIN] else right
        large = left + right - small
        node[large, SLOT], node[small, SLOT] = node[v, SLOT], _take_slot(slots, node[small, END] - node[small, BEGIN])
        new_pairs[pairs, 0], new_pairs[pairs, 1], new_pairs[pairs, 2] = small, large, v
        pairs += 1
    return n_nodes, pairs


@kernel
def split_alone(columns, rows, scratch, chosen, node, left_set, n_nodes, slots, limits, counts, new_pairs):
    """The same as ``sort_stretches``, ``copy_stretches`` and ``add_children``, on one thread. counts (1, c) int64."""
    columns, limits = ColumnArrays(*columns), ChildLimits(*limits)
    for c in range(chosen.shape[0]):
        v = chosen[c]
        counts[0, c] = 0
        if node[v, DEPTH] + 1 >= limits.max_depth:
            continue
        f, begin, end = node[v, FEATURE], node[v, BEGIN], node[v, END]
        codes = _column(columns, f)
        lefts = _sort_stretch(
            codes, columns.drawn, begin, end, rows, rows, scratch, node[v, BIN], columns.n_bins[f],
            node[v, MISSING_LEFT] == 1, left_set[v], columns.kinds[f] == 1,
        )  # fmt: skip
        counts[0, c] = lefts
        for i in range(end - begin - lefts):
            rows[np.uint64(begin + lefts + i)] = scratch[np.uint64(end - 1 - i)]
    return add_children(chosen, node, n_nodes, slots, counts, limits, new_pairs)


@kernel
def to_settle(node, n_nodes, max_depth, settled):
    """The nodes whose rows lie together for ``settle_rows``: leaves, and parents of the last level. Returns how many.

    settled: (at least n_nodes,) int64.
    """
    count = 0
    for v in range(n_nodes):
        if node[v, STATE] == SPLIT:
            if node[v, DEPTH] + 1 != max_depth:
                continue
        elif node[v, DEPTH] == max_depth and max_depth > 0:
            continue  # its parent stands for it
        settled[count] = v
        count += 1
    return count


@kernel
def bound_last_level(node, settled, counts):
    """Set begin and end of the rows of the last level's children. counts (parts, c) int64, from ``settle_rows``."""
    for c in range(settled.shape[0]):
        v = settled[c]
        if node[v, STATE] != SPLIT:
            continue
        middle = node[v, BEGIN]
        for part in range(counts.shape[0]):
            middle += counts[part, c]
        left, right = node[v, LEFT], node[v, RIGHT]
        node[left, BEGIN], node[left, END] = node[v, BEGIN], middle
        node[right, BEGIN], node[right, END] = middle, node[v, END]


@kernel
def _settle_stretch(codes, drawn, begin, end, rows, cut, missing, missing_left, left_set, is_categorical, left, right,
                    out):  # fmt: skip
    """out[row] = left or right for rows[begin:end], which stay where they are; unless out is empty.

    Returns how many went left.
    """
    lefts = 0
    turn = 256 - missing if missing_left else 0
    shift, limit = np.uint8(turn), np.uint8(cut + turn)
    for k in range(np.uint64(begin), np.uint64(end)):
        row = np.uint64(rows[k])
        code = codes[np.uint64(drawn[row]) if drawn.shape[0] > 0 else row]
        if is_categorical:
            goes_left = (left_set[code >> np.uint8(5)] >> np.uint32(code & np.uint8(31))) & np.uint32(1) == 1
        else:
            goes_left = np.uint8(code + shift) <= limit
        if out.shape[0] > 0:
            out[row] = left if goes_left else right
        lefts += goes_left
    return lefts


@kernel
def settle_rows(columns, rows, settled, node, left_set, first, last, leaf_of_row, counts):
    """leaf_of_row[row] = leaf, for rows [first, last) of the settled nodes laid end to end; or only counts, if (0,).

    settled (c,) int64: the leaves whose rows lie together, and the nodes whose children are leaves and whose rows
    were never sorted; counts (c,) int64 gets the lefts of the latter. columns: the fields of ColumnArrays; the rest as
    for ``sort_stretches``.
    """
    columns = ColumnArrays(*columns)
    offset = 0
    for c in range(settled.shape[0]):
        v = settled[c]
        size = node[v, END] - node[v, BEGIN]
        begin, end = max(first - offset, 0), min(last - offset, size)
        offset += size
        if begin >= end:
            continue
        begin, end = node[v, BEGIN] + begin, node[v, BEGIN] + end
        if node[v, STATE] != SPLIT:
            for i in range(begin, end if leaf_of_row.shape[0] > 0 else begin):
                leaf_of_row[np.uint64(rows[np.uint64(i)])] = v
            continue
        f = node[v, FEATURE]
        codes = _column(columns, f)
        counts[c] = _settle_stretch(
            codes, columns.drawn, begin, end, rows, node[v, BIN], columns.n_bins[f], node[v, MISSING_LEFT] == 1,
            left_set[v], columns.kinds[f] == 1, node[v, LEFT], node[v, RIGHT], leaf_of_row,
        )  # fmt: skip
