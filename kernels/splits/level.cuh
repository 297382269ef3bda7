// Split search for symmetric trees: the histogram that the nodes of a level have together, and what candidates gain at one
// node of it. Candidates are numbered in the order in which they compete: 2 * bin + side for cuts, the bin for one against
// the rest, 32 * end + i for sets of sorted categories.

constexpr int CANDIDATES = 2 * CELLS;
constexpr int EACH = (CANDIDATES + THREADS - 1) / THREADS; // of which a thread of the block adds up

// The level's histogram of one feature, and what is known of its candidates.
struct Level {
    i64 g[CELLS], h[CELLS];
    i32 n[CELLS];
    i32 many;          // 1 if sets of sorted categories compete
    u32 judged[2];     // which of them, from either end
#if EXTRA_TREES
    u32 word;          // draws the cut
    i32 only;          // the cut, the bin, or the place in the order that was drawn
#endif
    f64 parent;        // sum of the nodes' scores
    Sums total;
};

static __device__ __forceinline__ Sums level_cell(const Level &level, i32 bin)
{
    return {level.g[bin], level.h[bin], COUNTS ? level.n[bin] : 0};
}

// The histogram of one feature at node v.
static __device__ __forceinline__ void load_node(Cells &cells, const Store &at, const Node &node, i32 place, i32 size)
{
    const i64 own = (i64)node.slot * at.columns * CELLS + (i64)place * CELLS;
    load(cells, at.sums + own, at.counts + own * COUNTS, size);
}

// The sums of all nodes, and whether categories are many. By the block.
static __device__ void sum_level(Level &level, const Store &at, const Node *nodes, i32 begin, i32 end, i32 place,
                                 i32 kind)
{
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, missing = kind & 0xffff;
    Cells sum, cells;
    load(sum, nullptr, nullptr, 0);
    Sums total = {0, 0, 0};
    for (i32 v = begin + warp; v < end; v += WARPS) {
        if (nodes[v].state != NEW)
            continue;
        load_node(cells, at, nodes[v], place, missing + 1);
#pragma unroll
        for (i32 k = 0; k < PER_LANE; ++k) {
            sum.g[k] += cells.g[k];
            sum.h[k] += cells.h[k];
            if (COUNTS)
                sum.n[COUNTS ? k : 0] += cells.n[COUNTS ? k : 0];
        }
        total = total + Sums{nodes[v].sum_g, nodes[v].sum_h, nodes[v].count};
    }
    for (i32 w = 0; w < WARPS; ++w) { // 64-bit atomics in shared memory would spin
        if (w == warp) {
#pragma unroll
            for (i32 k = 0; k < PER_LANE; ++k) {
                const i32 bin = lane * PER_LANE + k;
                level.g[bin] = sum.g[k] + (w ? level.g[bin] : 0);
                level.h[bin] = sum.h[k] + (w ? level.h[bin] : 0);
                level.n[bin] = (COUNTS ? sum.n[COUNTS ? k : 0] : 0) + (w ? level.n[bin] : 0);
            }
            if (lane == 0)
                level.total = w ? level.total + total : total;
        }
        __syncthreads();
    }
    i32 used = 0;
    for (i32 bin = threadIdx.x; bin <= missing; bin += THREADS)
        used += seen(level_cell(level, bin));
    used = block_sum(used);
    if (threadIdx.x == 0)
        level.many = kind >> 16 && used > ONE_AGAINST_REST;
    __syncthreads();
}

static __device__ __forceinline__ Terms terms_of_level(const Level &level, const State *state, const Rule *rule,
                                                       i32 missing)
{
    const Node none = {};
    Terms terms = terms_of(none, state, rule, missing);
    terms.total = level.total;
    if (level.many)
        terms.ridge += rule->categories.reg_lambda;
    return terms;
}

// What tells the values of nodes for path smoothing: bounds of the levels above.
struct Values {
    const Bounds *bounds;
    const i32 *directions;
    const State *state;
    const Rule *rule;
};

// The terms of one node of the level.
static __device__ __forceinline__ Terms terms_at(Terms terms, const Node *nodes, i32 v, const Values &values)
{
    terms.total = {nodes[v].sum_g, nodes[v].sum_h, nodes[v].count};
#if SMOOTHED
    terms.within = bounds_of(nodes, v, values.bounds, values.directions, values.state, values.rule);
#endif
    return terms;
}

// The sum of the nodes' scores, in their order. By one warp.
static __device__ f64 score_level(const Node *nodes, i32 begin, i32 end, const Terms &terms, const Values &values)
{
    f64 sum = 0.0;
    for (i32 first = begin; first < end; first += 32) {
        const i32 v = first + (threadIdx.x & 31);
        f64 own = 0.0;
        if (v < end && nodes[v].state == NEW) {
            const Terms here = terms_at(terms, nodes, v, values);
            own = score(here.total, here);
        }
        for (i32 i = 0; i < 32 && first + i < end; ++i)
            sum += __shfl_sync(FULL_WARP, own, i);
    }
    return sum;
}

// Gain of a split at one node; 0 if a side is not allowed.
static __device__ __forceinline__ f64 gain_here(Sums left, const Terms &terms, f64 parent)
{
    return allowed(left, terms.total - left, terms) ? gain_of(left, terms, parent) : 0.0;
}

// Gain of every cut at one node. By one warp.
static __device__ void gains_of_cuts(const Cells &cells, const Terms &terms, f64 *gains)
{
    const Sums missing = missing_sums(cells, terms.missing);
    const f64 parent = score(terms.total, terms);
    Sums own = {0, 0, 0};
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k)
        own = own + cell(cells, k);
    Sums left = before_lane(own);
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const i32 bin = (threadIdx.x & 31) * PER_LANE + k;
        left = left + cell(cells, k);
        gains[2 * bin] = bin < terms.missing ? gain_here(left, terms, parent) : 0.0;
        gains[2 * bin + 1] = bin < terms.missing ? gain_here(left + missing, terms, parent) : 0.0;
    }
}

