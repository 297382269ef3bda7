"""Derivatives of unbiased LambdaMART: ``backends.reference.unbiased_ranking`` is the definition.

Two passes over the pairs of a list: their cost by positions, from which the host estimates the bias, and derivatives.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.kernels.gradients.ordering import by_score, room_of, steps_of


class ShownLists(NamedTuple):
    """Constants of n documents in q lists."""

    gain: NDArray[np.float64]  # (n,)
    position: NDArray[np.int64]  # (n,)
    start: NDArray[np.int64]  # (q + 1,)
    scales: NDArray[np.float64]  # (q,) 1 / ideal DCG; 0 without any gain
    discounts: NDArray[np.float64]  # (longest,)
    weight: NDArray[np.float64]  # (n,)


class PairRule(NamedTuple):
    """The parameters of the loss."""

    sigma: float
    truncation: int
    closer: bool
    even: bool
    near: float


def passes_of(exp, log, log1pexp, stamp, jit):
    """(costs, derivatives): kernels of lists [first, last)."""

    @jit
    def placed(f, start, q, order, ranked, spare, step, counts):
        begin, stop = start[q], start[q + 1]
        by_score(f[begin:stop], order[: stop - begin], ranked[: stop - begin], spare, step, counts)

    @jit
    def costs(lists, rule, f, first, last, cost):
        """Add the cost of pairs to cost (p, p), by the positions of the better and of the worse document."""
        gain, position, start, scales, discounts, weight = lists
        sigma, truncation, _closer, _even, _near = rule
        _ = stamp
        longest = discounts.size
        order, spare = np.empty(longest, np.int32), np.empty(longest, np.int32)
        step, counts = np.empty(room_of(longest), np.int32), np.empty(steps_of(longest), np.int32)
        ranked = np.empty(longest)
        for q in range(first, last):
            begin, n, scale = start[q], start[q + 1] - start[q], scales[q]
            if not scale > 0.0:
                continue
            placed(f, start, q, order, ranked, spare, step, counts)
            for a in range(min(truncation, n - 1)):
                i = begin + order[a]
                for b in range(a + 1, n):
                    j = begin + order[b]
                    over = gain[i] - gain[j]
                    if over == 0.0:
                        continue
                    of_pair = scale * (abs(over) * (discounts[a] - discounts[b]))
                    ahead = sigma * (f[i] - f[j])
                    if over > 0.0:
                        cost[position[i], position[j]] += weight[i] * (of_pair * log1pexp(-ahead))
                    else:
                        cost[position[j], position[i]] += weight[j] * (of_pair * log1pexp(ahead))

    @jit
    def derivatives(lists, rule, f, plus, minus, first, last, g, h):
        """g, h (n,) float64, unweighted; plus, minus (p,): estimates of the bias of positions."""
        gain, position, start, scales, discounts, _weight = lists
        sigma, truncation, closer, even, near = rule
        _ = stamp
        longest = discounts.size
        order, spare = np.empty(longest, np.int32), np.empty(longest, np.int32)
        step, counts = np.empty(room_of(longest), np.int32), np.empty(steps_of(longest), np.int32)
        ranked = np.empty(longest)
        for q in range(first, last):
            begin, stop, scale = start[q], start[q + 1], scales[q]
            n = stop - begin
            g[begin:stop], h[begin:stop] = 0.0, 0.0
            if not scale > 0.0:
                continue
            placed(f, start, q, order, ranked, spare, step, counts)
            total = 0.0
            for a in range(min(truncation, n - 1)):
                i = begin + order[a]
                for b in range(a + 1, n):
                    j = begin + order[b]
                    over, apart = gain[i] - gain[j], f[i] - f[j]
                    if over == 0.0:
                        continue
                    better, worse, ahead = i, j, sigma * apart
                    if over < 0.0:
                        better, worse, ahead = j, i, -ahead
                    w = scale * (abs(over) * (discounts[a] - discounts[b]))
                    w = w / (plus[position[better]] * minus[position[worse]])
                    if closer:
                        w = w / (near + apart)
                    small = exp(-abs(ahead))
                    wrong = (small if ahead >= 0.0 else 1.0) / (1.0 + small)
                    lead = (sigma * w) * wrong
                    bend = (sigma * sigma * w) * (small / ((1.0 + small) * (1.0 + small)))
                    g[better] -= lead
                    g[worse] += lead
                    h[better] += bend
                    h[worse] += bend
                    total += lead
            if even and total > 0.0:
                factor = log(1.0 + 2.0 * total) / (log(2.0) * (2.0 * total))
                for i in range(begin, stop):
                    g[i] *= factor
                    h[i] *= factor

    return costs, derivatives
