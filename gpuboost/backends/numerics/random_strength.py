"""Definition of random_strength: the choice of a node's split feature by gains with noise.

    noisy gain = gain + strength * (mean gain of the features that gain) * z

The noise does not change the best cut of a feature, and the tree records the winner's gain without noise. z is word 0
of the Philox block whose number is computed from the node's exact sums (for a level that shares a split, from its
depth) and the feature, so it does not depend on the machine or the order of nodes. Noise in units of the mean gain
makes the rule independent of the gradients' scale, as the theorem of Langevin boosting requires.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.numerics.random_numbers import gaussian_of, philox
from gpuboost.kernels.splits.random_strength import LANES, OF_FEATURE, OF_G, OF_H
from gpuboost.types import Noise

_WORD = (1 << 64) - 1


def winner(gains: dict[int, float], sums: tuple[int, int], noise: Noise | None) -> int | None:
    """The feature of the largest noisy gain, the lowest of equals, or None. gains: by feature, 0 without a split."""
    competing = {f: gain for f, gain in gains.items() if gain > 0.0}
    if noise is None or len(competing) < 2:
        return max(sorted(competing), key=lambda f: competing[f], default=None)
    lanes = [0.0] * LANES
    for f in sorted(competing):
        lanes[f % LANES] += competing[f]
    spread = noise.deviation * (float(np.cumsum(lanes)[-1]) / len(competing))
    noisy = {f: competing[f] + spread * _number(sums, f, noise) for f in sorted(competing)}
    return max(noisy, key=lambda f: noisy[f])


def block_of(sums: tuple[int, int], feature: int) -> NDArray[np.uint64]:
    """(1,) number of the Philox block of a feature in a node of these exact sums."""
    return np.array([(sums[0] * OF_G + sums[1] * OF_H + feature * OF_FEATURE) & _WORD], np.uint64)


def _number(sums: tuple[int, int], feature: int, noise: Noise) -> float:
    return float(gaussian_of(philox(block_of(sums, feature), noise.key)[0, :1])[0])
