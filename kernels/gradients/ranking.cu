// Derivatives of lists (backends/reference/ranking.py): documents in order of scores, lambdas of pairs, and the sums
// of lambdas with their extents. In front: common.cuh, tree.cuh, fixed_point.cuh, ordering.cuh and the loss's formulas.
//
// A document's sums need no other's, so threads take documents, whatever list they are of: a list of ten thousand is
// spread over the device, and many short ones fill a warp. What is known of a list by its place lies at begin + place.

enum {
    TALL = 32, WIDE = 512, // documents of a tile of pairs, and those below them: its sums are float32
};

// The lists: rows start[q] .. start[q + 1] - 1 are the documents of list q, list_of[row] of every row.
struct Lists {
    const i32 *start, *list_of;
};

// Documents in order of places: scores less the list's best, e^(sigma f) as far as that is not too small, and gain.
struct Places {
    const f32 *score, *power, *gain;
};

// Arrays of a pair's weight, besides the loss's formula.
struct Weights {
    const f32 *upper, *lower; // discounts of the upper and of the lower document, by place, from the list's first on
    i32 of_lists;             // 1: they are marks of each list's own places
    i32 closer;               // 1: pairs that stand close weigh more
};

// The documents of every run, the highest score first, equal ones in the order of rows.
extern "C" __global__ void __launch_bounds__(RUN)
sort_runs(const f64 *scores, const i32 *start, const i32 *list_of, i32 n, u64 *keys, i32 *rows)
{
    sort_runs_of_lists(scores, start, list_of, n, keys, rows);
}

// The place of every document, from its place in its run and a search in the list's other ones.
extern "C" __global__ void __launch_bounds__(256)
place_documents(const u64 *keys, const i32 *rows, const f64 *scores, const f32 *gain, const i32 *start,
                const i32 *list_of, f64 sigma, i32 n, i32 *place_of, f32 *placed_score, f32 *placed_power,
                f32 *placed_gain)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const i32 q = list_of[i];
        u64 top;
        const i32 place = place_in_list(keys, i, start[q], start[q + 1], top);
        const i32 row = rows[i];
        const f64 below = scores[row] - score_of(top), steps = sigma * below;
        place_of[row] = place;
        placed_score[place] = (f32)(below < FURTHEST ? FURTHEST : below);
        placed_power[place] = (f32)exp_of(steps < FARTHEST ? FARTHEST : steps);
        placed_gain[place] = gain[row];
    }
}

static __device__ __forceinline__ f32 mark_of(f64 precision, i64 total)
{
    return (f32)(rint((precision - (f64)total * 0x1p-44) * 0x1p24) * 0x1p-24);
}

// Marks of precision of all places (backends/reference/ranking.py: precision_marks), a warp to a list: 32 places at a
// time, with sums over the places before. Sums are integers, so their order makes no difference.
extern "C" __global__ void __launch_bounds__(256)
mark_places(const f32 *placed_gain, const i32 *start, i32 lists, f32 *upper, f32 *lower)
{
    const i32 lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
    for (i32 q = (blockIdx.x * blockDim.x + threadIdx.x) / 32; q < lists; q += warps) {
        const i32 begin = start[q], end = start[q + 1];
        i64 shares = 0;
        i32 count = 0;
        for (i32 first = begin; first < end; first += 32) {
            const i32 place = first + lane;
            const bool relevant = place < end && placed_gain[place] > 0.0f;
            const f64 rank = (f64)(place - begin + 1);
            const i64 own = relevant ? (i64)rint(0x1p44 / rank) : 0;
            i64 total = own;
            i32 seen = relevant;
#pragma unroll
            for (i32 by = 1; by < 32; by *= 2) {
                const i64 shares_before = __shfl_up_sync(FULL_WARP, total, by);
                const i32 seen_before = __shfl_up_sync(FULL_WARP, seen, by);
                total += lane >= by ? shares_before : 0;
                seen += lane >= by ? seen_before : 0;
            }
            total += shares;
            seen += count;
            if (place < end) {
                upper[place] = mark_of((f64)(seen + !relevant) / rank, total);
                lower[place] = mark_of((f64)seen / rank, total - own);
            }
            shares = __shfl_sync(FULL_WARP, total, 31);
            count = __shfl_sync(FULL_WARP, seen, 31);
        }
    }
}

