// Threshold of large scores without sorting: gpuboost/backends/numerics/threshold.py, from the counts of the rows, by
// the last block to end. In front: common.cuh, blocks.cuh.
//
// A score is a float32 that is not negative, a normal number or 0, so that its bits as an integer are in its order. They
// are handled as bits.

enum {
    BUCKETS = 2048,         // by the upper 11 bits: exponent and 3 of the significand
    OF_ZERO = 8,            // of which only 0 is in use
    GROUP = 64,             // buckets that are summed before the next group
    GROUPS = BUCKETS / GROUP,
    COUNT_THREADS = 512,
    COUNT_ROWS = 1 << 14    // of a block before it hands on its counts, so that 32 bits are enough
};

enum Kind { FIXED_THRESHOLD = 0, SOLVED_THRESHOLD = 1, GOSS = 2, TRIMMING = 3 }; // backends/numerics/probabilities.py

#define SURELY_ALL 0x1p126 // a rho that takes every positive score to 1 or more

struct Threshold {
    f64 rho, floor;         // *_THRESHOLD: p = min(1, max(floor, rho s))
    f64 at_threshold, below; // the others: p of a score equal to the threshold, and of one below it; above it p is 1
    f64 need;               // GOSS: the rank; TRIMMING: the sum that is still missing
    f64 unit;               // what a count is in the unit of ``need``: TRIMMING: a significand at the threshold; else 1
    i64 rows_above, rows_below; // *_THRESHOLD: rows with p = 1 and p = floor at the last step; GOSS: rows above it
    u32 bits;               // of the threshold: those known so far
    i32 kind, done;         // done: 1 once the search has ended
    i32 spare;
};

static_assert(sizeof(Threshold) == 80, "the host makes room for it");

// p of a row, from the bits of its score, by the functions of probability.py, which are linked in.
static __device__ __forceinline__ f64 probability(const Threshold &threshold, u32 bits)
{
    if (threshold.kind <= SOLVED_THRESHOLD)
        return by_threshold((f64)__uint_as_float(bits), threshold.rho, threshold.floor);
    return by_border(bits, threshold.bits, threshold.at_threshold, threshold.below);
}

static __device__ __forceinline__ f64 power_of_two(i32 exponent)
{
    return __longlong_as_double((i64)(exponent + 1023) << 52);
}

// Significand from the bits of a score: 24 bits, 0 for 0.
static __device__ __forceinline__ u64 significand(u32 bits)
{
    return bits >> 23 ? (bits & 0x7fffffu) | 0x800000u : 0u;
}

// Rows by place, and the sum of what is below a place's bits, 20 bits at most: 18 of them, and the others in the lower
// half of ``counts``, whose upper half counts rows.
struct Tally {
    u32 low[BUCKETS], counts[BUCKETS];
};

// One row of each lane that is ``in``; all lanes of the warp.
static __device__ __forceinline__ void tally(Tally &seen, bool in, u32 place, u32 low)
{
    const u32 where = in ? place : NO_KEY;
    if (__all_sync(FULL_WARP, where == __shfl_sync(FULL_WARP, where, 0))) { // early scores have few distinct values
        if (!in)
            return;
        for (i32 d = 16; d > 0; d >>= 1)
            low += __shfl_xor_sync(FULL_WARP, low, d);
        if (threadIdx.x % 32 == 0) {
            atomicAdd(seen.low + place, low & 0x3ffffu);
            atomicAdd(seen.counts + place, 32u << 16 | low >> 18);
        }
    } else if (in) {
        atomicAdd(seen.low + place, low & 0x3ffffu);
        atomicAdd(seen.counts + place, 1u << 16 | low >> 18);
    }
}

static __device__ __forceinline__ void clear_tally(Tally &seen)
{
    for (i32 place = threadIdx.x; place < BUCKETS; place += COUNT_THREADS)
        seen.low[place] = seen.counts[place] = 0;
    __syncthreads();
}

// Hands on what was seen, and clears it. A score at a place has the bits (prefix, place, and ``low_bits`` bits more).
// counts: rows of 2,048 places, then the sums of their significands.
static __device__ void hand_on(Tally &seen, i32 places, u32 prefix, i32 low_bits, u64 *counts)
{
    __syncthreads();
    for (i32 place = threadIdx.x; place < places; place += COUNT_THREADS) {
        const u32 both = seen.counts[place], rows = both >> 16;
        if (rows == 0)
            continue;
        const u64 least = significand((prefix * (u32)places + (u32)place) << low_bits);
        const u64 rest = least ? ((u64)(both & 0xffffu) << 18) + seen.low[place] : 0;
        atomicAdd(counts + place, (u64)rows);
        atomicAdd(counts + BUCKETS + place, rows * least + rest);
        seen.low[place] = seen.counts[place] = 0;
    }
    __syncthreads();
}

