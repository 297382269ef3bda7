// Gradients with their extents, loss values, and scores that take a step. In front of this text stand common.cuh,
// tree.cuh, fixed_point.cuh and the loss's formulas (gpuboost/backends/cuda/codegen/formulas.py).

#if MANY_OUTPUTS

// g, h (k, n) of all rows. room: 2 k numbers for each thread of the grid.
extern "C" __global__ void __launch_bounds__(256)
row_gradients(const f64 *y, const f64 *scores, const f64 *weight, i32 has_weight, f64 a, f64 curvature, i32 n, i32 k,
              f32 *g, f32 *h, f64 *room)
{
    const i32 threads = gridDim.x * blockDim.x, me = blockIdx.x * blockDim.x + threadIdx.x;
    const Row first = {room + me, threads, k}, second = {room + (i64)k * threads + me, threads, k};
    for (i32 i = me; i < n; i += threads) {
        const Row f = {const_cast<f64 *>(scores) + i, n, k};
        derivatives_at_row(y, i, f, first, second, a);
        const f64 by = has_weight ? weight[i] : 1.0;
        for (i32 c = 0; c < k; ++c) {
            const i64 at = (i64)c * n + i;
            ((u32 *)g)[at] = narrowed(first.at[(i64)c * threads] * by);
            ((u32 *)h)[at] = narrowed((curvature >= 0.0 ? curvature : second.at[(i64)c * threads]) * by);
        }
    }
}

static __device__ __forceinline__ f64 value_at(const f64 *y, const f64 *scores, f64 a, i32 n, i32 k, i32 i)
{
    const Row f = {const_cast<f64 *>(scores) + i, n, k};
    return value_at_row(y, i, f, a);
}

#else

// g, h (n,) of all rows of a loss of one output, and what the State must know of them.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
gradients(const f64 *y, const f64 *scores, const f64 *weight, i32 has_weight, const i32 *times, i32 has_times, f64 a,
          f64 curvature, i32 n, i64 total_times, i32 most, f32 *g, f32 *h, f64 *sums, u64 *tops, u32 *arrived,
          State *state)
{
    struct Point {
        f64 y, score, weight;
        i32 times;
    };
    const auto load = [&](i32 i) {
        return Point{y[i], scores[i], has_weight ? weight[i] : 1.0, has_times ? times[i] : 1};
    };
    const auto make = [&](i32 i, const Point &point) {
        f64 first, second;
        derivatives_of(point.y, point.score, a, first, second);
        second = curvature < 0.0 ? second : curvature;
        const MadeRow made = {narrowed(first * point.weight), narrowed(second * point.weight), point.times};
        ((u32 *)g)[i] = made.g;
        ((u32 *)h)[i] = made.h;
        return made;
    };
    const Extents extents = {sums, tops, (n + STRETCH - 1) / STRETCH};
    make_and_measure(extents, n, load, make);
    if (last_block(arrived))
        finish_extents(extents, n, total_times, most, state);
}

static __device__ __forceinline__ f64 value_at(const f64 *y, const f64 *scores, f64 a, i32 n, i32 k, i32 i)
{
    return value_of(y[i], scores[i], a);
}

#endif

// total = sum over rows of the loss times the weight, in the order of numerics.exact_sums.fixed_order_sum.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
loss_total(const f64 *y, const f64 *scores, const f64 *weight, i32 has_weight, f64 a, i32 n, i32 k, f64 *sums,
           u32 *arrived, f64 *total)
{
    __shared__ f64 values[STRETCH];
    const i32 stretches = (n + STRETCH - 1) / STRETCH;
    for (i32 stretch = blockIdx.x; stretch < stretches; stretch += gridDim.x) {
        const i32 begin = stretch * STRETCH, count = min((i32)STRETCH, n - begin);
        for (i32 row = threadIdx.x; row < count; row += EXTENT_THREADS) {
            const f64 value = value_at(y, scores, a, n, k, begin + row);
            values[row] = has_weight ? value * weight[begin + row] : value;
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            f64 sum = 0.0, in_stretch = 0.0;
            for (i32 row = threadIdx.x % LANES; row < count; row += LANES)
                sum += values[row];
            for (i32 lane = 0; lane < LANES; ++lane)
                in_stretch += __shfl_sync(FULL_WARP, sum, lane);
            if (threadIdx.x == 0)
                sums[stretch] = in_stretch;
        }
        __syncthreads();
    }
    if (last_block(arrived)) {
        const f64 found = total_in_order(sums, stretches);
        if (threadIdx.x == 0)
            *total = found;
    }
}

// The loss of every row, times its weight.
extern "C" __global__ void __launch_bounds__(256)
row_losses(const f64 *y, const f64 *scores, const f64 *weight, i32 has_weight, f64 a, i32 n, i32 k, f64 *losses)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const f64 value = value_at(y, scores, a, n, k, i);
        losses[i] = has_weight ? value * weight[i] : value;
    }
}
