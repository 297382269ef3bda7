"""The best of a feature's cuts where leaf values have bounds: what ``monotone_split`` finds, in a fraction of its time.

As in ``packed_split``, estimates in float32 tell which few cuts may be the best, and only these get exact gains. Here
an estimate is never below the score: it has a margin for all of its roundings.
"""

import numpy as np

from gpuboost.kernels.common.jit import inlined, kernel
from gpuboost.kernels.common.vector import LANES, at_least, trailing_zeros, wide_vectors
from gpuboost.kernels.splits.gain import soft_threshold
from gpuboost.kernels.splits.monotone_split import both_within

_LOW = np.int64(0xFFFF_FFFF)
_FARTHEST = 2.0**32  # values in units of g / h are nearer to 0; to clip there lowers no score
_ONE, _NONE, _MARGIN = np.float32(1.0), np.float32(0.0), np.float32(2.0**-16)
_REFUSED, _LEAST = np.float32(-np.inf), np.int32(-(2**31))
_SIGN = np.int32(0x7FFF_FFFF)
BELOW = 1.0 - 2.0**-20  # a factor of more than the roundings of a number to float32


@kernel
def _estimate(running, cuts, shift, total, least, alpha, ridge, low, high, direction, about):
    """about[b]: no less than the score of both sides of a cut in units of g^2 / h; -inf if it is not allowed.

    running: packed sums of each cut's left side, but for ``shift``. alpha, ridge, low and high, float32, are in units
    of g, of h, and of g / h; alpha is not above the true one, so that no gradient is taken for smaller than it is.
    """
    wide_vectors()
    for b in range(cuts):
        left = running[b] + shift
        right = total - left
        left_h, right_h = left & _LOW, right & _LOW
        a, c = np.float32(np.int32(left >> 32)), np.float32(np.int32(right >> 32))
        p, q = np.float32(np.uint32(left_h)) + ridge, np.float32(np.uint32(right_h)) + ridge
        both = _ONE / (p * q)
        r, s = q * both, p * both
        x = a - alpha if a > alpha else a + alpha if a < -alpha else _NONE
        y = c - alpha if c > alpha else c + alpha if c < -alpha else _NONE
        v, w = -x * r, -y * s
        v, w = low if v < low else high if v > high else v, low if w < low else high if w > high else w
        of_left, of_right = -(v * (x + x + p * v)), -(w * (y + y + q * w))
        sizes = abs(v * a) + abs(of_left) + abs(w * c) + abs(of_right)
        unsure = _MARGIN * (abs(a * r) + abs(v) + abs(c * s) + abs(w))
        allowed = (left_h >= least) & (right_h >= least) & (direction * (v - w) <= unsure)
        about[b] = (of_left + of_right) + _MARGIN * sizes if allowed else _REFUSED


@kernel
def _largest(bits, cuts):
    """The largest of the first numbers. bits: theirs, int32. The order of floats is that of such integers."""
    top = _LEAST
    for b in range(cuts):
        key = bits[b] ^ ((bits[b] >> np.int32(31)) & _SIGN)
        top = max(top, key)
    return top


@kernel
def _first_of_largest(about, cuts):
    """The place of the largest number, the first of equals."""
    bits = about.view(np.int32)
    top = _largest(bits, cuts)
    for b in range(cuts):
        if bits[b] ^ ((bits[b] >> np.int32(31)) & _SIGN) == top:
            return b
    return 0


@kernel
@inlined
def _gain(left, total, units, ridge, within):
    """The exact gain of a cut. left: packed sums of its left side."""
    alpha, low, high, direction, parent, _ = within
    right = total - left
    g, h = soft_threshold((left >> 32) * units[0], alpha), (left & _LOW) * units[1]
    other_g, other_h = soft_threshold((right >> 32) * units[0], alpha), (right & _LOW) * units[1]
    return both_within(g, h, other_g, other_h, ridge, low, high, 0.0, 0.0, direction) - parent


@kernel
def best_within(running, cuts, shift, total, least, units, ridge, within, about):
    """The gain and the place of the best allowed cut, the first of equals; -1.0 and 0 if none gains enough.

    within: reg_alpha, the node's bounds, the feature's direction, the node's own score, and what a gain must exceed.
    """
    alpha, low, high, direction, parent, floor = within
    of_value, of_score = units[1] / units[0], units[1] / (units[0] * units[0])
    _estimate(
        running, cuts, shift, total, least, np.float32(alpha / units[0] * BELOW), np.float32(ridge / units[1]),
        np.float32(min(max(low * of_value, -_FARTHEST), _FARTHEST)),
        np.float32(min(max(high * of_value, -_FARTHEST), _FARTHEST)), np.float32(direction), about,
    )  # fmt: skip
    best, cut, first, address = floor, np.int64(-1), np.int64(_first_of_largest(about, cuts)), about.ctypes.data
    if not about[first] > _REFUSED:
        return -1.0, np.int64(0)
    gain = _gain(running[first] + shift, total, units, ridge, within)
    if gain > best:
        best, cut = gain, first
    for line in range(0, cuts, LANES):
        enough = (best + parent) * of_score
        may = at_least(address + 4 * line, np.float32(enough - (1.0 - BELOW) * abs(enough)))
        if cuts - line < LANES:
            may &= (np.uint64(1) << np.uint64(cuts - line)) - np.uint64(1)
        while may:
            b = line + np.int64(trailing_zeros(may))
            may &= may - np.uint64(1)
            gain = _gain(running[b] + shift, total, units, ridge, within)
            if gain > best or (gain == best and 0 <= b < cut):
                best, cut = gain, b
    if cut < 0:
        return -1.0, np.int64(0)
    return best, cut
