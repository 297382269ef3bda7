"""Derivatives of lists: what each document of a query gets from its pairs with the others.

The documents of a list are put in order of their scores, ties in order of rows. A document's derivative is the sum of
its pairs with those above it, from the top, and then of its pairs with those below it, in 16 lanes, the lanes in
order: so each document's sum can be formed by itself, and a list by a block of threads.

Here the places that count are taken one after the other, from the top, each with all documents below it. These are a
stretch of arrays that are in order of places, rounded up to whole lines of 16 by documents that pull at nothing.

Formulas come from outside, as in ``pointwise``: ``pair_weight`` tells one loss from another.
"""

import numpy as np

from gpuboost.kernels.fixed_point import LANES
from gpuboost.kernels.jit import kernel
from gpuboost.kernels.ordering import by_score, steps_of
from gpuboost.kernels.vector import add_pulls, wide_vectors

SCORE, POWER, GAIN, G, H, FORCE, CURVE = range(7)  # what is known of each place
OF_FORCES, OF_CURVES, OF_SIZES = range(3)  # what is summed in lanes


@kernel
def ideal(y, gains, discounts, most, counts):
    """The DCG of the best order, of the first ``most`` places. y (n,) labels; counts (labels,) int64, scratch."""
    counts[:] = 0
    for i in range(y.size):
        counts[int(y[i])] += 1
    total, label = 0.0, gains.size - 1
    for place in range(min(most, y.size)):
        while counts[label] == 0:
            label -= 1
        counts[label] -= 1
        total += gains[label] * discounts[place]
    return total


@kernel
def scales(y, gains, start, discounts, most, out):
    """out (lists,) float64 = 1 / the DCG of each list's best order; 0 where nothing in it is worth anything."""
    counts = np.empty(gains.size, np.int64)
    for q in range(out.size):
        best = ideal(y[start[q] : start[q + 1]], gains, discounts, most, counts)
        out[q] = 1.0 / best if best > 0.0 else 0.0


@kernel
def _in_order(lanes):
    """The sum of 16 lanes, from the first to the last."""
    total = lanes[0]
    for lane in range(1, LANES):
        total += lanes[lane]
    return total


@kernel
def _normal(x):
    """x, or 0 where float32 would hold it as a denormal number, which some machines do not have."""
    return np.float32(0.0) if abs(x) <= 1e-30 else np.float32(x)


@kernel
def _leave(order, at):
    """A list in which nothing pulls: its documents as they stand, sums of 0."""
    for i in range(order.size):
        order[i], at[G, i], at[H, i] = i, 0.0, 0.0
    return 0.0


@kernel
def _finish(at, order, factor, weight, curvature, g, h):
    """g, h (n,) float32 of a list's rows, from sums in order of places. weight (n,) or (0,)."""
    g_placed, h_placed = at[G], at[H]
    for place in range(order.size):
        i = np.uint64(order[place])
        by = weight[i] if weight.size > 0 else 1.0
        second = h_placed[place] * factor if curvature < 0.0 else curvature
        g[i] = _normal(g_placed[place] * factor * by)
        h[i] = _normal(second * by)


def lambdas_of(pair_weight, pull, exp, log, near, farthest, stamp, jit):
    """(lists) -> g, h as a kernel over lists [first, last)."""

    @jit
    def put_in_places(scores, gain, order, sigma, at):
        """What is known of the documents, and of the 16 after them that pull at nothing: worse than all, and e^-inf."""
        wide_vectors()
        n = order.size
        s, e, placed_gain = at[SCORE], at[POWER], at[GAIN]
        for place in range(n):
            i = np.uint64(order[place])
            s[place], placed_gain[place] = scores[i], gain[i]
        top = s[0]
        for place in range(n):
            below = sigma * (s[place] - top)
            e[place] = exp(below if below > farthest else farthest)
        s[n : n + LANES], e[n : n + LANES], placed_gain[n : n + LANES] = s[n - 1], 0.0, -1.0
        at[G, : n + LANES], at[H, : n + LANES] = 0.0, 0.0

    @jit
    def pull_below(at, a, size, discounts, scale, sigma, closer):
        """Of the pairs of place a with each of the ``size`` places below it: with what they pull at each other, towards
        a if positive, and the curvature."""
        wide_vectors()
        s, e, gain, discounts_below = at[SCORE, a + 1 :], at[POWER, a + 1 :], at[GAIN, a + 1 :], discounts[a + 1 :]
        force, curve = at[FORCE, :size], at[CURVE, :size]
        s_a, e_a, gain_a, discount_a = at[SCORE, a], at[POWER, a], at[GAIN, a], discounts[a]
        for b in range(size):
            over = gain_a - gain[b]
            weight = pair_weight(abs(over), discount_a - discounts_below[b]) * scale
            apart = near + (s_a - s[b]) if closer else 1.0
            better, worse = (e_a, e[b]) if over > 0.0 else (e[b], e_a)
            first, curve[b] = pull(better, worse, weight, apart, sigma)
            force[b] = first if over > 0.0 else -first

    @jit
    def of_list(at, n, discounts, scale, sigma, most, closer, lanes):
        """Sums g and h of the first n places; returns with what all pairs pull together, up or down."""
        g, h, total = at[G], at[H], 0.0
        for a in range(min(most, n - 1)):
            lines = (n - 1 - a + LANES - 1) // LANES
            pull_below(at, a, lines * LANES, discounts, scale, sigma, closer)
            pulled = at[FORCE].ctypes.data, at[CURVE].ctypes.data
            add_pulls(*pulled, g[a + 1 :].ctypes.data, h[a + 1 :].ctypes.data, lines, lanes.ctypes.data)
            g[a] -= _in_order(lanes[OF_FORCES])
            h[a] += _in_order(lanes[OF_CURVES])
            total += _in_order(lanes[OF_SIZES])
        return total

    @jit
    def lambdas(gain, f, start, discounts, scales, weight, sigma, most, closer, even, curvature, first, last, g, h):
        """gain, f (n,) float64, what each document is worth and its score; start (lists + 1,) int64; discounts (16 more
        than the longest,); scales (lists,) what pair weights are multiplied with, 0 where nothing is worth anything;
        weight (n,) float64 or (0,); closer: whether pairs are weighed by how close they stand; even: whether lists are
        evened out; curvature: what stands for h, or a negative number for h itself; g, h (n,) float32."""
        _ = stamp
        longest = 0
        for q in range(first, last):
            longest = max(longest, start[q + 1] - start[q])
        order, spare, step = np.empty(longest, np.int32), np.empty(longest, np.int32), np.empty(longest, np.int32)
        counts, at, lanes = np.empty(steps_of(longest), np.int32), np.empty((7, longest + LANES)), np.empty((3, LANES))
        for q in range(first, last):
            begin, stop = start[q], start[q + 1]
            scores, placed = f[begin:stop], order[: stop - begin]
            if scales[q] > 0.0:
                by_score(scores, placed, spare, step, counts)
                put_in_places(scores, gain[begin:stop], placed, sigma, at)
                pulled = of_list(at, placed.size, discounts, scales[q], sigma, most, closer, lanes)
            else:
                pulled = _leave(placed, at)
            factor = 1.0
            if even and pulled > 0.0:
                factor = log(1.0 + 2.0 * pulled) / (log(2.0) * (2.0 * pulled))
            own = weight[begin:stop] if weight.size > 0 else weight
            _finish(at, placed, factor, own, curvature, g[begin:stop], h[begin:stop])

    return lambdas
