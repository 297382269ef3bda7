"""Division of the queries among threads."""

from __future__ import annotations

import numpy as np

from gpuboost.types import Array


def query_bounds(ends: Array, parts: int) -> list[int]:
    """The first query of each part, with about equal work in all parts, and the number of queries.

    ends: (queries,) int64 work up to the end of each query.
    """
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, parts) // parts)
    return [0, *cuts.tolist(), len(ends)]
