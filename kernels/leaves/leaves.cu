// The end of a tree: the leaf of each row, the leaf values, and the tree's record for the host. In front: common.cuh,
// tree.cuh, record.cuh, walk.cuh.
//
// Compiled with NOISY 1 where leaf values have noise; then philox.cuh and normal.cuh are in front, too. Compiled with
// SMOOTHED 1 where smooth_values (smooth_values.cu) has written the leaf values already.

#ifndef NOISY
#define NOISY 0
#endif

#ifndef SMOOTHED
#define SMOOTHED 0
#endif

// A finished tree as the kernels that walk through it read it.
extern "C" __global__ void __launch_bounds__(256)
flatten(const Node *nodes, const i32 *n_nodes, const i32 *n_bins, const u8 *categorical, Step *steps)
{
    for (i32 v = blockIdx.x * blockDim.x + threadIdx.x; v < *n_nodes; v += gridDim.x * blockDim.x) {
        const Node node = nodes[v];
        const i32 f = max(node.feature, 0);
        steps[v] = step_of(node.feature, node.bin, node.missing_left, categorical[f], n_bins[f], node.left, node.right);
    }
}

// leaf_of_row of all rows; left_set: of the first node, 32 words before the next one's.
extern "C" __global__ void __launch_bounds__(256)
find_leaves(const Step *steps, const Node *nodes, const u8 *rows, i32 n, i32 shift, i32 *leaf_of_row)
{
    const BinRows bins = {rows, n, shift};
    const u32 *sets = nodes->left_set;
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        leaf_of_row[i] = walk(steps, sets, sizeof(Node) / 4, bins, i);
}

// The record of a round's tree, from where the device counts: see next_round.cu.
extern "C" __global__ void __launch_bounds__(256)
fetch_record(const u32 *first_slot, i32 output, i32 slots, i32 capacity, const Head *heads, const Node *kept,
             i32 *n_nodes, Node *nodes)
{
    const i32 place = ((i32)*first_slot + output) % slots, count = heads[place].n_nodes;
    for (i32 v = blockIdx.x * blockDim.x + threadIdx.x; v < count; v += gridDim.x * blockDim.x)
        nodes[v] = kept[(i64)place * capacity + v];
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *n_nodes = count;
}

// scores[i] += factor * value of the leaf of row i.
extern "C" __global__ void __launch_bounds__(256)
add_tree(const Step *steps, const Node *nodes, const u8 *rows, i32 n, i32 shift, const f64 *factor, f64 *scores)
{
    const BinRows bins = {rows, n, shift};
    const u32 *sets = nodes->left_set;
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        scores[i] += *factor * nodes[walk(steps, sets, sizeof(Node) / 4, bins, i)].value;
}

// The same where leaves are known. values: those of the nodes, side by side.
extern "C" __global__ void __launch_bounds__(256)
add_leaves(const f64 *values, const f64 *factor, const i32 *leaf_of_row, i32 n, f64 *scores)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        scores[i] += *factor * values[leaf_of_row[i]];
}

enum { SUM_ROWS = 1 << 14 }; // of a block before it hands on its sums; at most 65,535, so that 32 bits are enough

// sums[2 v], sums[2 v + 1] += exact g and h of the rows in node v. The sums are 0 before. Where ``own`` is 1 a block
// first adds up in 8 * capacity bytes of shared memory.
extern "C" __global__ void __launch_bounds__(512)
leaf_sums(const f32 *g, const f32 *h, const i32 *times, i32 has_times, const i32 *leaf_of_row, i32 n,
          const State *state, i32 capacity, i32 own, u64 *sums)
{
    extern __shared__ u32 near[];
    const f64 scale_g = state->scale_g, scale_h = state->scale_h;
    const i32 error = state->error;
    for (i32 begin = blockIdx.x * SUM_ROWS; begin < n; begin += gridDim.x * SUM_ROWS) {
        if (own) {
            for (i32 v = threadIdx.x; v < 2 * capacity; v += blockDim.x)
                near[v] = 0;
            __syncthreads();
        }
        for (i32 i = begin + threadIdx.x; i < min(begin + SUM_ROWS, n); i += blockDim.x) {
            const i32 m = has_times ? times[i] : 1, leaf = leaf_of_row[i];
            const i32 a = quantised(g[i], scale_g, m, error), b = quantised(h[i], scale_h, m, error);
            if (own) {
                atomicAdd(near + 2 * leaf, (u32)a);
                atomicAdd(near + 2 * leaf + 1, (u32)b);
            } else {
                atomicAdd(sums + 2 * leaf, (u64)(i64)a);
                atomicAdd(sums + 2 * leaf + 1, (u64)(u32)b);
            }
        }
        if (own) {
            __syncthreads();
            for (i32 v = threadIdx.x; v < capacity; v += blockDim.x) {
                if (near[2 * v] != 0)
                    atomicAdd(sums + 2 * v, (u64)(i64)(i32)near[2 * v]);
                if (near[2 * v + 1] != 0)
                    atomicAdd(sums + 2 * v + 1, (u64)near[2 * v + 1]);
            }
            __syncthreads();
        }
    }
}

