"""exp, log, expit, log1pexp, the gamma function's logarithm and the normal tail with the same bits on every machine.

The C library, numpy's SIMD loops and a GPU each round exp and log in their own way, so a model that used theirs would
depend on where it was trained. These functions use only what IEEE 754 fixes to the last bit: +, -, *, /, comparisons,
and moves between a float64 and its bit pattern. One text runs in CPython and in numba, and vectorises there.
It must never be contracted to fused multiply-adds or reordered: no ``fastmath``, and ``fmad`` off on a GPU.

The scheme is the classic one (Cody and Waite 1980; Tang 1989): take out a power of two, with ln 2 in two parts so that
the remainder is exact, then a minimax polynomial of the remainder, found with Remez's algorithm at 60 digits.
The ``*_array`` twins do the same operations on numpy arrays and give the same bits as the scalar functions.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238  # 32 bits: its product with a whole number below 2**21 is exact
_LN2_LOW = 1.9082149292705877e-10

# exp(r) = 1 + r + r^2 (E2 + E3 r + ... + E11 r^9) for |r| <= ln(2) / 2, relative error below 2**-56
_E2 = 0.500000000000001
_E3 = 0.16666666666666674
_E4 = 0.04166666666652199
_E5 = 0.008333333333322207
_E6 = 0.0013888888947820833
_E7 = 0.00019841269886590433
_E8 = 2.4801487326069335e-05
_E9 = 2.755724233723891e-06
_E10 = 2.7632655739872773e-07
_E11 = 2.51100497054924e-08

# log((1 + s) / (1 - s)) = 2 s + s z (L1 + L2 z + ... + L7 z^6), z = s^2, for (1 + s) / (1 - s) in [sqrt(1/2), sqrt(2)]
_L1 = 0.666666666666671
_L2 = 0.39999999999519537
_L3 = 0.2857142872936404
_L4 = 0.2222219908154001
_L5 = 0.18183572077150492
_L6 = 0.15313149642986273
_L7 = 0.14810675658257802

_EXP_TOP = 709.8  # above it exp is inf, as the polynomial and the power of two make it of themselves
_EXP_BOTTOM = -693.1471805599453  # ln 2**-1000: below it exp is 0, far away from denormal numbers

# Added to |v| < 2**51, it rounds v to a whole number k that lands in the low bits of the sum as k + 1022,
# the exponent field of 2**(k - 1): shifted up by 52, those bits *are* that power of two.
_ROUND = 6755399441055744.0 + 1022.0

_SMALLEST_NORMAL = 2.2250738585072014e-308
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_SQRT_2_LESS_1 = 0.41421356237309503

_BOUND = 40.0

_HALF_LOG_2_PI = 0.9189385332046727
_ASYMPTOTIC = 10.0  # from here on Stirling's series has float64 precision

_FEW = 6  # numbers up to which an array twin calls the scalar function
_BLOCK = 4096  # float64 numbers per pass of an array twin: its scratch arrays stay in the cache


def exp(x: float) -> float:
    """e**x, less than 1 ulp from the truth; inf where it overflows, 0 where it is below 2**-1000."""
    x = float(x)  # numpy's scalars would warn of an overflow that is meant
    v = _EXP_TOP if x > _EXP_TOP else x
    t = v * _LOG2_E + _ROUND
    k = t - _ROUND
    high = v - k * _LN2_HIGH
    low = k * _LN2_LOW
    r = high - low
    z = r * r
    even = _E2 + z * (_E4 + z * (_E6 + z * (_E8 + z * _E10)))
    odd = _E3 + z * (_E5 + z * (_E7 + z * (_E9 + z * _E11)))
    p = 1.0 + (high + (z * (even + r * odd) - low))
    bits = np.float64(t).view(np.int64) << 52
    half_power = float(np.int64(bits).view(np.float64))  # 2**(k - 1), as 2**1024 is out of range
    return 0.0 if x < _EXP_BOTTOM else (p + p) * half_power


def log(x: float) -> float:
    """The natural logarithm, less than 1 ulp from the truth; -inf at 0, nan below."""
    x = float(x)
    v = x if x > 0.0 else 1.0
    tiny = v < _SMALLEST_NORMAL
    v = v * 18014398509481984.0 if tiny else v  # 2**54
    bits = np.float64(v).view(np.int64)
    e = (bits - _SQRT_HALF_BITS) >> 52
    m = float(np.int64(bits - (e << 52)).view(np.float64))  # in [sqrt(1/2), sqrt(2))
    y = log_near_one(m - 1.0, float(e) - 54.0 if tiny else float(e))
    y = x if x == inf else y
    y = y if x > 0.0 else nan
    return -inf if x == 0.0 else y


def log_near_one(f: float, k: float) -> float:
    """log((1 + f) 2**k) for 1 + f in [sqrt(1/2), sqrt(2)] and a whole number k."""
    s = f / (2.0 + f)
    z = s * s
    r = z * (_L1 + z * (_L2 + z * (_L3 + z * (_L4 + z * (_L5 + z * (_L6 + z * _L7))))))
    half = 0.5 * f * f
    return k * _LN2_HIGH - ((half - (s * (half + r) + k * _LN2_LOW)) - f)


def expit(x: float) -> float:
    """1 / (1 + e**-x), the logistic function; within 3 ulp."""
    return 1.0 / (1.0 + exp(-x))


def log1pexp(x: float) -> float:
    """log(1 + e**x), for every x without overflow or loss of small values; within 2 ulp."""
    e = exp(-abs(x))
    large = e > _SQRT_2_LESS_1
    return (x if x > 0.0 else 0.0) + log_near_one(0.5 * (e - 1.0) if large else e, 1.0 if large else 0.0)


def bounded(x: float) -> float:
    """x held within -40 and 40: e**x and e**-x, times any sensible weight, are then normal float32 numbers."""
    x = _BOUND if x > _BOUND else x
    return -_BOUND if x < -_BOUND else x


def log_gamma_rest(x: float) -> float:
    """log(gamma(x)) - x log(x) + x for x > 0: what Stirling's leading terms leave over, without their cancellation."""
    v, product = x, 1.0
    while v < _ASYMPTOTIC:
        product *= v
        v += 1.0
    z = 1.0 / (v * v)
    series = 0.08333333333333333 + z * (-0.002777777777777778 + z * (0.0007936507936507937 + z * (
        -0.0005952380952380953 + z * (0.0008417508417508417 + z * -0.0019175269175269176)
    )))  # fmt: skip
    rest = _HALF_LOG_2_PI - 0.5 * log(v) + series / v
    return rest if product == 1.0 else rest + (v * log(v) - v) - log(product) - (x * log(x) - x)


