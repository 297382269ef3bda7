// bound_leaves: leaf values held to their order. Definition: held and in_order in gpuboost/backends/numerics/monotone.py.
//
// In front: common.cuh, tree.cuh, bounds.cuh.

// State of a node while leaf values are clipped.
struct Kept {
    f64 minus_g, h;   // of the leaves below, as their values have it
    f64 least, most;  // of their values
    Bounds within;
};

// True if at every split on a constrained feature all leaves of the two sides obey the constraint.
static __device__ bool in_order(const Node *nodes, i32 n_nodes, const i32 *directions, Kept *kept)
{
    for (i32 v = n_nodes - 1; v >= 0; --v) { // children come after their parent
        kept[v].least = kept[v].most = nodes[v].value;
        if (nodes[v].feature < 0)
            continue;
        const Kept &left = kept[nodes[v].left], &right = kept[nodes[v].right];
        const i32 direction = directions[nodes[v].feature];
        if ((direction > 0 && left.most > right.least) || (direction < 0 && left.least < right.most))
            return false;
        kept[v].least = right.least < left.least ? right.least : left.least;
        kept[v].most = right.most > left.most ? right.most : left.most;
    }
    return true;
}

// By one thread: a tree has few nodes, and each waits for the one before. refined: values that are in order already stay
// as they are. values: those of the nodes, side by side.
extern "C" __global__ void __launch_bounds__(32)
bound_leaves(const State *state, Node *nodes, const i32 *directions, f64 ridge, i32 refined, Kept *kept, f64 *values)
{
    const i32 n_nodes = state->n_nodes;
    if (blockIdx.x != 0 || threadIdx.x != 0 || (refined && in_order(nodes, n_nodes, directions, kept)))
        return;
    for (i32 v = n_nodes - 1; v >= 0; --v) {
        const Node &node = nodes[v];
        if (node.feature < 0) {
            const f64 cover = (f64)node.sum_h * state->unit_h;
            kept[v].minus_g = node.value * (cover + ridge);
            kept[v].h = cover;
        } else {
            kept[v].minus_g = kept[node.left].minus_g + kept[node.right].minus_g;
            kept[v].h = kept[node.left].h + kept[node.right].h;
        }
    }
    kept[0].within = {-NO_BOUND, NO_BOUND};
    for (i32 v = 0; v < n_nodes; ++v) {
        const Bounds within = kept[v].within;
        if (nodes[v].feature < 0) {
            values[v] = nodes[v].value = clipped(nodes[v].value, within) + 0.0;
            continue;
        }
        const i32 left = nodes[v].left, right = nodes[v].right, direction = directions[nodes[v].feature];
        const f64 a = value_within(-kept[left].minus_g, kept[left].h, ridge, within);
        const f64 b = value_within(-kept[right].minus_g, kept[right].h, ridge, within);
        kept[left].within = parted(direction, within, a, b, true);
        kept[right].within = parted(direction, within, a, b, false);
    }
}
