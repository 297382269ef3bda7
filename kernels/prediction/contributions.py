"""contributions: Shapley values of leaves, see gpuboost.backends.prediction.tree_shap for the formula.

All loops that matter run over the rows of a block, so that they become vector instructions.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel


@kernel
def _passes(codes, slot, accepted, test, met, e):
    """met[e, r] *= bit codes[slot, r] of the set of bins that pass the test."""
    w0, w1, w2, w3 = accepted[test, 0], accepted[test, 1], accepted[test, 2], accepted[test, 3]
    row, low = np.uint64(slot), np.uint64(63)
    for r in range(np.uint64(met.shape[1])):
        code = np.uint64(codes[row, r])
        word = (w0 if code < 64 else w1) if code < 128 else (w2 if code < 192 else w3)
        met[e, r] *= np.float64((word >> (code & low)) & np.uint64(1))


@kernel
def _integrate(met, share, first, m, points, weights, before, total):
    """total[e, r] = integral of the product of all factors but the e'th: those before it times those after it.

    before[e] is the product of the factors before e, times the weight of the point; before[m] that of those after it.
    """
    rows, q, last = np.uint64(met.shape[1]), (m + 1) // 2, np.uint64(m)
    for j in range(q):
        t, weight = points[q - 1, j], weights[q - 1, j]
        for r in range(rows):
            before[0, r] = weight
        for e in range(np.uint64(m - 1)):
            alone = (1.0 - t) * share[np.uint64(first) + e]
            for r in range(rows):
                before[e + np.uint64(1), r] = before[e, r] * (t * met[e, r] + alone)
        for r in range(rows):
            before[last, r] = 1.0
        for back in range(np.uint64(m)):
            e = last - np.uint64(1) - back
            alone = (1.0 - t) * share[np.uint64(first) + e]
            for r in range(rows):
                after = before[last, r]
                total[e, r] = before[e, r] * after + (total[e, r] if j > 0 else 0.0)
                before[last, r] = after * (t * met[e, r] + alone)


@kernel
def add_contributions(codes, start, place, share, test_start, slot, accepted, value, output, points, weights, met,
                      before, total, phi):  # fmt: skip
    """phi[output, place, row] += contribution of every leaf to the coded rows of one block.

    codes: (s, width) uint8; start: (leaves + 1,) into conditions; place (in phi) and share, per condition; test_start:
    (conditions + 1,) into tests; slot (in codes) and accepted, per test; value, output: per leaf; points, weights:
    (q, q) the Gauss-Legendre rule of i + 1 points on [0, 1] in row i; met, before, total: (most conditions of a leaf
    + 1, width) float64, room to work in; phi: (k, places, width) float64.
    """
    rows = np.uint64(codes.shape[1])
    for leaf in range(len(value)):
        first, m = start[leaf], start[leaf + 1] - start[leaf]
        for e in range(np.uint64(m)):
            condition = np.uint64(first) + e
            for r in range(rows):
                met[e, r] = 1.0
            for test in range(np.uint64(test_start[condition]), np.uint64(test_start[condition + np.uint64(1)])):
                _passes(codes, slot[test], accepted, test, met, e)
        _integrate(met, share, first, m, points, weights, before, total)
        for e in range(np.uint64(m)):
            condition = np.uint64(first) + e
            i, j, z, v = np.uint64(output[leaf]), np.uint64(place[condition]), share[condition], value[leaf]
            for r in range(rows):
                phi[i, j, r] += v * ((met[e, r] - z) * total[e, r])
