"""flatten: trees as straight-line programs over the codes of a block of rows.

A tree of at most 256 leaves becomes a list of operations without a branch. Each asks three questions, of a node and
its two children, and takes one of four answers, for 64 rows in one go; an answer is a leaf, or what an earlier
operation has found. So every node is asked for every row, which costs less than one wrong guess of a branch.

    answer[out] = root ? (left ? a : b) : (right ? c : d)        a child that is a leaf: both answers the same

A question is ``(code + shift) mod 256 <= last``. Codes are bins; the one for missing values is the largest, so that
shift = 0 sends it right, and a shift that takes it to 0 sends it left. A categorical node looks its codes up in a set
of bits first, which gives a row of zeros (left) and ones, and asks that row.
"""

import numpy as np

from gpuboost.kernels.common.jit import kernel

MOST_LEAVES = 256  # of a program: an answer is one byte
NODE, ANSWER, OUT, STEP_COLUMNS = 0, 3, 7, 8  # of a step: three nodes asked, four answers, slot of the result


@kernel
def _plan(i, begin, child, cost, need, answer, place):
    """Plan the operation of node i: a child is evaluated together with it if that saves an operation.

    answer: the four nodes that may come next, a pair of them equal if their parent is not asked; place: the slot of
    each one's result, counted from i's own, the most demanding first, or -1 for leaves and the second of equals.
    """
    cost[i] = 1
    for side in range(2):
        c = child[begin + i, side]
        a, b = child[begin + c, 0], child[begin + c, 1]
        together = cost[c] > 0 and cost[a] + cost[b] <= cost[c]
        answer[i, 2 * side] = a if together else c
        answer[i, 2 * side + 1] = b if together else c
        cost[i] += cost[a] + cost[b] if together else cost[c]
    need[i] = 1
    for a in range(4):
        of_a, place[i, a] = answer[i, a], -1
        if cost[of_a] > 0 and not (a & 1 and of_a == answer[i, a - 1]):
            before = 0
            for b in range(4):
                of_b = answer[i, b]
                first = cost[of_b] > 0 and not (b & 1 and of_b == answer[i, b - 1])
                before += first and (need[of_b] > need[of_a] or (need[of_b] == need[of_a] and b < a))
            place[i, a] = before
            need[i] = max(need[i], need[of_a] + before)


@kernel
def flatten(node_start, largest, child, leaf_of, step_start, steps):
    """Write the steps of trees that lie one after the other; returns the most slots that one of them needs.

    largest: nodes of the largest tree; child: (v, 2) numbers within the tree, 0 at a leaf; leaf_of: (v,) number of a
    leaf within the tree, -1 at inner nodes; step_start: (trees + 1,), written but for its first; steps: (inner nodes
    at most, 8), answers being a slot, or -1 - leaf. Single leaves and trees of more than 256 leaves have no steps.
    """
    slots, cost, need = 1, np.empty(largest, np.int32), np.empty(largest, np.int32)
    stack_node, stack_slot = np.empty(largest, np.int32), np.empty(largest, np.int32)
    answer, place = np.empty((largest, 4), np.int32), np.empty((largest, 4), np.int32)
    for t in range(len(node_start) - 1):
        begin, end = node_start[t], node_start[t + 1]
        step_start[t + 1] = step_start[t]
        if end - begin == 1 or end - begin > 2 * MOST_LEAVES - 1:
            continue
        for i in range(end - begin - 1, -1, -1):
            cost[i] = need[i] = 0
            if leaf_of[begin + i] < 0:
                _plan(i, begin, child, cost, need, answer, place)
        slots = max(slots, need[0])
        # Parents before children, the last of them first: written backwards, this is an order of execution in which
        # the most demanding child comes first, and each of the others finds the slots after it free.
        step_start[t + 1] += cost[0]
        step, depth, stack_node[0], stack_slot[0] = step_start[t + 1], 1, 0, 0
        while depth > 0:
            depth -= 1
            step -= 1
            i, slot = stack_node[depth], stack_slot[depth]
            steps[step, NODE], steps[step, OUT] = begin + i, slot
            for side in range(2):
                c = child[begin + i, side]
                steps[step, NODE + 1 + side] = begin + (i if answer[i, 2 * side] == c else c)
            for a in range(4):
                leaf = leaf_of[begin + answer[i, a]]
                same = a & 1 and answer[i, a] == answer[i, a - 1]
                steps[step, ANSWER + a] = -1 - leaf if leaf >= 0 else slot + place[i, a - 1 if same else a]
            for next_place in range(4):
                for a in range(4):
                    if place[i, a] == next_place:
                        stack_node[depth], stack_slot[depth] = answer[i, a], slot + next_place
                        depth += 1
    return slots
