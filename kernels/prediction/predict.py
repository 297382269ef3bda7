"""predict and leaves: raw values to codes, codes to leaves, leaves to scores. Definition: Reference.predict.

Rows go through in blocks of a few hundred: a block's codes, one row of bytes per feature that the forest uses, stay in
the first-level cache while tree after tree is asked. Few rows, and those asked by a tree of more than 256 leaves, walk
from the root, eight side by side.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.vector import LANES, choose, choose_constants, count_below

NARROW, WIDE, CATEGORICAL = 0, 1, 2  # how a feature finds its bin: among 16 cuts, among 256, by equality
NARROW_SIZE, WIDE_SIZE = 16, 272  # 16 guides (every 16th cut) and 256 cuts, infinity where there are none
TOGETHER = 64  # rows of a column that are coded in one go; divides the width of a block
EIGHT = 8  # rows that walk together
FEW = 24  # rows of a block below which walking is faster

QUESTION, ANSWER, OUT = 0, 9, 13  # of an operation: three questions of (row, shift, last), four answers, a slot
SLOT, RULE, CHILD = 0, 1, 2  # of a node to walk: rule = shift + 256 * last, or -1 - set, then left and right child
LEAD_LEFT = 255 << 8  # rule of a leaf, both children of which are itself

CONSTANTS = 256 * LANES  # bytes of scratch that hold 64 times 0, 64 times 1, ...


class FlatTrees(NamedTuple):
    """Trees without values, one after the other: see ``flatten``."""

    starts: Any  # (4, trees + 1) int64: first operation, set, leaf and node of each tree
    ops: Any  # (operations, 14) int32
    sets: Any  # (sets, 4) uint64: which codes go left
    set_slot: Any  # (sets, 2) int32: slot of the codes, and the highest of them
    nodes: Any  # (v, 4) int32, to walk
    leaf_of: Any  # (v,) int32: number of a leaf within its tree
    leaf_node: Any  # (leaves,) int32: node of each leaf


class TreeScratch(NamedTuple):
    """Scratch memory for one block of rows, of ``width``."""

    results: Any  # uint8: CONSTANTS bytes, then a line of ``width`` for each result of an operation
    looked_up: Any  # (sets of a tree, width) uint8
    leaf: Any  # (width,) int32
    places: Any  # (8,) uint64


@kernel
def _wide_bin(base, size, x):
    """Count those of 256 increasing numbers that are less than x: 16 guides tell which 16 to compare."""
    sixteen = count_below(base, x) * 16
    return sixteen + count_below(base + (16 + sixteen) * size, x)


@kernel
def _category_bin(base, codes, bins, missing, x):
    """The bin of the category x; the one for missing values if x is none that is listed."""
    index = _wide_bin(base, 8, x)
    return bins[index] if codes[16 + index] == x else missing


@kernel
def _code_column(
    x, first_value, stride, rows, kind, table_start, missing, cuts, categories, category_bins, codes, block, slot, skip
):
    """codes[block, slot, skip : skip + rows] of one feature's values x[place], x[place + stride], ..."""
    size, b, j, k = cuts.itemsize, np.uint64(block), np.uint64(slot), np.uint64(skip)
    base = cuts.ctypes.data + table_start * size
    if kind == WIDE:
        for r in range(np.uint64(rows)):
            value = x[np.uint64(first_value) + r * np.uint64(stride)]
            code = np.uint8(_wide_bin(base, size, value))
            codes[b, j, k + r] = missing if np.isnan(value) else code
    elif kind == NARROW:
        for r in range(np.uint64(rows)):
            value = x[np.uint64(first_value) + r * np.uint64(stride)]
            code = np.uint8(count_below(base, value))
            codes[b, j, k + r] = missing if np.isnan(value) else code
    else:
        base = categories.ctypes.data + table_start * 8
        listed, bins = categories[table_start:], category_bins[table_start:]
        for r in range(np.uint64(rows)):
            value = np.float64(x[np.uint64(first_value) + r * np.uint64(stride)])
            codes[b, j, k + r] = _category_bin(base, listed, bins, missing, value)


@kernel
def code_dense(x, row_stride, column_stride, start, n, columns, kinds, places, missing, cuts, categories,
               category_bins, codes):  # fmt: skip
    """codes[block, slot, row] of rows start .. start + n of x (flat, float32 or float64).

    ``columns``, ``kinds``, ``places`` and ``missing`` hold for each slot its column, its way to a bin, its place in
    ``cuts`` (of x's type: a float32 is compared with the largest float32 that is no larger than the cut) or in
    ``categories``, and its code for NaN. Few rows are done at a time, so that those of wide data stay in the caches.
    """
    width = codes.shape[2]
    for top in range(0, n, TOGETHER):
        rows, block, skip = min(TOGETHER, n - top), top // width, top % width
        for slot in range(len(columns)):
            first_value = (start + top) * row_stride + columns[slot] * column_stride
            _code_column(x, first_value, row_stride, rows, kinds[slot], places[slot], missing[slot], cuts, categories,
                         category_bins, codes, block, slot, skip)  # fmt: skip


