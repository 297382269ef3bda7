// Where the rows of a slot go when its node is split. Compiled for SETS (1: some feature is categorical). In front:
// tree.cuh.

#define PER_THREAD 4 // rows that a thread routes at once

enum WayFlags { BOTH_COUNT = 1, IN_SETS = 2, MISSING_STAYS = 4, LEFT_MOVES = 8, WAY_BITS = 4 };

// A route as rows need it. Those of one side move to ``slot`` and are counted for ``line``; the others stay in their
// slot, and are counted for the line before where both are. The side that moves has codes that follow one another, the
// missing one before all others where that belongs to it: code + turn <= limit, modulo 256.
struct Way {
    i32 feature; // -1: all stay
    u32 flags, turn, limit;
    i32 slot, line;
};

static __device__ __forceinline__ Way way_of(const Route &route, i32 slot)
{
    const u32 bin = route.rule & 255, missing = route.rule >> 8 & 255;
    const bool left = route.rule & MOVE_LEFT, both = route.rule & COUNT_LEFT && route.rule & COUNT_RIGHT;
    const Way none = {-1, 0, 255, 0, slot, 0}; // the code is then taken for 0
    if (route.feature < 0)
        return none;
    Way way = {route.feature, both ? BOTH_COUNT : 0u, 0, 0, route.slot, route.line + (i32)both};
    if (SETS && route.rule & CATEGORICAL) {
        way.turn = missing;
        way.flags |= IN_SETS | (left ? LEFT_MOVES : 0);
        way.flags |= left == ((route.rule & MISSING_LEFT) != 0) ? 0 : MISSING_STAYS;
        return way;
    }
    way.turn = route.rule & MISSING_LEFT ? 256 - missing & 255 : 0;
    way.limit = bin + way.turn & 255;
    if (!left && way.limit == 255) { // none is on the right
        way.feature = -1;
        way.turn = 255;
        way.limit = 0;
    } else if (!left) {
        way.turn = way.turn - way.limit - 1 & 255;
        way.limit = 254 - way.limit;
    }
    return way;
}

// A way in one word, so that the slots of a warp meet in few banks: turn, limit, slot and line, a byte each; the flags;
// and the feature, 28 bits with its sign: 2^27 features would take more memory than a device has. Of at most 256 slots
// 128 are split, with two lines each.
static __device__ __forceinline__ u64 packed(const Way &way)
{
    const u32 bytes = way.turn | way.limit << 8 | (u32)way.slot << 16 | (u32)way.line << 24;
    return (u64)((u32)way.feature << WAY_BITS | way.flags) << 32 | bytes;
}

static __device__ __forceinline__ Way unpacked(u64 word)
{
    const u32 bytes = (u32)word;
    const i32 high = (i32)(word >> 32);
    return {high >> WAY_BITS, (u32)high, bytes, bytes >> 8 & 255, (i32)(bytes >> 16 & 255), (i32)(bytes >> 24)};
}

// Left set of the node that was just split, a child of which has the slot.
static __device__ __forceinline__ const u32 *left_set_of(const Node *nodes, const i32 *node_of_slot, i32 slot)
{
    return nodes[nodes[node_of_slot[slot]].parent].left_set;
}

static __device__ __forceinline__ bool moves(const Way &way, u32 code, const Node *nodes, const i32 *node_of_slot,
                                             i32 slot)
{
    if (SETS && way.flags & IN_SETS) {
        if (code == (way.turn & 255))
            return !(way.flags & MISSING_STAYS);
        const bool left = left_set_of(nodes, node_of_slot, slot)[code >> 5] >> (code & 31) & 1;
        return left == ((way.flags & LEFT_MOVES) != 0);
    }
    return (code + way.turn & 255) <= way.limit;
}

// The line that counts a row, or -1.
static __device__ __forceinline__ i32 line_of(const Way &way, bool moved)
{
    return moved ? way.line : way.flags & BOTH_COUNT ? way.line - 1 : -1;
}

// counter[line] += 1 for every line of a thread that is not -1; the lanes of one line add at once.
static __device__ __forceinline__ void count_rows(u32 *counter, const i32 *line)
{
#pragma unroll
    for (i32 u = 0; u < PER_THREAD; ++u) {
        const u32 mates = __match_any_sync(FULL_WARP, line[u]);
        if (line[u] >= 0 && (threadIdx.x & 31) == __ffs(mates) - 1)
            atomicAdd(counter + line[u], (u32)__popc(mates));
    }
}
