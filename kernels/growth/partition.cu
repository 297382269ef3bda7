// partition, second half: send the rows of split nodes to their children.
//
// Rows stay in their order, each with the slot of the leaf that it is in. Only the rows of the child that is built take
// a new slot, and only they are listed. Compiled for one SLOT: the type that holds the number of slots, and SETS (1: some
// feature is categorical). In front: common.cuh, tree.cuh, blocks.cuh, record.cuh, ways.cuh, lists.cuh.

#define THREADS 512
#define CHUNK (THREADS * PER_THREAD)

constexpr bool NEAR_ROUTES = sizeof(SLOT) == 1; // few enough slots for their routes to lie in shared memory
enum { GRID = 3, RESIDENT = NEAR_ROUTES ? 3 : 2 }; // blocks for each multiprocessor: ROUTE_BLOCKS, and those it holds
enum { NEAR_SLOTS = NEAR_ROUTES ? 256 : 1, SHARED_LINES = NEAR_ROUTES ? 256 : THREADS }; // a thread to each line at most

enum { PLACE_BITS = 12 }; // of a row's place among those of its line in a chunk
static_assert(CHUNK <= 1 << PLACE_BITS, "places of a chunk have these bits");
#define NOWHERE 0xffffffffu // or any number that is negative as i32

// Slots of the consecutive rows of one thread, side by side in words: one load and one store.
struct alignas(PER_THREAD * sizeof(SLOT)) Slots {
    u32 words[PER_THREAD * sizeof(SLOT) / 4];

    enum { BITS = 8 * sizeof(SLOT) };
    static constexpr u32 MASK = 0xffffffffu >> (32 - BITS);

    __device__ __forceinline__ i32 of(i32 u) const { return (i32)(words[u * BITS / 32] >> u * BITS % 32 & MASK); }

    __device__ __forceinline__ void add(i32 u, i32 slot) { words[u * BITS / 32] |= (u32)slot << u * BITS % 32; }
};

// Destination of a chunk's rows that are counted for a line: at + step * place; step 0 where they are not listed.
struct alignas(8) Target {
    i32 at, step;
};

// The way of a slot, from shared memory or made anew.
static __device__ __forceinline__ Way way_from(const u64 *near, const Route *routes, i32 slot)
{
    return NEAR_ROUTES ? unpacked(near[slot]) : way_of(routes[slot], slot);
}

// counter[line] += 1 for every line of a thread that is not -1; the lanes of one line add at once. place: the numbers
// before. All of a kind before the first is needed.
static __device__ __forceinline__ void take_places(u32 *counter, const i32 *line, i32 *place)
{
    const i32 lane = threadIdx.x & 31;
    u32 mates[PER_THREAD], base[PER_THREAD];
#pragma unroll
    for (i32 u = 0; u < PER_THREAD; ++u)
        mates[u] = __match_any_sync(FULL_WARP, line[u]);
#pragma unroll
    for (i32 u = 0; u < PER_THREAD; ++u) {
        place[u] = __popc(mates[u] & ((1u << lane) - 1));
        base[u] = line[u] >= 0 && mates[u] >> lane == 1 ? atomicAdd(counter + line[u], (u32)__popc(mates[u])) : 0;
    }
#pragma unroll
    for (i32 u = 0; u < PER_THREAD; ++u)
        place[u] += __shfl_sync(FULL_WARP, base[u], 31 - __clz(mates[u]));
}

// Blocks that share the rows. The grid has GRID for each multiprocessor; where fewer are resident, more would have to
// wait for others to end.
static __device__ __forceinline__ u32 sharing_blocks(u32 resident)
{
    return resident == GRID ? gridDim.x : (gridDim.x * resident + GRID - 1) / GRID;
}

// Those of them that have a chunk, at least one.
static __device__ __forceinline__ u32 busy_blocks(i32 m, u32 blocks)
{
    return max(1u, min(blocks, (u32)(m / CHUNK + (m % CHUNK > 0))));
}

