"""Quantile of the residuals in each leaf. Definition: ``numerics.leaf_values.weighted_quantile``.

Nothing is sorted. The bits of a residual become a whole number of the same order, and the range that contains the
quantile is halved until one number is left: 64 times at most, and each time among about half as many rows.
"""

from math import ceil

import numpy as np

from gpuboost.kernels.common.jit import kernel

_ALL_BUT_SIGN = np.int64(2**63 - 1)
_INFINITY = np.int64(0x7FF0_0000_0000_0000)  # its bits; above them are those of NaN


@kernel
def _in_order(bits):
    """The whole number of a float64's bits (int64) in its order, or the bits again of such a number."""
    return bits ^ ((bits >> np.int64(63)) & _ALL_BUT_SIGN)


@kernel
def sort_by_leaf(leaf_of_row, residual, weight, end, ordered, weights):
    """The residuals as whole numbers, and the weights, of one leaf after the other.

    leaf_of_row (n,) int32; residual (n,) int64: bits of float64; weight, ordered, weights (n,) int64; end (v,) int64:
    where the rows of each node end.
    """
    end[:] = 0
    for i in range(leaf_of_row.size):
        end[leaf_of_row[i]] += 1
    total = np.int64(0)
    for v in range(end.size):
        rows = end[v]
        end[v] = total  # where they begin, until they are there
        total += rows
    for i in range(leaf_of_row.size):
        place, size = end[leaf_of_row[i]], residual[i] & _ALL_BUT_SIGN
        ordered[place] = size if size > _INFINITY else _in_order(residual[i])  # NaN comes last, whatever its sign
        weights[place] = weight[i]
        end[leaf_of_row[i]] = place + 1


@kernel
def _quantile(ordered, weights, alpha):
    """The smallest number at which the weight from below reaches alpha of the total. Both arrays are overwritten."""
    low, high, total = ordered[0], ordered[0], np.int64(0)
    for j in range(ordered.size):
        low, high, total = min(low, ordered[j]), max(high, ordered[j]), total + weights[j]
    needed = min(max(np.int64(ceil(alpha * np.float64(total))), np.int64(1)), total)
    size = ordered.size
    while low < high:
        middle = (low & high) + ((low ^ high) >> np.int64(1))  # their mean, which cannot overflow
        below, kept = np.int64(0), 0
        for j in range(size):
            below += weights[j] if ordered[j] <= middle else np.int64(0)
        is_below, new_low, new_high = below >= needed, high, low
        for j in range(size):
            x, weight = ordered[j], weights[j]
            if (x <= middle) == is_below:
                ordered[kept], weights[kept] = x, weight
                new_low, new_high = min(new_low, x), max(new_high, x)
                kept += 1
        needed -= np.int64(0) if is_below else below
        low, high, size = new_low, new_high, kept
    return low


@kernel
def quantiles(first, last, feature, end, ordered, weights, alpha, value):
    """value[v] of nodes [first, last): the quantile of a leaf's residuals; 0.0 without rows, and at inner nodes.

    feature (v,) int32: -1 at leaves; end, ordered, weights: of ``sort_by_leaf``, of which the last two are overwritten;
    value (v,) int64: bits of float64.
    """
    for v in range(first, last):
        begin, stop = end[v - 1] if v > 0 else np.int64(0), end[v]
        value[v] = 0
        if feature[v] < 0 and stop > begin:
            value[v] = _in_order(_quantile(ordered[begin:stop], weights[begin:stop], alpha))
