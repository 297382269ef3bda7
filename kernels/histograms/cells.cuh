// Histograms in memory, and the cells of one feature of one node in the registers of GROUP threads.

struct Candidate {
    Found found;
    u32 left_set[8];
};

// The cells of lane l: pairs of 64-bit sums, and rows.
static __device__ __forceinline__ void load(Cells &cells, const longlong2 *sums, const i32 *counts, i32 size)
{
    const i32 first = (i32)threadIdx.x % GROUP * PER_LANE;
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
    const i32 first = (i32)threadIdx.x % GROUP * PER_LANE;
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        if (first + k >= size)
            continue;
        sums[first + k] = make_longlong2(cells.g[k], cells.h[k]);
        if (COUNTS)
            counts[first + k] = cells.n[COUNTS ? k : 0];
    }
}

// Histograms in memory: of lines, as their rows were added up (histogram.cu), and of nodes by slot. Each has ``columns``
// features, CELLS of each.
struct Store {
    i64 *line_sums;
    longlong2 *sums;
    i32 *counts;
    i32 columns;
};

// The cells of a line's feature, whose place in memory becomes 0 for the next rows. sums: g of every bin, h of every bin,
// and rows of every bin; packed: both in place of g (see ``is_packed``).
static __device__ __forceinline__ void take_line(Cells &cells, i64 *sums, bool packed)
{
    constexpr i32 WORDS = PER_LANE / 2;
    longlong2 *g = (longlong2 *)sums + threadIdx.x % GROUP * WORDS, *h = g + CELLS / 2, *n = h + CELLS / 2;
    const longlong2 none = {0, 0};
    longlong2 word[2 + COUNTS][WORDS];
#pragma unroll
    for (i32 k = 0; k < WORDS; ++k) {
        word[0][k] = g[k];
        word[1][k] = packed ? none : h[k];
        if (COUNTS)
            word[1 + COUNTS][k] = n[k];
    }
#pragma unroll
    for (i32 k = 0; k < WORDS; ++k) {
        g[k] = none;
        if (packed) {
            word[1][k] = {(i64)(u32)word[0][k].x, (i64)(u32)word[0][k].y};
            word[0][k] = {(word[0][k].x - word[1][k].x) >> 32, (word[0][k].y - word[1][k].y) >> 32};
        } else
            h[k] = none;
        cells.g[2 * k] = word[0][k].x;
        cells.g[2 * k + 1] = word[0][k].y;
        cells.h[2 * k] = word[1][k].x;
        cells.h[2 * k + 1] = word[1][k].y;
        if (COUNTS) {
            cells.n[COUNTS ? 2 * k : 0] = (i32)word[1 + COUNTS][k].x;
            cells.n[COUNTS ? 2 * k + 1 : 0] = (i32)word[1 + COUNTS][k].y;
            n[k] = none;
        }
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
