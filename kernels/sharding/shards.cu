// Trees whose rows are shared out: what one device knows, laid out so that plain sums of integers make of it what all
// know. Sums of 64 bits are exact in any order, so the tree is the one that a single device grows.
//
//     list_histogram -> [sum over the devices] -> evaluate
//     root_histogram -> share_root -> [sum over the devices] -> init_shared_root -> evaluate
//     route -> [sum of the cursors] -> finish_shared_lists (partition.cu)
//
// In front: common.cuh, tree.cuh.

// The root's sums go in front of those of its line, before these are added up. One thread.
extern "C" __global__ void __launch_bounds__(32)
share_root(const State *state, i64 *sums)
{
    sums[0] = state->total_g;
    sums[1] = state->total_h;
}

// The root again, of the rows of all devices. sums: as above, added up; they become 0. rows: of the training set. here:
// rows of each node that are on this device. One thread.
extern "C" __global__ void __launch_bounds__(32)
init_shared_root(i64 *sums, i32 rows, State *state, Node *nodes, i32 *here, const Rule *rule)
{
    state->total_g = sums[0];
    state->total_h = sums[1];
    state->rows_per_h = (f64)state->weight / (f64)(sums[1] > 1 ? sums[1] : 1);
    Node root = nodes[0];
    root.sum_g = sums[0];
    root.sum_h = sums[1];
    root.count = rows;
    root.state = can_split(root, state->unit_h, rule) && enough_rows(root, rule) ? NEW : CLOSED;
    nodes[0] = root;
    here[0] = state->m;
    sums[0] = sums[1] = 0;
}
