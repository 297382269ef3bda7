"""Sizes of grids whose threads loop over the work that is left."""

from __future__ import annotations

from gpuboost.backends.cuda.device.runtime import Runtime


def block_count(runtime: Runtime, items: int, per_block: int = 1, per_multiprocessor: int = 8) -> int:
    """Number of blocks for ``items``, ``per_block`` to each: 1 or more, and at most so many for a multiprocessor."""
    return max(1, min(-(-items // per_block), per_multiprocessor * runtime.sm_count))
