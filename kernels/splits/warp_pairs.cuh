// Pairs of groups of GROUP threads that complete the histograms of one feature: the first that of the child that was
// built, the second that of its sibling, which is its parent's less that.

constexpr int GROUPS = THREADS / GROUP;

// Sums that the first group hands to the second, and afterwards each group's own.
struct Handed {
    longlong2 sums[PER_LANE][GROUP];
    i32 rows[COUNTS ? PER_LANE : 1][GROUP];
};

// Shared memory of a group, at one time for this and at another for that.
union Room {
    Handed handed;
#if SETS
    Ends ends;
#endif
};

static __device__ __forceinline__ void lay(Handed &handed, const Cells &cells, i32 size)
{
    const i32 lane = threadIdx.x % GROUP;
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const bool there = lane * PER_LANE + k < size;
        handed.sums[k][lane] = there ? make_longlong2(cells.g[k], cells.h[k]) : make_longlong2(0, 0);
        if (COUNTS)
            handed.rows[COUNTS ? k : 0][lane] = there ? cells.n[COUNTS ? k : 0] : 0;
    }
}

// Work of the pairs of groups of a launch: a line and a feature at a time.
struct WarpPairs {
    i32 apart;       // groups from one pair of a block to the next: 2, or more where there is little work
    i32 jobs;        // lines times features
    i32 first, step; // jobs of a block: first .. first + GROUPS / apart - 1, then as many one step further
};

static __device__ __forceinline__ WarpPairs pairs_for(i32 first_line, i32 stop, i32 features)
{
    const i32 grid = gridDim.x;
    WarpPairs pairs = {2, max(stop - first_line, 0) * features, 0, 0};
    while (pairs.apart < GROUPS && pairs.jobs * 2 * pairs.apart <= grid * GROUPS)
        pairs.apart *= 2;
    const i32 at_once = GROUPS / pairs.apart;
    pairs.first = blockIdx.x * at_once;
    pairs.step = grid * at_once;
    return pairs;
}

// The histogram of one feature at this group's child: the line's own in the first group of a pair, its sibling's in the
// second. number: of the line, among those whose sums are there, or -1 if none of its rows were listed; packed: its sums
// are. slot: of this group's child, if it is asked for; else -1. size: cells of the feature. All threads of the block.
static __device__ __forceinline__ void complete(Cells &cells, Room *rooms, const Store &at, i32 number, i32 part, i32 slot,
                                                i32 place, i32 size, bool packed, bool keep)
{
    const i32 lane = threadIdx.x % GROUP, group = threadIdx.x / GROUP;
    const i64 own = ((i64)slot * at.columns + place) * CELLS;
    load(cells, at.sums + own, at.counts + own * COUNTS, part == 1 && slot >= 0 ? size : 0);
    if (part == 0 && number >= 0) {
        take_line(cells, at.line_sums + ((i64)number * at.columns + place) * (2 + COUNTS) * CELLS, packed);
        lay(rooms[group].handed, cells, size);
    }
    __syncthreads();
    if (slot < 0)
        return;
    if (part == 1) {
        const Handed &handed = rooms[group - 1].handed;
#pragma unroll
        for (i32 k = 0; k < PER_LANE; ++k) {
            cells.g[k] -= handed.sums[k][lane].x;
            cells.h[k] -= handed.sums[k][lane].y;
            if (COUNTS)
                cells.n[COUNTS ? k : 0] -= handed.rows[COUNTS ? k : 0][lane];
        }
    }
    if (keep)
        store(cells, at.sums + own, at.counts + own * COUNTS, size);
}
