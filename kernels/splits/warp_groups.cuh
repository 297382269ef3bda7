// Groups of warps that complete the histograms of one feature together: of the child that was built and of its sibling.
//
// Each warp of a group adds up some of the stretches of rows; then the first has the child's histogram, and the second
// the sibling's, which is its parent's less that.

#define THREADS 256
constexpr int WARPS = THREADS / 32;

// Sums that a warp hands to the others of its group, and afterwards its own.
struct Handed {
    longlong2 sums[PER_LANE][32];
    i32 rows[COUNTS ? PER_LANE : 1][32];
};

// Shared memory of a warp, at one time for this and at another for that.
union Room {
    Handed handed;
#if SETS
    Ends ends;
#endif
};

static __device__ __forceinline__ void lay(Handed &handed, const Cells &cells, i32 size)
{
    const i32 lane = threadIdx.x & 31;
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const bool there = lane * PER_LANE + k < size;
        handed.sums[k][lane] = there ? make_longlong2(cells.g[k], cells.h[k]) : make_longlong2(0, 0);
        if (COUNTS)
            handed.rows[COUNTS ? k : 0][lane] = there ? cells.n[COUNTS ? k : 0] : 0;
    }
}

// Work of the groups of a launch: a line and a feature per group at a time.
struct WarpGroups {
    i32 size;           // warps of a group: 2, 4 or 8
    i32 jobs;           // lines times features
    i32 first, step;    // jobs of a block: first .. first + WARPS / size - 1, then as many one step further
};

// As many warps to a group as there are, and not many more than it has stretches.
static __device__ __forceinline__ WarpGroups groups_for(const Line *lines, i32 first_line, i32 stop, i32 features)
{
    const i32 n = max(stop - first_line, 0), grid = gridDim.x;
    const i32 stretches = n ? lines[stop - 1].first_tile + lines[stop - 1].n_tiles - lines[first_line].first_tile : 0;
    WarpGroups groups = {2, n * features, 0, 0};
    while (groups.size < WARPS && groups.jobs * 2 * groups.size <= grid * WARPS && groups.size * n < stretches)
        groups.size *= 2;
    const i32 at_once = WARPS / groups.size;
    groups.first = blockIdx.x * at_once;
    groups.step = grid * at_once;
    return groups;
}

// Sums of this warp's stretches in a line's histogram of one feature.
static __device__ __forceinline__ void add_share(Cells &cells, const Store &at, const Line &line, i32 number, i32 place,
                                                 i32 warps)
{
    const i64 tile = (i64)at.columns * CELLS;
    const i32 part = (threadIdx.x >> 5) % warps;
    if (SHARDED) {
        if (part == 0)
            add_line(cells, (const i64 *)at.partials + SHARED_HEAD + number * tile * (2 + COUNTS), (i32)tile, place);
        return;
    }
    const i64 begin = (line.first_tile - at.base) * tile + (i64)place * CELLS;
#pragma unroll 2
    for (i32 t = part; t < line.n_tiles; t += warps)
        add_partial(cells, at.partials + begin + t * tile, at.partial_counts + (begin + t * tile) * COUNTS);
}

// The histogram of one feature at this warp's child: the line's own in the first warp of a group, its sibling's in the
// second. number: of the line, among those whose sums are there. needed: whether one of the two is asked for; slot: of
// this warp's child, if it is; else -1. size: cells of the feature. All threads of the block.
static __device__ __forceinline__ void complete(Cells &cells, Room *rooms, const Store &at, const Line &line, i32 number,
                                                i32 warps, bool needed, i32 slot, i32 place, i32 size, bool keep)
{
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, part = warp % warps;
    const i64 own = (i64)slot * at.columns * CELLS + (i64)place * CELLS;
    load(cells, nullptr, nullptr, 0);
    if (needed)
        add_share(cells, at, line, number, place, warps);
    lay(rooms[warp].handed, cells, size);
    load(cells, at.sums + own, at.counts + own * COUNTS, slot >= 0 && part ? size : 0);
    __syncthreads();
    if (slot < 0)
        return;
    const i32 sign = part ? -1 : 1;
    for (i32 other = warp - part; other < warp - part + warps; ++other) {
        const Handed &handed = rooms[other].handed;
#pragma unroll
        for (i32 k = 0; k < PER_LANE; ++k) {
            cells.g[k] += sign * handed.sums[k][lane].x;
            cells.h[k] += sign * handed.sums[k][lane].y;
            if (COUNTS)
                cells.n[COUNTS ? k : 0] += sign * handed.rows[COUNTS ? k : 0][lane];
        }
    }
    if (keep)
        store(cells, at.sums + own, at.counts + own * COUNTS, size);
}