#if SETS
// Gain of one bin against the rest at one node; for missing values, the bins that the level has go left.
static __device__ void gains_of_single(const Cells &cells, const Level &level, const Terms &terms, f64 *gains)
{
    const f64 parent = score(terms.total, terms);
    Sums own = {0, 0, 0};
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const i32 bin = (threadIdx.x & 31) * PER_LANE + k;
        if (bin < terms.missing && seen(level_cell(level, bin)))
            own = own + cell(cells, k);
    }
    const Sums known = from_lane(before_lane(own) + own, 31);
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const i32 bin = (threadIdx.x & 31) * PER_LANE + k;
        gains[bin] = gain_here(bin == terms.missing ? known : cell(cells, k), terms, parent);
    }
}

// Gains of the sets of the first bins from either end at one node, whose histogram is at ``sums``.
static __device__ void gains_of_sets(const longlong2 *sums, const i32 *counts, const Ends &ends, i32 size,
                                     const Terms &terms, f64 *gains)
{
    const i32 lane = threadIdx.x & 31;
    const f64 parent = score(terms.total, terms);
    for (i32 end = 0; end < 2; ++end) {
        Sums own = {0, 0, 0};
        if (lane < size) {
            const i32 bin = ends.bin[end][lane];
            own = {sums[bin].x, sums[bin].y, COUNTS ? counts[bin] : 0};
        }
        gains[end * MOST_CATEGORIES + lane] = gain_here(before_lane(own) + own, terms, parent);
    }
}

// The level's bins sorted, and which of the sets are judged. By one warp. Returns how many bins there are at an end.
static __device__ i32 sort_level(Level &level, Ends &ends, const Terms &terms, const CategoryLimits &limits)
{
    Cells cells;
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const i32 bin = (threadIdx.x & 31) * PER_LANE + k;
        cells.g[k] = level.g[bin];
        cells.h[k] = level.h[bin];
        if (COUNTS)
            cells.n[COUNTS ? k : 0] = level.n[bin];
    }
    const i32 count = sort_ends(cells, terms, limits, ends), size = count < MOST_CATEGORIES ? count : MOST_CATEGORIES;
    for (i32 end = 0; end < 2; ++end) {
        const bool judged = is_judged(ends, end, size, sums_from_end(ends, end, size), terms, limits);
        const u32 all = __ballot_sync(FULL_WARP, judged);
        if ((threadIdx.x & 31) == 0)
            level.judged[end] = all;
    }
    return size;
}
#endif

// True if candidate ``key`` competes.
static __device__ __forceinline__ bool competes(const Level &level, i32 key, i32 kind)
{
    const i32 missing = kind & 0xffff;
    if (level.many)
        return key < 2 * MOST_CATEGORIES && level.judged[key / MOST_CATEGORIES] >> (key % MOST_CATEGORIES) & 1;
    if (kind >> 16)
        return key <= missing && seen(level_cell(level, key));
    const bool some_missing = seen(level_cell(level, missing));
    return key & 1 ? some_missing && key / 2 < missing - 1 : key / 2 < (some_missing ? missing : missing - 1);
}

// True if candidate ``key`` is what was drawn, where one of them is.
static __device__ __forceinline__ bool drawn(const Level &level, i32 key, i32 kind)
{
#if EXTRA_TREES
    return level.only == (level.many ? key % MOST_CATEGORIES : kind >> 16 ? key : key / 2);
#else
    return true;
#endif
}

#if EXTRA_TREES
// Draws the candidate of a feature. bins: in the order at either end. By one warp.
static __device__ void draw_cut(Level &level, i32 kind, i32 bins)
{
    const i32 lane = threadIdx.x & 31, missing = kind & 0xffff;
    i32 first = CELLS, last = -1, used = 0, only = -1;
    for (i32 base = 0; base <= missing; base += 32) {
        const bool some = base + lane <= missing && seen(level_cell(level, base + lane));
        used += __popc(__ballot_sync(FULL_WARP, some));
        if (some && base + lane < missing) {
            first = min(first, base + lane);
            last = base + lane;
        }
    }
    widen_over_warp(first, last);
    if (level.many)
        only = place_of(level.word, bins);
    else if (!(kind >> 16))
        only = cut_between(level.word, first, last, seen(level_cell(level, missing)));
    else
        for (i32 bin = 0, place = place_of(level.word, used); bin <= missing; ++bin)
            if (seen(level_cell(level, bin)) && place-- == 0)
                only = bin;
    if (lane == 0)
        level.only = only;
}
#endif

// The bins that go left, but for what is missing. By thread 0. Returns the level's sums of h on the left side.
static __device__ i64 describe(const Level &level, const Ends *ends, i32 key, i32 kind, u32 *left_set)
{
    const i32 missing = kind & 0xffff;
    i64 left = 0;
    for (i32 w = 0; w < 8; ++w)
        left_set[w] = 0;
    for (i32 bin = 0; bin < missing; ++bin) {
        bool goes = bin <= key / 2;
        if (kind >> 16 && !level.many)
            goes = key == missing ? seen(level_cell(level, bin)) : bin == key;
        else if (level.many) {
            goes = false;
            for (i32 i = 0; i <= key % MOST_CATEGORIES; ++i)
                goes |= ends->bin[key / MOST_CATEGORIES][i] == bin;
        }
        if (!goes)
            continue;
        left += level.h[bin];
        if (kind >> 16)
            left_set[bin >> 5] |= 1u << (bin & 31);
    }
    return left;
}
