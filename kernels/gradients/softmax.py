"""Derivatives of the softmax loss on a CPU: its formulas, class by class over blocks of rows, so that they vectorise.

``Softmax.row_derivatives`` has the same operations row by row, which is the better order for a GPU's thread.
"""

import numpy as np

from gpuboost.kernels.common.vector import wide_vectors

ROWS = 256  # of a block, whose numbers stay in the cache


def gradients_of(formulas, stamp, jit):
    """(odds, share's curvature) of ``Softmax`` as a kernel over rows [start, stop).

    y (n,) float64 whole; f (k, n) float64; weight (n,) float64 or (0,); g, h (k, n) float32. constant: whether
    something else stands for h, which is then not written.
    """
    odds, curvature = formulas

    @jit
    def gradients(y, f, weight, a, constant, start, stop, g, h):
        _ = stamp
        wide_vectors()
        k = f.shape[0]
        tops, totals, every = np.empty(ROWS), np.empty(ROWS), np.empty((k, ROWS))
        for begin in range(start, stop, ROWS):
            end = min(begin + ROWS, stop)
            size = end - begin
            top, total, label = tops[:size], totals[:size], y[begin:end]
            by = weight[begin:end] if weight.shape[0] > 0 else weight
            top[:] = f[0, begin:end]
            total[:] = 0.0
            for c in range(1, k):
                score = f[c, begin:end]
                for j in range(size):
                    top[j] = score[j] if score[j] > top[j] else top[j]
            for c in range(k):
                score, e = f[c, begin:end], every[c]
                for j in range(size):
                    e[j] = odds(score[j], top[j])
                    total[j] += e[j]
            for c in range(k):
                e, class_label, first, second = every[c], np.float64(c), g[c, begin:end], h[c, begin:end]
                if not constant:
                    for j in range(size):
                        second[j] = np.float32(curvature(e[j] / total[j], k) * (by[j] if by.size > 0 else 1.0))
                for j in range(size):
                    p = e[j] / total[j]
                    p = p - 1.0 if label[j] == class_label else p
                    first[j] = np.float32(p * (by[j] if by.size > 0 else 1.0))

    return gradients
