"""What a kernel read and wrote in global memory: by instruction, and as 32-byte sectors touched at least once.

The sectors of a launch are what a device with a perfect cache would move, which is how a budget of bytes per row is
written down; the bytes by instruction are what its load and store units are asked for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SECTOR = 32


class CountedArray(ctypes.Structure):  # struct Array of fibers.h
    _fields_ = [
        ("begin", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("read", ctypes.c_uint64),
        ("written", ctypes.c_uint64),
        ("atomics", ctypes.c_uint64),
        ("sectors", ctypes.POINTER(ctypes.c_ubyte)),
    ]


@dataclass(slots=True)
class Traffic:
    """Of one parameter of a kernel, over its launches.

    Args:
        read: bytes that were loaded.
        written: bytes that were stored.
        atomics: atomic operations, which are in neither.
        fetched: bytes of the sectors read in a launch, each counted once; an atomic operation counts too.
        stored: the same for those written.
    """

    read: int = 0
    written: int = 0
    atomics: int = 0
    fetched: int = 0
    stored: int = 0

    def __iadd__(self, other: Traffic) -> Traffic:
        self.read += other.read
        self.written += other.written
        self.atomics += other.atomics
        self.fetched += other.fetched
        self.stored += other.stored
        return self


class CountedArrays:
    """The arrays among a launch's arguments, by address; a view of one that is also there belongs to it."""

    def __init__(self, args: Sequence[Any]) -> None:
        found = [(a.ctypes.data, a.ctypes.data + a.nbytes, i) for i, a in enumerate(args) if _is_array(a)]
        self._arguments: list[int] = []
        self._sectors: list[np.ndarray] = []
        rows: list[CountedArray] = []
        covered = 0
        for start, end, i in sorted(found, key=lambda one: (one[0], -one[1])):
            if end <= covered:
                continue
            begin, covered = max(start, covered), end
            sectors = np.zeros((end - begin) // SECTOR + 1, np.uint8)
            pointer = sectors.ctypes.data_as(ctypes.POINTER(ctypes.c_ubyte))
            rows.append(CountedArray(begin, end, 0, 0, 0, pointer))
            self._arguments.append(i)
            self._sectors.append(sectors)
        self.structures = (CountedArray * len(rows))(*rows)

    def add_to(self, traffic: dict[str, Traffic], parameters: tuple[str, ...]) -> None:
        """Add what was counted to the entry of each parameter."""
        for structure, argument, sectors in zip(self.structures, self._arguments, self._sectors, strict=True):
            fetched, stored = (SECTOR * int(np.count_nonzero(sectors & bit)) for bit in (1, 2))
            counted = Traffic(structure.read, structure.written, structure.atomics, fetched, stored)
            entry = traffic.setdefault(parameters[argument], Traffic())
            entry += counted


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.nbytes > 0
