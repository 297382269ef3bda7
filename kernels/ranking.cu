// Derivatives of lists (backends/reference_lists.py): documents in order of scores, what their pairs pull, and the sums
// of that with their extents. In front: common.cuh, tree.cuh, fixed_point.cuh and the loss's formulas.
//
// A document's sums need no other's, so threads take documents, whatever list they are of: a list of ten thousand is
// spread over the device, and many short ones fill a warp. What is known of a list by its place lies at begin + place.

enum { RUN = 256 }; // documents of one list that are sorted at a time, before their runs are merged

// The lists: rows start[q] .. start[q + 1] - 1 are the documents of list q, list_of[row] of every row.
struct Lists {
    const i32 *start, *list_of;
};

// Documents in order of places: scores, e^(sigma f) as far as that is not too small, and what they are worth.
struct Places {
    f64 *score, *power, *gain;
};

// What weighs a pair, besides the loss's formula.
struct Weights {
    const f64 *discounts; // of places
    f64 sigma;
    i32 closer;           // 1: pairs that stand close weigh more
};

// Scores as unsigned numbers of the same order; -0.0 is 0.0.
static __device__ __forceinline__ u64 key_of(f64 score)
{
    const u64 bits = (u64)__double_as_longlong(score == 0.0 ? 0.0 : score);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

static __device__ __forceinline__ f64 score_of(u64 key)
{
    return __longlong_as_double((i64)(key >> 63 ? key & ~(1ull << 63) : ~key));
}

// The documents of every run, the highest score first, equal ones in the order of rows. Where a run lies its sorted keys
// and rows lie too.
extern "C" __global__ void __launch_bounds__(RUN)
sort_runs(const f64 *scores, const i32 *start, const i32 *list_of, i32 n, u64 *keys, i32 *rows)
{
    __shared__ u64 near[3 * RUN]; // no run of these rows goes further to either side
    for (i32 first = blockIdx.x * RUN; first < n; first += gridDim.x * RUN) {
        for (i32 i = threadIdx.x; i < 3 * RUN; i += RUN) {
            const i64 row = (i64)first - RUN + i;
            near[i] = row >= 0 && row < n ? key_of(scores[row]) : 0;
        }
        __syncthreads();
        const i32 row = first + (i32)threadIdx.x;
        if (row < n) {
            const i32 q = list_of[row], begin = row - (row - start[q]) % RUN, end = min(begin + (i32)RUN, start[q + 1]);
            const u64 *run = near + (begin - first + RUN);
            const u64 own = near[RUN + threadIdx.x];
            i32 before = 0;
            for (i32 j = 0; j < end - begin; ++j)
                before += run[j] > own || (run[j] == own && begin + j < row);
            keys[begin + before] = own;
            rows[begin + before] = row;
        }
        __syncthreads();
    }
}

// The place of every document, from its place in its run and a search in the list's other ones.
extern "C" __global__ void __launch_bounds__(256)
place_documents(const u64 *keys, const i32 *rows, const f64 *scores, const f64 *y, const f64 *gains, i32 has_gains,
                const i32 *start, const i32 *list_of, f64 sigma, i32 n, i32 *place_of, f64 *placed_score,
                f64 *placed_power, f64 *placed_gain)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const i32 q = list_of[i], begin = start[q], end = start[q + 1], first = i - (i - begin) % RUN;
        const u64 own = keys[i];
        u64 top = own;
        i32 place = begin + i - first;
        for (i32 run = begin; run < end; run += RUN) {
            top = max(top, keys[run]);
            i32 low = 0, high = run == first ? 0 : min((i32)RUN, end - run);
            while (low < high) {
                const i32 middle = (low + high) / 2;
                const u64 key = keys[run + middle];
                const bool before = key > own || (key == own && run < first);
                low = before ? middle + 1 : low;
                high = before ? high : middle;
            }
            place += low;
        }
        const i32 row = rows[i];
        const f64 score = scores[row], below = sigma * (score - score_of(top));
        place_of[row] = place;
        placed_score[place] = score;
        placed_power[place] = exp_of(below > FARTHEST ? below : FARTHEST);
        placed_gain[place] = has_gains ? gains[(i32)y[row]] : y[row];
    }
}

// What the documents at a and b, a above, pull at each other, towards a if positive, and the curvature. over: gain of a
// less that of b, not 0; begin: of their list.
static __device__ __forceinline__ f64 pull_between(const Places &at, const Weights &by, f64 scale, i32 begin, i32 a, i32 b,
                                                   f64 over, f64 &curve)
{
    const f64 weight = pair_weight_of(fabs(over), by.discounts[a - begin] - by.discounts[b - begin]) * scale;
    const f64 apart = by.closer ? NEAR + (at.score[a] - at.score[b]) : 1.0;
    const f64 better = over > 0.0 ? at.power[a] : at.power[b], worse = over > 0.0 ? at.power[b] : at.power[a];
    f64 force;
    pull_of(better, worse, weight, apart, by.sigma, force, curve);
    return over > 0.0 ? force : -force;
}

// The sum of what 16 lanes have, in their order; in all of them.
static __device__ __forceinline__ f64 lanes_in_order(f64 own)
{
    f64 sum = 0.0;
    for (i32 lane = 0; lane < LANES; ++lane)
        sum += __shfl_sync(FULL_WARP, own, (threadIdx.x & 16) + lane);
    return sum;
}

// What all pairs of a list pull together tells by how much its derivatives shrink. sizes: of its first ``count`` places.
static __device__ f64 evening_factor(const f64 *sizes, i32 count)
{
    f64 pulled = 0.0;
#pragma unroll 8
    for (i32 a = 0; a < count; ++a)
        pulled += sizes[a];
    return pulled > 0.0 ? log_of(1.0 + 2.0 * pulled) / (log_of(2.0) * (2.0 * pulled)) : 1.0;
}

