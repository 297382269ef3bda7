"""Gaussian noise on gradients with a user's scale: a kernel of numba.cuda on GPUs, of numba on CPUs, from one text.

A thread of a GPU has every ``step``-th row from its own number on; a thread of a CPU has a range of rows. Noise of the
usual scale sqrt(h) is in ``noise.cu``, which also measures the gradients, and in ``common/normal.py``.
"""

from typing import Any, NamedTuple

from gpuboost.kernels.common.float32 import narrowed, widened
from gpuboost.kernels.common.normal import noisy, normal
from gpuboost.kernels.common.philox import words_of


class Derivatives(NamedTuple):
    """Derivatives of n rows, and what each row stands for."""

    g: Any  # (k * n,) uint32: bits of (k, n) float32
    h: Any  # the same
    times: Any  # (n,) int32 multiplicities, read if has_times
    has_times: Any


class DrawnRows(NamedTuple):
    """Numbers of these rows, where they are drawn ones."""

    rows: Any  # (n,) int32, read if drawn
    drawn: Any
    m: Any  # (1,) int32: how many rows are drawn, read if drawn


class Streams(NamedTuple):
    """Random numbers of the outputs."""

    seed_low: Any  # uint32
    seed_high: Any  # uint32
    iteration: Any  # (1,) uint32
    names: Any  # (k,) uint32


def row_noise(scale):
    """(g, h) -> standard deviation in units of ``deviation``, as a kernel: out = g + deviation scale z."""

    def noise_of(begin, stop, step, of, chosen, n, k, deviation, streams, table, out):
        """For i in range(begin, stop, step), of drawn rows only the first ``m``; k outputs.

        of: Derivatives; chosen: DrawnRows; streams: Streams; table: of normal.py, (1536,) float64; out: as ``of.g``.
        """
        count = min(stop, chosen.m[0]) if chosen.drawn else stop
        for i in range(begin, count, step):
            row = chosen.rows[i] if chosen.drawn else i
            for output in range(k):
                index = output * n + i
                gradient, deviation_of_row = widened(of.g[index]), scale(widened(of.g[index]), widened(of.h[index]))
                spread = deviation_of_row * deviation_of_row
                if of.has_times:
                    spread = spread / of.times[i]
                a, b, c, d = words_of(
                    row >> 2, streams.seed_low, streams.seed_high, streams.iteration[0], streams.names[output]
                )
                place = row & 3
                word = (a if place == 0 else b) if place < 2 else (c if place == 2 else d)
                out[index] = narrowed(noisy(gradient, spread, deviation, normal(word, table)))

    return noise_of
