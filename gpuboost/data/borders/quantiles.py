"""Quantile cuts from the distinct values of a feature and their weights.

Weights are whole numbers here, so every sum is exact whatever its order, and nothing depends on the machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def whole_mass(weight: NDArray[Any]) -> Integers:
    """Weights as whole numbers whose sum is below 2**53.

    weight: (n,) finite, not negative. Whole numbers stay as they are if they can. Others are multiplied by a power
    of two and rounded; what is positive stays positive.
    """
    weight = weight.astype(np.float64)
    top = float(weight.max(initial=0.0))
    limit = 2.0**52 / max(len(weight), 1)
    if top <= limit and bool((weight == np.rint(weight)).all()):
        return weight.astype(np.int64)
    shift = int(np.frexp(limit)[1]) - 1 - int(np.frexp(top)[1])
    scaled = np.rint(np.ldexp(weight, shift))
    return np.where(weight > 0.0, np.maximum(scaled, 1.0), 0.0).astype(np.int64)


def between(low: Floats, high: Floats) -> Floats:
    """t with low <= t < high, elementwise, near the middle; a float32 number if one lies there; never -0.0.

    low, high: finite, low < high. A t that float32 holds decides alike for float32 and float64 data.
    """
    with np.errstate(over="ignore"):
        middle = low / 2.0 + high / 2.0  # low + high may overflow
        narrow = middle.astype(np.float32)
        sides = [np.nextafter(narrow, np.float32(side)).astype(np.float64) for side in (-np.inf, np.inf)]
    options = [narrow.astype(np.float64), *sides, middle]
    chosen = np.select([(low <= option) & (option < high) for option in options], options, low)
    return chosen + 0.0


def bin_ends(mass: Integers, max_bins: int) -> Integers:
    """Index of the last value of each bin but the last one; at most ``max_bins`` bins.

    mass: (u,) positive, u > max_bins. A value is heavy, and gets a bin of its own, if its mass is a fair share or more;
    the share is computed again without it, until no other value is heavy. Between heavy values lie stretches of light
    ones,

        l l l H l l H H l l l l         fair share = light mass / bins left

    which share the other bins by their mass (largest remainders). In a stretch of k bins a value goes to bin
    floor(k * (mass before it + half its own) / mass of the stretch). A stretch too light for a bin joins the heavy
    value to its right; the last one, to its left.
    """
    heavy, light_mass, bins = _heavy(mass, max_bins)
    peaks, light = np.flatnonzero(heavy), np.flatnonzero(~heavy)
    running = np.concatenate([[0], np.cumsum(mass[light])])
    edge = np.concatenate([[0], np.searchsorted(light, peaks), [len(light)]])  # stretch s: light[edge[s]:edge[s + 1]]
    stretch_mass = np.diff(running[edge])
    share, rest = np.divmod(stretch_mass * bins, light_mass)
    share[np.argsort(-rest, kind="stable")[: bins - share.sum()]] += 1

    stretch = np.repeat(np.arange(len(share)), np.maximum(share - 1, 0))
    turn = np.arange(len(stretch)) - np.searchsorted(stretch, stretch) + 1  # 1 .. k - 1 in each stretch
    goal = 2 * running[edge[stretch]] - (-2 * stretch_mass[stretch] * turn) // share[stretch]
    end_of_goal = np.searchsorted(running[:-1] + running[1:], goal)  # light values whose middle lies before the goal
    inside = (edge[stretch] < end_of_goal) & (end_of_goal < edge[stretch + 1])

    joins = (np.diff(edge) > 0) & (share == 0)
    before = peaks[~joins[:-1]] - 1
    after = peaks[:-1] if joins[-1] else peaks
    ends = np.unique(np.concatenate([light[end_of_goal[inside] - 1], before, after]))
    return ends[(ends >= 0) & (ends < len(mass) - 1)]


def _heavy(mass: Integers, max_bins: int) -> tuple[NDArray[np.bool_], int, int]:
    """A mask of the heavy values, the mass of the other ones, and the bins left to those."""
    heavy = np.zeros(len(mass), dtype=np.bool_)
    light_mass, bins = int(mass.sum()), max_bins
    while True:
        more = (mass >= -(-light_mass // bins)) & ~heavy
        count = int(np.count_nonzero(more))
        if count == 0:
            return heavy, light_mass, bins
        heavy |= more
        light_mass -= int(mass[more].sum())
        bins -= count
