// Rows drawn by their scores: how much each row matters, the threshold that follows, and the draw. The definition is
// gpuboost/backends/reference/sampling.py. In front: common.cuh, blocks.cuh, drawn.cuh, philox.cuh, threshold.cuh.
//
// No launch depends on what another one found: a search that has ended early lets the launches left of it pass.

enum MadeOf { GRADIENT = 0, BOTH = 1, CURVATURE = 2, LOSSES = 3 };

static __device__ __forceinline__ f64 square_sum(const f32 *values, i64 n, i32 k, i64 row)
{
    f64 sum = 0.0;
    for (i32 c = 0; c < k; ++c) {
        const f64 x = widened(((const u32 *)values)[c * n + row]);
        sum += x * x;
    }
    return sum;
}

static __device__ __forceinline__ f64 score_of(const f32 *g, const f32 *h, const f64 *losses, i32 made_of, f64 kappa,
                                               i64 n, i32 k, i64 row)
{
    if (made_of == LOSSES)
        return losses[row];
    const f64 first = square_sum(made_of == CURVATURE ? h : g, n, k, row);
    return magnitude(first, made_of == BOTH ? square_sum(h, n, k, row) : 0.0, kappa, made_of == BOTH);
}

// scores (n,) as bits, and where the search for the threshold begins. g, h (k, n). kind, a, b: of the sampling
// probability rule, see its ``settings``. span: rows of a block before it hands on its counts. counts (2 * 2048,): 0
// before and after. bad: 1 afterwards if a score is no number.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS, 2)
score_rows(const f32 *g, const f32 *h, const f64 *losses, i32 made_of, f64 kappa, const i32 *times, i32 has_times, i32 n,
           i32 k, i32 kind, f64 a, f64 b, i32 span, u32 *scores, u64 *counts, u32 *bad, u32 *arrived,
           Threshold *threshold)
{
    __shared__ Desk desk;
    const bool counted = is_counted(kind);
    bool fine = true;
    clear_tally(desk.seen);
    for (i64 begin = (i64)blockIdx.x * span; begin < n; begin += (i64)gridDim.x * span) {
        const i64 end = min(begin + span, (i64)n);
        for (i64 first = begin; first < end; first += COUNT_THREADS) { // warps stay together
            const i64 row = first + threadIdx.x;
            u32 bits = 0;
            if (row < end) {
                f64 s = score_of(g, h, losses, made_of, kappa, n, k, row);
                if (has_times)
                    s = s * (f64)times[row];
                fine = fine && s == s;
                bits = __float_as_uint(normal_score(s));
                scores[row] = bits;
            }
            if (counted)
                tally(desk.seen, row < end, bits >> 20, bits & 0xfffffu);
        }
        if (counted)
            hand_on(desk.seen, BUCKETS, 0, 20, counts);
    }
    if (!fine)
        atomicOr(bad, 1u);
    if (!last_block(arrived))
        return;
    begin_search(kind, a, b, n, counts, desk, threshold);
    __syncthreads();
    for (i32 i = threadIdx.x; counted && i < 2 * BUCKETS; i += COUNT_THREADS)
        counts[i] = 0;
}

