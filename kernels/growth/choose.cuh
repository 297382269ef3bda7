// partition, first half: which nodes are split, and what becomes of their rows and children. By one block.

// A gain as a number that has the same order; 0 if node v has no split to make. Node ``next`` comes before all others.
static __device__ __forceinline__ u64 gain_key(const Node *nodes, i32 v, i32 next)
{
    if (nodes[v].state != OPEN)
        return 0;
    return v == next ? ~0ull >> 1 : (u64)__double_as_longlong(nodes[v].gain);
}

struct Threshold {
    u64 key;  // nodes of a larger key are taken
    u32 ties; // and this many, the oldest, of those that have it
};

// The ``room`` largest keys of nodes begin .. end - 1, found digit by digit. There are more than ``room``.
static __device__ Threshold largest(const Node *nodes, i32 begin, i32 end, u32 room, i32 next)
{
    __shared__ u32 count[256];
    __shared__ Threshold found;
    if (threadIdx.x == 0)
        found = {0, room};
    for (i32 shift = 56; shift >= 0; shift -= 8) {
        for (i32 i = threadIdx.x; i < 256; i += blockDim.x)
            count[i] = 0;
        __syncthreads();
        const u64 prefix = found.key;
        for (i32 v = begin + threadIdx.x; v < end; v += blockDim.x) {
            const u64 key = gain_key(nodes, v, next);
            if (key && (shift == 56 || key >> (shift + 8) == prefix >> (shift + 8)))
                atomicAdd(&count[key >> shift & 255], 1u);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            i32 digit = 255;
            while (digit > 0 && count[digit] < found.ties)
                found.ties -= count[digit--];
            found.key |= (u64)digit << shift;
        }
        __syncthreads();
    }
    return found;
}

// One child of node v.
static __device__ Node new_child(const Node &parent, i32 v, i64 g, i64 h, i32 slot, f64 unit_h, const Rule *rule)
{
    Node child = {};
    child.sum_g = g;
    child.sum_h = h;
    child.feature = child.place = -1;
    child.depth = parent.depth + 1;
    child.slot = slot;
    child.parent = v;
    child.state = can_split(child, unit_h, rule) ? NEW : CLOSED;
    return child;
}

// The last argument of kernels that choose splits, where rows are shared out.
#if SHARDED
#define ROWS_HERE , const i32 *__restrict__ here
#define HERE here
#else
#define ROWS_HERE
#define HERE nullptr
#endif

// Arguments of splitting nodes, besides the nodes themselves.
struct Growth {
    const i32 *kinds; // value bins of every feature, and 1 << 16 if it is categorical
    const Rule *rule;
    Line *lines;
    u32 *cursor;
    Route *routes;
    i32 *node_of_slot;
    f64 unit_h;
    i32 slots; // histograms are kept of nodes in slots below this
    const i32 *here; // of shards: the rows of each node that this one has
};

// Rows of node v that lie here, and so in the list.
static __device__ __forceinline__ i32 rows_here(const Node *nodes, i32 v, const Growth &growth)
{
    return SHARDED ? growth.here[v] : nodes[v].count;
}

// True if both children are to be built: if their parent's histogram was not kept. None is, at the last level.
static __device__ __forceinline__ bool builds_both(const Node &node, const Growth &growth)
{
    return node.slot >= growth.slots && node.depth + 1 < growth.rule->max_depth;
}

