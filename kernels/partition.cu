// partition, second half: send the rows of split nodes to their children.
//
// Rows stay in their order, each with the slot of the leaf that it is in. Only the rows of the child that is built take
// a new slot, and only they are listed. Compiled for one SLOT: the type that holds the number of slots. In front:
// common.cuh, tree.cuh, blocks.cuh, record.cuh.

#define THREADS 512
#define PER_THREAD 4
#define CHUNK (THREADS * PER_THREAD)
#define SHARED_LINES 512

struct Step {
    i32 line;  // whose row this is to be counted for, or -1
    i32 place; // among those of the chunk, or of all
};

static __device__ __forceinline__ bool goes_left(const Route &route, i32 code, const u32 *left_set)
{
    if (code == (i32)(route.rule >> 8 & 255))
        return route.rule & MISSING_LEFT;
    if (route.rule & CATEGORICAL)
        return left_set[code >> 5] >> (code & 31) & 1;
    return code <= (i32)(route.rule & 255);
}

// Of the node that was just split, a child of which has the slot.
static __device__ __forceinline__ const u32 *left_set_of(const Node *nodes, i32 child)
{
    return nodes[nodes[child].parent].left_set;
}

// The line that counts the row, or -1.
static __device__ __forceinline__ i32 line_of(const Route &route, bool left)
{
    if (left)
        return route.rule & COUNT_LEFT ? route.line : -1;
    return route.rule & COUNT_RIGHT ? route.line + (route.rule & COUNT_LEFT ? 1 : 0) : -1;
}

// counter[line] += 1 in every lane that has a line; the lanes of one line add at once. Returns the number before.
static __device__ __forceinline__ i32 take_place(u32 *counter, i32 line)
{
    const u32 mates = __match_any_sync(FULL_WARP, line);
    const i32 lane = threadIdx.x & 31, first = __ffs(mates) - 1;
    u32 base = 0;
    if (line >= 0 && lane == first)
        base = atomicAdd(counter + line, (u32)__popc(mates));
    return __shfl_sync(FULL_WARP, base, first) + __popc(mates & ((1u << lane) - 1));
}

// The children's rows are known: the smaller ones end here, and the lists of the others are cut into stretches. Of
// shards, ``cursor`` has the rows that are here, ``everywhere`` those of all, and ``here`` gets the former by node.
// By one block.
static __device__ void cut_lists(State *state, Node *nodes, Line *lines, const u32 *cursor, Tile *stretches,
                                 const i32 *contest, const Rule *rule, i32 least, i32 items,
                                 const u32 *everywhere = nullptr, i32 *here = nullptr)
{
    const i32 n_lines = state->n_lines;
    u32 listed = 0;
    for (i32 i = threadIdx.x; i < n_lines; i += THREADS) {
        Line line = lines[i];
        Node &node = nodes[line.node];
        node.count = SHARDED ? everywhere[i] : cursor[i];
        if (SHARDED)
            here[line.node] = cursor[i];
        bool some = node.state == FRESH && enough_rows(node, rule);
        if (!some)
            node.state = CLOSED;
        if (line.sibling >= 0) {
            Node &sibling = nodes[line.sibling];
            sibling.count = nodes[node.parent].count - node.count;
            if (SHARDED)
                here[line.sibling] = here[node.parent] - (i32)cursor[i];
            const bool other = sibling.state == FRESH && enough_rows(sibling, rule);
            if (!other)
                sibling.state = CLOSED;
            some |= other;
        }
        lines[i].listed = line.listed = line.listed && some;
        listed += !line.listed ? 0 : SHARDED ? cursor[i] : node.count;
    }
    const i32 stretch = rows_of_tile(block_sum(listed), contest[1], least, items);
    u32 first_tile = 0;
    for (i32 first = 0; first < n_lines; first += THREADS) {
        const i32 i = first + threadIdx.x;
        const i32 rows = i >= n_lines || !lines[i].listed ? 0 : SHARDED ? (i32)cursor[i] : nodes[lines[i].node].count;
        const u32 tiles = (rows + stretch - 1) / stretch;
        u32 more;
        const u32 tile = first_tile + block_scan(tiles, more);
        first_tile += more;
        if (i >= n_lines)
            continue;
        lines[i].first_tile = tile;
        lines[i].n_tiles = tiles;
        const i32 begin = lines[i].step > 0 ? lines[i].begin : lines[i].begin - rows + 1;
        for (u32 k = 0; k < tiles; ++k)
            stretches[tile + k] = {begin + (i32)k * stretch, min(stretch, rows - (i32)k * stretch)};
    }
    if (threadIdx.x == 0)
        state->n_tiles = first_tile;
}

