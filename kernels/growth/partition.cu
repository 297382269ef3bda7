// partition, second half: send the rows of split nodes to their children.
//
// Rows stay in their order, each with the slot of the leaf that it is in. Only the rows of the child that is built take
// a new slot, and only they are listed. Compiled for one SLOT: the type that holds the number of slots, and SETS (1: some
// feature is categorical). In front: common.cuh, tree.cuh, blocks.cuh, record.cuh.

#define THREADS 512
#define PER_THREAD 4
#define CHUNK (THREADS * PER_THREAD)

constexpr bool NEAR_ROUTES = sizeof(SLOT) == 1; // few enough slots for their routes to lie in shared memory
enum { GRID = 3, RESIDENT = NEAR_ROUTES ? 3 : 2 }; // blocks for each multiprocessor: ROUTE_BLOCKS, and those it holds
enum { NEAR_SLOTS = NEAR_ROUTES ? 256 : 1, SHARED_LINES = NEAR_ROUTES ? 256 : THREADS }; // a thread to each line at most

enum { PLACE_BITS = 12 }; // of a row's place among those of its line in a chunk
static_assert(CHUNK <= 1 << PLACE_BITS, "places of a chunk have these bits");
#define NOWHERE 0xffffffffu

// Slots of the consecutive rows of one thread: one load and one store.
struct alignas(PER_THREAD * sizeof(SLOT)) Slots {
    SLOT of[PER_THREAD];
};

// Destination of a chunk's rows that are counted for a line: at + step * place; step 0 where they are not listed.
struct alignas(8) Target {
    i32 at, step;
};

enum { FLAG_SHIFT = 16, FLAG_BITS = 5, ALL_FLAGS = (1 << FLAG_BITS) - 1 }; // RouteFlags in a rule

// A route in one word, so that the slots of a warp meet in few banks: bin, missing code, new slot and line, a byte each;
// the flags; and the feature, 27 bits with its sign (2^26 features would take more memory than a device has). Of at
// most 256 slots 128 are split, two lines each. Rows that stay move to their own slot, and are not counted.
static __device__ __forceinline__ u64 packed(const Route &route, i32 slot)
{
    if (route.feature < 0)
        return ~0ull << (32 + FLAG_BITS) | (u32)slot << 16;
    const u32 codes = (route.rule & 0xffffu) | (u32)route.slot << 16 | (u32)route.line << 24;
    return (u64)((u32)route.feature << FLAG_BITS | (route.rule >> FLAG_SHIFT & ALL_FLAGS)) << 32 | codes;
}

static __device__ __forceinline__ Route unpacked(u64 word)
{
    const u32 codes = (u32)word, flags = (u32)(word >> 32) & ALL_FLAGS;
    return {(i32)(word >> 32) >> FLAG_BITS, (codes & 0xffffu) | flags << FLAG_SHIFT, (i32)(codes >> 16 & 255),
            (i32)(codes >> 24)};
}

// The route of a slot, from shared memory or from where it was made.
static __device__ __forceinline__ Route route_of(const u64 *near, const Route *routes, i32 slot)
{
    return NEAR_ROUTES ? unpacked(near[slot]) : routes[slot];
}

// One side of a slot's split: the new slot of its rows, and the line that counts them, or -1.
struct Turn {
    i32 slot, line;
};

static __device__ __forceinline__ Turn turn_of(const Route &route, i32 slot, bool left)
{
    const bool stays = !NEAR_ROUTES && route.feature < 0;
    const bool moves = !stays && left == ((route.rule & MOVE_LEFT) != 0);
    const bool counts = !stays && (route.rule & (left ? COUNT_LEFT : COUNT_RIGHT));
    const i32 after_left = !left && route.rule & COUNT_LEFT;
    return {moves ? route.slot : slot, counts ? route.line + after_left : -1};
}

// left_set: that of the route, if it has one.
static __device__ __forceinline__ bool goes_left(u32 rule, u32 code, const u32 *left_set)
{
    if (code == (rule >> 8 & 255))
        return rule & MISSING_LEFT;
    if (SETS && rule & CATEGORICAL)
        return left_set[code >> 5] >> (code & 31) & 1;
    return code <= (rule & 255);
}

