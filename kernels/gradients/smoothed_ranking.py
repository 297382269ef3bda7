"""Gradient estimates of smoothed ranking metrics: ``backends.reference.smoothed_ranking`` is the definition.

A list is put in the order of its noisy scores. Then the outer loop takes the places that count from the top, and the
inner one all documents, so that each document's sum has the order of the definition and the inner loop vectorises.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.normal import normal
from gpuboost.kernels.common.philox import words_of
from gpuboost.kernels.common.vector import wide_vectors
from gpuboost.kernels.gradients.ordering import by_score, room_of, steps_of


class Lists(NamedTuple):
    """Constants of n documents in q lists."""

    gain: NDArray[np.float32]  # (n,)
    shift: NDArray[np.float64]  # (n,) what scores are lowered by
    start: NDArray[np.int64]  # (q + 1,)
    drops: NDArray[np.float64]  # (longest + 1,) fall of the discount behind each place, times constants
    scales: NDArray[np.float64]  # (q,) 1 / ideal DCG; 0 without any gain
    weight: NDArray[np.float64]  # (n,), or (0,)


class Rule(NamedTuple):
    """The parameters of the loss."""

    sigma: float
    truncation: int
    scale_free: bool
    nu: float  # added to the norm of a list's scores


class NoiseStream(NamedTuple):
    """Words of the streams of noise: number ``first_row`` + i is that of row i."""

    table: NDArray[np.float64]
    seed_low: int
    seed_high: int
    iteration: int
    streams: NDArray[np.uint32]  # (draws,)
    first_row: int


@kernel
def _noisy(clean, sigma, table, seed_low, seed_high, iteration, stream, first, out):
    """out[i] = clean[i] + sigma times number first + i of the stream."""
    stop, table = first + out.size, table.reshape(table.size)
    for block in range(first // 4, (stop + 3) // 4):
        row = 4 * block
        for word in words_of(block, seed_low, seed_high, iteration, stream):
            if first <= row < stop:
                out[row - first] = clean[row - first] + sigma * normal(word, table)
            row += 1


@kernel
def _normal(x):
    """x, or 0 where float32 would hold it as a denormal number, which some machines do not have."""
    return np.float32(0.0) if abs(x) <= 1e-30 else np.float32(x)


@kernel
def _project(z, nu, g):
    """Take the mean of g away, and its part along the centred z, in place."""
    n, sum_g, sum_z = g.size, 0.0, 0.0
    for i in range(n):
        sum_g += g[i]
        sum_z += z[i]
    mean_g, mean_z = sum_g / n, sum_z / n
    square, along = 0.0, 0.0
    for i in range(n):
        g[i] -= mean_g
        centred = z[i] - mean_z
        square += centred * centred
        along += g[i] * centred
    if n > 2:
        norm = np.sqrt(square) + nu
        share = along / (norm * norm)
        for i in range(n):
            g[i] -= share * (z[i] - mean_z)


def smoothed_of(exp, farthest, stamp, jit):
    """A kernel that writes the estimates of lists [first, last)."""

    @jit
    def add_terms(score, gain_of_row, drop, inverse, clean, gain, sums):
        """Add the terms of one place to the sums of documents on one side of it."""
        wide_vectors()
        for a in range(sums.size):
            away = (score - clean[a]) * inverse
            steps = -0.5 * (away * away)
            sums[a] += ((gain_of_row - gain[a]) * drop) * exp(farthest if steps < farthest else steps)

    @jit
    def of_list(noisy, clean, gain, drops, inverse, truncation, sums):
        """noisy, clean, gain, sums (n,) float64, in order of places."""
        n = noisy.size
        sums[:] = 0.0
        for place in range(min(truncation + 1, n)):
            score, gain_of_row, after = noisy[place], gain[place], place + 1
            if place > 0:
                drop = drops[place - 1]
                add_terms(score, gain_of_row, drop, inverse, clean[:place], gain[:place], sums[:place])
            if place < truncation:
                add_terms(score, gain_of_row, drops[place], inverse, clean[after:], gain[after:], sums[after:])

    @jit
    def smoothed(lists, rule, noise, f, curvature, first, last, g, h):
        """f (n,) float64 scores; curvature: h of a row of weight 1; g, h (n,) float32."""
        gain, shift, start, drops, scales, weight = lists
        sigma, truncation, scale_free, nu = rule
        table, seed_low, seed_high, iteration, streams, first_row = noise
        _ = stamp
        longest = 0
        for q in range(first, last):
            longest = max(longest, start[q + 1] - start[q])
        order, spare = np.empty(longest, np.int32), np.empty(longest, np.int32)
        step, counts = np.empty(room_of(longest), np.int32), np.empty(steps_of(longest), np.int32)
        room, inverse = np.empty((7, longest)), 1.0 / sigma
        for q in range(first, last):
            begin, stop = start[q], start[q + 1]
            n = stop - begin
            total, clean, noisy = room[0, :n], room[1, :n], room[2, :n]
            ranked, placed_clean, placed_gain, sums = room[3, :n], room[4, :n], room[5, :n], room[6, :n]
            total[:] = 0.0
            if scales[q] > 0.0:
                for i in range(n):
                    clean[i] = f[begin + i] - shift[begin + i]
                for draw in range(streams.size):
                    stream = streams[draw]
                    _noisy(clean, sigma, table, seed_low, seed_high, iteration, stream, first_row + begin, noisy)
                    by_score(noisy, order[:n], ranked, spare, step, counts)
                    for place in range(n):
                        i = np.uint64(order[place])
                        placed_clean[place], placed_gain[place] = clean[i], gain[begin + np.int64(i)]
                    of_list(ranked, placed_clean, placed_gain, drops, inverse, truncation, sums)
                    for place in range(n):
                        total[np.uint64(order[place])] += sums[place]
                if scale_free:
                    _project(f[begin:stop], nu, total)
            for i in range(n):
                by = weight[begin + i] if weight.size > 0 else 1.0
                g[begin + i] = _normal((total[i] * scales[q]) * by)
                h[begin + i] = _normal(curvature * by)

    return smoothed