// One step of Newton's method for rho. sums (3,): 0 before and after.
extern "C" __global__ void __launch_bounds__(256)
approach(const u32 *scores, i32 n, u64 *sums, u32 *arrived, Threshold *threshold)
{
    __shared__ u64 of_warp[3][8];
    const Threshold found = *threshold;
    if (found.done)
        return;
    const f64 mu = 1.0 / found.rho, low = found.floor * mu, scale = scale_for(mu, n);
    i64 above = 0, below = 0, between = 0;
    for (i64 first = ((i64)blockIdx.x * 256 + threadIdx.x) * 4; first < n; first += (i64)gridDim.x * 1024) {
        const uint4 four = *(const uint4 *)(scores + first);
        const u32 bits[4] = {four.x, four.y, four.z, four.w};
        for (i32 j = 0; j < 4; ++j) {
            const f64 s = (f64)__uint_as_float(bits[j]);
            const bool there = first + j < n, high = s >= mu, under = s < low;
            above += there && high;
            below += there && under;
            between += there && !high && !under ? __double2ll_rn(s * scale) : 0;
        }
    }
    for (i32 d = 16; d > 0; d >>= 1) {
        above += __shfl_xor_sync(FULL_WARP, above, d);
        below += __shfl_xor_sync(FULL_WARP, below, d);
        between += __shfl_xor_sync(FULL_WARP, between, d);
    }
    if (threadIdx.x % 32 == 0) {
        of_warp[0][threadIdx.x / 32] = (u64)above;
        of_warp[1][threadIdx.x / 32] = (u64)below;
        of_warp[2][threadIdx.x / 32] = (u64)between;
    }
    __syncthreads();
    if (threadIdx.x < 3) {
        u64 sum = 0;
        for (i32 w = 0; w < 8; ++w)
            sum += of_warp[threadIdx.x][w];
        if (sum != 0)
            atomicAdd(sums + threadIdx.x, sum);
    }
    if (last_block(arrived) && threadIdx.x == 0) {
        newton_step((i64)sums[0], (i64)sums[1], (i64)sums[2], scale, threshold);
        sums[0] = sums[1] = sums[2] = 0;
    }
}

// The next bits of the threshold: scores that have those known so far, counted by the bits that come then.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS, 2)
refine(const u32 *scores, i32 n, i32 level, i32 span, u64 *counts, u32 *arrived, Threshold *threshold)
{
    __shared__ Desk desk;
    if (threshold->done)
        return;
    const u32 prefix = threshold->bits;
    const i32 shift = level == 1 ? 20 : 9, low_bits = level == 1 ? 9 : 0, places = 1 << (shift - low_bits);
    clear_tally(desk.seen);
    for (i64 begin = (i64)blockIdx.x * span; begin < n; begin += (i64)gridDim.x * span) {
        const i64 end = min(begin + span, (i64)n);
        for (i64 first = begin; first < end; first += COUNT_THREADS) {
            const i64 row = first + threadIdx.x;
            const u32 bits = row < end ? scores[row] : 0u;
            const bool in = row < end && bits >> shift == prefix;
            if (__any_sync(FULL_WARP, in))
                tally(desk.seen, in, bits >> low_bits & (u32)(places - 1), bits & ((1u << low_bits) - 1));
        }
        hand_on(desk.seen, places, prefix, low_bits, counts);
    }
    if (!last_block(arrived))
        return;
    descend(counts, level, desk, threshold);
    __syncthreads();
    for (i32 i = threadIdx.x; i < 2 * BUCKETS; i += COUNT_THREADS)
        counts[i] = 0;
}

// Statistics of all rows: the smallest p that was drawn, as inverted bits, and the number of rows with p = 0.
struct Seen {
    u64 least;
    i32 excluded, spare;
};

static __device__ __forceinline__ void see(Seen &seen, f64 least, i32 excluded)
{
    for (i32 d = 16; d > 0; d >>= 1) {
        least = min(least, __shfl_xor_sync(FULL_WARP, least, d));
        excluded += __shfl_xor_sync(FULL_WARP, excluded, d);
    }
    if (threadIdx.x % 32 != 0)
        return;
    if (least <= 1.0)
        atomicMax(&seen.least, ~(u64)__double_as_longlong(least));
    if (excluded > 0)
        atomicAdd(&seen.excluded, excluded);
}

// The end of a draw, by all blocks: what was seen, and where each chunk's rows begin. bad and seen: 0 afterwards.
static __device__ __forceinline__ void finish_draw(f64 least, i32 excluded, i32 n, i32 room, i32 *starts, u32 *bad,
                                                   Seen *seen, u32 *arrived, i32 *m, i32 *lost, Draw *log, i32 places,
                                                   u32 *draws)
{
    see(*seen, least, excluded);
    if (!last_block(arrived))
        return;
    place_chunks(chunks_of(n), room, starts, m, lost);
    if (threadIdx.x != 0)
        return;
    const f64 smallest = __longlong_as_double((i64)~seen->least);
    note_draw(log, places, draws, starts[chunks_of(n)], seen->excluded, seen->least ? narrowed(inverse(smallest)) : 0u);
    seen->least = 0;
    seen->excluded = 0;
    if (*bad) {
        *lost |= NO_NUMBER;
        *bad = 0;
    }
}

