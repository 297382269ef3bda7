// Histograms in memory, and the cells of one feature of one node in the registers of a warp.

struct Candidate {
    Found found;
    u32 left_set[8];
};

// The cells of lane l: pairs of 64-bit sums, and rows.
static __device__ __forceinline__ void load(Cells &cells, const longlong2 *sums, const i32 *counts, i32 size)
{
    const i32 first = (threadIdx.x & 31) * PER_LANE;
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const longlong2 pair = first + k < size ? sums[first + k] : make_longlong2(0, 0);
        cells.g[k] = pair.x;
        cells.h[k] = pair.y;
        if (COUNTS)
            cells.n[COUNTS ? k : 0] = first + k < size ? counts[first + k] : 0;
    }
}

static __device__ __forceinline__ void store(const Cells &cells, longlong2 *sums, i32 *counts, i32 size)
{
    const i32 first = (threadIdx.x & 31) * PER_LANE;
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        if (first + k >= size)
            continue;
        sums[first + k] = make_longlong2(cells.g[k], cells.h[k]);
        if (COUNTS)
            counts[first + k] = cells.n[COUNTS ? k : 0];
    }
}

// cells += the sums of one stretch of rows; beyond the feature's own cells anything may be added.
static __device__ __forceinline__ void add_partial(Cells &cells, const uint2 *sums, const u32 *counts)
{
    const i32 first = (threadIdx.x & 31) * PER_LANE;
    const uint4 *both = (const uint4 *)(sums + first);
#pragma unroll
    for (i32 k = 0; k < PER_LANE; k += 2) {
        const uint4 pairs = both[k / 2];
        cells.g[k] += (i32)pairs.x;
        cells.h[k] += pairs.y;
        cells.g[k + 1] += (i32)pairs.z;
        cells.h[k + 1] += pairs.w;
        if (COUNTS) {
            cells.n[COUNTS ? k : 0] += (i32)counts[first + k];
            cells.n[COUNTS ? k + 1 : 0] += (i32)counts[first + k + 1];
        }
    }
}

// Histograms of stretches of rows, and of nodes by slot. Each has ``columns`` features, CELLS of each.
struct Store {
    const uint2 *partials;
    const u32 *partial_counts;
    longlong2 *sums;
    i32 *counts;
    i32 columns, base; // base: stretch whose sums come first
};

// cells += the sums of all shards (shards.cu). sums: of the line's cells, with its counts behind them.
static __device__ __forceinline__ void add_line(Cells &cells, const i64 *sums, i32 in_line, i32 place)
{
    const i32 first = (threadIdx.x & 31) * PER_LANE;
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const i32 cell = place * CELLS + first + k;
        cells.g[k] += sums[2 * cell];
        cells.h[k] += sums[2 * cell + 1];
        if (COUNTS)
            cells.n[COUNTS ? k : 0] += (i32)sums[2 * in_line + cell];
    }
}

static __device__ __forceinline__ Terms terms_of(const Node &node, const State *state, const Rule *rule, i32 missing)
{
    Terms terms;
    terms.total = {node.sum_g, node.sum_h, node.count};
    terms.unit_g = state->unit_g;
    terms.unit_h = state->unit_h;
    terms.rows_per_h = state->rows_per_h;
    terms.ridge = rule->reg_lambda;
    terms.least_h = rule->min_child_weight;
    terms.least_gain = rule->min_split_gain;
    terms.least_n = rule->min_samples_leaf;
    terms.missing = missing;
#if BOUNDED
    terms.within = {-rule->max_delta_step, rule->max_delta_step};
    terms.direction = 0;
#endif
#if SMOOTHED
    terms.smoothing = smoothing_of(state, rule);
#endif
#if SOFT_THRESHOLD
    terms.alpha = rule->reg_alpha;
#endif
    return terms;
}
