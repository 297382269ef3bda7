"""Gradients as integers, so that a sum of them has no order.

Each row's pair is one int64, ``g * 2**32 + h``: integers add lane by lane, so one addition sums both, as long as the
sum of g stays within 31 bits and a sign and that of h within 32 bits. The scales are powers of two, hence exact, and
see to that (``gpuboost.backends.numerics.fixed_point.fixed_point_scale`` is the definition and holds the proof).
"""

from math import frexp, inf, isnan, ldexp, nan

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.vector import SIXTEEN as LANES
from gpuboost.kernels.common.vector import add_sizes, wide_vectors

STRETCH = 1 << 12  # rows whose lanes are summed before the next stretch begins
BLOCK = 1 << 16  # rows summed by one call; blocks are then summed in order
_TILE = 65_535  # rows whose packed sums fit, whatever the scale
_FEW = 2048  # rows packed before they are added up
_MOST = 2.0**100


@kernel
def _stretch(values, multiplicity, lanes, tops):
    """Add |value| * multiplicity of at most STRETCH rows to lanes that start at 0: row i to lane i % 16."""
    lanes[:] = 0.0
    lines = values.size // LANES
    done = 0
    if multiplicity.shape[0] == 0:
        done = lines * LANES
        add_sizes(values.ctypes.data, lines, lanes.ctypes.data, tops.ctypes.data)
    for i in range(done, values.size):
        times = 1.0 if multiplicity.shape[0] == 0 else np.float64(multiplicity[i])
        size = np.float64(abs(values[i])) * times
        lanes[i % LANES] += size
        tops[i % LANES] = max(tops[i % LANES], size)


@kernel
def extent(values, multiplicity, start, stop, out):
    """max and sum of |value| * multiplicity over rows [start, stop), and the largest multiplicity.

    values (m,) float32; multiplicity (m,) int32 or (0,) for all ones; out (3,) float64. At most BLOCK rows; the sum
    is formed as ``Reference`` forms it, so it does not depend on the machine.
    """
    lanes, tops = np.zeros(LANES, np.float64), np.zeros(LANES, np.float64)
    total, top, max_multiplicity = 0.0, 0.0, 1.0
    for begin in range(start, stop, STRETCH):
        end = min(begin + STRETCH, stop)
        times = multiplicity[begin:end] if multiplicity.shape[0] > 0 else multiplicity
        _stretch(values[begin:end], times, lanes, tops)
        in_stretch = 0.0
        for lane in range(LANES):
            in_stretch += lanes[lane]
        total += in_stretch
    for lane in range(LANES):
        top = max(top, tops[lane])
    if multiplicity.shape[0] > 0:
        for i in range(start, stop):
            max_multiplicity = max(max_multiplicity, np.float64(multiplicity[i]))
    out[0], out[1], out[2] = top, total, max_multiplicity


@kernel
def extents(values, multiplicity, first, last, out):
    """``extent`` of each block [first, last) of BLOCK rows. out (blocks, 3) float64."""
    for block in range(first, last):
        begin = block * BLOCK
        extent(values, multiplicity, begin, min(begin + BLOCK, values.shape[0]), out[block])


@kernel
def _power_below(x):
    """The largest power of two that is not above x."""
    return ldexp(1.0, frexp(x)[1] - 1)


@kernel
def scale(values, multiplicity, weight, bits):
    """``fixed_point_scale`` of at most BLOCK rows; NaN if one is not finite. weight: the sum of the multiplicities."""
    block_extents = np.empty((1, 3))
    extent(values, multiplicity, 0, values.shape[0], block_extents[0])
    return scale_of(block_extents, weight, bits)


@kernel
def scale_of(found, weight, bits):
    """The same from the ``extents`` of all blocks of rows. found (blocks, 3) float64."""
    top, total, max_multiplicity = 0.0, 0.0, 1.0
    for block in range(found.shape[0]):
        top, max_multiplicity = max(top, found[block, 0]), max(max_multiplicity, found[block, 2])
        total += found[block, 1]
    if not total < inf:
        return nan
    if not top > 0.0:
        return 1.0
    row_room, sum_room = 2.0 ** (bits - 16) - 1.0 - 0.5 * max_multiplicity, 2.0**bits - 1.0 - 0.5 * weight
    by_row = _power_below(row_room / top) if row_room > 0.0 else 0.0
    by_sum = _power_below(sum_room / (total * (1.0 + 2.0**-20))) if sum_room > 0.0 else 0.0
    return max(by_row, by_sum)


