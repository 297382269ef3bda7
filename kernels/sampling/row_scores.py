"""Sampling scores by a user's function: a kernel of numba.cuda on GPUs, of numba on CPUs, from one Python text.

A thread of a GPU has every ``step``-th row from its own number on; a thread of a CPU has a range of rows.
"""

from gpuboost.kernels.common.float32 import widened


def row_scores(score):
    """(g, h) -> number, as a kernel: out[i] = its sum over the outputs of row i."""

    def scores_of(begin, stop, step, g, h, n, k, out):
        """For i in range(begin, stop, step). g, h: bits of (k, n) float32, as k n uint32; out (n,) float64."""
        for i in range(begin, stop, step):
            total = 0.0
            for output in range(k):
                index = output * n + i
                total += score(widened(g[index]), widened(h[index]))
            out[i] = total

    return scores_of
