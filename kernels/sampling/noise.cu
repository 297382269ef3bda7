// Noise on gradients. In front: common.cuh, blocks.cuh, tree.cuh, fixed_point.cuh, philox.cuh, normal.cuh.

// Noise on the gradients of all rows, or of drawn ones: g + deviation sqrt(h / times) z, z being number ``row`` of the
// output's stream. rows: which rows they are of, where drawn is 1. noisy_g (k, room); room is n where drawn is 0.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
perturb(const f32 *g, const f32 *h, const i32 *times, i32 has_times, const i32 *rows, i32 drawn, const i32 *m, i32 room,
        f64 deviation, u32 seed_low, u32 seed_high, const u32 *iteration, const u32 *names, const f64 *table,
        f32 *noisy_g, f64 *sums, u64 *tops, u64 *weights, i32 *most, u32 *arrived, State *state)
{
    __shared__ Sizes sizes;
    const i32 output = blockIdx.y, count_all = drawn ? *m : room;
    const i64 from = (i64)output * room;
    const i32 most_stretches = (room + STRETCH - 1) / STRETCH;
    const Extents extents = {sums + (i64)output * 2 * most_stretches, tops + output * 2,
                             (count_all + STRETCH - 1) / STRETCH};
    const Stream stream = {seed_low, seed_high, *iteration, names[output]};
    f64 top = 0.0;
    i64 weight = 0;
    i32 largest = 1;
    for (i32 stretch = blockIdx.x; stretch < extents.stretches; stretch += gridDim.x) {
        const i32 begin = stretch * STRETCH, count = min((i32)STRETCH, count_all - begin);
        for (i32 place = threadIdx.x; place < count; place += EXTENT_THREADS) {
            const i32 i = begin + place, row = drawn ? rows[i] : i, own = has_times ? times[i] : 1;
            const u32 h_bits = ((const u32 *)h)[from + i];
            const f64 g_of_row = widened(((const u32 *)g)[from + i]), z = normal(stream, (u64)row, table);
            const u32 g_bits = narrowed(noisy(g_of_row, widened(h_bits) / (f64)own, deviation, z));
            ((u32 *)noisy_g)[from + i] = g_bits;
            sizes.put(place, g_bits, h_bits);
            if (has_times) {
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
