// grow with a key: a tree whose shape is drawn, and what is counted in it afterwards; as backends/numerics/random_trees.py. In
// front: common.cuh, philox.cuh, tree.cuh.

// Evenly from 0 to bound - 1.
static __device__ __forceinline__ i32 below(u32 word, i32 bound)
{
    return (i32)((u64)word * (u32)bound >> 32);
}

// The categories that go left: one of them, not the next one, and each other by a coin.
static __device__ void draw_set(const Stream &stream, u64 number, u32 word, i32 bins, u32 *left_set)
{
    const uint4 low = philox(stream, 2 * number), high = philox(stream, 2 * number + 1);
    const u32 coins[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const i32 first = below(word, bins), next = (first + 1) % bins;
    for (i32 w = 0; w < 8; ++w) {
        const i32 used = min(max(bins - 32 * w, 0), 32);
        u32 set = used == 32 ? coins[w] : coins[w] & ((1u << used) - 1);
        if (first >> 5 == w)
            set |= 1u << (first & 31);
        if (next >> 5 == w)
            set &= ~(1u << (next & 31));
        left_set[w] = set;
    }
}

// usable: how many features have a cut, and which; n_bins, categorical: of every feature. Of a tree without any only
// the root is left. symmetric: nodes of a level share a split.
extern "C" __global__ void __launch_bounds__(256)
random_shape(const i32 *usable, const i32 *n_bins, const u8 *categorical, u32 seed_low, u32 seed_high,
             const u32 *iteration, u32 name, u32 name_of_sets, i32 symmetric, i32 most_splits, State *state,
             Node *nodes)
{
    const i32 features = usable[0], splits = features > 0 ? most_splits : 0;
    const Stream stream = {seed_low, seed_high, *iteration, name};
    const Stream of_sets = {seed_low, seed_high, *iteration, name_of_sets};
    if (blockIdx.x == 0 && threadIdx.x == 0)
        state->n_nodes = 2 * splits + 1;
    for (i32 v = blockIdx.x * blockDim.x + threadIdx.x; v <= 2 * splits; v += gridDim.x * blockDim.x) {
        Node node = {};
        node.feature = node.place = -1;
        node.parent = v ? (v - 1) / 2 : -1;
        node.state = CLOSED;
        if (v < splits) {
            const i32 number = symmetric ? 31 - __clz(v + 1) : v;
            const uint4 words = philox(stream, (u64)number);
            const i32 f = usable[1 + below(words.x, features)];
            node.feature = f;
            node.bin = categorical[f] ? 0 : below(words.y, n_bins[f] - 1);
            node.missing_left = words.z >> 31;
            node.left = 2 * v + 1;
            node.right = 2 * v + 2;
            node.state = SPLIT;
            if (categorical[f])
                draw_set(of_sets, (u64)number, words.y, n_bins[f], node.left_set);
        }
        nodes[v] = node;
    }
}

// counts[leaf] += 1 for each row in it. Where ``own`` is 1 a block first counts in 4 * capacity bytes of its own.
extern "C" __global__ void __launch_bounds__(256)
count_rows(const i32 *leaf_of_row, i32 n, i32 capacity, i32 own, u32 *counts)
{
    extern __shared__ u32 near[];
    if (own) {
        for (i32 v = threadIdx.x; v < capacity; v += blockDim.x)
            near[v] = 0;
        __syncthreads();
    }
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd((own ? near : counts) + leaf_of_row[i], 1u);
    if (own) {
        __syncthreads();
        for (i32 v = threadIdx.x; v < capacity; v += blockDim.x)
            if (near[v] != 0)
                atomicAdd(counts + v, near[v]);
    }
}

// Sums and rows of every node, from those of the leaves: of a node those of its children, level by level from the last
// one on. By one block.
extern "C" __global__ void __launch_bounds__(256)
climb(State *state, const State *all, Node *nodes, const u64 *sums, const u32 *counts)
{
    const i32 n_nodes = state->n_nodes, splits = n_nodes / 2;
    if (threadIdx.x == 0) {
        state->unit_g = all->unit_g;
        state->unit_h = all->unit_h;
    }
    for (i32 v = splits + (i32)threadIdx.x; v < n_nodes; v += blockDim.x) {
        nodes[v].sum_g = (i64)sums[2 * v];
        nodes[v].sum_h = (i64)sums[2 * v + 1];
        nodes[v].count = (i32)counts[v];
    }
    for (i32 level = splits ? 31 - __clz(splits) : -1; level >= 0; --level) {
        __syncthreads();
        const i32 first = (1 << level) - 1, end = min(2 * first + 1, splits);
        for (i32 v = first + (i32)threadIdx.x; v < end; v += blockDim.x) {
            const Node &left = nodes[2 * v + 1], &right = nodes[2 * v + 2];
            nodes[v].sum_g = left.sum_g + right.sum_g;
            nodes[v].sum_h = left.sum_h + right.sum_h;
            nodes[v].count = left.count + right.count;
        }
    }
}
