// Split search for a categorical feature: which set of its bins goes left. By one warp, in scratch of its own.

struct Ends {
    f64 ratio[CELLS];                  // NaN where a bin takes no part
    i64 g[2][MOST_CATEGORIES], h[2][MOST_CATEGORIES]; // the first bins by ratio, and the last, outermost first
    i32 n[2][MOST_CATEGORIES];
    i32 bin[2][MOST_CATEGORIES];
    u32 set[8];
};

// A handful of bins, missing values among them, one against the rest. Returns the bin, or NO_KEY; left gets the sums.
static __device__ i32 one_against_rest(const Cells &cells, const Terms &terms, f64 parent, f64 &gain, Sums &left)
{
    const i32 lane = threadIdx.x & 31;
    i32 key = NO_KEY;
    Sums best_left = {0, 0, 0};
#if EXTRA_TREES
    i32 own = 0, place = 0;
    for (i32 k = 0; k < PER_LANE; ++k)
        own += lane * PER_LANE + k <= terms.missing && seen(cell(cells, k));
    i32 all = own;
    for (i32 d = 1; d < 32; d <<= 1) {
        const i32 below = __shfl_up_sync(FULL_WARP, all, d);
        all += lane >= d ? below : 0;
    }
    place = all - own;
    const i32 only = place_of(terms.word, __shfl_sync(FULL_WARP, all, 31));
#endif
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const i32 bin = lane * PER_LANE + k;
        const Sums one = cell(cells, k);
        if (bin > terms.missing || !seen(one))
            continue;
#if EXTRA_TREES
        if (place++ != only)
            continue;
#endif
        const Sums a = bin == terms.missing ? terms.total - one : one;
        if (!allowed(a, terms.total - a, terms))
            continue;
        const f64 here = gain_of(a, terms, parent);
        if (here > gain) {
            gain = here;
            key = bin;
            best_left = a;
        }
    }
    left = from_lane(best_left, best_lane(gain, key));
    return key;
}

// The bins of enough rows, sorted by g / (h + smoothing): those next to either end. Returns how many bins take part.
static __device__ i32 sort_ends(const Cells &cells, const Terms &terms, const CategoryLimits &limits, Ends &ends)
{
    const i32 lane = threadIdx.x & 31;
    bool large[PER_LANE];
    f64 ratio[PER_LANE];
    i32 count = 0;
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const i32 bin = lane * PER_LANE + k;
        large[k] = bin < terms.missing && seen(cell(cells, k)) &&
                   (f64)cells.h[k] * terms.rows_per_h >= limits.min_category_rows;
        ratio[k] = (f64)cells.g[k] * terms.unit_g / ((f64)cells.h[k] * terms.unit_h + limits.smoothing);
        ends.ratio[bin] = large[k] ? ratio[k] : __longlong_as_double(-1);
        count += __popc(__ballot_sync(FULL_WARP, large[k]));
    }
    __syncwarp();
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k) {
        const i32 bin = lane * PER_LANE + k;
        if (!large[k])
            continue;
        i32 rank = 0;
        for (i32 other = 0; other < terms.missing; ++other)
            rank += ends.ratio[other] < ratio[k] || (ends.ratio[other] == ratio[k] && other < bin);
        for (i32 end = 0; end < 2; ++end) {
            const i32 at = end ? count - 1 - rank : rank;
            if (at >= MOST_CATEGORIES)
                continue;
            const Sums one = cell(cells, k);
            ends.g[end][at] = one.g;
            ends.h[end][at] = one.h;
            ends.n[end][at] = one.n;
            ends.bin[end][at] = bin;
        }
    }
    __syncwarp();
    return count;
}

// Lane i: the sums of the first i + 1 bins from one end.
static __device__ Sums sums_from_end(const Ends &ends, i32 end, i32 size)
{
    const i32 lane = threadIdx.x & 31;
    Sums own = {0, 0, 0};
    if (lane < size)
        own = {ends.g[end][lane], ends.h[end][lane], COUNTS ? ends.n[end][lane] : 0};
    return before_lane(own) + own;
}

// Lane i: whether the first i + 1 bins from one end, with sums ``left``, are judged: if that is allowed, and the step
// from the last ones that were is large enough.
static __device__ bool is_judged(const Ends &ends, i32 end, i32 size, Sums left, const Terms &terms,
                                 const CategoryLimits &limits)
{
    const i32 lane = threadIdx.x & 31;
    const Sums right = terms.total - left;
    const bool fits = lane < size && allowed(left, right, terms);
    const u32 may = __ballot_sync(FULL_WARP, fits && (f64)right.h * terms.rows_per_h >= limits.min_group_rows);
    f64 group = 0.0; // steps follow one another: all lanes go through them together
    bool judged = false;
    for (i32 i = 0; i < size; ++i) {
        group += (f64)ends.h[end][i] * terms.rows_per_h;
        if (!(may >> i & 1) || group < limits.min_group_rows)
            continue;
        group = 0.0;
        judged |= i == lane;
    }
    return judged;
}

// The categories are sorted by ratio (Fisher 1958: in that order the best set is a prefix), and prefixes from either
// end compete. What is missing, rare or unseen stays on the other side. ends.set gets the bins that go left.
static __device__ Found search_sets(const Cells &cells, Terms terms, const CategoryLimits &limits, Ends &ends)
{
    const i32 lane = threadIdx.x & 31;
    i32 used = 0;
#pragma unroll
    for (i32 k = 0; k < PER_LANE; ++k)
        used += __popc(__ballot_sync(FULL_WARP, lane * PER_LANE + k <= terms.missing && seen(cell(cells, k))));
    const bool single = used <= ONE_AGAINST_REST;
    if (!single)
        terms.ridge += limits.reg_lambda;
    const f64 parent = score(terms.total, terms);
    f64 gain = least_gain(parent, terms);
    i32 key = NO_KEY;
    Sums left = {0, 0, 0};
    if (lane < 8)
        ends.set[lane] = 0;
    __syncwarp();
    if (single) {
        key = one_against_rest(cells, terms, parent, gain, left);
#pragma unroll
        for (i32 k = 0; k < PER_LANE; ++k) {
            const i32 bin = lane * PER_LANE + k;
            const bool goes = key == terms.missing ? bin < terms.missing && seen(cell(cells, k)) : bin == key;
            if (goes)
                atomicOr(&ends.set[bin >> 5], 1u << (bin & 31));
        }
    } else {
        const i32 count = sort_ends(cells, terms, limits, ends), size = count < MOST_CATEGORIES ? count : MOST_CATEGORIES;
        for (i32 end = 0; end < 2; ++end) {
            const Sums a = sums_from_end(ends, end, size);
            if (!is_judged(ends, end, size, a, terms, limits))
                continue;
#if EXTRA_TREES
            if (lane != place_of(terms.word, size))
                continue;
#endif
            const f64 here = gain_of(a, terms, parent);
            if (here > gain) {
                gain = here;
                key = end * MOST_CATEGORIES + lane;
                left = a;
            }
        }
        left = from_lane(left, best_lane(gain, key));
        if (key != NO_KEY && lane <= key % MOST_CATEGORIES) {
            const i32 bin = ends.bin[key / MOST_CATEGORIES][lane];
            atomicOr(&ends.set[bin >> 5], 1u << (bin & 31));
        }
    }
    __syncwarp();
    const bool some_missing = seen(missing_sums(cells, terms.missing));
    return {key == NO_KEY ? 0.0 : gain, left.g, left.h, 0, !some_missing && left.h > terms.total.h - left.h};
}
