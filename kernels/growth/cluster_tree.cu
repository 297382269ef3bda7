// A tree of few rows in one launch, by one cluster of blocks: all levels from the sums of the root to the choice of the
// last splits. The rows of the last level are routed by the kernels of partition.cu.
//
// The blocks share out the features, and nothing else: each one holds the histograms of its features, and the slots of
// all rows, in its shared memory. A level has one barrier of the cluster, behind which every block takes the best splits
// from memory and makes the same nodes of them. Histograms are of 32-bit sums, as these are exact for so few rows.
//
// Compiled for one CELLS, CLUSTER (blocks) and FEATURES (of a block, at most), with GROUP 32, SETS 0 and COUNTS 0. In
// front: the headers of the split search, small_cells.cuh, best_feature.cuh, root.cuh, ways.cuh, lists.cuh.

#define TREE_THREADS 512
constexpr i32 TREE_WARPS = TREE_THREADS / 32;

// What a block keeps of the tree in its shared memory. The sizes are those of ClusterPlan.
struct OwnTree {
    u32 *histograms; // [slot][feature of the block][2][CELLS]
    Node *nodes;
    Line *lines;
    Route *routes;
    u64 *ways; // of each slot
    u32 *cursor;
    i32 *node_of_slot;
    u8 *is_listed; // 1 for slots whose rows are summed
    u8 *slot_of_row;
};

// The rows to grow from, and the features of this block: numbers rank, rank + CLUSTER ... of the candidates.
struct OwnRows {
    const u8 *columns; // [feature][n]
    i32 n;
    const f32 *g, *h;
    const i32 *multiplicity;
    i32 weighted;
    const i32 *features; // all candidates
    i32 rank, count;     // of the block, and of its features
};

// True in all threads of all blocks once all have come here; what they wrote before is then visible to all.
static __device__ __forceinline__ void cluster_sync()
{
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
}

static __device__ OwnTree carve(void *memory, i32 slots, i32 most_nodes)
{
    const i32 leaves = (most_nodes + 1) / 2;
    OwnTree own;
    own.histograms = (u32 *)memory;
    own.nodes = (Node *)(own.histograms + slots * FEATURES * 2 * CELLS);
    own.lines = (Line *)(own.nodes + most_nodes);
    own.routes = (Route *)(own.lines + leaves);
    own.ways = (u64 *)(own.routes + leaves);
    own.cursor = (u32 *)(own.ways + leaves);
    own.node_of_slot = (i32 *)(own.cursor + leaves);
    own.is_listed = (u8 *)(own.node_of_slot + leaves);
    own.slot_of_row = own.is_listed + (leaves + 3) / 4 * 4;
    return own;
}

// g and h of a row as integers.
static __device__ __forceinline__ int2 pair_of(const OwnRows &rows, const State &state, i32 row)
{
    const i32 times = rows.weighted ? rows.multiplicity[row] : 1;
    return {(i32)quantised(rows.g[row], state.scale_g, times, state.error),
            (i32)(u32)quantised(rows.h[row], state.scale_h, times, state.error)};
}

// Adds the rows of listed slots to the histograms of this block's features, and returns the thread's sums over its rows.
// Loads of some rows are under way before the first is needed.
static __device__ Sums sum_rows(const OwnTree &own, const OwnRows &rows, const State &state)
{
    Sums sums = {0, 0, 0};
    const i32 m = state.m;
    const u8 *column[FEATURES];
#pragma unroll
    for (i32 f = 0; f < FEATURES; ++f)
        column[f] = rows.columns + (u64)(u32)(f < rows.count ? rows.features[rows.rank + f * CLUSTER] : 0) * (u32)rows.n;
    for (i32 first = threadIdx.x; first < m; first += PER_THREAD * TREE_THREADS) {
        i32 slot[PER_THREAD];
        int2 pair[PER_THREAD];
        u32 code[PER_THREAD][FEATURES];
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            const i32 row = first + u * TREE_THREADS;
            slot[u] = row < m ? own.slot_of_row[row] : -1;
            if (slot[u] < 0 || !own.is_listed[slot[u]]) {
                slot[u] = -1;
                continue;
            }
            pair[u] = pair_of(rows, state, row);
#pragma unroll
            for (i32 f = 0; f < FEATURES; ++f)
                code[u][f] = f < rows.count ? column[f][row] : 0;
        }
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            if (slot[u] < 0)
                continue;
            sums = sums + Sums{pair[u].x, (u32)pair[u].y, 0};
            u32 *histogram = own.histograms + slot[u] * FEATURES * 2 * CELLS;
#pragma unroll
            for (i32 f = 0; f < FEATURES; ++f) {
                if (f >= rows.count)
                    continue;
                u32 *at = histogram + f * 2 * CELLS + place_of_bin(code[u][f]);
                atomicAdd(at, (u32)pair[u].x);
                atomicAdd(at + CELLS, (u32)pair[u].y);
            }
        }
    }
    return sums;
}

