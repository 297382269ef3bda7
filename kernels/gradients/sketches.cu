// Sketches of gradients of many outputs: numerics/sketches. In front: common.cuh, blocks.cuh, tree.cuh, fixed_point.cuh.
// g and h are (k, room), of which the first m rows of a target are valid.

enum { OF_SKETCH = 8 }; // outputs of a projection that a thread makes at once

// norms[output] = sum over the rows of g^2, times the multiplicity, in the order of fixed_order_sum; where the rows are
// sharded, the sums of the stretches alone. Grid: (., outputs).
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
squared_norms(const f32 *g, const i32 *times, i32 has_times, i32 room, const State *states, f64 *sums, u32 *arrived,
              f64 *norms)
{
    __shared__ f64 values[STRETCH];
    const i32 output = blockIdx.y, m = states->m, stretches = (m + STRETCH - 1) / STRETCH;
    const u32 *own = (const u32 *)g + (i64)output * room;
    f64 *own_sums = sums + (i64)output * ((room + STRETCH - 1) / STRETCH);
    for (i32 stretch = blockIdx.x; stretch < stretches; stretch += gridDim.x) {
        const i32 begin = stretch * STRETCH, count = min((i32)STRETCH, m - begin);
        for (i32 row = threadIdx.x; row < count; row += EXTENT_THREADS) {
            const f64 x = widened(own[begin + row]);
            values[row] = has_times ? x * x * (f64)times[begin + row] : x * x;
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            f64 sum = 0.0, in_stretch = 0.0;
            for (i32 row = threadIdx.x % LANES; row < count; row += LANES)
                sum += values[row];
            for (i32 lane = 0; lane < LANES; ++lane)
                in_stretch += __shfl_sync(FULL_WARP, sum, lane);
            if (threadIdx.x == 0)
                own_sums[stretch] = in_stretch;
        }
        __syncthreads();
    }
    if (!SHARDED && last_block(arrived + output, gridDim.x)) { // otherwise shards.cu adds up the sums
        const f64 found = total_in_order(own_sums, stretches);
        if (threadIdx.x == 0)
            norms[output] = found;
    }
}

// Some outputs, their g times a factor. Grid: (., outputs chosen).
extern "C" __global__ void __launch_bounds__(256)
chosen_outputs(const f32 *g, const f32 *h, i32 room, const State *states, const i32 *chosen, const f64 *factors,
               f32 *chosen_g, f32 *chosen_h)
{
    const i32 place = blockIdx.y, m = states->m;
    const i64 from = (i64)chosen[place] * room, to = (i64)place * room;
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < m; i += gridDim.x * blockDim.x) {
        ((u32 *)chosen_g)[to + i] = narrowed(widened(((const u32 *)g)[from + i]) * factors[place]);
        ((u32 *)chosen_h)[to + i] = ((const u32 *)h)[from + i];
    }
}

// Sums over the k outputs of matrix (k, s) times g, and in each of the s outputs the mean of h. Grid: (., groups of s).
extern "C" __global__ void __launch_bounds__(256)
projected_outputs(const f32 *g, const f32 *h, i32 room, i32 k, i32 s, const State *states, const f64 *matrix,
                  f32 *sums_g, f32 *means_h)
{
    const i32 first = blockIdx.y * OF_SKETCH, m = states->m, here = min((i32)OF_SKETCH, s - first);
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < m; i += gridDim.x * blockDim.x) {
        f64 total[OF_SKETCH] = {}, of_h = 0.0;
        for (i32 j = 0; j < k; ++j) {
            const f64 x = widened(((const u32 *)g)[(i64)j * room + i]);
            of_h += widened(((const u32 *)h)[(i64)j * room + i]);
#pragma unroll
            for (i32 r = 0; r < OF_SKETCH; ++r)
                if (r < here)
                    total[r] += matrix[(i64)j * s + first + r] * x;
        }
#pragma unroll
        for (i32 r = 0; r < OF_SKETCH; ++r)
            if (r < here) {
                ((u32 *)sums_g)[(i64)(first + r) * room + i] = narrowed(total[r]);
                ((u32 *)means_h)[(i64)(first + r) * room + i] = narrowed(of_h / (f64)k);
            }
    }
}
