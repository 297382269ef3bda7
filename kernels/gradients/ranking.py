"""Derivatives of ranking losses: the sums of each document's pairs with the others of its query.

The documents of a list are put in order of their scores, ties in order of rows. A document's derivative is the sum of
its pairs with those above it, from the top, less that of its pairs with those below it, in 16 lanes: so each document's
sum can be formed by itself, and a list by a block of threads. Pairs are float32, and so are the sums of a tile, which
is 32 documents by 512 below them; tiles are summed in float64.

Here the places that count are taken two by two, from the top, with all documents below them. These are a stretch of
arrays in order of places, padded to whole lines of 16 with documents whose lambdas are 0.

Formulas come from outside, as in ``pointwise``: ``pair_weight`` tells one loss from another.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.vector import wide_vectors
from gpuboost.kernels.gradients.ordering import by_score, room_of, steps_of
from gpuboost.kernels.gradients.pairwise import lambdas_below_one, lambdas_below_two

LANES = 16
TALL, WIDE = 32, 512  # documents of a tile, and those below them
SHARE, MARK = 2.0**44, 2.0**24  # as in backends/reference/ranking.py
SCORE, POWER, GAIN, G, H, UPPER, LOWER = range(7)  # float32, of each place; the last two of MAP only
OF_FORCES, OF_CURVES, OF_SIZES = range(3)  # what is summed for a place that counts


@kernel
def ideal(y, gains, discounts, truncation, counts):
    """The DCG of the best order, of the first ``truncation`` places. y (n,) labels; counts (labels,) int64, scratch."""
    counts[:] = 0
    for i in range(y.size):
        counts[int(y[i])] += 1
    total, label = 0.0, gains.size - 1
    for place in range(min(truncation, y.size)):
        while counts[label] == 0:
            label -= 1
        counts[label] -= 1
        total += gains[label] * discounts[place]
    return total


@kernel
def scales(y, gains, start, discounts, truncation, out):
    """out (lists,) float64 = 1 / the DCG of each list's best order; 0 if no document has a gain."""
    counts = np.empty(gains.size, np.int64)
    for q in range(out.size):
        best = ideal(y[start[q] : start[q + 1]], gains, discounts, truncation, counts)
        out[q] = 1.0 / best if best > 0.0 else 0.0


@kernel
def _normal(x):
    """x, or 0 where float32 would hold it as a denormal number, which some machines do not have."""
    return np.float32(0.0) if abs(x) <= 1e-30 else np.float32(x)


@kernel
def _mark(precision, total):
    return np.float32(np.rint((precision - np.float64(total) * (1.0 / SHARE)) * MARK) * (1.0 / MARK))


@kernel
def put_marks(gain, n, upper, lower):
    """upper, lower (n,) float32 = ``backends.reference.ranking.precision_marks`` of places. gain (n,): above 0 where
    relevant, in order of places."""
    count, total = 0, np.int64(0)
    for place in range(n):
        rank, before = place + 1.0, total
        relevant = gain[place] > 0.0
        if relevant:
            count += 1
            total += np.int64(np.rint(SHARE / rank))
        upper[place] = _mark((count + (not relevant)) / rank, total)
        lower[place] = _mark(count / rank, before)


@kernel
def _whole_lines(n):
    return (n + LANES - 1) // LANES * LANES


@kernel
def _rows_of_lines(rows, n):
    """(rows, n) float32, n a multiple of 16, each row in cache lines of its own; 0."""
    buffer = np.zeros(rows * n + LANES, np.float32)
    skip = -buffer.ctypes.data // 4 % LANES
    return buffer[skip : skip + rows * n].reshape(rows, n)


@kernel
def _leave(g, h, curvature, weight):
    """Derivatives of a list whose lambdas are all 0."""
    g[:] = np.float32(0.0)
    for i in range(h.size):
        h[i] = _normal((weight[i] if weight.size > 0 else 1.0) * max(curvature, 0.0))


@kernel
def _finish(sums, order, of_g, of_h, weight, curvature, g, h):
    """g, h (n,) float32 of a list's rows, from sums in order of places, and the factors of the sums.

    weight (n,) or (0,).
    """
    g_placed, h_placed = sums[0], sums[1]
    for place in range(order.size):
        i = np.uint64(order[place])
        by = weight[i] if weight.size > 0 else 1.0
        second = h_placed[place] * of_h if curvature < 0.0 else curvature
        g[i] = _normal(g_placed[place] * of_g * by)
        h[i] = _normal(second * by)


@kernel
def _close_tile(places, sums, begin, stop):
    """Add the sums of a tile to the float64 sums of places."""
    g, h = places[G, begin:stop], places[H, begin:stop]
    g_sums, h_sums = sums[0, begin:stop], sums[1, begin:stop]
    for i in range(stop - begin):
        g_sums[i] += g[i]
        h_sums[i] += h[i]
    g[:], h[:] = np.float32(0.0), np.float32(0.0)


@kernel
def _of_leaders(leader_sums, leaders, sums):
    """Add to the leaders' sums those over the places below them; returns the sum of sizes over all pairs."""
    total = 0.0
    for a in range(leaders):
        sums[0, a] -= leader_sums[a, OF_FORCES]
        sums[1, a] += leader_sums[a, OF_CURVES]
        total += leader_sums[a, OF_SIZES]
    return total


