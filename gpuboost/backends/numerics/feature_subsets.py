"""Random subsets, drawn on the host for every backend from the numbers of a stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.kernels.sampling import feature_subsets as subsets
from gpuboost.keys import Key


def subset(count: int, of: int, key: Key) -> NDArray[np.int32]:
    """(count,) int32: ``count`` of the numbers 0 .. of - 1, increasing; every subset is equally likely."""
    if count >= of:
        return np.arange(of, dtype=np.int32)
    out = np.empty(count, np.int32)
    subsets.draw(of, *key.words, out)
    out.sort()
    return out


def fractions(count: int, key: Key) -> NDArray[np.float64]:
    """(count,) float64 in [0, 1), of 53 bits."""
    out = np.empty(count)
    subsets.fractions(*key.words, out)
    return out