// Histograms of the children that were not summed: their parents' less their siblings'.
static __device__ void subtract(const OwnTree &own, i32 n_lines)
{
    constexpr i32 WORDS = FEATURES * 2 * CELLS / 4; // of four numbers each
    for (i32 i = threadIdx.x; i < n_lines * WORDS; i += TREE_THREADS) {
        const Line line = own.lines[i / WORDS];
        if (!line.listed || line.sibling < 0)
            continue;
        const uint4 less = ((const uint4 *)own.histograms)[own.nodes[line.node].slot * WORDS + i % WORDS];
        uint4 &cells = ((uint4 *)own.histograms)[own.nodes[line.sibling].slot * WORDS + i % WORDS];
        cells = {cells.x - less.x, cells.y - less.y, cells.z - less.z, cells.w - less.w};
    }
}

// The best split of each new node by each feature of this block, one of them to a warp. candidates: by pair of a line
// and child, then feature.
static __device__ void search(const OwnTree &own, const OwnRows &rows, const State &state, const Rule &rule,
                              const i32 *kinds, const u32 *root_bits, const u32 *chosen, i32 words, i32 t,
                              Candidate *candidates, Told &told)
{
    for (i32 job = threadIdx.x / 32; job < 2 * state.n_lines * rows.count; job += TREE_WARPS) {
        const i32 pair = job / rows.count, f = job % rows.count, j = rows.rank + f * CLUSTER;
        const Line &line = own.lines[pair / 2];
        const i32 v = pair % 2 ? line.sibling : line.node;
        if (v < 0 || own.nodes[v].state != NEW)
            continue;
        const Node &node = own.nodes[v];
        const Terms terms = terms_of(node, &state, &rule, kinds[rows.features[j]] & 0xffff);
        const i64 draw = rule.draws == OF_LEVELS ? node.depth : v;
        const bool may = !words || (chosen[draw * words + (j >> 5)] >> (j & 31) & 1);
        const u32 *bits = root_bits && v == 0 ? root_bits + 8 * j : nullptr;
        const SmallCells cells = {own.histograms + (node.slot * FEATURES + f) * 2 * CELLS};
        const u32 competing = may ? promising(cells, terms, own_bits(bits)) : 0;
        const Found found = search_cuts(cells, terms, competing, told);
        if (threadIdx.x % 32 == 0)
            candidates[pair * t + j].found = found;
    }
}

// The split of each new node, of those that the blocks have found; one node to a warp.
static __device__ void take_splits(const OwnTree &own, const State &state, const i32 *features, const i32 *kinds, i32 t,
                                   const Candidate *candidates)
{
    const GainNoise none = {};
    for (i32 pair = threadIdx.x / 32; pair < 2 * state.n_lines; pair += TREE_WARPS) {
        const Line &line = own.lines[pair / 2];
        const i32 v = pair % 2 ? line.sibling : line.node;
        if (v >= 0 && own.nodes[v].state == NEW)
            take_best(own.nodes + v, candidates + pair * t, features, kinds, t, none);
    }
}

// The rows of split nodes go to their children, and those of each line are counted.
static __device__ void move_rows(const OwnTree &own, const OwnRows &rows, const State &state)
{
    const i32 m = state.m;
    for (i32 first = 0; first < m; first += PER_THREAD * TREE_THREADS) {
        i32 line[PER_THREAD], slot[PER_THREAD];
        u32 code[PER_THREAD];
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) { // all loads before the first is needed
            const i32 row = first + u * TREE_THREADS + threadIdx.x;
            slot[u] = row < m ? own.slot_of_row[row] : -1;
            const i32 feature = slot[u] < 0 ? -1 : unpacked(own.ways[slot[u]]).feature;
            code[u] = feature >= 0 ? rows.columns[(u64)(u32)feature * (u32)rows.n + row] : 0;
        }
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            line[u] = -1;
            if (slot[u] < 0)
                continue;
            const Way way = unpacked(own.ways[slot[u]]);
            const bool moved = moves(way, code[u], own.nodes, own.node_of_slot, slot[u]);
            line[u] = line_of(way, moved);
            if (moved)
                own.slot_of_row[first + u * TREE_THREADS + threadIdx.x] = (u8)way.slot;
        }
        __syncwarp();
        count_rows(own.cursor, line);
    }
}

// All histograms are 0, all rows in the root, which is summed.
static __device__ void begin_tree(const OwnTree &own, const OwnRows &rows, State &state, const Rule &rule, i32 slots)
{
    const uint4 none = {0, 0, 0, 0};
    for (i32 i = threadIdx.x; i < slots * FEATURES * CELLS / 2; i += TREE_THREADS)
        ((uint4 *)own.histograms)[i] = none;
    for (i32 row = threadIdx.x; row < state.m; row += TREE_THREADS)
        own.slot_of_row[row] = 0;
    if (threadIdx.x == 0)
        own.is_listed[0] = 1;
    __syncthreads();
    const Sums sums = sum_rows(own, rows, state);
    u64 all_g, all_h;
    block_scan((u64)sums.g, all_g);
    block_scan((u64)sums.h, all_h);
    if (threadIdx.x == 0)
        make_root((i64)all_g, (i64)all_h, &state, own.nodes, own.lines, own.node_of_slot, &rule);
    __syncthreads();
}