def placing(exp, farthest, furthest, jit):
    """A kernel that writes a list's constants in order of places."""

    @jit
    def put_in_places(ranked, gain, order, sigma, places):
        """places: constants of the documents, padded up to a whole line with documents whose lambdas are 0: a lower
        gain than all, and e^-inf. ranked (n,) float64: their scores, in order."""
        wide_vectors()
        n = order.size
        s, e, placed_gain = places[SCORE], places[POWER], places[GAIN]
        top = ranked[0]
        for place in range(n):
            placed_gain[place] = gain[np.uint64(order[place])]
        for place in range(n):
            below = ranked[place] - top
            x = sigma * below
            e[place] = np.float32(exp(farthest if x < farthest else x))
            s[place] = np.float32(furthest if below < furthest else below)
        for place in range(n, _whole_lines(n)):
            s[place], e[place], placed_gain[place] = s[n - 1], np.float32(0.0), np.float32(-1.0)

    return put_in_places


def tiling(pair_weight, near, jit):
    """A kernel that sums the pairs of a list in order of places."""
    nearest = np.float32(near)

    @jit
    def of_list(places, n, upper, lower, truncation, closer, sums, leader_sums, pair):
        """sums (2, n) float64 g and h of places; returns the sum of sizes of all lambdas. upper, lower: discounts or
        marks of places; leader_sums (leaders, 3) float64, pair (2, 3) float32: scratch."""
        leaders, whole = min(truncation, n - 1), _whole_lines(n)
        constants, pitch, by = places.ctypes.data, 4 * places.shape[1], nearest if closer else np.float32(0.0)
        marks = upper.ctypes.data, lower.ctypes.data
        shared = constants, pitch, *marks, constants + G * pitch, constants + H * pitch
        sums[:, :whole], leader_sums[:leaders] = 0.0, 0.0
        for begin in range(0, n, WIDE):
            stop = min(begin + WIDE, whole)
            for top in range(0, min(leaders, stop - 1), TALL):
                bottom = min(top + TALL, leaders, stop - 1)
                for a in range(top, bottom, 2):
                    lines = max(begin, a) // LANES, stop // LANES
                    if a + 1 < bottom:
                        lambdas_below_two(pair_weight, *shared, a, closer, by, *lines, pair.ctypes.data)
                    else:
                        lambdas_below_one(pair_weight, *shared, a, closer, by, *lines, pair.ctypes.data)
                    for leader in range(min(2, bottom - a)):
                        for kind in range(3):
                            leader_sums[a + leader, kind] += pair[leader, kind]
                _close_tile(places, sums, begin, stop)
        return _of_leaders(leader_sums, leaders, sums)

    return of_list


def lambdas_of(pair_weight, exp, log, near, farthest, furthest, stamp, jit):
    """A kernel that writes g and h of lists [first, last)."""
    put_in_places, of_list = placing(exp, farthest, furthest, jit), tiling(pair_weight, near, jit)

    @jit
    def shrink_factor(total, even):
        """Factor of a list's derivatives, the sizes of its lambdas adding up to 2 x ``total``."""
        if not (even and total > 0.0):
            return 1.0
        return log(1.0 + 2.0 * total) / (log(2.0) * (2.0 * total))

    @jit
    def lambdas(
        gain,
        f,
        start,
        discounts,
        scales,
        weight,
        sigma,
        truncation,
        precision,
        closer,
        even,
        curvature,
        first,
        last,
        g,
        h,
    ):
        """gain (n,) float32, f (n,) float64: label gain and score of each document; start (lists + 1,) int64; discounts
        (16 more than the longest,) float32; scales (lists,) factors of pair weights, 0 without any gain; weight (n,)
        float64 or (0,); precision: whether pairs weigh the change of precisions instead of discounts; closer: whether
        they are weighed by the distance of their scores; even: whether lists are evened out; curvature: a constant in
        place of h, or a negative number for h itself; g, h (n,) float32."""
        _ = stamp
        longest = 0
        for q in range(first, last):
            longest = max(longest, start[q + 1] - start[q])
        order, spare, step = (
            np.empty(longest, np.int32),
            np.empty(longest, np.int32),
            np.empty(room_of(longest), np.int32),
        )
        counts, padded = np.empty(steps_of(longest), np.int32), _whole_lines(longest)
        places, sums, scores = _rows_of_lines(7, padded), np.empty((2, padded)), np.empty(longest)
        leader_sums, pair = np.empty((min(longest, truncation), 3)), np.empty((2, 3), np.float32)
        for q in range(first, last):
            begin, stop = start[q], start[q + 1]
            placed, ranked = order[: stop - begin], scores[: stop - begin]
            of_rows = weight[begin:stop] if weight.size > 0 else weight
            if scales[q] > 0.0:
                by_score(f[begin:stop], placed, ranked, spare, step, counts)
                put_in_places(ranked, gain[begin:stop], placed, sigma, places)
                upper, lower = discounts, discounts
                if precision:
                    upper, lower = places[UPPER], places[LOWER]
                    put_marks(places[GAIN], placed.size, upper, lower)
                steep = scales[q] * sigma
                total = of_list(places, placed.size, upper, lower, truncation, closer, sums, leader_sums, pair)
                factor = shrink_factor(steep * total, even)
                by = steep * factor, steep * sigma * factor
                _finish(sums, placed, by[0], by[1], of_rows, curvature, g[begin:stop], h[begin:stop])
            else:
                _leave(g[begin:stop], h[begin:stop], curvature, of_rows)

    return lambdas