def digamma_rest(x: float) -> float:
    """digamma(x) - log(x) for x > 0; about -1 / (2 x)."""
    v, inverses = x, 0.0
    while v < _ASYMPTOTIC:
        inverses += 1.0 / v
        v += 1.0
    z = 1.0 / (v * v)
    series = 0.08333333333333333 + z * (-0.008333333333333333 + z * (0.003968253968253968 + z * (
        -0.004166666666666667 + z * (0.007575757575757576 + z * -0.021092796092796094)
    )))  # fmt: skip
    rest = -0.5 / v - z * series
    return rest if inverses == 0.0 else rest + log(v / x) - inverses


def trigamma_rest(x: float) -> float:
    """x trigamma(x) - 1 for x > 0, which is positive; about 1 / (2 x)."""
    v, squares = x, 0.0
    while v < _ASYMPTOTIC:
        squares += 1.0 / (v * v)
        v += 1.0
    z = 1.0 / (v * v)
    series = 0.16666666666666666 + z * (-0.03333333333333333 + z * (0.023809523809523808 + z * (
        -0.03333333333333333 + z * (0.07575757575757576 + z * (-0.2531135531135531 + z * 1.1666666666666667))
    )))  # fmt: skip
    rest = 0.5 / v + z * series
    return rest if squares == 0.0 else x * (squares + (1.0 + rest) / v) - 1.0


def mills_ratio(x: float) -> float:
    """(1 - Phi(x)) / phi(x) of the standard normal distribution, for x >= 0; within 5e-15 of the truth, relatively.

    (1 + x) times it is a polynomial of (x - 4) / (x + 4), fitted at the nodes of Chebyshev with 60 digits (Shepherd and
    Laframboise 1981).
    """
    t = (x - 4.0) / (x + 4.0)
    p = 2.23564943576445e-08
    p = p * t + 2.6692854319045955e-10
    p = p * t - 2.2540620851873522e-07
    p = p * t - 8.468029845499874e-08
    p = p * t + 1.3120986175969573e-06
    p = p * t + 1.10949447601218e-06
    p = p * t - 6.489674105022486e-06
    p = p * t - 8.669763081912365e-06
    p = p * t + 3.4125350085384e-05
    p = p * t + 5.3296033687009826e-05
    p = p * t - 0.00022020420724367168
    p = p * t - 0.0002367102158656017
    p = p * t + 0.0017418463541123835
    p = p * t - 0.0007159494104968628
    p = p * t - 0.012539103318565954
    p = p * t + 0.04495912893074804
    p = p * t - 0.08070800969847806
    p = p * t + 0.07169048120804568
    p = p * t + 0.03509188023524125
    p = p * t - 0.24239967052189657
    return (p * t + 1.1832619145678012) / (1.0 + x)


def hazard_excess(x: float) -> float:
    """phi(x) / (1 - Phi(x)) - x of the standard normal distribution, for x >= 0; within 2e-13, relatively."""
    if x < 10.0:
        return 1.0 / mills_ratio(x) - x
    rest = 10.0 / x  # of Laplace's continued fraction, whose digits do not cancel
    for k in range(9, 1, -1):
        rest = k / (x + rest)
    return 1.0 / (x + rest)


