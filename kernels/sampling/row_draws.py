"""Bernoulli importance sampling by a user's score: a kernel of numba.cuda.

p of a row is min(1, max(floor, rho score)) with rho and floor that are given, so no threshold is searched and scores,
probabilities and draws are one kernel. Other rules need sums over all rows first: ``importance.cu`` draws for them.
"""

import math

import numpy as np

from gpuboost.kernels.common.float32 import widened
from gpuboost.kernels.common.philox import words_of
from gpuboost.kernels.sampling.probability import by_threshold, is_drawn, normal_score


def row_draws(score):
    """(g, h) -> number, as a kernel: rows are drawn by the sum of the score over their outputs."""

    def draws_of(
        begin, stop, step, g, h, times, has_times, rows, k, n, rho, floor, stream, scores, masks, bad
    ):  # fmt: skip
        """For entries e in range(begin, stop, step) of ``masks``: bit r tells whether row 16 e + r is drawn.

        g, h: bits of (k, rows) float32, as k rows uint32; times (rows,) int32 multiplicities if has_times; n: entries;
        stream (4,) uint32: ``Key.words``; scores: (rows,) bits of float32; bad (1,) uint32: 1 afterwards if a score is
        no number.
        """
        for e in range(begin, stop, step):
            mask = 0
            for row in range(16 * e, min(16 * e + 16, rows)):
                total = 0.0
                for output in range(k):
                    total += score(widened(g[output * rows + row]), widened(h[output * rows + row]))
                if has_times:
                    total = total * times[row]
                if math.isnan(total):
                    bad[0] = 1
                s = normal_score(total)
                scores[row] = np.float32(s).view(np.uint32)
                a, b, c, d = words_of(row >> 2, stream[0], stream[1], stream[2], stream[3])
                place = row & 3
                word = (a if place == 0 else b) if place < 2 else (c if place == 2 else d)
                if is_drawn(word, by_threshold(np.float64(s), rho, floor)):
                    mask |= 1 << (row & 15)
            masks[e] = mask

    return draws_of