// Sums over the pairs of every document: with those above it, one after the other, at above_g and above_h; and of the
// places that count with those below them, half a warp to each, at ``below`` (3, leaders): g, h and sizes. leaders:
// where those places are; leader_start (lists + 1,): where each list's begin. scales (lists,): 1 / the ideal DCG; the
// factors of lists are there when the last of its places is done, where ``even`` is 1. arrived (lists,) is 0 before the
// launch and after it.
extern "C" __global__ void __launch_bounds__(256, 4)
pull_pairs(f64 *placed_score, f64 *placed_power, f64 *placed_gain, const f64 *discounts, const f64 *scales,
           const i32 *start, const i32 *list_of, const i32 *leaders, const i32 *leader_start, i32 n, i32 n_leaders,
           i32 most, f64 sigma, i32 closer, i32 even, f64 *above_g, f64 *above_h, f64 *below, f64 *factors, u32 *arrived)
{
    const Places at = {placed_score, placed_power, placed_gain};
    const Weights by = {discounts, sigma, closer};
    const i32 threads = gridDim.x * blockDim.x, me = blockIdx.x * blockDim.x + threadIdx.x;
    for (i32 b = me; b < n; b += threads) {
        const i32 q = list_of[b], begin = start[q];
        const f64 scale = scales[q], gain = at.gain[b];
        f64 g = 0.0, h = 0.0, curve;
        for (i32 a = begin; a < b && a - begin < most && scale > 0.0; ++a) {
            const f64 over = at.gain[a] - gain;
            if (over == 0.0) // pairs of one gain weigh nothing
                continue;
            g += pull_between(at, by, scale, begin, a, b, over, curve);
            h += curve;
        }
        above_g[b] = g;
        above_h[b] = h;
    }
    const i32 lane = threadIdx.x % LANES;
    for (i32 k = me / 32 * 2; k < n_leaders; k += threads / 32 * 2) {
        const i32 leader = k + (i32)(threadIdx.x >> 4 & 1);
        const bool real = leader < n_leaders;
        const i32 a = real ? leaders[leader] : 0, q = list_of[a], begin = start[q], end = real ? start[q + 1] : 0;
        const f64 scale = scales[q], gain = at.gain[a];
        f64 g = 0.0, h = 0.0, size = 0.0, curve;
        for (i32 b = a + 1 + lane; b < end && scale > 0.0; b += LANES) {
            const f64 over = gain - at.gain[b];
            if (over == 0.0)
                continue;
            const f64 force = pull_between(at, by, scale, begin, a, b, over, curve);
            g += force;
            h += curve;
            size += fabs(force);
        }
        g = lanes_in_order(g);
        h = lanes_in_order(h);
        size = lanes_in_order(size);
        if (lane != 0 || !real)
            continue;
        below[leader] = g;
        below[n_leaders + leader] = h;
        below[2 * (i64)n_leaders + leader] = size;
        if (!even)
            continue;
        const i32 first = leader_start[q], count = leader_start[q + 1] - first;
        __threadfence();
        if (atomicInc(arrived + q, count - 1) == (u32)(count - 1)) {
            __threadfence();
            factors[q] = evening_factor(below + 2 * (i64)n_leaders + first, count);
        }
    }
}

// Float32, with 0 in place of what is next to it.
static __device__ __forceinline__ u32 without_denormals(f64 x)
{
    return narrowed(fabs(x) <= SMALLEST ? 0.0 : x);
}

// g, h (n,) of all rows, and what the State must know of them. factors: of lists, where ``even`` is 1; curvature: what
// stands for h, or a negative number for h itself.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
finish_lists(const f64 *above_g, const f64 *above_h, const f64 *below, const f64 *factors, const i32 *start,
             const i32 *list_of, const i32 *leader_start, const i32 *place_of, i32 n_leaders, i32 even,
             const f64 *weight, i32 has_weight, const i32 *times, i32 has_times, f64 curvature, i32 n, i64 total_times,
             i32 most, f32 *g, f32 *h, f64 *sums, u64 *tops, u32 *arrived, State *state)
{
    __shared__ Sizes sizes;
    const Extents extents = {sums, tops, (n + STRETCH - 1) / STRETCH};
    f64 top = 0.0;
    for (i32 stretch = blockIdx.x; stretch < extents.stretches; stretch += gridDim.x) {
        const i32 begin = stretch * STRETCH, count = min((i32)STRETCH, n - begin);
        for (i32 row = threadIdx.x; row < count; row += EXTENT_THREADS) {
            const i32 i = begin + row, q = list_of[i], place = place_of[i];
            const i32 leader = leader_start[q] + place - start[q];
            const f64 factor = even && leader_start[q] < leader_start[q + 1] ? factors[q] : 1.0;
            const f64 by = has_weight ? weight[i] : 1.0;
            f64 first = above_g[place], second = above_h[place];
            if (leader < leader_start[q + 1]) {
                first -= below[leader];
                second += below[n_leaders + leader];
            }
            second = curvature < 0.0 ? second * factor : curvature;
            const u32 g_bits = without_denormals(first * factor * by), h_bits = without_denormals(second * by);
            ((u32 *)g)[i] = g_bits;
            ((u32 *)h)[i] = h_bits;
            sizes.put(row, g_bits, h_bits);
            if (has_times)
                sizes.times[row] = (u16)times[i];
        }
        __syncthreads();
        if (threadIdx.x < 32)
            sum_stretch(sizes, has_times, count, stretch, extents, top);
        __syncthreads();
    }
    keep_tops(extents, top);
    if (last_block(arrived))
        finish_extents(extents, n, total_times, most, state);
}
