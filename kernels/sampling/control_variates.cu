// Gradients with those of an earlier round as a control variate (SMART's improved diagonal approximation). The definition
// is gpuboost/backends/reference/sampling.py. In front: common.cuh, blocks.cuh, tree.cuh, fixed_point.cuh, threshold.cuh.

// q / p of every row, of a sample as bits. masks: as in drawn.cuh. Where has_scores is 0, 1 / p is ``by`` for all.
struct Chances {
    const u16 *masks;
    const u32 *scores;
    const Threshold *threshold;
    f32 by;
    i32 has_masks, has_scores; // has_masks is 0 where every row has part

    __device__ __forceinline__ f64 operator()(i64 row) const
    {
        if (!has_masks)
            return 1.0;
        if (!(masks[row / 16] >> (row % 16) & 1))
            return 0.0;
        return widened(has_scores ? narrowed(inverse(probability(*threshold, scores[row]))) : __float_as_uint(by));
    }
};

// All rows: q / p (g - g') + eta g', and q / p h; blockIdx.y is the output. g, h, old_g, made_g, made_h (k, n). Where
// ``plain`` is 1: q / p g, and h itself; old_g is not read.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
node_control_variate(const f32 *g, const f32 *h, const f32 *old_g, const i32 *times, i32 has_times, const u16 *masks,
             const u32 *scores, const Threshold *threshold, f32 by, i32 has_masks, i32 has_scores, f64 eta, i32 plain,
             i32 n, f32 *made_g, f32 *made_h, f64 *sums, u64 *tops, u64 *weights, i32 *most, u32 *arrived, State *state)
{
    const Chances chances = {masks, scores, threshold, by, has_masks, has_scores};
    const i32 output = blockIdx.y, stretches = (n + STRETCH - 1) / STRETCH;
    const i64 from = (i64)output * n;
    const Extents extents = {sums + (i64)output * 2 * stretches, tops + output * 2, stretches};
    i64 weight = 0;
    i32 largest = 1;
    struct Given {
        u32 g, h, old_g;
        i32 times;
    };
    const auto load = [&](i32 row) {
        return Given{((const u32 *)g)[from + row], ((const u32 *)h)[from + row],
                     plain ? 0 : ((const u32 *)old_g)[from + row], has_times ? times[row] : 1};
    };
    const auto make = [&](i32 row, const Given &given) {
        const f64 share = chances(row), old = widened(given.old_g), now = widened(given.g);
        const u32 g_bits = narrowed(plain ? weighted(now, share) : node_gradient(now, old, share, eta));
        const u32 h_bits = narrowed(weighted(widened(given.h), plain ? 1.0 : share));
        ((u32 *)made_g)[from + row] = g_bits;
        ((u32 *)made_h)[from + row] = h_bits;
        if (has_times) {
            weight += given.times;
            largest = max(largest, given.times);
        }
        return MadeRow{g_bits, h_bits, given.times};
    };
    make_and_measure(extents, n, load, make);
    finish_counted(extents, n, has_times, weight, largest, weights + output, most + output, arrived + output,
                   state + output);
}

enum { MEAN_ROWS = 1 << 14 }; // of a block before it hands on its sums: multiplicities of 4,096 stay below 2^32

// sums[2 v], sums[2 v + 1] += exact g', and the rows that they stand for, in leaf v. The sums are 0 before. Where
// ``own`` is 1 a block first adds up in 8 * capacity bytes of shared memory.
extern "C" __global__ void __launch_bounds__(512)
sum_by_leaf(const f32 *old_g, const i32 *times, i32 has_times, const i32 *leaf_of_row, i32 n, const State *old,
            i32 capacity, i32 own, u64 *sums)
{
    extern __shared__ u32 near[];
    const f64 scale = old->scale_g;
    const i32 error = old->error;
    for (i64 begin = (i64)blockIdx.x * MEAN_ROWS; begin < n; begin += (i64)gridDim.x * MEAN_ROWS) {
        if (own) {
            for (i32 v = threadIdx.x; v < 2 * capacity; v += blockDim.x)
                near[v] = 0;
            __syncthreads();
        }
        for (i64 i = begin + threadIdx.x; i < min(begin + MEAN_ROWS, (i64)n); i += blockDim.x) {
            const i32 m = has_times ? times[i] : 1, leaf = leaf_of_row[i];
            const i32 exact = (i32)quantised(old_g[i], scale, m, error); // a sum of all is below 2^31
            if (own) {
                atomicAdd(near + 2 * leaf, (u32)exact);
                atomicAdd(near + 2 * leaf + 1, (u32)m);
            } else {
                atomicAdd(sums + 2 * leaf, (u64)(i64)exact);
                atomicAdd(sums + 2 * leaf + 1, (u64)m);
            }
        }
        if (own) {
            __syncthreads();
            for (i32 v = threadIdx.x; v < capacity; v += blockDim.x) {
                if (near[2 * v] != 0)
                    atomicAdd(sums + 2 * v, (u64)(i64)(i32)near[2 * v]);
                if (near[2 * v + 1] != 0)
                    atomicAdd(sums + 2 * v + 1, (u64)near[2 * v + 1]);
            }
            __syncthreads();
        }
    }
}

// The drawn rows, or all where drawn is 0: (g - g' + eta mean) / p and h / p, the mean being that of g' over the
// row's leaf. One output: g, h, old_g (n,), made_g, made_h (room,). made_times is written where first is 1.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
leaf_control_variate(const f32 *g, const f32 *h, const f32 *old_g, const i32 *times, i32 has_times, const i32 *rows,
             const i32 *m, i32 drawn, f32 by, const f32 *each, i32 has_each, const i32 *leaf_of_row, const u64 *means,
             const State *old, f64 eta, i32 room, i32 first, f32 *made_g, f32 *made_h, i32 *made_times, f64 *sums,
             u64 *tops, u64 *weights, i32 *most, u32 *arrived, State *state)
{
    const i32 count_all = drawn ? *m : room;
    const Extents extents = {sums, tops, (count_all + STRETCH - 1) / STRETCH};
    const f64 unit = old->unit_g;
    i64 weight = 0;
    i32 largest = 1;
    const auto load = [&](i32 i) { return drawn ? rows[i] : i; };
    const auto make = [&](i32 i, i32 row) {
        const i32 leaf = leaf_of_row[row], own = has_times ? times[row] : 1;
        const f64 share = !drawn ? 1.0 : widened(has_each ? ((const u32 *)each)[i] : __float_as_uint(by));
        const u64 stands_for = means[2 * leaf + 1];
        const f64 mean = (f64)(i64)means[2 * leaf] * unit / (f64)(stands_for > 0 ? stands_for : 1);
        const f64 now = widened(((const u32 *)g)[row]), old_of_row = widened(((const u32 *)old_g)[row]);
        const u32 g_bits = narrowed(leaf_gradient(now, old_of_row, mean, share, eta));
        const u32 h_bits = narrowed(weighted(widened(((const u32 *)h)[row]), share));
        ((u32 *)made_g)[i] = g_bits;
        ((u32 *)made_h)[i] = h_bits;
        if (has_times) {
            weight += own;
            largest = max(largest, own);
            if (first)
                made_times[i] = own;
        }
        return MadeRow{g_bits, h_bits, own};
    };
    make_and_measure(extents, count_all, load, make);
    finish_counted(extents, count_all, has_times, weight, largest, weights, most, arrived, state);
}
