// Noise on gradients. In front: common.cuh, blocks.cuh, tree.cuh, fixed_point.cuh, philox.cuh, normal.cuh.

// Noise on the gradients of all rows, or of drawn ones: g + deviation sqrt(h / times) z, z being number ``row`` of the
// output's stream. rows: which rows they are of, where drawn is 1. noisy_g (k, room); room is n where drawn is 0.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
perturb(const f32 *g, const f32 *h, const i32 *times, i32 has_times, const i32 *rows, i32 drawn, const i32 *m, i32 room,
        f64 deviation, u32 seed_low, u32 seed_high, const u32 *iteration, const u32 *names, const f64 *table,
        f32 *noisy_g, f64 *sums, u64 *tops, u64 *weights, i32 *most, u32 *arrived, State *state)
{
    const i32 output = blockIdx.y, count_all = drawn ? *m : room;
    const i64 from = (i64)output * room;
    const i32 most_stretches = (room + STRETCH - 1) / STRETCH;
    const Extents extents = {sums + (i64)output * 2 * most_stretches, tops + output * 2,
                             (count_all + STRETCH - 1) / STRETCH};
    const Stream stream = {seed_low, seed_high, *iteration, names[output]};
    i64 weight = 0;
    i32 largest = 1;
    struct Given {
        u32 g, h;
        i32 row, times;
    };
    const auto load = [&](i32 i) {
        return Given{((const u32 *)g)[from + i], ((const u32 *)h)[from + i], drawn ? rows[i] : i,
                     has_times ? times[i] : 1};
    };
    const auto make = [&](i32 i, const Given &given) {
        const f64 z = normal(stream, (u64)given.row, table);
        const u32 g_bits = narrowed(noisy(widened(given.g), widened(given.h) / (f64)given.times, deviation, z));
        ((u32 *)noisy_g)[from + i] = g_bits;
        if (has_times) {
            weight += given.times;
            largest = max(largest, given.times);
        }
        return MadeRow{g_bits, given.h, given.times};
    };
    make_and_measure(extents, count_all, load, make);
    finish_counted(extents, count_all, has_times, weight, largest, weights + output, most + output, arrived + output,
                   state + output);
}
