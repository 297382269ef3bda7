"""Importance sampling: scores of rows, counts for the threshold, and the draw. Definition: reference.sampling.

A score is a float32 that is not negative, so its bits, read as an integer, are in its order. The first pass writes the
scores and counts them in 2,048 buckets by their upper 11 bits, 8 of exponent and 3 of significand: within a bucket all
have one exponent, and the integer sum of their significands is the sum of the scores. Nothing is ever sorted.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.philox import NUMBERS, numbers
from gpuboost.kernels.common.vector import LANES, in_either, trailing_zeros, wide_vectors
from gpuboost.kernels.sampling.draw import AT_ONCE, keep
from gpuboost.kernels.sampling.probability import (
    by_border,
    by_threshold,
    inverse,
    is_drawn,
    magnitude,
    normal_score,
    weighted,
)

BUCKETS = 2048
TOP_SHIFT = 20  # of the 32 bits, these are below a bucket's
GRADIENT, BOTH, CURVATURE = 0, 1, 2  # what a score is made of
# Kinds of rules, as in gpuboost/backends/numerics/probabilities.py:
FIXED_THRESHOLD, SOLVED_THRESHOLD, GOSS, TRIMMING = 0, 1, 2, 3

_CHUNK = 1024  # rows whose scores are made before they are counted
_FLUSH = 1 << 16  # rows after which a packed count and sum must be emptied: 2**16 * 2**20 < 2**40
_ONE = np.int64(1) << np.int64(40)
_BELOW = np.uint32((1 << TOP_SHIFT) - 1)
_HIDDEN = np.uint32(0x0080_0000)
_FRACTION = np.uint32(0x007F_FFFF)


@kernel
def _squares(values, out):
    """out = sum over outputs of value^2. values (k, rows) float32; out (at least rows,) float64."""
    out[:] = 0.0
    for c in range(values.shape[0]):
        line = values[c]
        for j in range(line.size):
            x = np.float64(line[j])
            out[j] += x * x


@kernel
def _of_one_output(g, h, made_of, kappa, times, scores):
    """The usual case in one pass: sums over outputs that begin at 0 are their only term. Returns how many are NaN."""
    wide_vectors()
    bad = 0
    for j in range(g.size):
        a, b = np.float64(g[j]), np.float64(h[j])
        s = magnitude(b * b if made_of == CURVATURE else a * a, b * b, kappa, made_of == BOTH)
        if times.shape[0] > 0:
            s = s * np.float64(times[j])
        bad += 0 if s >= 0.0 else 1
        scores[j] = normal_score(s)
    return bad


@kernel
def _of_several(g, h, made_of, kappa, times, first, second, scores):
    """The same for any number of outputs. first, second: room for a float64 of each row."""
    bad = 0
    _squares(h if made_of == CURVATURE else g, first)
    if made_of == BOTH:
        _squares(h, second)
    for j in range(scores.size):
        s = magnitude(first[j], second[j], kappa, made_of == BOTH)
        if times.shape[0] > 0:
            s = s * np.float64(times[j])
        bad += 0 if s >= 0.0 else 1
        scores[j] = normal_score(s)
    return bad


@kernel
def importance(g, h, multiplicity, made_of, kappa, start, stop, scores, counts, sums):
    """s = sqrt(sum g^2 + kappa sum h^2) of rows [start, stop), or the root of one sum. Returns how many are NaN.

    g, h (k, n) float32; multiplicity (n,) int32 or (0,); scores (n,) float32; counts, sums: as ``count`` has them.
    """
    first, second = np.empty(_CHUNK), np.empty(_CHUNK)
    packed, other = np.zeros(BUCKETS, np.int64), np.zeros(BUCKETS, np.int64)
    bits = scores.view(np.uint32)
    bad = 0
    for begin in range(start, stop, _CHUNK):
        size = min(_CHUNK, stop - begin)
        end = begin + size
        times = multiplicity[begin:end] if multiplicity.shape[0] > 0 else multiplicity
        if g.shape[0] == 1:
            bad += _of_one_output(g[0, begin:end], h[0, begin:end], made_of, kappa, times, scores[begin:end])
        else:
            some = g[:, begin:end], h[:, begin:end]
            bad += _of_several(*some, made_of, kappa, times, first, second, scores[begin:end])
        _tally(bits[begin:end], packed, other)  # while they are in the cache
        if (begin - start) % _FLUSH == _FLUSH - _CHUNK:
            _flush(packed, counts, sums)
            _flush(other, counts, sums)
    _flush(packed, counts, sums)
    _flush(other, counts, sums)
    return bad


@kernel
def clip(values, multiplicity, start, stop, scores):
    """scores = max(0, value) times multiplicity, as normal float32. values (n,) float64. Returns the number of NaN."""
    bad = 0
    for i in range(start, stop):
        s = values[i]
        if multiplicity.shape[0] > 0:
            s = s * np.float64(multiplicity[i])
        bad += 1 if np.isnan(s) else 0
        scores[i] = normal_score(s)
    return bad


@kernel
def _flush(packed, counts, sums):
    for b in range(packed.shape[0]):
        rows = packed[b] >> 40
        counts[b] += rows
        sums[b] += rows * np.int64(_significand(np.uint32(b) << np.uint32(TOP_SHIFT))) + (packed[b] & (_ONE - 1))
        packed[b] = 0


@kernel
def _tally(part, packed, other):
    """Count at most _FLUSH scores, and add up their bits below those of their bucket.

    In two tables: an addition need not wait for the last one to the same bucket.
    """
    for j in range(part.size // 2):
        a, b = part[2 * j], part[2 * j + 1]
        packed[np.uint64(a >> np.uint32(TOP_SHIFT))] += _ONE + np.int64(a & _BELOW)
        other[np.uint64(b >> np.uint32(TOP_SHIFT))] += _ONE + np.int64(b & _BELOW)
    if part.size % 2 == 1:
        a = part[part.size - 1]
        packed[np.uint64(a >> np.uint32(TOP_SHIFT))] += _ONE + np.int64(a & _BELOW)


@kernel
def count(bits, start, stop, counts, sums):
    """Rows and integer sums of significands in each of 2,048 buckets, added to ``counts`` and ``sums`` (2048,) int64.

    bits (n,) uint32: the scores, as they lie in memory. 0 is in bucket 0, and has no significand.
    """
    packed, other = np.zeros(BUCKETS, np.int64), np.zeros(BUCKETS, np.int64)
    for begin in range(start, stop, _FLUSH):
        _tally(bits[begin : min(begin + _FLUSH, stop)], packed, other)
        _flush(packed, counts, sums)
        _flush(other, counts, sums)


@kernel
def _significand(word):
    """24 bits; 0 of the number 0."""
    return ((word & _FRACTION) | _HIDDEN) if word != np.uint32(0) else np.uint32(0)


@kernel
def count_within(bits, start, stop, shift, prefix, low_bits, counts, sums):
    """The same one level down: scores whose bits, less the lowest ``shift``, are ``prefix``, by the next bits.

    ``low_bits`` is how many low bits are left below the new buckets.
    """
    for i in range(start, stop):
        word = bits[i]
        if (word >> np.uint32(shift)) == prefix:
            bucket = np.uint64((word & ((np.uint32(1) << np.uint32(shift)) - np.uint32(1))) >> np.uint32(low_bits))
            counts[bucket] += 1
            sums[bucket] += np.int64(_significand(word))


@kernel
def take_buckets(scores, start, stop, a, b, out):
    """The scores of rows [start, stop) that are in bucket a or b, in order of rows. Returns how many.

    scores, out: float32, with room for all of them.
    """
    base, shift, count = scores.ctypes.data, np.uint32(TOP_SHIFT), 0
    whole = stop - (stop - start) % LANES
    for begin in range(start, whole, LANES):
        matches = in_either(base + 4 * begin, shift, np.uint32(a), np.uint32(b))
        while matches:
            out[count] = scores[begin + np.int64(trailing_zeros(matches))]
            matches &= matches - np.uint64(1)
            count += 1
    bits = scores[whole:stop].view(np.uint32)
    for j in range(bits.size):
        bucket = np.int64(bits[j] >> shift)
        if bucket in (a, b):
            out[count] = scores[whole + j]
            count += 1
    return count


@kernel
def sums_beside(part, mu, low, scale):
    """Rows with s >= mu, rows with s < low, and sum of rint(s * scale) over those between. part: float32 scores."""
    above, below, between = np.int64(0), np.int64(0), np.int64(0)
    for j in range(part.size):
        s = np.float64(part[j])
        high, under = s >= mu, s < low
        above += np.int64(high)
        below += np.int64(under)
        between += np.int64(0 if high or under else np.int64(np.rint(s * scale)))
    return above, below, between


@kernel
def three_sums(scores, start, stop, mu, low, scale, out):
    """out += the sums of ``sums_beside`` of rows [start, stop). out (3,) int64."""
    above, below, between = sums_beside(scores[start:stop], mu, low, scale)
    out[0] += above
    out[1] += below
    out[2] += between


@kernel
def _keep(words, p, begin, stop, rows, inverses, count):
    """Rows [begin, stop) that words (256,) uint32 draw with p (256,) float64, and 1 / p, behind ``count`` others."""
    last = count
    for first in range(begin, stop, AT_ONCE):
        offset = first - begin
        some, of_each, drawn = words[offset : offset + AT_ONCE], p[offset : offset + AT_ONCE], np.uint64(0)
        for j in range(np.uint64(AT_ONCE)):
            drawn |= np.uint64(is_drawn(some[j], of_each[j])) << j
        last = keep(drawn, first, stop, rows, last)
    for position in range(count, last):
        inverses[position] = np.float32(inverse(p[np.uint64(rows[position] - begin)]))
    return last


@kernel
def _probabilities(kind, parameters, scores, p):
    """p[j] of each score by the rule of that kind. Returns how many are 0."""
    wide_vectors()
    if kind in (FIXED_THRESHOLD, SOLVED_THRESHOLD):
        rho, floor = parameters[0], parameters[1]
        for j in range(scores.size):
            p[j] = by_threshold(np.float64(scores[j]), rho, floor)
    else:
        least_score, at_threshold, below = parameters[0], parameters[1], parameters[2]
        for j in range(scores.size):
            p[j] = by_border(scores[j], least_score, at_threshold, below)
    excluded = 0
    for j in range(scores.size):
        excluded += 1 if p[j] == 0.0 else 0
    return excluded


@kernel
def draw(scores, start, stop, kind, parameters, seed_low, seed_high, iteration, stream, rows, inverses):
    """Rows [start, stop), each drawn with its p, and 1 / p. Returns how many were drawn, and how many have p = 0.

    kind, parameters (float64): see ``backends/numerics/probabilities.py``. start must be a multiple of NUMBERS. rows
    int32 and inverses float32 have room for all rows of the stretch.
    """
    wide_vectors()
    words, p, count, excluded = np.zeros(NUMBERS, np.uint32), np.empty(NUMBERS), 0, 0
    for begin in range(start, stop, NUMBERS):
        size = min(NUMBERS, stop - begin)
        if kind != TRIMMING:  # whose p are 0 and 1: any number will do
            numbers(begin // 4, seed_low, seed_high, iteration, stream, words)
        excluded += _probabilities(kind, parameters, scores[begin : begin + size], p)
        count = _keep(words, p, begin, begin + size, rows, inverses, count)
    return count, excluded


@kernel
def weigh(values, rows, by, start, stop, out):
    """out[c, k] = values[c, rows[k]] * by[k] for k in [start, stop). values (c, n), out (c, m) and by (m,) float32."""
    for c in range(values.shape[0]):
        line, drawn = values[c], out[c]
        for k in range(start, stop):
            drawn[k] = weighted(line[np.uint64(rows[k])], by[k])
