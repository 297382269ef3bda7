"""contributions: Shapley values of leaves, and interactions of two columns, by ``backends.prediction.tree_shap``.

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
def _meet(codes, first, m, test_start, slot, accepted, met):
    """met[e, r] = 1 if row r meets condition first + e of a leaf, 0 if not; e below m."""
    rows = np.uint64(codes.shape[1])
    for e in range(np.uint64(m)):
        condition = np.uint64(first) + e
        for r in range(rows):
            met[e, r] = 1.0
        for test in range(np.uint64(test_start[condition]), np.uint64(test_start[condition + np.uint64(1)])):
            _passes(codes, slot[test], accepted, test, met, e)


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
        _meet(codes, first, m, test_start, slot, accepted, met)
        _integrate(met, share, first, m, points, weights, before, total)
        for e in range(np.uint64(m)):
            condition = np.uint64(first) + e
            i, j, z, v = np.uint64(output[leaf]), np.uint64(place[condition]), share[condition], value[leaf]
            for r in range(rows):
                phi[i, j, r] += v * ((met[e, r] - z) * total[e, r])


@kernel
def add_interactions(codes, start, place, share, test_start, slot, accepted, value, output, points, weights, met,
                     after, before, pairs):  # fmt: skip
    """pairs[output, a, b, row] += interaction of the columns at places a < b, of every leaf, for the coded rows.

    Arguments as those of ``add_contributions``; met, after: (most conditions of a leaf + 1, width), before: (2, width)
    float64, room to work in; pairs: (k, places, places, width) float64. before[0] is the product of the factors in
    front of e, times the weight of the point; before[1] that and those between e and f; after[f] that of f and behind.
    """
    rows, uint_one = np.uint64(codes.shape[1]), np.uint64(1)
    for leaf in range(len(value)):
        first, m = np.uint64(start[leaf]), np.uint64(start[leaf + 1] - start[leaf])
        if m < 2:
            continue
        _meet(codes, first, m, test_start, slot, accepted, met)
        half, i, q = 0.5 * value[leaf], np.uint64(output[leaf]), m // np.uint64(2)
        for j in range(q):
            t, weight = points[q - uint_one, j], weights[q - uint_one, j]
            for r in range(rows):
                after[m, r] = 1.0
                before[0, r] = weight
            for back in range(m - uint_one):
                e = m - uint_one - back
                alone = (1.0 - t) * share[first + e]
                for r in range(rows):
                    after[e, r] = after[e + uint_one, r] * (t * met[e, r] + alone)
            for e in range(m - uint_one):
                z_e, a = share[first + e], np.uint64(place[first + e])
                for r in range(rows):
                    before[1, r] = before[0, r]
                for f in range(e + uint_one, m):
                    z, b = share[first + f], np.uint64(place[first + f])
                    alone = (1.0 - t) * z
                    for r in range(rows):
                        without = before[1, r] * after[f + uint_one, r]
                        pairs[i, a, b, r] += half * (met[e, r] - z_e) * ((met[f, r] - z) * without)
                        before[1, r] *= t * met[f, r] + alone
                alone = (1.0 - t) * z_e
                for r in range(rows):
                    before[0, r] *= t * met[e, r] + alone


@kernel
def complete(phi, pairs):
    """The diagonal of pairs, so that its rows sum to phi, and its entries below the diagonal.

    phi: (k, places, width); pairs: (k, places, places, width), given above the diagonal.
    """
    k, places, rows = phi.shape
    for i in range(k):
        for a in range(places):
            for r in range(rows):
                pairs[i, a, a, r] = phi[i, a, r]
            for b in range(places):
                if b < a:
                    for r in range(rows):
                        pairs[i, a, b, r] = pairs[i, b, a, r]
                if b != a:
                    for r in range(rows):
                        pairs[i, a, a, r] -= pairs[i, a, b, r]