// Split node v: its children are ``left`` and the next, a new slot is taken, and its rows go to list[begin ...]. Where
// one child is built it is that of the smaller sum of h; it takes the new slot, while its sibling keeps slot and
// histogram.
static __device__ void split_node(Node *nodes, i32 v, i32 left, i32 new_slot, i32 begin, i32 line, const Growth &growth)
{
    const Node parent = nodes[v];
    const bool both = builds_both(parent, growth);
    const i32 rows = SHARDED ? growth.here[v] : parent.count;
    const i64 right_g = parent.sum_g - parent.left_g, right_h = parent.sum_h - parent.left_h;
    const bool move_left = !both && parent.left_h <= right_h;
    const i32 slot = parent.slot, left_slot = move_left ? new_slot : slot, right_slot = move_left ? slot : new_slot;
    const Node a = new_child(parent, v, parent.left_g, parent.left_h, left_slot, growth.unit_h, growth.rule);
    const Node b = new_child(parent, v, right_g, right_h, right_slot, growth.unit_h, growth.rule);
    nodes[left] = a;
    nodes[left + 1] = b;
    nodes[v].left = left;
    nodes[v].right = left + 1;
    nodes[v].state = SPLIT;
    growth.node_of_slot[left_slot] = left;
    growth.node_of_slot[right_slot] = left + 1;
    const i32 some = a.state == NEW || b.state == NEW;
    if (both) {
        growth.lines[line] = {left, -1, begin, 1, a.state == NEW, 0, 0, 0};
        growth.lines[line + 1] = {left + 1, -1, begin + rows - 1, -1, b.state == NEW, 0, 0, 0};
        growth.cursor[line + 1] = 0;
    } else
        growth.lines[line] = {move_left ? left : left + 1, move_left ? left + 1 : left, begin, 1, some, 0, 0, 0};
    growth.cursor[line] = 0;
    const u32 kind = growth.kinds[parent.feature];
    const u32 flags = (parent.missing_left ? MISSING_LEFT : 0) | (kind >> 16 ? CATEGORICAL : 0)
        | (both ? COUNT_LEFT | COUNT_RIGHT : move_left ? COUNT_LEFT | MOVE_LEFT : COUNT_RIGHT);
    growth.routes[slot] = {parent.feature, (u32)parent.bin | (kind & 0xff) << 8 | flags, new_slot, line};
}

struct Scanned {
    u64 before, total;
};

// block_scan as a call: it is asked for again and again, and to fetch its instructions takes longer than to execute them.
static __device__ __noinline__ Scanned scan(u64 value)
{
    Scanned found;
    found.before = block_scan(value, found.total);
    return found;
}

// Number of nodes among begin .. end - 1 that can be split.
static __device__ u32 count_open(const Node *nodes, i32 begin, i32 end)
{
    u32 open = 0;
    for (i32 v = begin + threadIdx.x; v < end; v += blockDim.x)
        open += nodes[v].state == OPEN;
    return (u32)scan(open).total;
}

// Split the open nodes of begin .. end - 1 that are above ``least`` (0: all), in their order. What else is a leaf keeps
// its rows; last: it also stays a leaf.
static __device__ void split_open(State *state, Node *nodes, i32 begin, Threshold least, i32 next, bool last,
                                  const Growth &growth)
{
    const i32 end = state->n_nodes, leaves = state->n_leaves;
    u32 taken = 0, rows = 0, ties = 0, lines = 0;
    for (i32 first = begin; first < end; first += blockDim.x) {
        const i32 v = first + threadIdx.x;
        const bool open = v < end && nodes[v].state == OPEN;
        const u64 key = open ? gain_key(nodes, v, next) : 0;
        Scanned equal = {0, 0};
        if (least.key)
            equal = scan(open && key == least.key);
        const u32 tie = ties + (u32)equal.before;
        const bool chosen = open && (least.key == 0 || key > least.key || (key == least.key && tie < least.ties));
        // of at most 1,024 threads: their number and the lines of their children, 16 bits each; and the rows
        const u32 own_lines = chosen ? 1 + builds_both(nodes[v], growth) : 0;
        const Scanned of = scan(chosen ? 1 | own_lines << 16 | (u64)(u32)rows_here(nodes, v, growth) << 32 : 0);
        const u32 place = taken + (u32)(of.before & 0xffff), line = lines + (u32)(of.before >> 16 & 0xffff);
        const u32 row = rows + (u32)(of.before >> 32);
        if (chosen)
            split_node(nodes, v, end + 2 * place, leaves + place, row, line, growth);
        else if (v < end && nodes[v].state != SPLIT) {
            growth.routes[nodes[v].slot].feature = -1;
            if (last)
                wipe(nodes[v]);
        }
        ties += (u32)equal.total;
        taken += (u32)(of.total & 0xffff);
        rows += (u32)(of.total >> 32);
        lines += (u32)(of.total >> 16 & 0xffff);
    }
    __syncthreads(); // with no node to look at, others may still be reading what is written now
    if (threadIdx.x == 0) {
        state->level_begin = end;
        state->n_nodes = end + 2 * taken;
        state->n_leaves = leaves + taken;
        state->n_lines = lines;
        state->finished = taken == 0;
    }
}

