"""Scratch memory of a growing tree, reused by the next one.

Asking for fresh arrays in every round would cost a page fault for each 4 kB of them, and leave holes between them.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 1 << 16


class Workspace:
    """Arrays by name; what they hold is whatever the last tree left there."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """C order; the memory of the last array of that name, if there is enough of it."""
        size, kept = prod(shape), self._kept.get(name)
        if kept is None or kept.size < size or kept.dtype != dtype:
            self._kept[name] = kept = np.empty(size, dtype)
        return kept[:size].reshape(shape)

    def room(self, name: str) -> int:
        """Size that the next array of that name may have without new memory, in numbers."""
        return self._kept[name].size if name in self._kept else 0

    def keep(self, name: str, array: NDArray[Any]) -> None:
        """Have this C-ordered array's memory used for the next array of that name."""
        self._kept[name] = array.reshape(-1)


def count_up(out: NDArray[Any]) -> NDArray[Any]:
    """out = 0, 1, 2, ..."""
    first = np.arange(min(STEP, len(out)), dtype=out.dtype)
    for begin in range(0, len(out), STEP):
        part = out[begin : begin + STEP]
        np.add(first[: len(part)], begin, out=part)
    return out
