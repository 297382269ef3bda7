"""Work that several threads share inside a kernel, without a hand-over by Python for every level of a tree.

One thread, the leader, offers the chunks of a level, and takes chunks itself until none is left. Others take chunks as
long as there are any; one that comes late, or not at all, only leaves more to the leader. Between levels they wait in
the kernel, and leave their processors to other threads after some ten microseconds.
"""

import numpy as np

from gpuboost.kernels.common.atomics import add, load, relax, store, swap_if
from gpuboost.kernels.common.jit import kernel

WORDS = 24  # int64 of the shared memory, on three cache lines. The first: chunks of the level, and the next of them
OFFERED, DONE, PAIRS = (
    7,
    8,
    16,
)  # chunks offered so far, and done; pairs of the level. At 0: its chunks, and the next of them
_MOST_SPINS = 5_000  # some tenths of a second
_LOW = 0xFFFF_FFFF
_NONE, _OVER = -1, -2


@kernel
def offer(words, chunks, pairs):
    """Let others take ``chunks`` chunks of a level of ``pairs`` pairs. The chunks of the last level are done."""
    words[PAIRS] = pairs
    store(words.ctypes.data, chunks << 32)


@kernel
def end(words):
    """Let the others go."""
    store(words.ctypes.data, -1)


@kernel
def take(words):
    """The next chunk of the level; _NONE if all are taken, _OVER at the end of the tree."""
    address = words.ctypes.data
    while True:
        seen = load(address)
        if seen < 0:
            return _OVER
        chunk = seen & _LOW
        if chunk >= seen >> 32:
            return _NONE
        if swap_if(address, seen, seen + 1):
            return chunk


@kernel
def wait_for_chunk(words):
    """The next chunk of this level or a later one; -1 at the end of the tree, or when the wait takes too long."""
    for spins in range(_MOST_SPINS):  # the leader can work alone, and may have been interrupted before its call
        chunk = take(words)
        if chunk >= 0:
            return chunk
        if chunk == _OVER:
            break
        relax(spins)
    return np.int64(-1)


@kernel
def finish_chunk(words):
    """Count a chunk as done."""
    add(words.ctypes.data + 8 * DONE, 1)


@kernel
def wait_for_others(words, chunks):
    """Wait until so many chunks are done, since the beginning."""
    spins, address = 0, words.ctypes.data + 8 * DONE
    while load(address) < chunks:
        spins += 1
        relax(spins)