// One pass over all rows. first: the root is split, and its rows have no slot yet. last: leaf_of_row gets the node of
// every row (leaves: 1), and slots are not kept.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
route(const u8 *__restrict__ columns, i32 n, const u32 *__restrict__ pairs, SLOT *__restrict__ slot_of_row,
      i32 *__restrict__ leaf_of_row,      const Route *__restrict__ routes, const i32 *__restrict__ node_of_slot, i32 *list, u32 *list_pairs, u32 *cursor,
      Tile *stretches, State *state, Node *nodes, Line *lines, const i32 *__restrict__ contest,
      const Rule *__restrict__ rule, i32 first, i32 last, i32 leaves, i32 least, i32 items)
{
    __shared__ u32 count[SHARED_LINES], base[SHARED_LINES];
    const i32 m = state->m, n_lines = state->n_lines;
    const bool shared = n_lines <= SHARED_LINES, idle = n_lines == 0 && !first && !(last && leaves);
    for (i32 begin = blockIdx.x * CHUNK; begin < m && !idle; begin += gridDim.x * CHUNK) {
        for (i32 i = threadIdx.x; shared && i < n_lines; i += THREADS)
            count[i] = 0;
        __syncthreads();
        Step step[PER_THREAD];
        i32 slot[PER_THREAD], code[PER_THREAD];
        Route own[PER_THREAD];
        const i32 row = begin + threadIdx.x;
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) // all loads of a kind before the first is needed
            slot[u] = !first && row + u * THREADS < m ? slot_of_row[row + u * THREADS] : 0;
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u)
            own[u] = routes[slot[u]];
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u)
            code[u] = own[u].feature >= 0 && row + u * THREADS < m
                ? columns[(i64)own[u].feature * n + row + u * THREADS] : 0;
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            step[u].line = -1;
            if (row + u * THREADS >= m)
                continue;
            bool moves = false;
            if (own[u].feature >= 0) {
                const bool sets = own[u].rule & CATEGORICAL;
                const u32 *left_set = sets ? left_set_of(nodes, node_of_slot[slot[u]]) : nullptr;
                const bool left = goes_left(own[u], code[u], left_set);
                moves = left == ((own[u].rule & MOVE_LEFT) != 0);
                slot[u] = moves ? own[u].slot : slot[u];
                step[u].line = line_of(own[u], left);
            }
            if (last && leaves)
                leaf_of_row[row + u * THREADS] = node_of_slot[slot[u]];
            if (!last && (moves || first))
                slot_of_row[row + u * THREADS] = (SLOT)slot[u];
        }
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u)
            step[u].place = n_lines ? take_place(shared ? count : cursor, step[u].line) : 0;
        __syncthreads();
        for (i32 i = threadIdx.x; shared && i < n_lines; i += THREADS)
            base[i] = count[i] ? atomicAdd(cursor + i, count[i]) : 0;
        __syncthreads();
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            if (step[u].line < 0)
                continue;
            const Line &line = lines[step[u].line];
            if (!line.listed)
                continue;
            const i32 at = line.begin + line.step * (step[u].place + (i32)(shared ? base[step[u].line] : 0));
            i32 g;
            u32 h;
            read_pair(pairs, state->wide, row + u * THREADS, g, h);
            list[at] = row + u * THREADS;
            write_pair(list_pairs, state->wide, at, g, h);
        }
    }
    if (last_block(&state->arrived) && !SHARDED)
        cut_lists(state, nodes, lines, cursor, stretches, contest, rule, least, items);
}

#if SHARDED

// What route leaves to be done when the rows of all shards are counted.
extern "C" __global__ void __launch_bounds__(THREADS)
cut_shared_lists(const u32 *__restrict__ cursor, const u32 *__restrict__ everywhere, i32 *here, Tile *stretches,
                 State *state, Node *nodes, Line *lines, const i32 *__restrict__ contest,
                 const Rule *__restrict__ rule, i32 least, i32 items)
{
    cut_lists(state, nodes, lines, cursor, stretches, contest, rule, least, items, everywhere, here);
}

#endif

// Leaf-wise growth: the tree that best-first growth makes, of all that was tried. node_of_slot gets the leaves' numbers
// in it.
extern "C" __global__ void __launch_bounds__(THREADS)
finish_tree(State *state, const Node *__restrict__ tried, Node *nodes, i32 *node_of_slot)
{
    const i32 stride = gridDim.x * THREADS, first = blockIdx.x * THREADS + threadIdx.x;
    for (i32 v = first; v < state->n_nodes; v += stride) {
        Node node = tried[v];
        if (node.place < 0)
            continue;
        node.parent = node.parent < 0 ? -1 : tried[node.parent].place;
        if (node.made) {
            node.left = tried[node.left].place;
            node.right = tried[node.right].place;
        } else {
            node.left = node.right = 0;
            wipe(node);
        }
        nodes[node.place] = node;
    }
    for (i32 slot = first; slot < state->n_leaves; slot += stride) {
        i32 v = node_of_slot[slot];
        while (tried[v].place < 0)
            v = tried[v].parent;
        node_of_slot[slot] = tried[v].place;
    }
    if (last_block(&state->arrived) && threadIdx.x == 0) {
        state->n_nodes = 2 * state->n_made + 1;
        state->n_leaves = state->n_made + 1;
    }
}