// Row i is drawn iff its number of the stream is below p 2^32.
extern "C" __global__ void __launch_bounds__(DRAW_THREADS)
draw_scored(const Stream *stream, const Threshold *threshold, const u32 *scores, i32 n, i32 room, u16 *masks,
            i32 *starts, u32 *bad, Seen *seen, u32 *arrived, i32 *m, i32 *lost, Draw *log, i32 places, u32 *draws)
{
    const Threshold found = *threshold;
    f64 least = 2.0;
    i32 excluded = 0;
    for (i32 chunk = blockIdx.x; chunk < chunks_of(n); chunk += gridDim.x) {
        const i32 place = chunk * DRAW_THREADS + threadIdx.x;
        u32 mask = 0;
        for (i32 part = 0; part < ROWS_OF_THREAD / 4; ++part) {
            const i64 row = (i64)place * ROWS_OF_THREAD + part * 4;
            if (row >= n)
                break;
            const uint4 words = philox(*stream, (u64)row / 4), four = *(const uint4 *)(scores + row);
            const u32 numbers[4] = {words.x, words.y, words.z, words.w}, bits[4] = {four.x, four.y, four.z, four.w};
            for (i32 j = 0; j < 4 && row + j < n; ++j) {
                const f64 p = probability(found, bits[j]);
                excluded += p == 0.0;
                if (is_drawn(numbers[j], p)) {
                    mask |= 1u << (part * 4 + j);
                    least = min(least, p);
                }
            }
        }
        keep_mask(chunk, mask, masks, starts);
    }
    finish_draw(least, excluded, n, room, starts, bad, seen, arrived, m, lost, log, places, draws);
}

// The same where row_draws.py has made the masks.
extern "C" __global__ void __launch_bounds__(DRAW_THREADS)
count_draws(const Threshold *threshold, const u32 *scores, i32 n, i32 room, u16 *masks, i32 *starts, u32 *bad,
            Seen *seen, u32 *arrived, i32 *m, i32 *lost, Draw *log, i32 places, u32 *draws)
{
    const Threshold found = *threshold;
    f64 least = 2.0;
    i32 excluded = 0;
    for (i32 chunk = blockIdx.x; chunk < chunks_of(n); chunk += gridDim.x) {
        const i32 place = chunk * DRAW_THREADS + threadIdx.x;
        const u32 mask = masks[place];
        for (i32 r = 0; r < ROWS_OF_THREAD; ++r) {
            const i64 row = (i64)place * ROWS_OF_THREAD + r;
            if (row >= n)
                break;
            const f64 p = probability(found, scores[row]);
            excluded += p == 0.0;
            if (mask >> r & 1)
                least = min(least, p);
        }
        keep_mask(chunk, mask, masks, starts);
    }
    finish_draw(least, excluded, n, room, starts, bad, seen, arrived, m, lost, log, places, draws);
}

// rows[0 .. m - 1] = the drawn rows, increasing; inverses: 1 / p of each.
extern "C" __global__ void __launch_bounds__(DRAW_THREADS)
compact_scored(const Threshold *threshold, const u32 *scores, const u16 *masks, const i32 *starts, const i32 *m, i32 n,
               i32 *rows, f32 *inverses)
{
    const Threshold found = *threshold;
    const i32 chunks = *m > 0 ? chunks_of(n) : 0;
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const i32 place = chunk * DRAW_THREADS + threadIdx.x;
        u32 mask = masks[place], total;
        i32 at = starts[chunk] + (i32)block_scan((u32)__popc(mask), total);
        for (; mask != 0; mask &= mask - 1) {
            const i32 row = place * ROWS_OF_THREAD + __ffs((i32)mask) - 1;
            rows[at] = row;
            ((u32 *)inverses)[at++] = narrowed(inverse(probability(found, scores[row])));
        }
    }
}