// Left set of the node that was just split, a child of which has the slot.
static __device__ __forceinline__ const u32 *left_set_of(u32 rule, const Node *nodes, const i32 *node_of_slot, i32 slot)
{
    return SETS && rule & CATEGORICAL ? nodes[nodes[node_of_slot[slot]].parent].left_set : nullptr;
}

// counter[line] += 1 for every line of a thread that is not -1; the lanes of one line add at once. place: the numbers
// before. All of a kind before the first is needed.
static __device__ __forceinline__ void take_places(u32 *counter, const i32 *line, i32 *place)
{
    const i32 lane = threadIdx.x & 31;
    u32 mates[PER_THREAD];
#pragma unroll
    for (i32 u = 0; u < PER_THREAD; ++u)
        mates[u] = __match_any_sync(FULL_WARP, line[u]);
#pragma unroll
    for (i32 u = 0; u < PER_THREAD; ++u)
        place[u] = line[u] >= 0 && lane == __ffs(mates[u]) - 1 ? atomicAdd(counter + line[u], (u32)__popc(mates[u])) : 0;
#pragma unroll
    for (i32 u = 0; u < PER_THREAD; ++u)
        place[u] = __shfl_sync(FULL_WARP, place[u], __ffs(mates[u]) - 1) + __popc(mates[u] & ((1u << lane) - 1));
}

// The same where the places are not needed.
static __device__ __forceinline__ void count_rows(u32 *counter, const i32 *line)
{
#pragma unroll
    for (i32 u = 0; u < PER_THREAD; ++u) {
        const u32 mates = __match_any_sync(FULL_WARP, line[u]);
        if (line[u] >= 0 && (threadIdx.x & 31) == __ffs(mates) - 1)
            atomicAdd(counter + line[u], (u32)__popc(mates));
    }
}