// x[i] becomes the sum of its group of 64 up to it, before[j] that of all groups before the j-th. All threads.
template <class T>
static __device__ void run_up(T *x, T *before)
{
    __syncthreads();
    if (threadIdx.x < GROUPS) {
        T sum = 0;
        for (i32 i = threadIdx.x * GROUP; i < (i32)(threadIdx.x + 1) * GROUP; ++i)
            x[i] = sum = sum + x[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        T sum = 0;
        for (i32 j = 0; j < GROUPS; ++j) {
            before[j] = sum;
            sum = sum + x[j * GROUP + GROUP - 1];
        }
    }
    __syncthreads();
}

// All sums of one order, first to last.
template <class T>
struct Running {
    T within[BUCKETS], before[GROUPS];

    __device__ __forceinline__ T up_to(i32 i) const { return before[i / GROUP] + within[i]; }
};

// The sum of the scores of a bucket: exact up to 2^29 rows.
static __device__ __forceinline__ f64 sum_of(const u64 *counts, i32 bucket)
{
    return (f64)(i64)counts[BUCKETS + bucket] * power_of_two((bucket >> 3) - 150);
}

// Expected number of rows if all scores of a bucket were its mean, and mu the mean of ``bucket``.
struct Guess {
    f64 above, below, between, expected;
};

static __device__ Guess guess_at(i32 bucket, const u64 *counts, i64 n, f64 floor, const Running<u32> &rows,
                                 const Running<f64> &sums)
{
    const f64 mean = sum_of(counts, bucket) / (f64)counts[bucket], low = floor * mean;
    i32 first = OF_ZERO; // bucket whose mean is not below ``low``
    if (low >= 0x1p-126) {
        const u64 bits = (u64)__double_as_longlong(low);
        first = ((i32)(bits >> 52) - 1023 + 127) << 3 | (i32)(bits >> 49 & 7);
        if (counts[first] > 0 && sum_of(counts, first) / (f64)counts[first] < low)
            ++first;
    }
    Guess found;
    found.above = (f64)(n - (i64)rows.up_to(bucket));
    found.below = (f64)rows.up_to(first - 1);
    found.between = sums.up_to(bucket) - sums.up_to(first - 1);
    found.expected = found.above + found.between / mean + floor * found.below;
    return found;
}

// Shared memory: what is counted, and after that what is made of it.
union Desk {
    Tally seen;
    struct {
        Running<u32> rows;
        Running<f64> sums;
    } guess;
    Running<u64> whole;
    Running<f64> sums;
};

// rho_for_rate() of threshold.py up to its loop. All threads.
static __device__ void first_guess(const u64 *counts, i64 n, f64 rate, f64 floor, Desk &desk, Threshold *threshold)
{
    __shared__ i32 best, least;
    Running<u32> &rows = desk.guess.rows;
    Running<f64> &sums = desk.guess.sums;
    for (i32 b = threadIdx.x; b < BUCKETS; b += COUNT_THREADS) {
        rows.within[b] = (u32)counts[b];
        sums.within[b] = sum_of(counts, b);
    }
    if (threadIdx.x == 0) {
        best = -1;
        least = BUCKETS;
    }
    run_up(rows.within, rows.before);
    run_up(sums.within, sums.before);
    const i64 zeros = rows.up_to(OF_ZERO - 1);
    const f64 need = rate * (f64)n;
    for (i32 b = OF_ZERO + threadIdx.x; b < BUCKETS; b += COUNT_THREADS) {
        if (counts[b] == 0)
            continue;
        atomicMin(&least, b);
        if (guess_at(b, counts, n, floor, rows, sums).expected >= need)
            atomicMax(&best, b);
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    Threshold made = {0.0, floor, 0.0, 0.0, need, 0.0, -1, -1, 0, SOLVED_THRESHOLD, 1, 0};
    if (need >= (f64)(n - zeros) + floor * (f64)zeros) {
        made.rho = SURELY_ALL;
    } else if (need > floor * (f64)n) {
        const Guess found = guess_at(best >= 0 ? best : least, counts, n, floor, rows, sums);
        made.rho = (need - found.above - floor * found.below) / found.between;
        made.done = 0;
    }
    *threshold = made;
}

// One step of Newton's method: rows with s >= mu, rows with s < floor mu, and the sum of rint(s scale) over the others.
static __device__ __forceinline__ f64 scale_for(f64 mu, i32 n)
{
    const i32 exponent = (i32)((u64)__double_as_longlong(mu) >> 52 & 0x7ff) - 1022, length = 32 - __clz(n);
    return power_of_two(62 - length - exponent); // the sum stays below 2^62
}

static __device__ __forceinline__ void newton_step(i64 above, i64 below, i64 between, f64 scale, Threshold *threshold)
{
    const f64 rest = threshold->need - (f64)above - threshold->floor * (f64)below;
    const bool same = above == threshold->rows_above && below == threshold->rows_below;
    if (same || !(rest > 0.0 && between > 0)) {
        threshold->done = 1;
        return;
    }
    threshold->rho = rest / ((f64)between * (1.0 / scale));
    threshold->rows_above = above;
    threshold->rows_below = below;
}

// The threshold gets the next bits: the highest place from which on all places hold what is needed. level: 0 for the upper
// 11 bits, 1 for the next 11, 2 for the last 9. All threads. score_of_rank() and score_of_mass() of threshold.py.
static __device__ void descend(const u64 *counts, i32 level, Desk &desk, Threshold *threshold)
{
    __shared__ i32 best, least;
    Running<u64> &whole = desk.whole; // from the top
    Running<f64> &sums = desk.sums;   // in its place for the sums of whole buckets
    const i32 places = level == 2 ? 512 : BUCKETS, last = BUCKETS - 1;
    const bool ranked = threshold->kind == GOSS, rough = !ranked && level == 0;
    for (i32 b = threadIdx.x; b < BUCKETS; b += COUNT_THREADS) {
        if (rough)
            sums.within[last - b] = sum_of(counts, b);
        else
            whole.within[last - b] = b < places ? counts[ranked ? b : BUCKETS + b] : 0;
    }
    if (threadIdx.x == 0) {
        best = -1;
        least = last;
    }
    if (rough)
        run_up(sums.within, sums.before);
    else
        run_up(whole.within, whole.before);
    const f64 total = rough ? sums.up_to(last) : 1.0, unit = threshold->unit; // of ranks: 1
    const f64 need = rough ? threshold->need * total : threshold->need;
    const u64 above = ranked ? (u64)threshold->rows_above : 0;
    for (i32 b = threadIdx.x; b < places; b += COUNT_THREADS) {
        if (counts[b] == 0)
            continue;
        const f64 from_top = rough ? sums.up_to(last - b) : (f64)(i64)(above + whole.up_to(last - b)) * unit;
        atomicMin(&least, b);
        if (from_top >= need)
            atomicMax(&best, b);
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    const i32 at = best >= 0 ? best : least;
    threshold->bits = threshold->bits * (u32)places + (u32)at;
    if (ranked) {
        threshold->rows_above = (i64)(above + whole.up_to(last - at) - counts[at]);
    } else if (total == 0.0) { // no row has a score: all of them are the heaviest
        threshold->bits = 0;
        threshold->done = 1;
    } else if (rough) {
        threshold->unit = power_of_two((at >> 3) - 150);
        threshold->need = need - (sums.up_to(last - at) - sum_of(counts, at));
    } else {
        threshold->need = need - ((f64)(i64)whole.up_to(last - at) * unit - (f64)(i64)counts[BUCKETS + at] * unit);
    }
    if (ranked && level == 2) {
        const f64 room = min(1.0, (threshold->need - (f64)threshold->rows_above) / (f64)counts[at]);
        threshold->at_threshold = room + (1.0 - room) * threshold->below;
    }
}

// Whether ``solve`` of the rule needs the counts of all scores.
static __device__ __forceinline__ bool is_counted(i32 kind) { return kind != FIXED_THRESHOLD; }

// Where ``solve`` begins. a, b: the rule's ``settings``. All threads.
static __device__ void begin_search(i32 kind, f64 a, f64 b, i64 n, const u64 *counts, Desk &desk, Threshold *threshold)
{
    if (kind == SOLVED_THRESHOLD) {
        first_guess(counts, n, a, b, desk, threshold);
        return;
    }
    if (threadIdx.x == 0) {
        const Threshold fixed = {a, b, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, kind, 1, 0};
        const Threshold ranked = {0.0, 0.0, 0.0, b, a * (f64)n, 1.0, 0, 0, 0, GOSS, 0, 0};
        const Threshold heaviest = {0.0, 0.0, 1.0, 0.0, a, 0.0, 0, 0, 0, TRIMMING, 0, 0};
        *threshold = !is_counted(kind) ? fixed : kind == GOSS ? ranked : heaviest;
    }
    __syncthreads();
    if (kind == GOSS || kind == TRIMMING)
        descend(counts, 0, desk, threshold);
}