@kernel
def _factors(scale):
    """Two float32 that are it, multiplied: the second is 1 for all but gradients that are beyond measure."""
    first = min(max(scale, 1.0 / _MOST), _MOST)
    return np.float32(first), np.float32(scale / first)


@kernel
def _integer(x, by, then):
    """rint(x * scale) of a float32. A power of two keeps its digits unless the result is 0 anyway, so float64, which is
    half as fast, is not needed."""
    return np.int64(np.rint(x * by * then))


@kernel
def pack(g, h, multiplicity, scale_g, scale_h, start, stop, out, totals):
    """out[i] = rint(g * scale_g) * m * 2**32 + rint(h * scale_h) * m; adds the sums of both to ``totals``.

    g, h (m,) float32; scales: powers of two; out (m,) int64; totals (2,) int64.
    """
    wide_vectors()
    sum_g, sum_h = np.int64(0), np.int64(0)
    by_g, then_g = _factors(scale_g)
    by_h, then_h = _factors(scale_h)
    g, h, out = g[start:stop], h[start:stop], out[start:stop]
    if multiplicity.shape[0] == 0:
        for i in range(g.size):
            a, b = _integer(g[i], by_g, then_g), _integer(h[i], by_h, then_h)
            sum_g += a
            sum_h += b
            out[i] = (a << 32) + b
    else:
        multiplicity = multiplicity[start:stop]
        for i in range(g.size):
            a = _integer(g[i], by_g, then_g) * multiplicity[i]
            b = _integer(h[i], by_h, then_h) * multiplicity[i]
            sum_g += a
            sum_h += b
            out[i] = (a << 32) + b
    totals[0] += sum_g
    totals[1] += sum_h


@kernel
def scale_and_pack(g, h, multiplicity, weight, out):
    """``scale`` of both and ``pack`` in one call, for at most BLOCK rows.

    Returns the scales, of which one is NaN if a number is not finite, and the sums of the integers.
    """
    totals = np.zeros(2, np.int64)
    scale_h, scale_g = scale(h, multiplicity, weight, 32), scale(g, multiplicity, weight, 31)
    if not (isnan(scale_g) or isnan(scale_h)):
        pack(g, h, multiplicity, scale_g, scale_h, 0, g.size, out, totals)
    return scale_g, scale_h, totals[0], totals[1]


@kernel
def leaf_sums(g, h, multiplicity, scale_g, scale_h, leaf_of_row, start, stop, sums):
    """sums[leaf] += the integers of each row in it. sums (v, 2) int64, leaf_of_row (n,) int32."""
    packed, none = np.zeros(sums.shape[0], np.int64), np.zeros(2, np.int64)
    pairs = np.empty(_FEW, np.int64)
    for tile in range(start, stop, _TILE):
        end = min(tile + _TILE, stop)
        for begin in range(tile, end, _FEW):
            size = min(_FEW, end - begin)
            last = begin + size
            times = multiplicity[begin:last] if multiplicity.shape[0] > 0 else multiplicity
            pack(g[begin:last], h[begin:last], times, scale_g, scale_h, 0, size, pairs, none)
            leaves = leaf_of_row[begin:last]
            for j in range(size):
                packed[np.uint64(leaves[j])] += pairs[j]
        for leaf in range(sums.shape[0]):
            sums[leaf, 0] += packed[leaf] >> 32
            sums[leaf, 1] += packed[leaf] & np.int64(0xFFFF_FFFF)
            packed[leaf] = 0


@kernel
def count_leaves(leaf_of_row, start, stop, counts):
    """counts[leaf] += 1 for each row in it. leaf_of_row (n,) int32, counts (v,) int64."""
    for i in range(start, stop):
        counts[np.uint64(leaf_of_row[i])] += 1