@kernel
def code_sparse(data, indices, indptr, start, n, slot_start, absent, kinds, places, missing, cuts, categories,
                category_bins, codes):  # fmt: skip
    """The same from the rows of a CSR matrix; slot_start[c] .. slot_start[c + 1] are the slots that read column c.

    ``absent`` is each slot's code of 0.
    """
    width = codes.shape[2]
    for block in range((n + width - 1) // width):
        for slot in range(np.uint64(len(absent))):
            for r in range(np.uint64(width)):
                codes[np.uint64(block), slot, r] = absent[slot]
        for r in range(min(width, n - block * width)):
            row = start + block * width + r
            for entry in range(indptr[row], indptr[row + 1]):
                column = np.uint64(indices[entry])
                for slot in range(slot_start[column], slot_start[column + np.uint64(1)]):  # types as in ``code_dense``
                    _code_column(
                        data, np.int64(entry), np.int64(0), np.int64(1), kinds[slot], places[slot], missing[slot], cuts,
                        categories, category_bins, codes, block, slot, r,
                    )  # fmt: skip


@kernel
def take_sparse_columns(default, column_start, row, column_bin, start, n, features, codes):
    """codes[block, slot, row] of rows that are binned already, from the stored entries of each column."""
    width = codes.shape[2]
    for slot in range(len(features)):
        feature = features[slot]
        for block in range(np.uint64(len(codes))):
            for r in range(np.uint64(width)):
                codes[block, np.uint64(slot), r] = default[feature]
        begin, end = column_start[feature], column_start[feature + 1]
        entry = begin + np.searchsorted(row[begin:end], start)
        while entry < end and row[entry] < start + n:
            offset = row[entry] - start
            codes[offset // width, slot, offset % width] = column_bin[entry]
            entry += 1


@kernel
def _walk(codes, rows, nodes, leaf_of, begin, has_sets, sets, leaf, places):
    """leaf[r] = number of the leaf of each row of a block (and some after them), from the root down.

    Eight rows take their steps in turn, so that they wait for memory together; the first to arrive mark time.
    """
    root = np.uint64(begin)
    for first in range(np.uint64(0), np.uint64(rows), np.uint64(EIGHT)):
        places[:] = root
        moved = True
        while moved:
            moved = False
            for i in range(np.uint64(EIGHT)):
                node = places[i]
                code, rule = codes[np.uint64(nodes[node, SLOT]), first + i], nodes[node, RULE]
                if has_sets and rule < 0:
                    bits = sets[np.uint64(-1 - rule), np.uint64(code >> 6)]
                    right = np.uint64(1) - ((bits >> np.uint64(code & 63)) & np.uint64(1))
                else:
                    right = np.uint64(np.uint8(code + np.uint8(rule & 255)) > np.uint8(rule >> 8))
                places[i] = root + np.uint64(nodes[node, np.uint64(CHILD) + right])
                moved |= places[i] != node
        for i in range(np.uint64(EIGHT)):
            leaf[first + i] = leaf_of[places[i]]


@kernel
def _look_up(codes, highest, set_, out):
    """out[r] = 0 if bit codes[r] of the set is 1, else 1. No code is above ``highest``."""
    w0, w1, w2, w3, low = ~set_[0], ~set_[1], ~set_[2], ~set_[3], np.uint64(63)
    if highest < 64:
        for r in range(np.uint64(len(out))):
            out[r] = np.uint8((w0 >> np.uint64(codes[r])) & np.uint64(1))
    else:
        for r in range(np.uint64(len(out))):
            code = np.uint64(codes[r])
            word = (w0 if code < 64 else w1) if code < 128 else (w2 if code < 192 else w3)
            out[r] = np.uint8((word >> (code & low)) & np.uint64(1))


@kernel
def _row(base, table, row, width):
    """Address of the codes that an operation reads: row ``row`` of the block, or looked-up row j for -1 - j."""
    return base + row * width if row >= 0 else table + (-1 - row) * width


@kernel
def _execute(codes, ops, begin, end, result_codes, looked_up):
    """results[0 : width] = number of the leaf of every row of a block, as bytes, by the tree's program."""
    width = codes.shape[1]
    base, table, constants = codes.ctypes.data, looked_up.ctypes.data, result_codes.ctypes.data
    results = constants + CONSTANTS
    for j in range(np.uint64(begin), np.uint64(end)):
        op = ops[j]
        c0 = _row(base, table, np.intp(op[QUESTION]), width)
        c1 = _row(base, table, np.intp(op[QUESTION + 3]), width)
        c2 = _row(base, table, np.intp(op[QUESTION + 6]), width)
        s0, s1, s2 = np.uint8(op[QUESTION + 1]), np.uint8(op[QUESTION + 4]), np.uint8(op[QUESTION + 7])
        l0, l1, l2 = np.uint8(op[QUESTION + 2]), np.uint8(op[QUESTION + 5]), np.uint8(op[QUESTION + 8])
        out = results + np.intp(op[OUT]) * width
        a0, a1, a2, a3 = np.intp(op[ANSWER]), np.intp(op[ANSWER + 1]), np.intp(op[ANSWER + 2]), np.intp(op[ANSWER + 3])
        if a0 < 0 and a1 < 0 and a2 < 0 and a3 < 0:
            v0, v1, v2, v3 = np.uint8(~a0), np.uint8(~a1), np.uint8(~a2), np.uint8(~a3)
            for r in range(0, width, LANES):
                choose_constants(out + r, c0 + r, s0, l0, c1 + r, s1, l1, c2 + r, s2, l2, v0, v1, v2, v3)
        else:  # a leaf is 64 equal bytes that are read again and again, so that its address does not move with r
            m0, m1, m2, m3 = ~(a0 >> 63), ~(a1 >> 63), ~(a2 >> 63), ~(a3 >> 63)
            a0 = results + a0 * width if a0 >= 0 else constants + ~a0 * LANES
            a1 = results + a1 * width if a1 >= 0 else constants + ~a1 * LANES
            a2 = results + a2 * width if a2 >= 0 else constants + ~a2 * LANES
            a3 = results + a3 * width if a3 >= 0 else constants + ~a3 * LANES
            for r in range(0, width, LANES):
                choose(out + r, c0 + r, s0, l0, c1 + r, s1, l1, c2 + r, s2, l2,
                       a0 + (r & m0), a1 + (r & m1), a2 + (r & m2), a3 + (r & m3))  # fmt: skip


@kernel
def find(codes, rows, t, trees, scratch):
    """The leaf of tree t for each row of a block: in results, after the constants, if True; in leaf otherwise.

    trees: FlatTrees; scratch: TreeScratch.
    """
    starts, sets, set_slot, looked_up = trees.starts, trees.sets, trees.set_slot, scratch.looked_up
    if rows < FEW or starts[0, t] == starts[0, t + 1]:
        has_sets = starts[1, t] < starts[1, t + 1]
        _walk(codes, rows, trees.nodes, trees.leaf_of, starts[3, t], has_sets, sets, scratch.leaf, scratch.places)
        return False
    for j in range(starts[1, t], starts[1, t + 1]):
        _look_up(codes[set_slot[j, 0]], set_slot[j, 1], sets[j], looked_up[j - starts[1, t]])
    _execute(codes, trees.ops, starts[0, t], starts[0, t + 1], scratch.results, looked_up)
    return True


@kernel
def _add(leaf, skip, values, first, scores, output, first_row, rows):
    """scores[output, first_row + r] += values[first + leaf[skip + r]]"""
    i, j, k, v = np.uint64(output), np.uint64(first_row), np.uint64(skip), np.uint64(first)
    for r in range(np.uint64(rows)):
        scores[i, j + r] += values[v + np.uint64(leaf[k + r])]


@kernel
def _write(leaf, skip, leaf_node, first, out, first_row, column, rows):
    """out[first_row + r, column] = leaf_node[first + leaf[skip + r]]"""
    i, j, k, v = np.uint64(first_row), np.uint64(column), np.uint64(skip), np.uint64(first)
    for r in range(np.uint64(rows)):
        out[i + r, j] = leaf_node[v + np.uint64(leaf[k + r])]


@kernel
def add_trees(codes, n, first, last, trees, scratch, values, output, scores, first_row):
    """scores[output[t], at + r] += value of the leaf of tree t, for trees first .. last in turn and n coded rows.

    trees: FlatTrees; scratch: TreeScratch.
    """
    width, starts = codes.shape[2], trees.starts
    for block in range((n + width - 1) // width):
        rows, row, coded = min(width, n - block * width), first_row + block * width, codes[block]
        for t in range(first, last):
            if find(coded, rows, t, trees, scratch):
                _add(scratch.results, CONSTANTS, values, starts[2, t], scores, output[t], row, rows)
            else:
                _add(scratch.leaf, 0, values, starts[2, t], scores, output[t], row, rows)


@kernel
def find_leaves(codes, n, first, last, trees, scratch, out, first_row):
    """out[first_row + r, t - first] = leaf of row r in tree t."""
    width, starts = codes.shape[2], trees.starts
    for block in range((n + width - 1) // width):
        rows, row, coded = min(width, n - block * width), first_row + block * width, codes[block]
        for t in range(first, last):
            if find(coded, rows, t, trees, scratch):
                _write(scratch.results, CONSTANTS, trees.leaf_node, starts[2, t], out, row, t - first, rows)
            else:
                _write(scratch.leaf, 0, trees.leaf_node, starts[2, t], out, row, t - first, rows)