static __device__ __forceinline__ Target target_of(const Line &line)
{
    return {line.begin, line.listed ? line.step : 0};
}

static __device__ __forceinline__ u32 place_in_list(const Target &target, u32 place)
{
    return target.step ? target.at + target.step * (i32)place : NOWHERE;
}

// Row ``row + u``, number u of a thread, and its pair.
static __device__ __forceinline__ void list_row(u32 to, u32 row, i32 u, uint4 own, uint4 more, i32 wide, i32 *list,
                                                u32 *list_pairs)
{
    const uint2 both[PER_THREAD] = {{own.x, own.y}, {own.z, own.w}, {more.x, more.y}, {more.z, more.w}};
    const u32 one[PER_THREAD] = {own.x, own.y, own.z, own.w};
    list[to] = row + u;
    if (wide)
        ((uint2 *)list_pairs)[to] = both[u];
    else
        list_pairs[to] = one[u];
}

// One pass over all rows. first: the root is split, and its rows have no slot yet. last: nothing is listed, leaf_of_row
// gets the node of every row (leaves: 1), and slots are not kept.
//
// Room in the lists is asked for chunk by chunk. Rows are listed when those of the next chunk are counted: by then the
// answer has come, and one barrier serves both.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
route(const u8 *columns, i32 n, const u32 *pairs, SLOT *__restrict__ slot_of_row,
      i32 *__restrict__ leaf_of_row, const Route *__restrict__ routes, const i32 *__restrict__ node_of_slot, i32 *list,
      u32 *list_pairs, u32 *cursor, State *state, Node *nodes, Line *lines, const Rule *__restrict__ rule, i32 first,
      i32 last, i32 leaves)
{
    __shared__ u32 count[2][SHARED_LINES];
    __shared__ Target targets[2][SHARED_LINES], of_line[SHARED_LINES];
    __shared__ u32 where[2][PER_THREAD][THREADS]; // own rows: line << PLACE_BITS | place, or the place in the list
    __shared__ u64 near[NEAR_SLOTS];
    const u32 m = state->m;
    const i32 n_lines = state->n_lines, n_leaves = state->n_leaves, wide = state->wide, i = threadIdx.x;
    const bool shared = NEAR_ROUTES || n_lines <= SHARED_LINES, idle = n_lines == 0 && !first && !(last && leaves);
    const bool lists = n_lines > 0 && !last;
    if (blockIdx.x >= (idle ? 1 : busy_blocks(m, sharing_blocks(RESIDENT))))
        return;
    const u32 stride = sharing_blocks(RESIDENT) * CHUNK, end = idle ? 0 : m + (lists ? stride : 0);
    u32 begin = blockIdx.x * CHUNK, before = 0, odd = 0;
    Slots next = {};
    if (!first && begin + i * PER_THREAD < m)
        next = *(const Slots *)(slot_of_row + begin + i * PER_THREAD);
    if (NEAR_ROUTES && i < n_leaves)
        near[NEAR_ROUTES ? i : 0] = packed(way_of(routes[i], i));
    if (shared && i < n_lines) {
        count[0][i] = count[1][i] = 0;
        of_line[i] = target_of(lines[i]);
    }
    for (i32 u = 0; u < PER_THREAD; ++u)
        where[1][u][i] = NOWHERE;
    __syncthreads();
    for (; begin < end; begin += stride, odd ^= 1) {
        const u32 row = begin + i * PER_THREAD, listed = row - stride; // the rows that are listed on this way round
        uint4 own = {};
        if (lists && listed < m)
            own = ((const uint4 *)pairs)[wide ? listed / 2 : listed / PER_THREAD];
        if (begin < m) { // on the last way round rows are only listed
            const i32 rows = m - row; // of this thread and those after it; none: 0 or less
            const u8 *bins = columns + row;
            const Slots slots = next;
            u32 code[PER_THREAD];
#pragma unroll
            for (i32 u = 0; u < PER_THREAD; ++u) { // all loads of a kind before the first is needed
                const i32 feature = way_from(near, routes, slots.of(u)).feature;
                code[u] = feature >= 0 && u < rows ? bins[(u64)(u32)feature * (u32)n + u] : 0;
            }
            if (!first && row + stride < m)
                next = *(const Slots *)(slot_of_row + row + stride);
            i32 line[PER_THREAD], place[PER_THREAD];
            Slots after = {};
            __syncwarp(); // all loads have begun, and ways are read anew: to keep them would take the codes' registers
#pragma unroll
            for (i32 u = 0; u < PER_THREAD; ++u) {
                const i32 slot = slots.of(u);
                const Way way = way_from(near, routes, slot);
                const bool moved = moves(way, code[u], nodes, node_of_slot, slot);
                const i32 to = moved ? way.slot : slot;
                after.add(u, to);
                line[u] = u < rows ? line_of(way, moved) : -1;
                if (last && leaves && u < rows)
                    leaf_of_row[row + u] = node_of_slot[to];
            }
            if (!last && rows > 0)
                *(Slots *)(slot_of_row + row) = after;
            if (!lists) {
                if (n_lines && shared)
                    count_rows(count[0], line);
                else if (n_lines)
                    count_rows(cursor, line);
                continue;
            }
            if (shared)
                take_places(count[odd], line, place);
            else
                take_places(cursor, line, place);
#pragma unroll
            for (i32 u = 0; u < PER_THREAD; ++u)
                where[odd][u][i] = shared ? (u32)line[u] << PLACE_BITS | place[u]
                    : line[u] < 0 ? NOWHERE : place_in_list(target_of(lines[line[u]]), place[u]);
        }
        if (shared && i < n_lines)
            targets[odd ^ 1][i] = {of_line[i].at + of_line[i].step * (i32)before, of_line[i].step};
        __syncthreads();
        if (shared && i < n_lines) {
            const u32 rows_of_line = count[odd][i];
            count[odd][i] = 0;
            before = rows_of_line ? atomicAdd(cursor + i, rows_of_line) : 0;
        }
        uint4 more = {};
        if (wide && listed < m)
            more = ((const uint4 *)pairs)[listed / 2 + 1];
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            u32 at = where[odd ^ 1][u][i];
            if (shared && (i32)at >= 0)
                at = place_in_list(targets[odd ^ 1][at >> PLACE_BITS], at & ((1 << PLACE_BITS) - 1));
            if ((i32)at >= 0)
                list_row(at, listed, u, own, more, wide, list, list_pairs);
        }
    }
    if (last && shared) {
        __syncthreads();
        if (i < state->n_lines && count[0][i])
            atomicAdd(cursor + i, count[0][i]);
    }
    const u32 busy = idle ? 1 : busy_blocks(state->m, sharing_blocks(RESIDENT)); // anew: a register less in the loop
    if (last_block(&state->arrived, busy) && !SHARDED)
        finish_lists(state, nodes, lines, cursor, rule);
}

