// Extents of gradients, and sums of a loss, over sharded rows. A shard begins where a stretch of the fixed order of
// summation does, so the sum of every stretch is known to one device. Each puts its own between zeros; a sum of the
// bits, as integers, is then all of them side by side. In front: common.cuh, tree.cuh, fixed_point.cuh.

// planes: arrays of ``own`` sums each, of stretches first .. first + own - 1 of ``all``. tops (planes,) is cleared.
extern "C" __global__ void __launch_bounds__(256)
spread(const f64 *__restrict__ sums, u64 *tops, i32 planes, i32 own, i32 first, i32 all, u64 *all_sums, u64 *all_tops)
{
    for (i32 at = blockIdx.x * blockDim.x + threadIdx.x; at < planes * all; at += gridDim.x * blockDim.x) {
        const i32 plane = at / all, stretch = at % all - first;
        const bool mine = stretch >= 0 && stretch < own;
        all_sums[at] = mine ? (u64)__double_as_longlong(sums[(i64)plane * own + stretch]) : 0;
    }
    if (blockIdx.x == 0)
        for (i32 plane = threadIdx.x; plane < planes; plane += blockDim.x) {
            all_tops[plane] = tops[plane];
            tops[plane] = 0;
        }
}

// The target's part of ``State``, one block to an output. m: rows on this device; weight, most: of all rows.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS)
settle_shared_extents(f64 *all_sums, u64 *all_tops, i32 all, i32 m, i64 weight, i32 most, State *state)
{
    const i32 output = blockIdx.x;
    settle_extents({all_sums + (i64)output * 2 * all, all_tops + 2 * output, all}, m, weight, most, state + output);
}

// The sum of all stretches.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS) shared_total(f64 *all_sums, i32 all, f64 *total)
{
    const f64 found = total_in_order(all_sums, all);
    if (threadIdx.x == 0)
        *total = found;
}
