"""Gaussian noise on gradients with a user's scale: a kernel of numba.cuda on GPUs, of numba on CPUs, from one text.

A thread of a GPU has every ``step``-th row from its own number on; a thread of a CPU has a range of rows. Noise of the
usual scale sqrt(h) is in ``noise.cu``, which also measures the gradients, and in ``common/normal.py``.
"""

from gpuboost.kernels.common.float32 import narrowed, widened
from gpuboost.kernels.common.normal import noisy, normal
from gpuboost.kernels.common.philox import words_of


def row_noise(scale):
    """(g, h) -> standard deviation in units of ``deviation``, as a kernel: out = g + deviation scale z."""

    def noise_of(
        begin, stop, step, g, h, times, has_times, rows, drawn, m, n, k, deviation, seed_low, seed_high, iteration,
        names, table, out,
    ):  # fmt: skip
        """For i in range(begin, stop, step), of ``m[0]`` drawn rows if ``drawn``, else of n rows; k outputs.

        g, h, out: bits of (k, n) float32, as k n uint32; times (n,) int32 multiplicities if has_times; rows (n,) int32
        numbers of the rows; names (k,) uint32 streams; iteration (1,) uint32; table: of normal.py, (1536,) float64.
        """
        count = min(stop, m[0]) if drawn else stop
        for i in range(begin, count, step):
            row = rows[i] if drawn else i
            for output in range(k):
                at = output * n + i
                gradient, deviation_of_row = widened(g[at]), scale(widened(g[at]), widened(h[at]))
                spread = deviation_of_row * deviation_of_row
                if has_times:
                    spread = spread / times[i]
                a, b, c, d = words_of(row >> 2, seed_low, seed_high, iteration[0], names[output])
                place = row & 3
                word = (a if place == 0 else b) if place < 2 else (c if place == 2 else d)
                out[at] = narrowed(noisy(gradient, spread, deviation, normal(word, table)))

    return noise_of
