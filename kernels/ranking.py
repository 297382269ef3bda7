"""Derivatives of lists: what each document of a query gets from its pairs with the others.

The documents of a list are put in order of their scores, ties in order of rows. A document's derivative is the sum of
its pairs with those above it, from the top, and then of its pairs with those below it, in 16 lanes, the lanes in
order: so each document's sum can be formed by itself, and a list by a block of threads.

Formulas come from outside, as in ``pointwise``: ``pair_weight`` tells one loss from another.
"""

import numpy as np

from gpuboost.kernels.fixed_point import LANES
from gpuboost.kernels.jit import kernel

RUN = 128  # documents sorted by counting those before each, which vectorises, before runs are merged


@kernel
def by_score(f, order, spare):
    """order (n,) int32 = documents from the highest score to the lowest, equal ones as they stand. spare (n,) int32."""
    n = f.size
    for i in range(n):
        order[i] = i  # where scores are not numbers, they cannot be counted, and no place may be left unfilled
    for begin in range(0, n, RUN):
        run = f[begin : min(begin + RUN, n)]
        for i in range(run.size):
            x, before = run[i], 0
            for j in range(i):
                before += run[j] >= x
            after = run[i + 1 :]
            for j in range(after.size):
                before += after[j] > x
            order[begin + before] = begin + i
    width = RUN
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, stop = min(begin + width, n), min(begin + 2 * width, n)
            i, j = begin, middle
            for at in range(begin, stop):
                if j >= stop or (i < middle and f[order[i]] >= f[order[j]]):
                    spare[at] = order[i]
                    i += 1
                else:
                    spare[at] = order[j]
                    j += 1
        order[:n] = spare[:n]
        width *= 2


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
def in_lanes(x, positive):
    """The sum of x, or of |x|: element i to lane i % 16, the lanes in order. x: (lines, 16).

    The lanes have names since so they stay in registers, and vectorise, which an array of them does not.
    """
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = s11 = s12 = s13 = s14 = s15 = 0.0
    for i in range(x.shape[0]):
        if positive:
            s0, s1, s2, s3 = s0 + abs(x[i, 0]), s1 + abs(x[i, 1]), s2 + abs(x[i, 2]), s3 + abs(x[i, 3])
            s4, s5, s6, s7 = s4 + abs(x[i, 4]), s5 + abs(x[i, 5]), s6 + abs(x[i, 6]), s7 + abs(x[i, 7])
            s8, s9, s10, s11 = s8 + abs(x[i, 8]), s9 + abs(x[i, 9]), s10 + abs(x[i, 10]), s11 + abs(x[i, 11])
            s12, s13, s14, s15 = s12 + abs(x[i, 12]), s13 + abs(x[i, 13]), s14 + abs(x[i, 14]), s15 + abs(x[i, 15])
        else:
            s0, s1, s2, s3 = s0 + x[i, 0], s1 + x[i, 1], s2 + x[i, 2], s3 + x[i, 3]
            s4, s5, s6, s7 = s4 + x[i, 4], s5 + x[i, 5], s6 + x[i, 6], s7 + x[i, 7]
            s8, s9, s10, s11 = s8 + x[i, 8], s9 + x[i, 9], s10 + x[i, 10], s11 + x[i, 11]
            s12, s13, s14, s15 = s12 + x[i, 12], s13 + x[i, 13], s14 + x[i, 14], s15 + x[i, 15]
    return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11 + s12 + s13 + s14 + s15


@kernel
def _normal(x):
    """x, or 0 where float32 would hold it as a denormal number, which some machines do not have."""
    return np.float32(0.0) if abs(x) <= 1e-30 else np.float32(x)


