"""Device memory for the emulator: poisoned when new, and between two pages that no one may touch.

An array ends less than 16 bytes before the end of a page, so that a kernel that reads or writes behind it traps, and
the emulator names the block and the thread. The bytes just before and just behind it hold a pattern that is looked at
whenever the host waits.
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

POISON, GUARD = 0xFF, 0xA5  # the first is NaN and -1; neither is what an index or a sum looks like
_PAGE, _ALIGN, _WATCHED = mmap.PAGESIZE, 16, 256  # 16 bytes: the widest load a kernel makes
_NO_ACCESS = 0
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class OutOfBoundsError(RuntimeError):
    """A kernel wrote just outside an array."""


class Allocation:
    """``nbytes`` of device memory; ``bytes`` is the uint8 array that typed arrays are views of."""

    def __init__(self, nbytes: int) -> None:
        inside = (nbytes + _ALIGN + _PAGE - 1) // _PAGE * _PAGE
        pages = mmap.mmap(-1, inside + 2 * _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        whole = np.frombuffer(pages, np.uint8)
        end = _PAGE + inside
        for fence in (0, end):
            if _libc.mprotect(whole.ctypes.data + fence, _PAGE, _NO_ACCESS):
                raise OSError(ctypes.get_errno(), "mprotect")
        start = end - (nbytes + _ALIGN - 1) // _ALIGN * _ALIGN
        self.nbytes = nbytes
        self.bytes = whole[start : start + nbytes]
        self.bytes[:] = POISON
        self._pages = pages
        self._around = (slice(max(_PAGE, start - _WATCHED), start), slice(start + nbytes, end))
        self._guards = tuple(bytes([GUARD]) * (part.stop - part.start) for part in self._around)
        for part in self._around:
            whole[part] = GUARD

    def check(self) -> None:
        """Raise OutOfBoundsError if the bytes next to the array have changed."""
        before, behind = self._around
        if (self._pages[before], self._pages[behind]) != self._guards:  # of all arrays at every wait: no numpy here
            raise OutOfBoundsError(f"a kernel wrote outside an array of {self.nbytes} bytes")
