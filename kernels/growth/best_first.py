"""Leaf-wise growth with speculative splits: the order of splits, and the node table in that order.

The next leaf to split depends on the gains of the splits before, so the definition splits one at a time. But nearly all
leaves of large gain will be split eventually: several are split at once, speculatively, and their order is found
afterwards. A node that was split speculatively but not chosen is a leaf of the finished tree.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.nodes import CLOSED, LEFT, OPEN, RIGHT, SLOT, SPLIT, STATE
from gpuboost.kernels.growth.partition import give_back

SHARE = 8  # 1 / SHARE of the remaining splits are made speculatively,
FEW = 8  # and always up to FEW of them


@kernel
def _before(a, b, gain, number):
    """True if node a is split before b: it gains more, or as much and is older."""
    return gain[a] > gain[b] or (gain[a] == gain[b] and number[a] < number[b])


@kernel
def _push(heap, size, v, gain, number):
    """Add v to the nodes heap[:size]."""
    position = size
    while position > 0:
        above = (position - 1) >> 1
        if not _before(v, heap[above], gain, number):
            break
        heap[position] = heap[above]
        position = above
    heap[position] = v


@kernel
def _pop(heap, size, gain, number):
    """Take the first of the nodes heap[:size + 1] out of them."""
    first, last, position = heap[0], heap[size], 0
    while 2 * position + 1 < size:
        below = 2 * position + 1
        if below + 1 < size and _before(heap[below + 1], heap[below], gain, number):
            below += 1
        if not _before(heap[below], last, gain, number):
            break
        heap[position] = heap[below]
        position = below
    heap[position] = last
    return first


@kernel
def foresee(node, n_nodes, gain, most, order, wanted):
    """order[:steps]: the next ``most`` splits from the root on, were the children of nodes not split yet all leaves.

    wanted[:count]: the nodes among them that are not split yet. order, wanted (n_nodes,) int64.
    Returns steps, count, and how many steps come before the first that is wanted: these are certain.
    """
    heap, number = np.empty(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    size = steps = count = certain = 0
    if node[0, STATE] == OPEN or node[0, STATE] == SPLIT:
        heap[0], size = 0, 1
    while size > 0 and steps < most:
        size -= 1
        v = _pop(heap, size, gain, number)
        order[steps] = v
        if node[v, STATE] == SPLIT:
            for side in range(2):
                child = node[v, LEFT + side]
                if node[child, STATE] == OPEN or node[child, STATE] == SPLIT:
                    number[child] = 2 * steps + 1 + side
                    _push(heap, size, child, gain, number)
                    size += 1
        else:
            wanted[count] = v
            count += 1
        steps += 1
        if count == 0:
            certain = steps
    return steps, count, certain


@kernel
def close_others(node, n_nodes, wanted, slots):
    """Close the open nodes that are not ``wanted``, as ``foresee`` says, and give back the slots of their histograms.

    None of them will be split: ``most`` splits come before it even if all new children are leaves, and children only
    add splits. slots: a stack of free slots, its height first.
    """
    is_wanted = np.zeros(n_nodes, np.bool_)
    for v in wanted:
        is_wanted[v] = True
    for v in range(n_nodes):
        if node[v, STATE] == OPEN and not is_wanted[v]:
            node[v, STATE] = CLOSED
            give_back(node, v, slots)


@kernel
def free_last(node, wanted, count, slots):
    """Free the slots of the last of the ``wanted`` leaves, until the first ``count`` have enough for their children.

    These are the least likely to be split. Should one be, the rows of both its children are summed.
    """
    needed, last = count, wanted.shape[0]
    for v in wanted[:count]:
        needed += node[v, SLOT] < 0
    while slots[0] < needed and last > count:
        last -= 1
        give_back(node, wanted[last], slots)


@kernel
def at_once(most, certain):
    """Number of splits to make next in a tree of ``most`` splits, of which ``certain`` ones are made."""
    return max((most - certain) // SHARE, min(most // SHARE, FEW), 1)


@kernel
def renumber(node, gain, left_set, order, new_node, new_gain, new_left_set):
    """The tables of the tree that these splits make, numbered in their order. order (s,) int64, new_* 2 s + 1 lines."""
    splits = order.shape[0]
    old = np.zeros(2 * splits + 1, np.int64)
    for step in range(splits):
        old[2 * step + 1], old[2 * step + 2] = node[order[step], LEFT], node[order[step], RIGHT]
    new = np.zeros(node.shape[0], np.int64)
    for v in range(old.shape[0]):
        new[old[v]] = v
        for column in range(node.shape[1]):
            new_node[v, column] = node[old[v], column]
        for word in range(left_set.shape[1]):
            new_left_set[v, word] = left_set[old[v], word]
        new_gain[v] = gain[old[v]]
        new_node[v, LEFT] = new_node[v, RIGHT] = 0
        if node[old[v], STATE] == SPLIT:
            new_node[v, STATE] = OPEN
    for step in range(splits):
        v = new[order[step]]
        new_node[v, STATE], new_node[v, LEFT], new_node[v, RIGHT] = SPLIT, 2 * step + 1, 2 * step + 2