def lambdas_of(pair_weight, pull, exp, log, near, farthest, stamp, jit):
    """(lists) -> g, h as a kernel over lists [first, last)."""

    @jit
    def of_place(a, s, e, gain, discounts, scale, sigma, closer, first, second):
        """Of the pairs of the document in place a with each below it: with what they pull at each other, towards a if
        positive, and the curvature. s, e, gain (n,) in order of places; first, second (n - 1 - a,)."""
        s_a, e_a, gain_a, discount_a = s[a], e[a], gain[a], discounts[a]
        s, e, gain, discounts = s[a + 1 :], e[a + 1 :], gain[a + 1 :], discounts[a + 1 :]  # indices from 0 vectorise
        for b in range(first.size):
            over = gain_a - gain[b]
            weight = pair_weight(abs(over), discount_a - discounts[b]) * scale
            weight = weight / (near + (s_a - s[b])) if closer else weight
            better, worse = (e_a, e[b]) if over > 0.0 else (e[b], e_a)
            force, second[b] = pull(better, worse, weight, sigma)
            first[b] = force if over > 0.0 else -force

    @jit
    def of_list(s, e, gain, discounts, scale, sigma, most, closer, g, h, first, second):
        """g, h (n,) in order of places, added to; returns with what all pairs pull together, up or down.

        first, second: (n + 16,) scratch."""
        n = s.size
        total = 0.0
        for a in range(min(most, n - 1)):
            m = n - 1 - a
            force, curve, g_below, h_below = first[:m], second[:m], g[a + 1 : n], h[a + 1 : n]
            of_place(a, s, e, gain, discounts, scale, sigma, closer, force, curve)
            for b in range(m):
                g_below[b] += force[b]
                h_below[b] += curve[b]
            lines = (m + LANES - 1) // LANES
            whole = lines * LANES
            first[m:whole], second[m:whole] = 0.0, 0.0
            table, curves = first[:whole].reshape(lines, LANES), second[:whole].reshape(lines, LANES)
            g[a] -= in_lanes(table, False)
            h[a] += in_lanes(curves, False)
            total += in_lanes(table, True)
        return total

    @jit
    def lambdas(y, gains, f, start, discounts, weight, sigma, most, ideals, closer, even, curvature, first, last, g, h):
        """y, f (n,) float64; gains (labels,) or (0,) for the labels themselves; start (lists + 1,) int64; discounts
        (longest,); weight (n,) float64 or (0,); ideals: whether pairs are weighed by the list's ideal DCG; closer:
        whether by how close they stand; even: whether lists are evened out; curvature: what stands for h, or a negative
        number for h itself; g, h (n,) float32."""
        _ = stamp
        longest = 0
        for q in range(first, last):
            longest = max(longest, start[q + 1] - start[q])
        order, spare, counts = np.empty(longest, np.int32), np.empty(longest, np.int32), np.empty(gains.size, np.int64)
        s_, e_, gain_ = np.empty(longest), np.empty(longest), np.empty(longest)
        g_, h_ = np.empty(longest), np.empty(longest)
        first_, second_ = np.empty(longest + LANES), np.empty(longest + LANES)
        for q in range(first, last):
            begin, n = start[q], start[q + 1] - start[q]
            labels, scores = y[begin : begin + n], f[begin : begin + n]
            by_score(scores, order, spare)
            for place in range(n):
                i = order[place]
                s_[place] = scores[i]
                below = sigma * (scores[i] - s_[0])
                e_[place] = exp(below if below > farthest else farthest)
                gain_[place] = gains[int(labels[i])] if gains.size > 0 else labels[i]
                g_[place], h_[place] = 0.0, 0.0
            best = ideal(labels, gains, discounts, most, counts) if ideals else 1.0
            factor = 1.0
            if best > 0.0:
                placed, room = (s_[:n], e_[:n], gain_[:n]), (g_[:n], h_[:n], first_, second_)
                pulled = of_list(*placed, discounts, 1.0 / best, sigma, most, closer, *room)
                if even and pulled > 0.0:
                    factor = log(1.0 + 2.0 * pulled) / (log(2.0) * (2.0 * pulled))
            for place in range(n):
                row = begin + order[place]
                by = weight[row] if weight.size > 0 else 1.0
                second = h_[place] * factor if curvature < 0.0 else curvature
                g[row] = _normal(g_[place] * factor * by)
                h[row] = _normal(second * by)

    return lambdas
