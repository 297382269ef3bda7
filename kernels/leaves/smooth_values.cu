// Leaf values with path smoothing: those of leaf_values (leaves.cu), each drawn to the value of the node above. Definition:
// newton_values in gpuboost/backends/numerics/leaf_values.py.
//
// Compiled with SMOOTHED 1. In front: common.cuh, tree.cuh, bounds.cuh.

// By one thread: a tree has few nodes, and each waits for the one above. state, all, sums, other: as for leaf_values;
// sums of inner nodes are written, too. values: of the nodes, side by side; inner nodes have 0.
extern "C" __global__ void __launch_bounds__(32)
smooth_values(const State *state, const State *all, const Node *nodes, u64 *sums, i32 other, f64 reg_lambda,
              f64 reg_alpha, f64 max_delta_step, f64 path_smooth, f64 *values)
{
    if (blockIdx.x != 0 || threadIdx.x != 0)
        return;
    const State *from = other ? all : state;
    const f64 unit_g = from->unit_g, unit_h = from->unit_h;
    const i32 n_nodes = state->n_nodes;
    for (i32 v = n_nodes - 1; other && v >= 0; --v) // children come after their parent
        if (nodes[v].feature >= 0)
            for (i32 i = 0; i < 2; ++i)
                sums[2 * v + i] = sums[2 * nodes[v].left + i] + sums[2 * nodes[v].right + i];
    const i64 total_h = other ? (i64)sums[1] : nodes[0].sum_h;
    const f64 smoothing = smoothing_of(path_smooth, (f64)total_h * unit_h, from->weight);
    for (i32 v = -1; v < n_nodes; ++v) { // -1: what is above the root
        const bool inner = v < 0 || nodes[v].feature >= 0;
        const Bounds within = {-max_delta_step, max_delta_step, v < 0 ? 0.0 : values[v]};
        const i32 first = v < 0 ? 0 : nodes[v].left, last = v < 0 ? 0 : nodes[v].right;
        for (i32 child = first; inner && child <= last; ++child) {
            const f64 g = (f64)(other ? (i64)sums[2 * child] : nodes[child].sum_g) * unit_g;
            const f64 h = (f64)(other ? (i64)sums[2 * child + 1] : nodes[child].sum_h) * unit_h;
            values[child] = side_value(soft_threshold(g, reg_alpha), h, reg_lambda, within, v < 0 ? 0.0 : smoothing);
        }
    }
    for (i32 v = 0; v < n_nodes; ++v)
        values[v] = nodes[v].feature < 0 ? values[v] + 0.0 : 0.0;
}
