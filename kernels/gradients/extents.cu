// Gradients that stay where they are, measured: what the State must know of them, for the scale of their integers.
// In front: common.cuh, blocks.cuh, tree.cuh, fixed_point.cuh.

// Gradients of all rows of a loss of several outputs, or any that are given.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
extents_of(const f32 *g, const f32 *h, const i32 *times, i32 has_times, i32 n, i64 total_times, i32 most, f64 *sums,
           u64 *tops, u32 *arrived, State *state)
{
    __shared__ Sizes sizes;
    const i32 output = blockIdx.y;
    const u32 *own_g = (const u32 *)g + (i64)output * n, *own_h = (const u32 *)h + (i64)output * n;
    const i32 stretches = (n + STRETCH - 1) / STRETCH;
    const Extents extents = {sums + (i64)output * 2 * stretches, tops + output * 2, stretches};
    f64 top = 0.0;
    for (i32 stretch = blockIdx.x; stretch < stretches; stretch += gridDim.x) {
        const i32 begin = stretch * STRETCH, count = min((i32)STRETCH, n - begin);
        for (i32 row = threadIdx.x; row < count; row += EXTENT_THREADS) {
            sizes.put(row, own_g[begin + row], own_h[begin + row]);
            if (has_times)
                sizes.times[row] = (u16)times[begin + row];
        }
        __syncthreads();
        if (threadIdx.x < 32)
            sum_stretch(sizes, has_times, count, stretch, extents, top);
        __syncthreads();
    }
    keep_tops(extents, top);
    if (last_block(arrived + output, gridDim.x))
        finish_extents(extents, n, total_times, most, state + output);
}

// Noisy gradients, which row_noise.py has made: of all ``room`` rows, or of the first m.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
measure_noisy(const f32 *g, const f32 *h, const i32 *times, i32 has_times, i32 drawn, const i32 *m, i32 room, f64 *sums,
              u64 *tops, u64 *weights, i32 *most, u32 *arrived, State *state)
{
    __shared__ Sizes sizes;
    const i32 output = blockIdx.y, count_all = drawn ? *m : room;
    const i64 from = (i64)output * room;
    const i32 most_stretches = (room + STRETCH - 1) / STRETCH;
    const Extents extents = {sums + (i64)output * 2 * most_stretches, tops + output * 2,
                             (count_all + STRETCH - 1) / STRETCH};
    f64 top = 0.0;
    i64 weight = 0;
    i32 largest = 1;
    for (i32 stretch = blockIdx.x; stretch < extents.stretches; stretch += gridDim.x) {
        const i32 begin = stretch * STRETCH, count = min((i32)STRETCH, count_all - begin);
        for (i32 place = threadIdx.x; place < count; place += EXTENT_THREADS) {
            const i64 at = from + begin + place;
            sizes.put(place, ((const u32 *)g)[at], ((const u32 *)h)[at]);
            if (has_times) {
                const i32 own = times[begin + place];
                weight += own;
                largest = max(largest, own);
                sizes.times[place] = (u16)own;
            }
        }
        __syncthreads();
        if (threadIdx.x < 32)
            sum_stretch(sizes, has_times, count, stretch, extents, top);
        __syncthreads();
    }
    keep_tops(extents, top);
    finish_counted(extents, count_all, has_times, weight, largest, weights + output, most + output, arrived + output,
                   state + output);
}
