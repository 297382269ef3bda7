// Split search: the split of one node by one feature, found by a group of GROUP threads: one warp, or several.
// Definition: reference.splits.best_split.
//
// Lane l holds cells l * PER_LANE ... of the feature's histogram: bins, the last of them for what is missing. Sums are
// integers; a gain is formed from them in float64 by one fixed sequence of operations.

#ifndef GROUP
#define GROUP 32
#endif
#define THREADS 256
constexpr i32 WARPS = THREADS / 32;

// Compiled with ONE_VALUE 1 where the sides of a split share one value, taken with opposite signs.

#ifndef ONE_VALUE
#define ONE_VALUE 0
#endif

// Compiled with SOFT_THRESHOLD 1, and BOUNDED 1, where there is reg_alpha; SMOOTHED: see bounds.cuh.

#ifndef SOFT_THRESHOLD
#define SOFT_THRESHOLD 0
#endif

#define PER_LANE (CELLS / GROUP)
#define NOISE 0x1p-40      // a gain below this share of the parent's score is rounding, not gain
#define ONE_AGAINST_REST 4 // up to this many categories in a node, single ones are split off
#define MOST_CATEGORIES 32 // on the smaller side of a categorical split

struct Sums {
    i64 g, h;
    i32 n; // rows; 0 where they are not counted
};

struct Cells {
    i64 g[PER_LANE], h[PER_LANE];
    i32 n[COUNTS ? PER_LANE : 1];
};

// The same in shared memory: cell ``lane * PER_LANE + k`` at [k][lane].
struct Laid {
    const longlong2 (*sums)[GROUP];
    const i32 (*rows)[GROUP];
};

// Constants of the search of one node.
struct Terms {
    Sums total;
    f64 unit_g, unit_h, ridge, least_h, least_gain, rows_per_h;
    i32 least_n;
    i32 missing; // bin of missing values: the number of value bins
#if BOUNDED
    Bounds within; // the node's
    i32 direction; // the feature's
#endif
#if SOFT_THRESHOLD
    f64 alpha;
#endif
#if SMOOTHED
    f64 smoothing; // see smoothing_of
#endif
#if EXTRA_TREES
    u32 word; // draws the feature's cut
#endif
};

struct Found {
    f64 gain; // 0 if there is no split
    i64 g, h; // of the left side
    i32 bin, missing_left;
};

static __device__ __forceinline__ Sums operator+(Sums a, Sums b) { return {a.g + b.g, a.h + b.h, a.n + b.n}; }
static __device__ __forceinline__ Sums operator-(Sums a, Sums b) { return {a.g - b.g, a.h - b.h, a.n - b.n}; }

static __device__ __forceinline__ Sums cell(const Cells &cells, i32 k)
{
    return {cells.g[k], cells.h[k], COUNTS ? cells.n[COUNTS ? k : 0] : 0};
}

static __device__ __forceinline__ Sums cell(const Laid &cells, i32 k, i32 lane)
{
    const longlong2 sums = cells.sums[k][lane];
    return {sums.x, sums.y, COUNTS ? cells.rows[COUNTS ? k : 0][lane] : 0};
}

static __device__ __forceinline__ Sums from_lane(Sums a, i32 lane)
{
    return {__shfl_sync(FULL_WARP, a.g, lane), __shfl_sync(FULL_WARP, a.h, lane),
            COUNTS ? __shfl_sync(FULL_WARP, a.n, lane) : 0};
}

// True if the node has rows of this bin. Rows that add nothing to any sum are seen only where rows are counted.
static __device__ __forceinline__ bool seen(Sums a) { return a.g != 0 || a.h != 0 || (COUNTS && a.n != 0); }

// A split must gain more than this. size: of what it is made of, with its rounding.
static __device__ __forceinline__ f64 least_above(f64 size, const Terms &terms)
{
    const f64 noise = NOISE * size;
    return noise > terms.least_gain ? noise : terms.least_gain;
}

#if BOUNDED

static __device__ __forceinline__ f64 g_of(Sums a, const Terms &terms)
{
#if SOFT_THRESHOLD
    return soft_threshold((f64)a.g * terms.unit_g, terms.alpha);
#else
    return (f64)a.g * terms.unit_g;
#endif
}

// The value of a side of the node, and twice its loss reduction. That of the node is that of a side with all its rows.
#if SMOOTHED

static __device__ __forceinline__ f64 value_of(Sums a, const Terms &terms)
{
    return side_value(g_of(a, terms), (f64)a.h * terms.unit_h, terms.ridge, terms.within, terms.smoothing);
}