// Depth-wise: all open nodes of the last level, or those that gain most where leaves run out; a symmetric level as a
// whole or not at all.
static __device__ void choose_level(State *state, Node *nodes, const Growth &growth)
{
    const i32 begin = state->level_begin;
    const u32 room = growth.rule->max_leaves - state->n_leaves;
    Threshold least = {0, 0};
    if ((u32)(state->n_nodes - begin) > room && count_open(nodes, begin, state->n_nodes) > room)
        least = room == 0 || growth.rule->symmetric ? Threshold{~0ull, 0}
                                                    : largest(nodes, begin, state->n_nodes, room, -1);
    split_open(state, nodes, begin, least, -1, true, growth);
}

// Best-first growth, one split after the other, as far as nodes have been split on suspicion: node numbers of the
// finished tree go to ``place``, and ``made`` tells which splits are part of it. Returns the node whose split is the
// next to be made; -1 if the tree is finished.
static __device__ i32 replay(State *state, Node *nodes, const Rule *rule)
{
    __shared__ f64 gain_of_warp[32];
    __shared__ i32 key_of_warp[32], node_of_warp[32];
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, end = state->n_nodes;
    for (i32 made = state->n_made;; ++made) {
        if (made + 1 >= rule->max_leaves)
            return -1;
        f64 gain = 0.0;
        i32 key = NO_KEY, own = -1;
        for (i32 v = threadIdx.x; v < end; v += blockDim.x) {
            const Node &node = nodes[v];
            if (node.place < 0 || node.made || (node.state != OPEN && node.state != SPLIT))
                continue;
            if (node.gain > gain || (node.gain == gain && node.place < key)) {
                gain = node.gain;
                key = node.place;
                own = v;
            }
        }
        own = __shfl_sync(FULL_WARP, own, best_lane(gain, key));
        if (lane == 0) {
            gain_of_warp[warp] = gain;
            key_of_warp[warp] = key;
            node_of_warp[warp] = own;
        }
        __syncthreads();
        for (i32 w = 0; w < (i32)blockDim.x / 32; ++w)
            if (gain_of_warp[w] > gain || (gain_of_warp[w] == gain && key_of_warp[w] < key)) {
                gain = gain_of_warp[w];
                key = key_of_warp[w];
            }
        for (i32 w = 0; w < (i32)blockDim.x / 32; ++w)
            own = key_of_warp[w] == key ? node_of_warp[w] : own;
        __syncthreads();
        if (key == NO_KEY)
            return -1;
        if (nodes[own].state == OPEN)
            return own;
        if (threadIdx.x == 0) {
            nodes[own].made = 1;
            nodes[nodes[own].left].place = 2 * made + 1;
            nodes[nodes[own].right].place = 2 * made + 2;
            state->n_made = made + 1;
        }
        __syncthreads();
    }
}

// Leaf-wise: the node that best-first growth would split next, and others on suspicion, those that gain most. As many
// as are split in vain may at most be ``most_leaves``, so that the slots suffice.
static __device__ void choose_best(State *state, Node *nodes, const Growth &growth)
{
    const i32 next = replay(state, nodes, growth.rule);
    __syncthreads();
    Threshold least = {~0ull, 0};
    if (next >= 0) {
        const i32 most_leaves = growth.rule->max_leaves, wanted = most_leaves - 1 - state->n_made;
        const i32 spare = most_leaves - (state->n_leaves - 1 - state->n_made);
        const u32 room = min(min(growth.rule->most_splits, wanted), max(1, spare));
        least = {0, 0};
        if (count_open(nodes, 0, state->n_nodes) > room)
            least = largest(nodes, 0, state->n_nodes, room, next);
    }
    split_open(state, nodes, 0, least, next, false, growth);
    if (threadIdx.x == 0)
        state->finished = next < 0;
}
