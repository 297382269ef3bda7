"""Documents of a list in order of their scores, as ``ranking`` needs them: the highest first, equal ones as they stand.

Scores are shared out to equal steps: few documents to 65,536, where a document's place is the number of those on lower
steps, counted 128 documents at a time; many to about as many as there are documents. That leaves them almost in order,
and what is left is put right by exchanging neighbours. Where that would take long, since most scores lie in few steps,
runs are sorted and merged. The order is the same, however it is found.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.vector import count_smaller, wide_vectors

FEWEST, MOST = 64, 1 << 16  # steps
FEW, BLOCK = 256, 128  # documents that are counted against each other, and at a time
PATIENCE = 12  # exchanges a document, after which merging is faster
RUN = 128  # documents sorted by counting those before each, which vectorises, before runs are merged


@kernel
def by_score(f, order, ranked, spare, step, counts):
    """order (n,) int32 = documents from the highest score to the lowest, equal ones as they stand.

    ranked (n,) float64 = their scores, in that order.

    f (n,) float64; scratch: spare (n,) int32, step (``room_of(n)``,) int32, counts (``steps_of(n)``,) int32, or longer.
    """
    almost = by_ranks(f, order, step) if f.size <= FEW else by_steps(f, order, step, counts)
    if almost:
        _gathered(f, order, ranked)
        if _falls(ranked):
            return
    if not (almost and exchanged(f, order)):
        _merged(f, order, spare)
    _gathered(f, order, ranked)


@kernel
def _gathered(f, order, ranked):
    for place in range(order.size):
        ranked[place] = f[np.uint64(order[place])]


@kernel
def _falls(ranked):
    """True if no score is higher than the one before it."""
    above, below, rises = ranked[:-1], ranked[1:], 0
    for place in range(below.size):
        rises += above[place] < below[place]
    return rises == 0


@kernel
def room_of(n):
    """Number of int32 of scratch memory for ``n`` documents."""
    return max(n, 3 * FEW // 2)


@kernel
def steps_of(n):
    """A power of 2."""
    steps = FEWEST
    while steps < n and steps < MOST:
        steps *= 2
    return steps


@kernel
def _range(f):
    """The highest and the lowest score, NaN being one of the two if there are any."""
    wide_vectors()
    bits = f.view(np.int64)
    top, low = np.int64(-(2**63)), np.int64(2**63 - 1)
    for i in range(bits.size):  # as whole numbers of the same order, since a maximum of those vectorises
        key = bits[i] ^ ((bits[i] >> 63) & np.int64(2**63 - 1))
        top, low = max(top, key), min(low, key)
    top, low = top ^ ((top >> 63) & np.int64(2**63 - 1)), low ^ ((low >> 63) & np.int64(2**63 - 1))
    return np.int64(top).view(np.float64), np.int64(low).view(np.float64)


@kernel
def _steps_a_score(f, steps):
    """The highest score, and how many of so many equal steps a score of 1 less lies below it; NaN if unknown."""
    top, low = _range(f)
    width = top - low
    if not width < np.inf:
        return top, np.nan
    each = (steps - 1) / width if width > 0.0 else 0.0
    return top, each if each < np.inf else np.nan


@kernel
def by_ranks(f, order, step):
    """order = documents by fine steps from the highest score down. False where they have no finite range."""
    n = f.size
    top, each = _steps_a_score(f, 1 << 16)
    if np.isnan(each):
        return False
    scratch = step.view(np.uint16)
    keys, ranks, taken = scratch[:FEW], scratch[FEW : 2 * FEW], scratch[2 * FEW : 3 * FEW]
    taken[:n] = 0
    for i in range(n):
        keys[i] = np.uint16(np.int32((top - f[i]) * each))
    for begin in range(0, n, BLOCK):
        count_smaller(keys.ctypes.data, n, keys.ctypes.data + 2 * begin, ranks.ctypes.data + 2 * begin)
    for i in range(n):
        rank = np.uint64(ranks[i])
        order[rank + np.uint64(taken[rank])] = i
        taken[rank] += np.uint16(1)
    return True


@kernel
def by_steps(f, order, step, counts):
    """order = documents by steps of equal width from the highest score down. False where they have no finite range."""
    n = f.size
    steps = steps_of(n)
    top, each = _steps_a_score(f, steps)
    if np.isnan(each):
        return False
    for i in range(n):
        step[i] = np.int32((top - f[i]) * each)
    counts[:steps] = 0
    for i in range(n):
        counts[np.uint64(step[i])] += 1
    before = np.int32(0)
    for s in range(steps):
        here = counts[s]
        counts[s] = before
        before += here
    for i in range(n):
        s = np.uint64(step[i])
        order[np.uint64(counts[s])] = i
        counts[s] += 1
    return True


@kernel
def exchanged(f, order):
    """Repair an order that is almost right. False, and not done, if that takes too many exchanges."""
    left = PATIENCE * order.size
    for place in range(1, order.size):
        i, j = order[place], place
        x = f[i]
        while j > 0 and f[order[j - 1]] < x:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
        left -= place - j
        if left < 0:
            return False
    return True


@kernel
def _merged(f, order, spare):
    """The same from any order, in n log n. Where some scores are no numbers, documents stay as they stand."""
    n, numbers = f.size, True
    for i in range(n):
        order[i] = i
        numbers &= f[i] == f[i]
    if not numbers:
        return
    for begin in range(0, n, RUN):
        run = f[begin : min(begin + RUN, n)]
        for i in range(run.size):
            x, before = run[i], 0
            for j in range(i):
                before += run[j] >= x
            after = run[i + 1 :]
            for j in range(after.size):
                before += after[j] > x
            order[begin + before] = begin + i
    width = RUN
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, stop = min(begin + width, n), min(begin + 2 * width, n)
            i, j = begin, middle
            for k in range(begin, stop):
                if j >= stop or (i < middle and f[order[i]] >= f[order[j]]):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        for i in range(n):
            order[i] = spare[i]
        width *= 2
