"""Threshold of the scores of few rows, in one call. Definition: gpuboost/backends/numerics/threshold.py.

The same float64 arithmetic in the same order. Its steps take NumPy a hundred microseconds, whatever the number of rows:
on a thousand, three times as long as the rest of the draw. On a GPU: threshold.cuh.
"""

from math import frexp, inf, ldexp

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.sampling.importance import BUCKETS, count_within, sums_beside

OF_ZERO, GROUP = 8, 64  # as in the definition
STEPS = 4
SURELY_ALL = 2.0**126


@kernel
def _sum_of(significands, bucket):
    """The sum of the scores of a bucket."""
    return ldexp(np.float64(significands[bucket]), (bucket >> 3) - 150)


@kernel
def _first_guess(counts, significands, n, zeros, need, floor, room):
    means, up_to, sum_up_to = room[0], room[1], room[2]
    size, rows, before = 0, zeros, 0.0
    for group in range(BUCKETS // GROUP):
        within = 0.0
        for bucket in range(max(group * GROUP, OF_ZERO), group * GROUP + GROUP):
            if counts[bucket] > 0:  # an empty one changes no sum
                of_bucket = _sum_of(significands, bucket)
                within += of_bucket
                rows += counts[bucket]
                means[size], up_to[size], sum_up_to[size] = of_bucket / counts[bucket], rows, before + within
                size += 1
        before += within
    first, guess = 0, 0.0  # first: of the buckets that are not below the floor, were mu this mean
    for i in range(size):
        low = floor * means[i]
        while first < size and means[first] < low:
            first += 1
        below = up_to[first - 1] if first > 0 else np.float64(zeros)
        between = sum_up_to[i] - (sum_up_to[first - 1] if first > 0 else 0.0)
        above = n - up_to[i]
        if i == 0 or above + between / means[i] + floor * below >= need:
            guess = (need - above - floor * below) / between
    return guess


@kernel
def rho_for_rate(rate, floor, scores, counts, significands, room):
    """See the definition. scores (n,) float32; counts, significands (2048,) int64: as ``importance.count`` has them.

    room: (3, 2048) float64 of scratch memory.
    """
    n, zeros = scores.size, np.int64(0)
    for bucket in range(OF_ZERO):
        zeros += counts[bucket]
    need = rate * n
    if need >= (n - zeros) + floor * zeros:
        return SURELY_ALL
    if need <= floor * n:
        return 0.0
    rho = _first_guess(counts, significands, n, zeros, need, floor, room)
    rows_above, rows_below = np.int64(-1), np.int64(-1)
    for _ in range(STEPS):
        mu = 1.0 / rho
        shift = 62 - frexp(np.float64(n))[1] - frexp(mu)[1]
        above, below, between = sums_beside(scores, mu, floor * mu, ldexp(1.0, shift))
        rest = need - above - floor * below
        if (above == rows_above and below == rows_below) or not (rest > 0.0 and between > 0):
            break
        rho = rest / ldexp(np.float64(between), -shift)
        rows_above, rows_below = above, below
    return rho


@kernel
def _count_next_bits(bits, prefix, low_bits, counts, significands):
    """The counts of scores of that prefix by their next bits, ``low_bits`` of which are left. Returns their number."""
    shift = 20 if low_bits > 0 else 9
    counts[:], significands[:] = 0, 0
    count_within(bits, 0, bits.size, shift, np.uint32(prefix), low_bits, counts, significands)
    return shift - low_bits


@kernel
def _rank(counts, k, above):
    """The highest place with at least k rows at or above it, and the number of rows above it."""
    for place in range(BUCKETS - 1, 0, -1):
        if above + counts[place] >= k:
            return place, above
        above += counts[place]
    return 0, above


@kernel
def _score(bits):
    return np.float64(np.uint32(bits).view(np.float32))


@kernel
def score_of_rank(k, bits, counts, significands):
    """See the definition. bits (n,) uint32: the scores; the counts of their buckets are overwritten."""
    prefix, above = _rank(counts, k, np.int64(0))
    for low_bits in (9, 0):
        new_bits = _count_next_bits(bits, prefix, low_bits, counts, significands)
        place, above = _rank(counts, k, above)
        prefix = prefix << new_bits | place
    return _score(prefix), above, counts[place]


@kernel
def _reaching_bucket(counts, significands, target):
    """The highest bucket with rows at which the sum from the top reaches the target, or the lowest; and that sum."""
    place, from_top, before = 0, 0.0, 0.0
    for last in range(BUCKETS - 1, 0, -GROUP):
        within = 0.0
        for bucket in range(last, last - GROUP, -1):
            if counts[bucket] > 0:
                within += _sum_of(significands, bucket)
                place, from_top = bucket, before + within
                if from_top >= target:
                    return place, from_top
        before += within
    return place, from_top


@kernel
def _reaching_place(counts, significands, unit, target):
    """The same of the places within a bucket, whose significands are worth ``unit``."""
    place, weight, whole = 0, 0.0, np.int64(0)
    for at in range(BUCKETS - 1, -1, -1):
        if counts[at] > 0:
            whole += significands[at]
            place, weight = at, np.float64(whole) * unit
            if weight >= target:
                break
    return place, weight


@kernel
def score_of_mass(mass, bits, counts, significands):
    """See the definition. bits, counts, significands: as of ``score_of_rank``."""
    _, total = _reaching_bucket(counts, significands, inf)
    if total == 0.0:
        return 0.0
    target = mass * total
    prefix, from_top = _reaching_bucket(counts, significands, target)
    missing, unit = target - (from_top - _sum_of(significands, prefix)), ldexp(1.0, (prefix >> 3) - 150)
    for low_bits in (9, 0):
        new_bits = _count_next_bits(bits, prefix, low_bits, counts, significands)
        place, weight = _reaching_place(counts, significands, unit, missing)
        missing -= weight - np.float64(significands[place]) * unit
        prefix = prefix << new_bits | place
    return _score(prefix)
