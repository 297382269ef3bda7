// line_search: how far to go along a tree, or along each of its leaves. Definition: backends/numerics/line_search.py. In front:
// common.cuh, tree.cuh, fixed_point.cuh and the loss's formulas, as for pointwise.cu.
//
// A launch is one pass over the rows, which ends with a step of Newton's method for every length that is not good enough
// yet; where none is left, a launch does nothing. So a fixed number of them does, and the host has nothing to decide.

enum { SEARCH_THREADS = 512, STAGED = 2048 }; // rows whose terms are staged at a time

// State of the search for one length.
struct Length {
    f64 rho, low, high; // to try next; too short; too far
    f64 found;          // the answer, as far as it is known
    f64 at_0;           // the first derivative at 0
    i32 active, spare;
};

static __device__ __forceinline__ bool is_finite(f64 x) { return x - x == 0.0; }

// 1, or Newton's step from 0 where that is positive and less than half as long.
static __device__ __forceinline__ f64 first_length(f64 first, f64 second)
{
    const f64 newton = -first / second;
    return newton > 0.0 && newton < 0.5 ? newton : 1.0;
}

// Newton's step if it stays inside, half the way if it does not or the slope is steep, at most the double where there is
// no end yet.
static __device__ __forceinline__ f64 next_length(f64 rho, f64 first, f64 second, f64 low, f64 high, bool is_steep)
{
    const f64 newton = rho - first / second;
    const bool usable = second > 0.0 && is_finite(newton);
    if (is_finite(high))
        return usable && newton > low && newton < high && !is_steep ? newton : 0.5 * (low + high);
    return usable && newton > rho && newton < 2.0 * rho ? newton : 2.0 * rho;
}

// After the slopes at 0 (start is 1) or at rho.
static __device__ void step_length(Length &length, f64 first, f64 second, i32 start, f64 tolerance)
{
    if (start) {
        const f64 infinity = __longlong_as_double(0x7ff0000000000000ll);
        length = {first_length(first, second), 0.0, infinity, 0.0, first, first < 0.0, 0};
        return;
    }
    const bool too_short = first < 0.0; // and not where it is no number
    const f64 rho = length.rho;
    length.low = too_short ? rho : length.low;
    length.high = too_short ? length.high : rho;
    const f64 following = next_length(rho, first, second, length.low, length.high, first > -length.at_0);
    const f64 change = following - rho, size = change < 0.0 ? -change : change;
    const bool done = size <= tolerance * rho || first == 0.0;
    length.rho = first == 0.0 ? rho : following;
    length.found = done ? length.rho : length.low;
    length.active = !done;
}

// The rows of a length: all, or, where leaves have lengths of their own, those of a leaf. See sort_rows_by_leaf.cu.
struct Groups {
    const i32 *rows, *begins, *first_stretch;
    i32 grouped, n, count;

    __device__ __forceinline__ i32 stretches() const
    {
        return grouped ? first_stretch[count] : (n + STRETCH - 1) / STRETCH;
    }

    __device__ __forceinline__ i32 first_of(i32 group) const { return grouped ? first_stretch[group] : 0; }

    __device__ __forceinline__ i32 end_of(i32 group) const { return grouped ? first_stretch[group + 1] : stretches(); }

    // The group that a stretch is of.
    __device__ __forceinline__ i32 of(i32 stretch) const
    {
        i32 low = 0, high = grouped ? count : 1;
        while (high - low > 1) {
            const i32 middle = (low + high) / 2;
            if (first_stretch[middle] <= stretch)
                low = middle;
            else
                high = middle;
        }
        return low;
    }
};

// Inputs of a row's loss.
struct Rows {
    const f64 *y, *scores, *weight;
    const i32 *times;
    f64 a;
    i32 has_weight, has_times, n, k, output;
};

#if MANY_OUTPUTS
// room: 3 k numbers for each thread of the grid.
static __device__ __forceinline__ void slopes_at(const Rows &rows, i32 i, f64 trial, f64 *room, f64 &first, f64 &second)
{
    const i32 threads = gridDim.x * blockDim.x, me = blockIdx.x * blockDim.x + threadIdx.x, k = rows.k;
    const Row f = {room + me, threads, k}, g = {room + (i64)k * threads + me, threads, k};
    const Row h = {room + (i64)2 * k * threads + me, threads, k};
    for (i32 c = 0; c < k; ++c)
        f.at[(i64)c * threads] = c == rows.output ? trial : rows.scores[(i64)c * rows.n + i];
    derivatives_at_row(rows.y, i, f, g, h, rows.a);
    first = g.at[(i64)rows.output * threads];
    second = h.at[(i64)rows.output * threads];
}
#else
static __device__ __forceinline__ void slopes_at(const Rows &rows, i32 i, f64 trial, f64 *, f64 &first, f64 &second)
{
    derivatives_of(rows.y[i], trial, rows.a, first, second);
}
#endif