// The next level: its rows, the histograms of the smaller children, and by subtraction those of their siblings.
static __device__ void build_level(const OwnTree &own, const OwnRows &rows, State &state, const Rule &rule)
{
    for (i32 slot = threadIdx.x; slot < state.n_leaves; slot += TREE_THREADS) {
        own.ways[slot] = packed(way_of(own.routes[slot], slot));
        own.is_listed[slot] = 0;
    }
    __syncthreads();
    move_rows(own, rows, state);
    __syncthreads();
    finish_lists(&state, own.nodes, own.lines, own.cursor, &rule);
    __syncthreads();
    for (i32 i = threadIdx.x; i < state.n_lines; i += TREE_THREADS)
        if (own.lines[i].listed)
            own.is_listed[own.nodes[own.lines[i].node].slot] = 1;
    __syncthreads();
    sum_rows(own, rows, state);
    __syncthreads();
    subtract(own, state.n_lines);
    __syncthreads();
}

// Everything that is left for the kernels after this one. Slots of rows are written by all blocks, the rest by one.
static __device__ void hand_over(const OwnTree &own, const State &state, i32 rank, State *to, Node *nodes, Line *lines,
                                 Route *routes, u32 *cursor, i32 *node_of_slot, u8 *slot_of_row)
{
    for (i32 row = rank * TREE_THREADS + threadIdx.x; row < state.m; row += CLUSTER * TREE_THREADS)
        slot_of_row[row] = own.slot_of_row[row];
    if (rank != 0)
        return;
    constexpr i32 WORDS = sizeof(Node) / sizeof(uint4);
    for (i32 i = threadIdx.x; i < state.n_nodes * WORDS; i += TREE_THREADS)
        ((uint4 *)nodes)[i] = ((const uint4 *)own.nodes)[i];
    for (i32 i = threadIdx.x; i < state.n_leaves; i += TREE_THREADS) {
        routes[i] = own.routes[i];
        node_of_slot[i] = own.node_of_slot[i];
    }
    for (i32 i = threadIdx.x; i < state.n_lines; i += TREE_THREADS) {
        lines[i] = own.lines[i];
        cursor[i] = 0;
    }
    if (threadIdx.x == 0)
        *to = state;
}

// selection: {candidate features, ., ., where the words for the cuts of the root begin, or 0}; see ``evaluate``. chosen,
// words: the same. slots: histograms that there is room for; most_nodes: of the tree. candidates: two times ``room``.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(TREE_THREADS)
grow_in_cluster(const u8 *columns, i32 n, const f32 *g, const f32 *h, const i32 *multiplicity, i32 weighted,
                const i32 *selection, const i32 *features, const i32 *kinds, Candidate *candidates, i32 room,
                State *state, Node *nodes, Line *lines, Route *routes, u32 *cursor, i32 *node_of_slot, u8 *slot_of_row,
                const Rule *rule, const u32 *chosen, i32 words, i32 slots, i32 most_nodes)
{
    extern __shared__ uint4 memory[];
    __shared__ State now;
    __shared__ Rule limits;
    __shared__ Told told;
    const OwnTree own = carve(memory, slots, most_nodes);
    const i32 rank = blockIdx.x, t = selection[0], root_cuts = selection[3];
    const OwnRows rows = {columns, n, g, h, multiplicity, weighted, features, rank, (t - rank + CLUSTER - 1) / CLUSTER};
    if (threadIdx.x == 0) {
        now = *state;
        limits = *rule;
    }
    __syncthreads();
    begin_tree(own, rows, now, limits, slots);
    const Growth growth = {kinds, &limits, own.lines, own.cursor, own.routes, own.node_of_slot, now.unit_h, slots};
    for (i32 depth = 0;; ++depth) {
        // Two places for candidates, in turn: a block that is ahead writes while others still read.
        Candidate *found = candidates + depth % 2 * room;
        search(own, rows, now, limits, kinds, root_cuts ? (const u32 *)selection + root_cuts : nullptr, chosen, words, t,
               found, told);
        cluster_sync();
        take_splits(own, now, features, kinds, t, found);
        __syncthreads();
        choose_level(&now, own.nodes, growth);
        __syncthreads();
        if (now.finished || depth + 1 >= limits.max_depth)
            break;
        build_level(own, rows, now, limits);
    }
    hand_over(own, now, rank, state, nodes, lines, routes, cursor, node_of_slot, slot_of_row);
}
