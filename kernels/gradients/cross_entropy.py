"""Derivatives of XE-NDCG: ``backends.reference.cross_entropy`` is the definition."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.philox import words_of
from gpuboost.kernels.common.vector import wide_vectors

LANES = 32


class PerturbedLists(NamedTuple):
    """Constants of n documents in q lists."""

    power: NDArray[np.float64]  # (n,) 2^label
    start: NDArray[np.int64]  # (q + 1,)
    weight: NDArray[np.float64]  # (n,), or (0,)


class GammaStream(NamedTuple):
    """Words of the stream of gammas: number ``first_row`` + i is that of row i."""

    seed_low: int
    seed_high: int
    iteration: int
    stream: int
    first_row: int


@kernel
def _phi(power, seed_low, seed_high, iteration, stream, first, out):
    """out[i] = power[i] - gamma, gamma being number first + i of the stream, times 2^-32."""
    stop = first + out.size
    for block in range(first // 4, (stop + 3) // 4):
        row = 4 * block
        for word in words_of(block, seed_low, seed_high, iteration, stream):
            if first <= row < stop:
                out[row - first] = power[row - first] - np.float64(word) * 2.0**-32
            row += 1


@kernel
def _sum(x, lanes):
    """The sum of x, number i in lane i % 32, then halves onto halves. lanes: (32,) scratch."""
    wide_vectors()
    lanes[:] = 0.0
    whole = x.size // LANES * LANES
    for begin in range(0, whole, LANES):
        for lane in range(LANES):
            lanes[lane] += x[begin + lane]
    for i in range(whole, x.size):
        lanes[i - whole] += x[i]
    half = LANES // 2
    while half > 0:
        for lane in range(half):
            lanes[lane] += lanes[lane + half]
        half //= 2
    return lanes[0]


@kernel
def _normal(x):
    """x, or 0 where float32 would hold it as a denormal number, which some machines do not have."""
    return np.float32(0.0) if abs(x) <= 1e-30 else np.float32(x)


@kernel
def _spread(rho, rest, term, ratio, lanes):
    """term_i = rho_i times the sum of term_j / rest_j over all other documents, in place."""
    for i in range(term.size):
        ratio[i] = term[i] / rest[i]
    total = _sum(ratio, lanes)
    for i in range(term.size):
        term[i] = rho[i] * (total - ratio[i])


def cross_entropy_of(exp, farthest, least_rest, stamp, jit):
    """A kernel that writes the derivatives of lists [first, last)."""

    @jit
    def softmax(f, rho, lanes):
        wide_vectors()
        top = f[0]
        for i in range(1, f.size):
            top = max(top, f[i])
        for i in range(f.size):
            below = f[i] - top
            rho[i] = exp(farthest if below < farthest else below)
        total = _sum(rho, lanes)
        for i in range(f.size):
            rho[i] /= total

    @jit
    def cross_entropy(lists, gammas, f, curvature, first, last, g, h):
        """f (n,) float64 scores; curvature: a constant in place of h, with the plain gradient, or a negative number for
        Newton's terms; g, h (n,) float32."""
        power, start, weight = lists
        seed_low, seed_high, iteration, stream, first_row = gammas
        _ = stamp
        longest = 0
        for q in range(first, last):
            longest = max(longest, start[q + 1] - start[q])
        room, lanes = np.empty((6, longest)), np.empty(LANES)
        for q in range(first, last):
            begin, stop = start[q], start[q + 1]
            n = stop - begin
            rho, rest, total, term = room[0, :n], room[1, :n], room[2, :n], room[3, :n]
            ratio, phi = room[4, :n], room[5, :n]
            rho[:] = 0.0
            rest[:] = 0.0
            total[:] = 0.0
            if n > 1:
                softmax(f[begin:stop], rho, lanes)
                _phi(power[begin:stop], seed_low, seed_high, iteration, stream, first_row + begin, phi)
                whole = _sum(phi, lanes)
                for i in range(n):
                    total[i] = rho[i] - phi[i] / whole
                    one_less = 1.0 - rho[i]
                    rest[i] = least_rest if one_less < least_rest else one_less
                    term[i] = total[i]
                if curvature < 0.0:
                    for _order in range(2):
                        _spread(rho, rest, term, ratio, lanes)
                        for i in range(n):
                            total[i] += term[i]
            for i in range(n):
                by = weight[begin + i] if weight.size > 0 else 1.0
                second = rho[i] * rest[i] if curvature < 0.0 else curvature
                g[begin + i] = _normal(total[i] * by)
                h[begin + i] = _normal(second * by)

    return cross_entropy