static __device__ __forceinline__ f64 score(Sums a, const Terms &terms)
{
    if (terms.smoothing > 0.0)
        return score_of(value_of(a, terms), g_of(a, terms), (f64)a.h * terms.unit_h + terms.ridge);
    return score_within(g_of(a, terms), (f64)a.h * terms.unit_h, terms.ridge, terms.within);
}

#else

static __device__ __forceinline__ f64 value_of(Sums a, const Terms &terms)
{
    return value_within(g_of(a, terms), (f64)a.h * terms.unit_h, terms.ridge, terms.within);
}

static __device__ __forceinline__ f64 score(Sums a, const Terms &terms)
{
    return score_within(g_of(a, terms), (f64)a.h * terms.unit_h, terms.ridge, terms.within);
}

#endif

// As below; nothing is gained where values go against the feature's direction.
static __device__ __forceinline__ f64 gain_of(Sums left, const Terms &terms, f64 parent)
{
    const Sums right = terms.total - left;
    if (terms.direction != 0 && terms.direction * (value_of(left, terms) - value_of(right, terms)) > 0.0)
        return -NO_BOUND;
    return (score(left, terms) + score(right, terms)) - parent;
}

static __device__ __forceinline__ f64 least_gain(f64 parent, const Terms &terms)
{
    const f64 h = (f64)terms.total.h * terms.unit_h, g = (f64)terms.total.g * terms.unit_g;
    const f64 alone = g * g / (h + terms.ridge), size = parent < 0.0 ? -parent : parent;
    return least_above(alone > size ? alone : size, terms);
}

#else

// Twice the loss reduction of a leaf with these sums.
static __device__ __forceinline__ f64 score(Sums a, const Terms &terms)
{
    const f64 g = (f64)a.g * terms.unit_g, h = (f64)a.h * terms.unit_h;
    return g * g / (h + terms.ridge);
}

// Gain of sending ``left`` left; parent: the score of all.
static __device__ __forceinline__ f64 gain_of(Sums left, const Terms &terms, f64 parent)
{
    if (ONE_VALUE)
        return score({left.g - (terms.total.g - left.g), terms.total.h, 0}, terms) - parent;
    return (score(left, terms) + score(terms.total - left, terms)) - parent;
}

static __device__ __forceinline__ f64 least_gain(f64 parent, const Terms &terms) { return least_above(parent, terms); }

#endif

static __device__ __forceinline__ bool allowed(Sums side, const Terms &terms)
{
    return side.h > 0 && (f64)side.h * terms.unit_h >= terms.least_h && (!COUNTS || side.n >= terms.least_n);
}

static __device__ __forceinline__ bool allowed(Sums left, Sums right, const Terms &terms)
{
    return allowed(left, terms) && allowed(right, terms);
}

// The sum of earlier lanes.
static __device__ __forceinline__ Sums before_lane(Sums own)
{
    Sums up_to = own;
#pragma unroll
    for (i32 d = 1; d < 32; d <<= 1) {
        const i64 g = __shfl_up_sync(FULL_WARP, up_to.g, d), h = __shfl_up_sync(FULL_WARP, up_to.h, d);
        const i32 n = COUNTS ? __shfl_up_sync(FULL_WARP, up_to.n, d) : 0;
        if ((i32)(threadIdx.x & 31) >= d)
            up_to = up_to + Sums{g, h, n};
    }
    return up_to - own;
}

// The sums of the cell that holds what is missing; they become known to all lanes.
static __device__ __forceinline__ Sums missing_sums(const Cells &cells, i32 missing)
{
    Sums own = {0, 0, 0};
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k)
        if ((i32)(threadIdx.x & 31) * PER_LANE + k == missing)
            own = cell(cells, k);
    return from_lane(own, missing / PER_LANE);
}

// Two bits for each of this lane's bins, by the bits of all bins, if there are any: whether the cut behind it competes,
// with missing values on the right, and on the left.
static __device__ __forceinline__ u32 own_bits(const u32 *bits)
{
    const i32 first = threadIdx.x % GROUP * PER_LANE;
    if (!bits)
        return ~0u;
    u32 own = bits[first >> 5] >> (first & 31) & ((1u << PER_LANE) - 1);
    own = (own | own << 4) & 0x0f0fu;
    own = (own | own << 2) & 0x3333u;
    own = (own | own << 1) & 0x5555u;
    return own | own << 1;
}

