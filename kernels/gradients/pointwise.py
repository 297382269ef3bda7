"""gradients and loss_value: a loss's scalar formula, run over rows.

A formula is compiled into its own kernel by closing over it; ``stamp`` names the text of everything that is inlined,
so that a kernel cached on disk is not used after that text has changed. ``jit`` is ``jit.kernel``, or
``jit.for_this_process`` where no text can tell.
"""

import numpy as np

from gpuboost.kernels.common.fixed_point import BLOCK, LANES, STRETCH
from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.vector import wide_vectors


def gradients_of(derivatives, stamp, jit):
    """(y, f, a) -> (g, h) as a kernel over rows [start, stop) of one output.

    y, f (n,) float64; weight (n,) float64 or (0,); g, h (n,) float32. constant: whether something else stands for h,
    which is then not written.
    """

    @jit
    def gradients(y, f, weight, a, constant, start, stop, g, h):
        _ = stamp
        wide_vectors()
        y, f, g, h = y[start:stop], f[start:stop], g[start:stop], h[start:stop]  # indices from 0 vectorise
        weighted = weight.shape[0] > 0
        weight = weight[start:stop]
        if constant:
            for i in range(y.size):
                first, _ = derivatives(y[i], f[i], a)
                g[i] = np.float32(first * weight[i] if weighted else first)
        elif weighted:
            for i in range(y.size):
                first, second = derivatives(y[i], f[i], a)
                g[i], h[i] = np.float32(first * weight[i]), np.float32(second * weight[i])
        else:
            for i in range(y.size):
                first, second = derivatives(y[i], f[i], a)
                g[i], h[i] = np.float32(first), np.float32(second)

    return gradients


def row_gradients_of(row_derivatives, stamp, jit):
    """(y, f, g, h, a) for all outputs of a row, as a kernel. f (k, n) float64; g, h (k, n) float32."""

    @jit
    def gradients(y, f, weight, a, constant, start, stop, g, h):
        _ = stamp
        k = f.shape[0]
        scores, first, second = np.empty(k), np.empty(k), np.empty(k)
        for i in range(start, stop):
            for c in range(k):
                scores[c] = f[c, i]
            row_derivatives(y[i], scores, first, second, a)
            for c in range(k):
                by = weight[i] if weight.shape[0] > 0 else 1.0
                g[c, i] = np.float32(first[c] * by)
                if not constant:
                    h[c, i] = np.float32(second[c] * by)

    return gradients


def values_of(value, stamp, jit):
    """(y, f, a) -> l as a kernel: out[i] = l for rows [start, stop)."""

    @jit
    def values(y, f, a, start, stop, out):
        _ = stamp
        y, f, out = y[start:stop], f[0, start:stop], out[start:stop]
        for i in range(y.size):
            out[i] = value(y[i], f[i], a)

    return values


def row_values_of(row_value, stamp, jit):
    """The same where a loss has several outputs."""

    @jit
    def values(y, f, a, start, stop, out):
        _ = stamp
        k = f.shape[0]
        scores = np.empty(k)
        for i in range(start, stop):
            for c in range(k):
                scores[c] = f[c, i]
            out[i] = row_value(y[i], scores, a)

    return values


@kernel
def add_leaves(scores, steps, leaf_of_row, start, stop):
    """scores[i] += steps[leaf_of_row[i]]. scores (n,) float64, steps (v,) float64, leaf_of_row (n,) int32."""
    scores, leaf_of_row = scores[start:stop], leaf_of_row[start:stop]
    if steps.shape[0] == 3:  # a root and two leaves, 1 and 2: no table, so that it vectorises
        left, right = steps[1], steps[2]
        for i in range(scores.size):
            scores[i] += left if leaf_of_row[i] == 1 else right
        return
    for i in range(scores.size):
        scores[i] += steps[np.uint64(leaf_of_row[i])]


@kernel
def shrunken(sums, out, bias, scale, start, stop):
    """out = bias + scale * sums over rows [start, stop). sums, out (n,) float64."""
    sums, out = sums[start:stop], out[start:stop]
    for i in range(sums.size):
        out[i] = bias + scale * sums[i]


@kernel
def _sum_of_stretch(x):
    """16 lanes, element i to lane i % 16, the lanes in order."""
    lanes = np.zeros(LANES, np.float64)
    lines = x.size // LANES
    table = x[: lines * LANES].reshape(lines, LANES)
    for i in range(lines):
        for lane in range(LANES):
            lanes[lane] += table[i, lane]
    for i in range(lines * LANES, x.size):
        lanes[i % LANES] += x[i]
    total = 0.0
    for lane in range(LANES):
        total += lanes[lane]
    return total


@kernel
def sum_in_order(x):
    """The sum of float64 numbers in the order of ``numerics.exact_sums.fixed_order_sum``."""
    total = 0.0
    for begin in range(0, x.shape[0], BLOCK):
        in_block, stop = 0.0, min(begin + BLOCK, x.shape[0])
        for first in range(begin, stop, STRETCH):
            in_block += _sum_of_stretch(x[first : min(first + STRETCH, stop)])
        total += in_block
    return total
