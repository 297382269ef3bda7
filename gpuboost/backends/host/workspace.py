"""Scratch memory of a growing tree, reused by the next one.

New arrays in every round would cost a page fault for each 4 kB of them, and fragment the memory.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 1 << 16


class Workspace:
    """Arrays by name, with undefined content."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}
        self.kept: Any = None  # an object made of these arrays, for the next tree

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array in C order, in the memory of the last array of that name if that is large enough."""
        size, kept = prod(shape), self._kept.get(name)
        if kept is None or kept.size < size or kept.dtype != dtype:
            self._kept[name] = kept = np.empty(size, dtype)
        return kept[:size].reshape(shape)

    def small_pages(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """The same, but new memory is committed by small pages: what is not written to takes none.

        NumPy asks for huge pages for large arrays, and a huge page is committed as a whole.
        """
        size = prod(shape)
        if sys.platform == "linux" and size > self.room(name):
            memory = mmap.mmap(-1, size * np.dtype(dtype).itemsize, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with suppress(OSError):  # this kernel has no huge pages
                memory.madvise(mmap.MADV_NOHUGEPAGE)
            self._kept[name] = np.frombuffer(memory, dtype)
        return self.array(name, shape, dtype)

    def room(self, name: str) -> int:
        """Size, in elements, that the next array of that name may have without new memory."""
        return self._kept[name].size if name in self._kept else 0

    def let_go(self, name: str) -> None:
        """Leave the memory of that name to who has its array; the next array of that name gets new memory."""
        self._kept.pop(name, None)

    def keep(self, name: str, array: NDArray[Any]) -> None:
        """Use this C-ordered array's memory for the next array of that name."""
        self._kept[name] = array.reshape(-1)


class Workspaces:
    """The workspaces of a backend: one for each tree that grows at the same time, by one thread or several."""

    def __init__(self) -> None:
        self._free: list[Workspace] = []

    @contextmanager
    def lent(self) -> Iterator[Workspace]:
        """Context that has a workspace."""
        workspace = self.take()
        yield workspace
        self.give_back(workspace)

    def take(self) -> Workspace:
        """A workspace that nothing else is using."""
        try:
            return self._free.pop()
        except IndexError:
            return Workspace()

    def give_back(self, workspace: Workspace) -> None:
        """Keep it for the next tree."""
        self._free.append(workspace)


def count_up(out: NDArray[Any]) -> NDArray[Any]:
    """out = 0, 1, 2, ..."""
    first = _first_numbers(out.dtype)
    out[:STEP] = first[: len(out)]
    for begin in range(STEP, len(out), STEP):
        part = out[begin : begin + STEP]
        np.add(first[: len(part)], begin, out=part)
    return out


@cache
def _first_numbers(dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.arange(STEP, dtype=dtype)