// The children's rows are known: the smaller ones end here, and the lists of the others are cut into stretches. Of
// shards, ``cursor`` has the rows that are here, ``everywhere`` those of all, and ``here`` gets the former by node.
// By one block.
static __device__ void cut_lists(State *state, Node *nodes, Line *lines, const u32 *cursor, Tile *stretches,
                                 const i32 *selection, const Rule *rule, i32 least, i32 items,
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
        bool some = node.state == NEW && enough_rows(node, rule);
        if (!some)
            node.state = CLOSED;
        if (line.sibling >= 0) {
            Node &sibling = nodes[line.sibling];
            sibling.count = nodes[node.parent].count - node.count;
            if (SHARDED)
                here[line.sibling] = here[node.parent] - (i32)cursor[i];
            const bool other = sibling.state == NEW && enough_rows(sibling, rule);
            if (!other)
                sibling.state = CLOSED;
            some |= other;
        }
        lines[i].listed = line.listed = line.listed && some;
        listed += !line.listed ? 0 : SHARDED ? cursor[i] : node.count;
    }
    const i32 rounded_up = min(n_lines * selection[1], items / 2); // every line has a last stretch that is not full
    const i32 stretch = rows_of_tile(block_sum(listed), selection[1], least, items - rounded_up);
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
route(const u8 *__restrict__ columns, i32 n, const u32 *__restrict__ pairs, SLOT *__restrict__ slot_of_row,
      i32 *__restrict__ leaf_of_row, const Route *__restrict__ routes, const i32 *__restrict__ node_of_slot, i32 *list,
      u32 *list_pairs, u32 *cursor, Tile *stretches, State *state, Node *nodes, Line *lines, const i32 *__restrict__ selection,
      const Rule *__restrict__ rule, i32 first, i32 last, i32 leaves, i32 least, i32 items)
{
    __shared__ u32 count[2][SHARED_LINES];
    __shared__ Target targets[2][SHARED_LINES], of_line[SHARED_LINES];
    __shared__ u32 where[2][PER_THREAD][THREADS]; // own rows: line << PLACE_BITS | place, or the place in the list
    __shared__ u64 near[NEAR_SLOTS];
    const u32 m = state->m;
    const i32 n_lines = state->n_lines, wide = state->wide, i = threadIdx.x;
    const bool shared = NEAR_ROUTES || n_lines <= SHARED_LINES, idle = n_lines == 0 && !first && !(last && leaves);
    const bool lists = n_lines > 0 && !last;
    const u32 busy = idle ? 1 : busy_blocks(m, sharing_blocks(RESIDENT));
    if (blockIdx.x >= busy)
        return;
    for (i32 slot = i; NEAR_ROUTES && slot < state->n_leaves; slot += THREADS)
        near[NEAR_ROUTES ? slot : 0] = packed(routes[slot], slot);
    if (shared && i < n_lines) {
        count[0][i] = count[1][i] = 0;
        of_line[i] = target_of(lines[i]);
    }
    __syncthreads();
    const u32 stride = sharing_blocks(RESIDENT) * CHUNK, end = idle ? 0 : m + (lists ? stride : 0);
    u32 begin = blockIdx.x * CHUNK, before = 0, odd = 0;
    Slots next = {};
    if (!first && begin + i * PER_THREAD < m)
        next = *(const Slots *)(slot_of_row + begin + i * PER_THREAD);
    for (i32 u = 0; u < PER_THREAD; ++u)
        where[1][u][i] = NOWHERE;
    for (; begin < end; begin += stride, odd ^= 1) {
        const u32 row = begin + i * PER_THREAD, listed = row - stride; // the rows that are listed on this way round
        const u32 rows = row < m ? min((u32)PER_THREAD, m - row) : 0;
        Slots slots = next;
        u32 code[PER_THREAD];
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) { // all loads of a kind before the first is needed
            const i32 feature = u < rows ? route_of(near, routes, slots.of[u]).feature : -1;
            code[u] = feature >= 0 ? columns[(i64)feature * n + row + u] : 0;
        }
        uint4 own = {};
        if (lists && listed < m)
            own = ((const uint4 *)pairs)[wide ? listed / 2 : listed / PER_THREAD];
        if (!first && row + stride < m)
            next = *(const Slots *)(slot_of_row + row + stride);
        if (lists && shared && i < n_lines)
            targets[odd ^ 1][i] = {of_line[i].at + of_line[i].step * (i32)before, of_line[i].step};
        i32 line[PER_THREAD], place[PER_THREAD];
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            const i32 slot = u < rows ? slots.of[u] : 0;
            const Route way = route_of(near, routes, slot);
            const bool left = goes_left(way.rule, code[u], left_set_of(way.rule, nodes, node_of_slot, slot));
            const Turn turn = turn_of(way, slot, left);
            slots.of[u] = (SLOT)turn.slot;
            line[u] = u < rows ? turn.line : -1;
        }
        for (i32 u = 0; last && leaves && u < rows; ++u)
            leaf_of_row[row + u] = node_of_slot[slots.of[u]];
        if (!last && rows > 0)
            *(Slots *)(slot_of_row + row) = slots;
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
            where[odd][u][i] = line[u] < 0 ? NOWHERE
                : shared ? (u32)line[u] << PLACE_BITS | place[u] : place_in_list(target_of(lines[line[u]]), place[u]);
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
            if (shared && at != NOWHERE)
                at = place_in_list(targets[odd ^ 1][at >> PLACE_BITS], at & ((1 << PLACE_BITS) - 1));
            if (at != NOWHERE)
                list_row(at, listed, u, own, more, wide, list, list_pairs);
        }
    }
    if (n_lines && !lists && shared) {
        __syncthreads();
        if (i < n_lines && count[0][i])
            atomicAdd(cursor + i, count[0][i]);
    }
    if (last_block(&state->arrived, busy) && !SHARDED)
        cut_lists(state, nodes, lines, cursor, stretches, selection, rule, least, items);
}

#if SHARDED

