"""Random subsets, drawn on the host for every backend from the numbers of a stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.elementary import log_array
from gpuboost.kernels.sampling import feature_subsets as subsets
from gpuboost.keys import Key
from gpuboost.types import Candidates


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


def weighted_subset(count: int, weights: NDArray[np.float64], key: Key) -> NDArray[np.int32]:
    """(count,) int32: numbers drawn without replacement, one after the other in proportion to weights; increasing.

    weights (of,) positive. Those of the largest log(u) / weight, u being uniform in (0, 1] (Efraimidis and Spirakis
    2006), of equals the lowest number: log(u) / weight is minus an exponential time of rate weight, and the first of
    such times is that of an item with the probability weight / sum of weights.
    """
    log_keys = log_array(1.0 - fractions(len(weights), key)) / weights
    drawn = np.argsort(-log_keys, kind="stable")[:count]
    return np.sort(drawn).astype(np.int32)


def features_of(candidates: Candidates, v: int, depth: int) -> NDArray[np.int32]:
    """Places among the candidates of the features that node v of this depth draws: ``Candidates.by_node``."""
    assert candidates.by_node is not None
    count, key = candidates.by_node[0], candidates.node_key(v, depth)
    if candidates.weights is None:
        return subset(count, len(candidates.features), key)
    return weighted_subset(count, candidates.weights, key)
