// partition, second half: send the rows of split nodes to their children.
//
// Rows stay in their order, each with the slot of the leaf that it is in. Only the rows of the child that is built take
// a new slot, and only they are listed. Compiled for one SLOT: the type that holds the number of slots, and SETS (1: some
// feature is categorical). In front: common.cuh, tree.cuh, blocks.cuh, record.cuh.

#define THREADS 512
#define PER_THREAD 4
#define CHUNK (THREADS * PER_THREAD)
#define SHARED_LINES 512

constexpr bool NEAR_ROUTES = sizeof(SLOT) == 1; // few enough slots for their routes to lie in shared memory

// Slots of the consecutive rows of one thread: one load and one store.
struct alignas(PER_THREAD * sizeof(SLOT)) Slots {
    SLOT of[PER_THREAD];
};

// Destination of a chunk's rows that are counted for a line: at + step * place; step 0 where they are not listed.
struct alignas(8) Target {
    i32 at, step;
};

// One side of a slot's split: the new slot of its rows, and the line that counts them, or -1.
struct Turn {
    i32 slot, line;
};

// A route as rows need it: rows that stay turn to the same on either side.
struct alignas(16) Way {
    i64 column; // where the feature's column begins, or -1
    u32 rule, spare;
    Turn turn[2]; // right, left
};

static __device__ __forceinline__ Way way_of(const Route &route, i32 slot, i32 n)
{
    if (route.feature < 0)
        return {-1, 0, 0, {{slot, -1}, {slot, -1}}};
    const i32 counts_left = (route.rule & COUNT_LEFT) != 0, moves_left = (route.rule & MOVE_LEFT) != 0;
    const i32 right = route.rule & COUNT_RIGHT ? route.line + counts_left : -1;
    return {(i64)route.feature * n, route.rule, 0,
            {{moves_left ? slot : route.slot, right}, {moves_left ? route.slot : slot, counts_left ? route.line : -1}}};
}

// The way of a slot, from shared memory or made anew. how: its rule.
static __device__ __forceinline__ void look(const Way *near, const Route *routes, i32 slot, i32 n, i64 &column, u32 &how)
{
    if (NEAR_ROUTES) {
        column = near[slot].column;
        how = near[slot].rule;
    } else {
        const Way way = way_of(routes[slot], slot, n);
        column = way.column;
        how = way.rule;
    }
}