// Remainder of route, once the rows of all shards are counted.
extern "C" __global__ void __launch_bounds__(THREADS)
cut_shared_lists(const u32 *__restrict__ cursor, const u32 *__restrict__ everywhere, i32 *here, Tile *stretches,
                 State *state, Node *nodes, Line *lines, const i32 *__restrict__ selection,
                 const Rule *__restrict__ rule, i32 least, i32 items)
{
    cut_lists(state, nodes, lines, cursor, stretches, selection, rule, least, items, everywhere, here);
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
              u32 *cursor, Tile *stretches, State *state, Node *nodes, Line *lines, const i32 *__restrict__ selection,
              const Rule *__restrict__ rule, i32 first, i32 least, i32 items, const f64 *factor,
              f64 *__restrict__ scores, f64 *values, const i32 *lost, i32 capacity, const u32 *first_slot, i32 output,
              i32 slots, Head *heads, Node *kept)
{
    __shared__ f64 value_of_leaf[NEAR_NODES];
    __shared__ u32 count[THREADS];
    __shared__ u64 near[NEAR_SLOTS];
    const i32 m = state->m, n_lines = state->n_lines, n_nodes = state->n_nodes;
    const u32 blocks = sharing_blocks(2), busy = busy_blocks(m, blocks);
    if (blockIdx.x >= busy)
        return;
    const f64 unit_g = state->unit_g, unit_h = state->unit_h, step = *factor;
    const bool one_value = rule->one_value && n_nodes == 3;
    for (i32 v = threadIdx.x; v < n_nodes; v += THREADS) {
        f64 g = (f64)nodes[v].sum_g * unit_g, h = (f64)nodes[v].sum_h * unit_h;
        if (one_value && v > 0) { // 3 - v: the other leaf
            g -= (f64)nodes[3 - v].sum_g * unit_g;
            h += (f64)nodes[3 - v].sum_h * unit_h;
        }
        value_of_leaf[v] = leaf_value_of(nodes[v].feature, g, h + rule->reg_lambda, rule->reg_alpha, rule->max_delta_step);
    }
    for (i32 i = threadIdx.x; i < n_lines; i += THREADS)
        count[i] = 0;
    for (i32 slot = threadIdx.x; NEAR_ROUTES && slot < state->n_leaves; slot += THREADS)
        near[NEAR_ROUTES ? slot : 0] = packed(routes[slot], slot);
    __syncthreads();
    for (i32 begin = blockIdx.x * CHUNK; begin < m; begin += blocks * CHUNK) {
        i32 slot[PER_THREAD], line[PER_THREAD];
        u32 code[PER_THREAD];
        const i32 row = begin + threadIdx.x; // and others THREADS apart, so that a warp's scores lie side by side
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) // all loads of a kind before the first is needed
            slot[u] = !first && row + u * THREADS < m ? slot_of_row[row + u * THREADS] : 0;
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            const i32 feature = row + u * THREADS < m ? route_of(near, routes, slot[u]).feature : -1;
            code[u] = feature >= 0 ? columns[(i64)feature * n + row + u * THREADS] : 0;
        }
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            const bool there = row + u * THREADS < m;
            const Route way = route_of(near, routes, slot[u]);
            const bool left = goes_left(way.rule, code[u], left_set_of(way.rule, nodes, node_of_slot, slot[u]));
            const Turn turn = turn_of(way, slot[u], left);
            line[u] = there ? turn.line : -1;
            if (there) {
                const i32 leaf = node_of_slot[turn.slot];
                leaf_of_row[row + u * THREADS] = leaf;
                scores[row + u * THREADS] += step * value_of_leaf[leaf];
            }
        }
        if (n_lines)
            count_rows(count, line);
    }
    __syncthreads();
    for (i32 i = threadIdx.x; i < n_lines; i += THREADS)
        if (count[i])
            atomicAdd(cursor + i, count[i]);
    if (!last_block(&state->arrived, busy))
        return;
    cut_lists(state, nodes, lines, cursor, stretches, selection, rule, least, items);
    __syncthreads();
    for (i32 v = threadIdx.x; v < n_nodes; v += THREADS)
        values[v] = nodes[v].value = value_of_leaf[v];
    __syncthreads();
    const Record record = {((i32)*first_slot + output) % slots, capacity, heads, kept};
    keep_nodes(nodes, 0, n_nodes, record);
    if (threadIdx.x == 0)
        keep_head(state, state, *lost, record);
}