// One row's share in the derivatives by the length; gradients are float32, as they are everywhere.
static __device__ __forceinline__ void terms_of_row(const Rows &rows, i32 i, f64 along, f64 rho, f64 *room, f64 &first,
                                                    f64 &second)
{
    f64 g, h;
    slopes_at(rows, i, rows.scores[(i64)rows.output * rows.n + i] + rho * along, room, g, h);
    if (rows.has_weight) {
        g *= rows.weight[i];
        h *= rows.weight[i];
    }
    const f64 by = rows.has_times ? along * (f64)rows.times[i] : along;
    first = widened(narrowed(g)) * by;
    second = widened(narrowed(h)) * (by * along);
}

// The sum of a group's stretches, in the order of numerics.exact_sums.fixed_order_sum: those of each block of 16, then
// the blocks. By one warp.
static __device__ f64 sum_of_group(const f64 *sums, i32 stretches)
{
    const i32 lane = threadIdx.x & 31, blocks = (stretches + STRETCHES - 1) / STRETCHES;
    f64 total = 0.0;
    for (i32 first = 0; first < blocks; first += 32) {
        f64 in_block = 0.0;
        for (i32 s = (first + lane) * STRETCHES; s < min((first + lane + 1) * (i32)STRETCHES, stretches); ++s)
            in_block += sums[s];
        for (i32 b = 0; b < min(32, blocks - first); ++b)
            total += __shfl_sync(FULL_WARP, in_block, b);
    }
    return total;
}

// One pass. values: of the nodes, side by side. sums: two for each of ``most_stretches``. start: 1 for the first pass,
// which is at 0 and tells where there is a way to go; left: how many lengths are not good enough yet.
extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 2)
search_along(const f64 *y, const f64 *scores, const f64 *weight, i32 has_weight, const i32 *times, i32 has_times, f64 a,
             i32 n, i32 k, i32 output, const i32 *leaf_of_row, const f64 *values, const i32 *ordered, const i32 *begins,
             const i32 *first_stretch, i32 grouped, i32 groups, i32 start, f64 tolerance, i32 most_stretches, f64 *sums,
             Length *lengths, i32 *left, u32 *arrived, f64 *room)
{
    if (!start && *left == 0)
        return;
    __shared__ f64 terms[2][STAGED];
    const Groups of_rows = {ordered, begins, first_stretch, grouped, n, groups};
    const Rows rows = {y, scores, weight, times, a, has_weight, has_times, n, k, output};
    for (i32 stretch = blockIdx.x; stretch < of_rows.stretches(); stretch += gridDim.x) {
        const i32 group = of_rows.of(stretch), own = stretch - of_rows.first_of(group);
        if (!start && !lengths[group].active)
            continue;
        const f64 rho = start ? 0.0 : lengths[group].rho;
        const i32 begin = (grouped ? begins[group] : 0) + own * STRETCH;
        const i32 end = min(begin + (i32)STRETCH, grouped ? begins[group + 1] : n);
        f64 sum = 0.0;
        for (i32 first = begin; first < end; first += STAGED) {
            const i32 count = min((i32)STAGED, end - first);
            for (i32 at = threadIdx.x; at < count; at += SEARCH_THREADS) {
                const i32 i = grouped ? ordered[first + at] : first + at;
                terms_of_row(rows, i, values[leaf_of_row[i]], rho, room, terms[0][at], terms[1][at]);
            }
            __syncthreads();
            if (threadIdx.x < 2 * LANES) // lanes 0 .. 15 the first derivative, 16 .. 31 the second
                for (i32 at = threadIdx.x % LANES; at < count; at += LANES)
                    sum += terms[threadIdx.x / LANES][at];
            __syncthreads();
        }
        if (threadIdx.x < 32) {
            f64 in_stretch = 0.0;
            for (i32 lane = 0; lane < LANES; ++lane)
                in_stretch += __shfl_sync(FULL_WARP, sum, threadIdx.x / LANES * LANES + lane);
            if (threadIdx.x % LANES == 0)
                sums[(i64)(threadIdx.x / LANES) * most_stretches + stretch] = in_stretch;
        }
    }
    if (!last_block(arrived))
        return;
    if (threadIdx.x == 0)
        *left = 0;
    __syncthreads();
    for (i32 group = threadIdx.x >> 5; group < groups; group += SEARCH_THREADS / 32) {
        if (!start && !lengths[group].active)
            continue;
        const i32 from = of_rows.first_of(group), count = of_rows.end_of(group) - from;
        const f64 first = sum_of_group(sums + from, count), second = sum_of_group(sums + most_stretches + from, count);
        if ((threadIdx.x & 31) == 0) {
            step_length(lengths[group], first, second, start, tolerance);
            if (lengths[group].active)
                atomicAdd(left, 1);
        }
    }
}
