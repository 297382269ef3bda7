"""The next nodes of a small tree that are split, on one thread."""

from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.common.records import GrowthLimits, NodeArrays, RowArrays
from gpuboost.kernels.growth import partition


@kernel
def choose_whole(node, n_nodes, gain, room, chosen):
    """All open nodes, which are a level of an oblivious tree, or none if they are more than ``room``.

    The rest as for ``partition.choose``.
    """
    count = partition.choose(node, n_nodes, gain, n_nodes, chosen)
    return 0 if count > room else count


@kernel
def split_next(whole, n_nodes, nodes, columns, rows, slots, limits, child_limits, counts, new_pairs):
    """Split the open nodes that gain most, and the next ones, until there are nodes to search.

    whole: True if a level is split as a whole or not at all, else None. nodes: NodeArrays; rows: RowArrays; limits:
    GrowthLimits. The rest as for ``partition.split_alone``, and its results: 0 pairs if the tree is finished, -1 if
    there is no room in the tables for what is left.
    """
    of_nodes, of_rows, pairs = NodeArrays(*nodes), RowArrays(*rows), 0
    limits, node = GrowthLimits(*limits), of_nodes.node
    while pairs == 0:
        leaves = (n_nodes + 1) // 2
        room = limits.max_leaves - leaves
        if whole is not None:  # decided when this is compiled
            count = choose_whole(node, n_nodes, of_nodes.gain, room, of_nodes.chosen)
        else:
            count = partition.choose(node, n_nodes, of_nodes.gain, min(limits.at_once, room), of_nodes.chosen)
        chosen = of_nodes.chosen[:count]
        deeper = partition.count_above(node, chosen, limits.max_depth - 1)
        if count == 0:
            return n_nodes, 0
        if deeper > slots[0] or n_nodes + 2 * count > node.shape[0]:
            return n_nodes, -1
        n_nodes, made = partition.split_alone(
            columns, of_rows.rows, of_rows.scratch, chosen, node, of_nodes.left_set, n_nodes, slots, child_limits,
            counts, new_pairs,
        )  # fmt: skip
        if leaves + count < limits.max_leaves:  # else none of them will be split
            pairs = made
    return n_nodes, pairs