static __device__ __forceinline__ Turn turn_of(const Way *near, const Route *routes, i32 slot, i32 n, bool left)
{
    if (NEAR_ROUTES)
        return near[slot].turn[left];
    const Way way = way_of(routes[slot], slot, n);
    return left ? way.turn[1] : way.turn[0];
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

// The children's rows are known: the smaller ones end here, and each line learns how many listed rows come before its
// own. Of shards, ``cursor`` has the rows that are here, ``everywhere`` those of all, and ``here`` gets the former by
// node. By one block.
static __device__ void finish_lists(State *state, Node *nodes, Line *lines, const u32 *cursor, const Rule *rule,
                                    const u32 *everywhere = nullptr, i32 *here = nullptr)
{
    const i32 n_lines = state->n_lines;
    u32 before = 0;
    for (i32 first = 0; first < n_lines; first += THREADS) {
        const i32 i = first + threadIdx.x;
        Line line = {};
        if (i < n_lines) {
            line = lines[i];
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
            line.listed = line.listed && some;
            line.rows = line.listed ? (i32)cursor[i] : 0;
        }
        u32 more;
        line.first = before + block_scan(line.rows, more);
        before += more;
        if (i < n_lines)
            lines[i] = line;
    }
}

// Blocks that have a chunk of the rows, at least one.
static __device__ __forceinline__ u32 busy_blocks(i32 m)
{
    return max(1u, min(gridDim.x, (u32)(m / CHUNK + (m % CHUNK > 0))));
}

static __device__ __forceinline__ Target target_of(const Line &line, u32 before)
{
    return {line.begin + line.step * (i32)before, line.listed ? line.step : 0};
}

// The rows from ``row`` on, each for its line, and their pairs. targets: of all lines; null where lines are too many.
static __device__ __forceinline__ void list_rows(const i32 *line, const i32 *place, i32 row, const Target *targets,
                                                 const Line *lines, const u32 *pairs, i32 wide, i32 *list,
                                                 u32 *list_pairs)
{
    uint4 own = {}, more = {};
    if (wide) {
        own = ((const uint4 *)pairs)[row / 2];
        more = ((const uint4 *)pairs)[row / 2 + 1];
    } else
        own = ((const uint4 *)pairs)[row / PER_THREAD];
    const uint2 both[PER_THREAD] = {{own.x, own.y}, {own.z, own.w}, {more.x, more.y}, {more.z, more.w}};
    const u32 one[PER_THREAD] = {own.x, own.y, own.z, own.w};
#pragma unroll
    for (i32 u = 0; u < PER_THREAD; ++u) {
        if (line[u] < 0)
            continue;
        const Target target = targets ? targets[line[u]] : target_of(lines[line[u]], 0);
        if (target.step == 0)
            continue;
        const i32 at = target.at + target.step * place[u];
        list[at] = row + u;
        if (wide)
            ((uint2 *)list_pairs)[at] = both[u];
        else
            list_pairs[at] = one[u];
    }
}

// One pass over all rows. first: the root is split, and its rows have no slot yet. last: leaf_of_row gets the node of
// every row (leaves: 1), and slots are not kept.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
route(const u8 *__restrict__ columns, i32 n, const u32 *__restrict__ pairs, SLOT *__restrict__ slot_of_row,
      i32 *__restrict__ leaf_of_row, const Route *__restrict__ routes, const i32 *__restrict__ node_of_slot, i32 *list,
      u32 *list_pairs, u32 *cursor, State *state, Node *nodes, Line *lines, const Rule *__restrict__ rule, i32 first,
      i32 last, i32 leaves)
{
    __shared__ u32 count[SHARED_LINES];
    __shared__ Target targets[SHARED_LINES];
    __shared__ Way near[NEAR_ROUTES ? 256 : 1];
    const i32 m = state->m, n_lines = state->n_lines, wide = state->wide;
    const bool shared = n_lines <= SHARED_LINES, idle = n_lines == 0 && !first && !(last && leaves);
    const u32 busy = idle ? 1 : busy_blocks(m);
    if (blockIdx.x >= busy)
        return;
    for (i32 slot = threadIdx.x; NEAR_ROUTES && slot < state->n_leaves; slot += THREADS)
        near[NEAR_ROUTES ? slot : 0] = way_of(routes[slot], slot, n);
    for (i32 begin = blockIdx.x * CHUNK; begin < m && !idle; begin += gridDim.x * CHUNK) {
        for (i32 i = threadIdx.x; shared && i < n_lines; i += THREADS)
            count[i] = 0;
        __syncthreads();
        const i32 row = begin + threadIdx.x * PER_THREAD, rows = min((i32)PER_THREAD, m - row);
        Slots slots = {};
        if (!first && rows > 0)
            slots = *(const Slots *)(slot_of_row + row);
        i32 line[PER_THREAD], place[PER_THREAD];
        u32 how[PER_THREAD], code[PER_THREAD];
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) { // all loads of a kind before the first is needed
            const i32 slot = u < rows ? slots.of[u] : 0;
            i64 column;
            look(near, routes, slot, n, column, how[u]);
            code[u] = column >= 0 && u < rows ? columns[column + row + u] : 0;
        }
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            const i32 slot = u < rows ? slots.of[u] : 0;
            const bool left = goes_left(how[u], code[u], left_set_of(how[u], nodes, node_of_slot, slot));
            const Turn turn = turn_of(near, routes, slot, n, left);
            slots.of[u] = (SLOT)turn.slot;
            line[u] = u < rows ? turn.line : -1;
        }
        for (i32 u = 0; last && leaves && u < rows; ++u)
            leaf_of_row[row + u] = node_of_slot[slots.of[u]];
        if (!last && rows > 0)
            *(Slots *)(slot_of_row + row) = slots;
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u)
            place[u] = n_lines ? take_place(shared ? count : cursor, line[u]) : 0;
        __syncthreads();
        for (i32 i = threadIdx.x; shared && i < n_lines; i += THREADS)
            targets[i] = target_of(lines[i], count[i] ? atomicAdd(cursor + i, count[i]) : 0);
        __syncthreads();
        if (n_lines && rows > 0)
            list_rows(line, place, row, shared ? targets : nullptr, lines, pairs, wide, list, list_pairs);
    }
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
route_and_add(const u8 *__restrict__ columns, i32 n, const SLOT *__restrict__ slot_of_row,
              i32 *__restrict__ leaf_of_row, const Route *__restrict__ routes, const i32 *__restrict__ node_of_slot,
              u32 *cursor, State *state, Node *nodes, Line *lines, const Rule *__restrict__ rule, i32 first,
              const f64 *factor, f64 *__restrict__ scores, f64 *values, const i32 *lost, i32 capacity, const u32 *first_slot, i32 output,
              i32 slots, Head *heads, Node *kept)
{
    __shared__ f64 value_of_leaf[NEAR_NODES];
    __shared__ u32 count[SHARED_LINES];
    __shared__ Way near[NEAR_ROUTES ? 256 : 1];
    const i32 m = state->m, n_lines = state->n_lines, n_nodes = state->n_nodes;
    const u32 busy = busy_blocks(m);
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
        near[NEAR_ROUTES ? slot : 0] = way_of(routes[slot], slot, n);
    __syncthreads();
    for (i32 begin = blockIdx.x * CHUNK; begin < m; begin += gridDim.x * CHUNK) {
        i32 slot[PER_THREAD];
        u32 how[PER_THREAD], code[PER_THREAD];
        const i32 row = begin + threadIdx.x; // and others THREADS apart, so that a warp's scores lie side by side
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) // all loads of a kind before the first is needed
            slot[u] = !first && row + u * THREADS < m ? slot_of_row[row + u * THREADS] : 0;
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            i64 column;
            look(near, routes, slot[u], n, column, how[u]);
            code[u] = column >= 0 && row + u * THREADS < m ? columns[column + row + u * THREADS] : 0;
        }
#pragma unroll
        for (i32 u = 0; u < PER_THREAD; ++u) {
            const bool there = row + u * THREADS < m;
            const bool left = goes_left(how[u], code[u], left_set_of(how[u], nodes, node_of_slot, slot[u]));
            const Turn turn = turn_of(near, routes, slot[u], n, left);
            if (there) {
                const i32 leaf = node_of_slot[turn.slot];
                leaf_of_row[row + u * THREADS] = leaf;
                scores[row + u * THREADS] += step * value_of_leaf[leaf];
            }
            if (n_lines)
                take_place(count, there ? turn.line : -1);
        }
    }
    __syncthreads();
    for (i32 i = threadIdx.x; i < n_lines; i += THREADS)
        if (count[i])
            atomicAdd(cursor + i, count[i]);
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
