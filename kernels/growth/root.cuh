// The root of a tree, once its sums are known. In front: tree.cuh. By one thread.

static __device__ void make_root(i64 g, i64 h, State *state, Node *nodes, Line *lines, i32 *node_of_slot,
                                 const Rule *rule)
{
    state->total_g = g;
    state->total_h = h;
    state->rows_per_h = (f64)state->weight / (f64)(h > 1 ? h : 1);
    state->n_nodes = state->n_leaves = state->n_lines = 1;
    state->level_begin = state->finished = state->n_made = 0;
    Node root = {};
    root.sum_g = g;
    root.sum_h = h;
    root.feature = root.parent = -1;
    root.count = state->m;
    root.state = can_split(root, state->unit_h, rule) && enough_rows(root, rule) ? NEW : CLOSED;
    nodes[0] = root;
    const Line line = {0, -1, 0, 1, 1, 0, state->m, 0};
    lines[0] = line;
    node_of_slot[0] = 0;
}