// Lambda of the documents at a and b, a above, and its curvature (losses/ranking.py: pair_derivatives). over: gain of a
// less that of b, not 0; begin: of their list. No number here is denormal, so flushing denormals makes no difference.
static __device__ __forceinline__ f32 lambda_between(const Places &at, const Weights &by, i32 begin, i32 a, i32 b, f32 over,
                                                   f32 &curve)
{
    const i32 origin = by.of_lists ? 0 : begin;
    const f32 weight = (f32)pair_weight_of((f64)fabsf(over), (f64)(by.upper[a - origin] - by.lower[b - origin]));
    const f32 apart = by.closer ? ((f32)NEAR + at.score[a]) - at.score[b] : 1.0f;
    const f32 above = at.power[a], below = at.power[b];
    const f32 better = over > 0.0f ? above : below, worse = over > 0.0f ? below : above;
    const f32 inverse = 1.0f / ((above + below) * apart);
    const f32 size = weight * (worse * inverse);
    curve = size * (better * (inverse * apart));
    return size;
}

// The sum of what 16 lanes have, halves onto halves; in all of them.
static __device__ __forceinline__ f64 sum_of_lanes(f32 own)
{
#pragma unroll
    for (i32 half = LANES / 2; half > 0; half /= 2)
        own += __shfl_xor_sync(FULL_WARP, own, half);
    return (f64)own;
}

// Factor by which the derivatives of a list shrink, from the sum over all its pairs. sizes: of its first ``count``
// places; steep: factor of pairs.
static __device__ f64 evening_factor(const f64 *sizes, i32 count, f64 steep)
{
    f64 total = 0.0;
#pragma unroll 8
    for (i32 a = 0; a < count; ++a)
        total += sizes[a];
    const f64 scaled = steep * total;
    return scaled > 0.0 ? log_of(1.0 + 2.0 * scaled) / (log_of(2.0) * (2.0 * scaled)) : 1.0;
}

// g and h of the document at b from its pairs with those above it, from the top, tile by tile.
static __device__ __forceinline__ void lambdas_above(const Places &at, const Weights &by, i32 begin, i32 b, i32 end,
                                                       f64 &g, f64 &h)
{
    const f32 gain = at.gain[b];
    f32 curve;
    g = h = 0.0;
    for (i32 top = begin; top < end; top += TALL) {
        f32 g_tile = 0.0f, h_tile = 0.0f;
        for (i32 a = top; a < min(top + (i32)TALL, end); ++a) {
            const f32 over = at.gain[a] - gain;
            if (over == 0.0f) // pairs of one gain weigh nothing
                continue;
            const f32 size = lambda_between(at, by, begin, a, b, over, curve);
            g_tile += over > 0.0f ? size : -size;
            h_tile += curve;
        }
        g += (f64)g_tile;
        h += (f64)h_tile;
    }
}

// Pairs of the document at a with those below it, tile by tile: sums of lambdas, curvatures and sizes, by half a warp.
// Place p of the list in lane p % 16. All threads of a warp come here.
static __device__ __forceinline__ void lambdas_below(const Places &at, const Weights &by, i32 begin, i32 a, i32 end,
                                                       f64 (&sums)[3])
{
    const i32 lane = threadIdx.x % LANES, first = (a - begin) / WIDE * WIDE;
    const i32 mine = end - begin - first, other = __shfl_xor_sync(FULL_WARP, mine, 16); // both halves take as many turns
    const f32 gain = at.gain[a];
    sums[0] = sums[1] = sums[2] = 0.0;
    for (i32 tile = 0; tile < max(mine, other); tile += WIDE) {
        f32 g = 0.0f, h = 0.0f, sizes = 0.0f, curve;
        const i32 stop = min(end, begin + first + tile + (i32)WIDE);
        for (i32 b = begin + first + tile + lane; b < stop; b += LANES) {
            const f32 over = gain - at.gain[b];
            if (b <= a || over == 0.0f)
                continue;
            const f32 size = lambda_between(at, by, begin, a, b, over, curve);
            g += over > 0.0f ? size : -size;
            h += curve;
            sizes += size;
        }
        sums[0] += sum_of_lanes(g);
        sums[1] += sum_of_lanes(h);
        sums[2] += sum_of_lanes(sizes);
    }
}