#if EXTRA_TREES
// The bin below the random cut, -1 if there is none.
template <class Held>
static __device__ __forceinline__ i32 random_cut(const Held &cells, const Terms &terms, bool some_missing)
{
    const i32 lane = threadIdx.x & 31;
    i32 first = CELLS, last = -1;
    for (i32 k = 0; k < PER_LANE; ++k) {
        const i32 bin = lane * PER_LANE + k;
        if (bin < terms.missing && seen(cell(cells, k, lane))) {
            first = min(first, bin);
            last = max(last, bin);
        }
    }
    widen_over_warp(first, last);
    return cut_between(terms.word, first, last, some_missing);
}
#endif

// What the warps of a block tell each other where they search together: sums of their cells, and what each has found.
struct Told {
    Sums sum[GROUP > 32 ? WARPS : 1], left[GROUP > 32 ? WARPS : 1];
    f64 gain[GROUP > 32 ? WARPS : 1];
    i32 key[GROUP > 32 ? WARPS : 1];
};

// The sum of the cells of earlier lanes. By all groups of the block, if they are of several warps.
static __device__ __forceinline__ Sums before_cells(Sums own, Told &told)
{
    Sums before = before_lane(own);
#if GROUP > 32
    const i32 warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 31)
        told.sum[warp] = before + own;
    __syncthreads();
    for (i32 w = warp / (GROUP / 32) * (GROUP / 32); w < warp; ++w)
        before = before + told.sum[w];
#endif
    return before;
}

// The first of the largest gains of a group; in its first warp. By all groups of the block, if they are of several warps.
static __device__ __forceinline__ void best_of_group(f64 &gain, i32 &key, Sums &left, Told &told)
{
    left = from_lane(left, best_lane(gain, key));
#if GROUP > 32
    const i32 warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        told.gain[warp] = gain;
        told.key[warp] = key;
        told.left[warp] = left;
    }
    __syncthreads();
    if (warp % (GROUP / 32) != 0)
        return;
#pragma unroll
    for (i32 w = 1; w < GROUP / 32; ++w) {
        const f64 other = told.gain[warp + w];
        const i32 other_key = told.key[warp + w];
        if (other > gain || (other == gain && other_key < key)) {
            gain = other;
            key = other_key;
            left = told.left[warp + w];
        }
    }
#endif
}

// Every cut that competes, missing values right and then left, if there are any. Key: 2 * bin, one more with missing
// values left. bits: see ``own_bits``. By a group, whose first warp has the result; by all groups of the block, if they
// are of several warps. Held: what ``cell`` reads cells of, Laid or another.
template <class Held>
static __device__ __forceinline__ Found search_cuts(const Held &cells, const Terms &terms, u32 bits, Told &told)
{
    const i32 lane = threadIdx.x % GROUP;
    Sums own = {0, 0, 0};
    for (i32 k = 0; k < PER_LANE; ++k)
        if (lane * PER_LANE + k < terms.missing)
            own = own + cell(cells, k, lane);
    Sums left = before_cells(own, told), best_left = {0, 0, 0};
    const Sums missing = cell(cells, terms.missing % PER_LANE, terms.missing / PER_LANE);
    const bool some_missing = seen(missing);
    const i32 cuts = some_missing ? terms.missing : terms.missing - 1;
#if EXTRA_TREES
    const i32 only = random_cut(cells, terms, some_missing);
#endif
    const f64 parent = score(terms.total, terms);
    f64 gain = least_gain(parent, terms);
    i32 key = NO_KEY;
#pragma unroll 1 // divisions are long, and a launch fetches every instruction anew
    for (i32 k = 0; k < PER_LANE; ++k, bits >>= 2) {
        const i32 bin = lane * PER_LANE + k;
        left = left + cell(cells, k, lane);
#if EXTRA_TREES
        if (bin != only)
            continue;
#endif
#pragma unroll 1
        for (i32 side = 0; side < (some_missing ? 2 : 1); ++side) {
            if (bin >= (side ? terms.missing - 1 : cuts))
                continue;
            const Sums a = side ? left + missing : left;
            if (!(bits >> side & 1) || !allowed(a, terms.total - a, terms))
                continue;
            const f64 here = gain_of(a, terms, parent);
            if (here > gain) {
                gain = here;
                key = 2 * bin + side;
                best_left = a;
            }
        }
    }
    const i64 total_h = terms.total.h; // after a barrier, which may follow, the terms may be those of others
    best_of_group(gain, key, best_left, told);
    // None seen here: a missing value that comes later follows the heavier child.
    const i32 missing_left = some_missing ? key & 1 : best_left.h > total_h - best_left.h;
    return {key == NO_KEY ? 0.0 : gain, best_left.g, best_left.h, key >> 1, missing_left};
}