enum { KEPT_TOGETHER = 32 }; // nodes of a block

// -G / (H + lambda) at leaves, from the tree's own sums or, where ``other`` is 1, from ``sums`` in the units of ``all``;
// one_value: the leaves of a stump share one, with opposite signs. Where deviation is not 0, deviation / sqrt(H + lambda)
// times number v of a stream more. values: those of the nodes, side by side; inner nodes have 0. The tree is recorded;
// lost: see ``Lost`` of drawn.cuh.
extern "C" __global__ void __launch_bounds__(256)
leaf_values(const State *state, const State *all, Node *nodes, const u64 *sums, i32 other, f64 reg_lambda,
            f64 reg_alpha, f64 max_delta_step, i32 one_value, f64 deviation, u32 seed_low, u32 seed_high, const u32 *iteration, u32 name,
            const f64 *table, f64 *values, const i32 *lost, i32 capacity, const u32 *first_slot, i32 output,
            i32 slots, Head *heads, Node *kept)
{
    const Record record = {((i32)*first_slot + output) % slots, capacity, heads, kept};
    const f64 unit_g = other ? all->unit_g : state->unit_g, unit_h = other ? all->unit_h : state->unit_h;
    const i32 n_nodes = state->n_nodes;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        keep_head(state, all, *lost, record);
    for (i32 first = blockIdx.x * KEPT_TOGETHER; first < n_nodes; first += gridDim.x * KEPT_TOGETHER) {
        const i32 v = first + (i32)threadIdx.x;
        if (threadIdx.x < KEPT_TOGETHER && v < n_nodes) {
            const f64 h = (f64)(other ? (i64)sums[2 * v + 1] : nodes[v].sum_h) * unit_h, below = h + reg_lambda;
            f64 g = (f64)(other ? (i64)sums[2 * v] : nodes[v].sum_g) * unit_g, under = below;
            if (one_value && n_nodes == 3 && v > 0) { // 3 - v: the other leaf
                g -= (f64)(other ? (i64)sums[2 * (3 - v)] : nodes[3 - v].sum_g) * unit_g;
                under = h + (f64)(other ? (i64)sums[2 * (3 - v) + 1] : nodes[3 - v].sum_h) * unit_h + reg_lambda;
            }
            f64 value = SMOOTHED ? values[v] : leaf_value_of(nodes[v].feature, g, under, reg_alpha, max_delta_step);
#if NOISY
            if (deviation != 0.0 && nodes[v].feature < 0 && h > 0.0 && below > 0.0) {
                const Stream stream = {seed_low, seed_high, *iteration, name};
                value += deviation / sqrt(below) * normal(stream, (u64)v, table);
            }
#endif
            nodes[v].value = value;
            values[v] = value;
        }
        __syncthreads();
        keep_nodes(nodes, first, min(first + (i32)KEPT_TOGETHER, n_nodes), record);
        __syncthreads();
    }
}

// The record again, of a tree whose values have changed.
extern "C" __global__ void __launch_bounds__(256)
keep(const State *state, const State *all, const Node *nodes, const i32 *lost, i32 capacity, const u32 *first_slot,
     i32 output, i32 slots, Head *heads, Node *kept)
{
    const Record record = {((i32)*first_slot + output) % slots, capacity, heads, kept};
    if (blockIdx.x == 0 && threadIdx.x == 0)
        keep_head(state, all, *lost, record);
    for (i32 first = blockIdx.x * KEPT_TOGETHER; first < state->n_nodes; first += gridDim.x * KEPT_TOGETHER)
        keep_nodes(nodes, first, min(first + (i32)KEPT_TOGETHER, state->n_nodes), record);
}