// Sums over the pairs of every document: with those above it at above_g and above_h; and of the places that count with
// those below them, half a warp to each, at ``below`` (3, leaders): g, h and sizes. leaders: where those places are;
// leader_start (lists + 1,): where each list's begin. scales (lists,): 1 / the ideal DCG; the factors of lists are there
// when the last of its places is done, where ``even`` is 1. arrived (lists,) is 0 before the launch and after it.
extern "C" __global__ void __launch_bounds__(256, 4)
pair_lambdas(const f32 *placed_score, const f32 *placed_power, const f32 *placed_gain, const f32 *upper,
           const f32 *lower, const f64 *scales, const i32 *start, const i32 *list_of, const i32 *leaders,
           const i32 *leader_start, i32 n, i32 n_leaders, i32 most, f64 sigma, i32 of_lists, i32 closer, i32 even,
           f64 *above_g, f64 *above_h, f64 *below, f64 *factors, u32 *arrived)
{
    const Places at = {placed_score, placed_power, placed_gain};
    const Weights by = {upper, lower, of_lists, closer};
    const i32 threads = gridDim.x * blockDim.x, me = blockIdx.x * blockDim.x + threadIdx.x;
    for (i32 b = me; b < n; b += threads) {
        const i32 q = list_of[b], begin = start[q];
        lambdas_above(at, by, begin, b, scales[q] > 0.0 ? begin + min(b - begin, most) : begin, above_g[b], above_h[b]);
    }
    for (i32 k = me / 32 * 2; k < n_leaders; k += threads / 32 * 2) {
        const i32 leader = k + (i32)(threadIdx.x >> 4 & 1);
        const bool real = leader < n_leaders;
        const i32 a = real ? leaders[leader] : 0, q = list_of[a], begin = start[q];
        const f64 scale = scales[q];
        f64 sums[3];
        lambdas_below(at, by, begin, a, real && scale > 0.0 ? start[q + 1] : begin, sums);
        if (threadIdx.x % LANES != 0 || !real)
            continue;
        for (i32 kind = 0; kind < 3; ++kind)
            below[kind * (i64)n_leaders + leader] = sums[kind];
        if (!even)
            continue;
        const i32 first = leader_start[q], count = leader_start[q + 1] - first;
        __threadfence();
        if (atomicInc(arrived + q, count - 1) == (u32)(count - 1)) {
            __threadfence();
            factors[q] = evening_factor(below + 2 * (i64)n_leaders + first, count, scale * sigma);
        }
    }
}

// Float32, with 0 in place of what is next to it.
static __device__ __forceinline__ u32 without_denormals(f64 x)
{
    return narrowed(fabs(x) <= SMALLEST ? 0.0 : x);
}

// g, h (n,) of all rows, and what the State must know of them. factors: of lists, where ``even`` is 1; scales (lists,);
// curvature: what stands for h, or a negative number for h itself.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
finish_lists(const f64 *above_g, const f64 *above_h, const f64 *below, const f64 *factors, const f64 *scales,
             const i32 *start, const i32 *list_of, const i32 *leader_start, const i32 *place_of, i32 n_leaders, i32 even,
             f64 sigma, const f64 *weight, i32 has_weight, const i32 *times, i32 has_times, f64 curvature, i32 n, i64 total_times,
             i32 most, f32 *g, f32 *h, f64 *sums, u64 *tops, u32 *arrived, State *state)
{
    struct Place {
        i32 q, place;
    };
    const auto load = [&](i32 i) { return Place{list_of[i], place_of[i]}; };
    const auto make = [&](i32 i, const Place &row) {
        const i32 q = row.q, place = row.place, leader = leader_start[q] + place - start[q];
        const f64 factor = even && leader_start[q] < leader_start[q + 1] ? factors[q] : 1.0;
        const f64 steep = scales[q] * sigma, by = has_weight ? weight[i] : 1.0;
        f64 first = above_g[place], second = above_h[place];
        if (leader < leader_start[q + 1]) {
            first -= below[leader];
            second += below[n_leaders + leader];
        }
        second = curvature < 0.0 ? second * (steep * sigma * factor) : curvature;
        const u32 g_bits = without_denormals(first * (steep * factor) * by), h_bits = without_denormals(second * by);
        ((u32 *)g)[i] = g_bits;
        ((u32 *)h)[i] = h_bits;
        return MadeRow{g_bits, h_bits, has_times ? times[i] : 1};
    };
    const Extents extents = {sums, tops, (n + STRETCH - 1) / STRETCH};
    make_and_measure(extents, n, load, make);
    if (last_block(arrived))
        finish_extents(extents, n, total_times, most, state);
}