// leaf_of_row, for a tree that was finished before its last level.
extern "C" __global__ void __launch_bounds__(THREADS)
settle_rows(const State *__restrict__ state, const SLOT *__restrict__ slot_of_row,
            const i32 *__restrict__ node_of_slot, i32 *leaf_of_row)
{
    const i32 alone = state->n_leaves == 1;
    for (i64 row = (i64)blockIdx.x * THREADS + threadIdx.x; row < state->m; row += (i64)gridDim.x * THREADS)
        leaf_of_row[row] = alone ? 0 : node_of_slot[slot_of_row[row]];
}

enum { NEAR_NODES = 1024 }; // a tree's nodes at most, for the kernel below

// The last level of a tree whose leaf values are made of its own sums, to its very end: as route, with last and leaves;
// scores[i] += factor * value of the leaf of row i; and the values and the tree's record as leaf_values (leaves.cu)
// leaves them.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
route_and_add(const u8 *__restrict__ columns, i32 n, const SLOT *__restrict__ slot_of_row,
              i32 *__restrict__ leaf_of_row, const Route *__restrict__ routes, const i32 *__restrict__ node_of_slot,
              u32 *cursor, Tile *stretches, State *state, Node *nodes, Line *lines, const i32 *__restrict__ contest,
              const Rule *__restrict__ rule, i32 first, i32 least, i32 items, const f64 *factor,
              f64 *__restrict__ scores, f64 *values, const i32 *lost, i32 capacity, const u32 *first_place, i32 output,
              i32 places, Head *heads, Node *kept)
{
    __shared__ f64 worth[NEAR_NODES];
    __shared__ u32 count[SHARED_LINES];
    const i32 m = state->m, n_lines = state->n_lines, n_nodes = state->n_nodes;
    const f64 unit_g = state->unit_g, unit_h = state->unit_h;
    const bool one_value = rule->one_value && n_nodes == 3;
    for (i32 v = threadIdx.x; v < n_nodes; v += THREADS) {
        f64 g = (f64)nodes[v].sum_g * unit_g, h = (f64)nodes[v].sum_h * unit_h;
        if (one_value && v > 0) { // 3 - v: the other leaf
            g -= (f64)nodes[3 - v].sum_g * unit_g;
            h += (f64)nodes[3 - v].sum_h * unit_h;
        }
        worth[v] = worth_of(nodes[v].feature, g, h + rule->reg_lambda);
    }
    for (i32 i = threadIdx.x; i < n_lines; i += THREADS)
        count[i] = 0;
    __syncthreads();
    for (i32 begin = blockIdx.x * CHUNK; begin < m; begin += gridDim.x * CHUNK) {
        i32 slot[PER_THREAD], code[PER_THREAD];
        Route own[PER_THREAD];
        const i32 row = begin + threadIdx.x;
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) // all loads of a kind before the first is needed
            slot[u] = !first && row + u * THREADS < m ? slot_of_row[row + u * THREADS] : 0;
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u)
            own[u] = routes[slot[u]];
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u)
            code[u] = own[u].feature >= 0 && row + u * THREADS < m
                ? columns[(i64)own[u].feature * n + row + u * THREADS] : 0;
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            i32 line = -1;
            if (row + u * THREADS < m) {
                if (own[u].feature >= 0) {
                    const bool sets = own[u].rule & CATEGORICAL;
                    const u32 *left_set = sets ? left_set_of(nodes, node_of_slot[slot[u]]) : nullptr;
                    const bool left = goes_left(own[u], code[u], left_set);
                    slot[u] = left == ((own[u].rule & MOVE_LEFT) != 0) ? own[u].slot : slot[u];
                    line = line_of(own[u], left);
                }
                const i32 leaf = node_of_slot[slot[u]];
                leaf_of_row[row + u * THREADS] = leaf;
                scores[row + u * THREADS] += *factor * worth[leaf];
            }
            if (n_lines)
                take_place(count, line);
        }
    }
    __syncthreads();
    for (i32 i = threadIdx.x; i < n_lines; i += THREADS)
        if (count[i])
            atomicAdd(cursor + i, count[i]);
    if (!last_block(&state->arrived))
        return;
    cut_lists(state, nodes, lines, cursor, stretches, contest, rule, least, items);
    __syncthreads();
    for (i32 v = threadIdx.x; v < n_nodes; v += THREADS)
        values[v] = nodes[v].value = worth[v];
    __syncthreads();
    const Record record = {((i32)*first_place + output) % places, capacity, heads, kept};
    keep_nodes(nodes, 0, n_nodes, record);
    if (threadIdx.x == 0)
        keep_head(state, state, *lost, record);
}