SCALAR_FUNCTIONS: tuple[Callable[..., float], ...] = (
    exp, log_near_one, log, expit, log1pexp, bounded, log_gamma_rest, digamma_rest, trigamma_rest,
    mills_ratio, hazard_excess,
)  # fmt: skip
"""The scalar functions, each after those that it calls."""


def exp_array(x: Any) -> NDArray[np.float64]:
    """``exp`` of each element, to the last bit. Any shape; float64 out."""
    return _of_each(exp, _exp_block, x)


def log_array(x: Any) -> NDArray[np.float64]:
    """``log`` of each element, to the last bit. Any shape; float64 out."""
    return _of_each(log, _log_block, x)


def expit_array(x: Any) -> NDArray[np.float64]:
    """``expit`` of each element, to the last bit. Any shape; float64 out."""
    return _of_each(expit, _expit_block, x)


def log1pexp_array(x: Any) -> NDArray[np.float64]:
    """``log1pexp`` of each element, to the last bit. Any shape; float64 out."""
    return _of_each(log1pexp, _log1pexp_block, x)


def _of_each(
    scalar: Callable[[float], float], rule: Callable[[NDArray[np.float64], NDArray[np.float64]], None], x: Any
) -> NDArray[np.float64]:
    """rule: the same as ``scalar``, of a block. Of few numbers it takes longer, as it is some 30 calls of NumPy."""
    contiguous = np.ascontiguousarray(x, dtype=np.float64)
    out = np.empty(np.shape(x), dtype=np.float64)
    flat_in, flat_out = contiguous.reshape(-1), out.reshape(-1)
    if flat_in.size <= _FEW:
        flat_out[:] = [scalar(number) for number in flat_in.tolist()]
        return out
    with np.errstate(all="ignore"):
        for start in range(0, flat_in.size, _BLOCK):
            rule(flat_in[start : start + _BLOCK], flat_out[start : start + _BLOCK])
    return out


def _polynomial(z: NDArray[np.float64], highest_first: tuple[float, ...], out: NDArray[np.float64]) -> None:
    np.multiply(z, highest_first[0], out=out)
    for c in highest_first[1:-1]:
        out += c
        out *= z
    out += highest_first[-1]


def _exp_block(x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    v = np.minimum(x, _EXP_TOP)
    t = v * _LOG2_E
    t += _ROUND
    k = t - _ROUND
    high = np.multiply(k, _LN2_HIGH)
    np.subtract(v, high, out=high)
    low = np.multiply(k, _LN2_LOW, out=k)
    r = np.subtract(high, low, out=v)
    z = r * r
    _polynomial(z, (_E11, _E9, _E7, _E5, _E3), out)
    out *= r
    even = r
    _polynomial(z, (_E10, _E8, _E6, _E4, _E2), even)
    out += even
    out *= z
    out -= low
    out += high
    out += 1.0
    out += out
    bits = t.view(np.int64)
    np.left_shift(bits, 52, out=bits)
    out *= t
    np.copyto(out, 0.0, where=x < _EXP_BOTTOM)


def _log_block(x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    positive = x > 0.0
    v = np.where(positive, x, 1.0)
    tiny = v < _SMALLEST_NORMAL
    np.multiply(v, 18014398509481984.0, out=v, where=tiny)
    bits = v.view(np.int64)
    e = (bits - _SQRT_HALF_BITS) >> 52
    bits -= e << 52
    k = e.astype(np.float64)
    np.subtract(k, 54.0, out=k, where=tiny)
    v -= 1.0
    _log_near_one_block(v, k, out)
    np.copyto(out, inf, where=x == inf)
    np.copyto(out, nan, where=~positive)
    np.copyto(out, -inf, where=x == 0.0)


def _log_near_one_block(f: NDArray[np.float64], k: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    s = 2.0 + f
    np.divide(f, s, out=s)
    z = s * s
    _polynomial(z, (_L7, _L6, _L5, _L4, _L3, _L2, _L1), out)
    out *= z
    half = np.multiply(f, 0.5, out=z)
    half *= f
    out += half
    out *= s
    out += np.multiply(k, _LN2_LOW, out=s)
    np.subtract(half, out, out=out)
    out -= f
    np.subtract(np.multiply(k, _LN2_HIGH, out=s), out, out=out)


def _expit_block(x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    _exp_block(-x, out)
    out += 1.0
    np.divide(1.0, out, out=out)


def _log1pexp_block(x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    e = np.empty_like(x)
    _exp_block(-np.abs(x), e)
    large = e > _SQRT_2_LESS_1
    np.subtract(e, 1.0, out=e, where=large)
    np.multiply(e, 0.5, out=e, where=large)
    _log_near_one_block(e, large.astype(np.float64), out)
    np.add(np.where(x > 0.0, x, 0.0), out, out=out)
