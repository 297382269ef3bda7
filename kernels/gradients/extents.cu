// Gradients that stay where they are, measured: what the State must know of them, for the scale of their integers.
// In front: common.cuh, blocks.cuh, tree.cuh, fixed_point.cuh.

// Gradients of all rows of a loss of several outputs, or any that are given.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
extents_of(const f32 *g, const f32 *h, const i32 *times, i32 has_times, i32 n, i64 total_times, i32 most, f64 *sums,
           u64 *tops, u32 *arrived, State *state)
{
    const i32 output = blockIdx.y;
    const u32 *own_g = (const u32 *)g + (i64)output * n, *own_h = (const u32 *)h + (i64)output * n;
    const i32 stretches = (n + STRETCH - 1) / STRETCH;
    const Extents extents = {sums + (i64)output * 2 * stretches, tops + output * 2, stretches};
    const auto load = [&](i32 i) { return MadeRow{own_g[i], own_h[i], has_times ? times[i] : 1}; };
    const auto make = [&](i32, const MadeRow &row) { return row; };
    make_and_measure(extents, n, load, make);
    if (last_block(arrived + output, gridDim.x))
        finish_extents(extents, n, total_times, most, state + output);
}

// Noisy gradients, which row_noise.py has made: of all ``room`` rows, or of the first m.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
measure_noisy(const f32 *g, const f32 *h, const i32 *times, i32 has_times, i32 drawn, const i32 *m, i32 room, f64 *sums,
              u64 *tops, u64 *weights, i32 *most, u32 *arrived, State *state)
{
    const i32 output = blockIdx.y, count_all = drawn ? *m : room;
    const u32 *own_g = (const u32 *)g + (i64)output * room, *own_h = (const u32 *)h + (i64)output * room;
    const i32 most_stretches = (room + STRETCH - 1) / STRETCH;
    const Extents extents = {sums + (i64)output * 2 * most_stretches, tops + output * 2,
                             (count_all + STRETCH - 1) / STRETCH};
    i64 weight = 0;
    i32 largest = 1;
    const auto load = [&](i32 i) { return MadeRow{own_g[i], own_h[i], has_times ? times[i] : 1}; };
    const auto make = [&](i32, const MadeRow &row) {
        if (has_times) {
            weight += row.times;
            largest = max(largest, row.times);
        }
        return row;
    };
    make_and_measure(extents, count_all, load, make);
    finish_counted(extents, count_all, has_times, weight, largest, weights + output, most + output, arrived + output,
                   state + output);
}