#if SHARDED

// Remainder of route, once the rows of all shards are counted.
extern "C" __global__ void __launch_bounds__(THREADS)
finish_shared_lists(const u32 *__restrict__ cursor, const u32 *__restrict__ everywhere, i32 *here, State *state,
                    Node *nodes, Line *lines, const Rule *__restrict__ rule)
{
    finish_lists(state, nodes, lines, cursor, rule, everywhere, here);
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
route_and_add(const u8 *columns, i32 n, const SLOT *slot_of_row,
              i32 *__restrict__ leaf_of_row, const Route *__restrict__ routes, const i32 *__restrict__ node_of_slot,
              u32 *cursor, State *state, Node *nodes, Line *lines, const Rule *__restrict__ rule, i32 first,
              const f64 *factor, f64 *scores, f64 *values, const i32 *lost, i32 capacity, const u32 *first_slot,
              i32 output, i32 slots, Head *heads, Node *kept)
{
    __shared__ f64 value_of_leaf[NEAR_NODES];
    __shared__ u32 count[THREADS];
    __shared__ u64 near[NEAR_SLOTS];
    const i32 m = state->m, n_lines = state->n_lines, n_leaves = state->n_leaves, n_nodes = state->n_nodes;
    const u32 blocks = sharing_blocks(2), busy = busy_blocks(m, blocks), stride = blocks * CHUNK;
    if (blockIdx.x >= busy)
        return;
    u32 begin = blockIdx.x * CHUNK + threadIdx.x; // and others THREADS apart, so that a warp's scores lie side by side
    i32 next[PER_THREAD] = {};
#pragma unroll
    for (i32 u = 0; u < PER_THREAD; ++u)
        if (!first && begin + u * THREADS < m)
            next[u] = slot_of_row[begin + u * THREADS];
    const f64 unit_g = state->unit_g, unit_h = state->unit_h, step = *factor;
    const bool one_value = rule->one_value && n_nodes == 3;
#pragma unroll 1
    for (i32 v = threadIdx.x; v < n_nodes; v += THREADS) {
        f64 g = (f64)nodes[v].sum_g * unit_g, h = (f64)nodes[v].sum_h * unit_h;
        if (one_value && v > 0) { // 3 - v: the other leaf
            g -= (f64)nodes[3 - v].sum_g * unit_g;
            h += (f64)nodes[3 - v].sum_h * unit_h;
        }
        value_of_leaf[v] = leaf_value_of(nodes[v].feature, g, h + rule->reg_lambda, rule->reg_alpha, rule->max_delta_step);
    }
    if (threadIdx.x < n_lines)
        count[threadIdx.x] = 0;
    if (NEAR_ROUTES && threadIdx.x < n_leaves)
        near[NEAR_ROUTES ? threadIdx.x : 0] = packed(way_of(routes[threadIdx.x], threadIdx.x));
    __syncthreads();
    for (; begin - threadIdx.x < m; begin += stride) {
        const i32 rows = m - begin;
        const u8 *bins = columns + begin;
        i32 slot[PER_THREAD], line[PER_THREAD];
        u32 code[PER_THREAD];
        f64 score[PER_THREAD];
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) { // all loads of a kind before the first is needed
            slot[u] = next[u];
            const i32 feature = way_from(near, routes, slot[u]).feature;
            code[u] = feature >= 0 && u * THREADS < rows ? bins[(u64)(u32)feature * (u32)n + u * THREADS] : 0;
            score[u] = u * THREADS < rows ? scores[begin + u * THREADS] : 0.0;
        }
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u)
            if (!first && begin + stride + u * THREADS < m)
                next[u] = slot_of_row[begin + stride + u * THREADS];
        __syncwarp(); // all loads have begun
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            const Way way = way_from(near, routes, slot[u]);
            const bool moved = moves(way, code[u], nodes, node_of_slot, slot[u]), there = u * THREADS < rows;
            line[u] = there ? line_of(way, moved) : -1;
            if (there) {
                const i32 leaf = node_of_slot[moved ? way.slot : slot[u]];
                leaf_of_row[begin + u * THREADS] = leaf;
                scores[begin + u * THREADS] = score[u] + step * value_of_leaf[leaf];
            }
        }
        if (n_lines)
            count_rows(count, line);
    }
    __syncthreads();
    if (threadIdx.x < n_lines && count[threadIdx.x])
        atomicAdd(cursor + threadIdx.x, count[threadIdx.x]);
    if (!last_block(&state->arrived, busy))
        return;
    finish_lists(state, nodes, lines, cursor, rule);
    __syncthreads();
    for (i32 v = threadIdx.x; v < n_nodes; v += THREADS)
        values[v] = nodes[v].value = value_of_leaf[v];
    __syncthreads();
    const Record record = {((i32)*first_slot + output) % slots, capacity, heads, kept};
    keep_nodes(nodes, 0, n_nodes, record);
    if (threadIdx.x == 0)
        keep_head(state, state, *lost, record);
}
