// Gradient estimates of smoothed ranking metrics (backends/reference/smoothed_ranking.py), draw by draw: noisy scores,
// which ranking.cu puts in order, and a sum for each document over the places that count. In front: common.cuh,
// philox.cuh, normal.cuh with its table, and exp_of. Sums are float64 and need no other document's.

// scores[i] less shift[i], with number i of the stream times sigma. iteration: a word on the device.
extern "C" __global__ void __launch_bounds__(256)
noisy_scores(const f64 *scores, const f64 *shift, f64 sigma, u32 seed_low, u32 seed_high, const u32 *iteration, u32 name,
             const f64 *table, i32 n, f64 *noisy)
{
    const Stream stream = {seed_low, seed_high, *iteration, name};
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        noisy[i] = (scores[i] - shift[i]) + sigma * normal(stream, (u64)i, table);
}

// placed (n,): noisy scores in order of places.
extern "C" __global__ void __launch_bounds__(256)
put_in_places(const f64 *noisy, const i32 *place_of, i32 n, f64 *placed)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        placed[place_of[i]] = noisy[i];
}

// The sums of one draw, added to those of the draws before; ``first`` is 1 for the first draw. gain (n,) gains of rows,
// placed and placed_gain (n,) noisy scores and gains in order of places; start (lists + 1,), list_of (n,): the rows of
// lists; drops: fall of the discount behind each place, times constants.
extern "C" __global__ void __launch_bounds__(256)
add_draw(const f64 *scores, const f64 *shift, const f32 *gain, const f64 *placed, const f32 *placed_gain,
         const i32 *place_of, const i32 *start, const i32 *list_of, const f64 *drops, i32 truncation, f64 inverse,
         i32 first, i32 n, f64 *sums)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const i32 q = list_of[i], begin = start[q], places = min(truncation + 1, start[q + 1] - begin);
        const i32 own_place = place_of[i] - begin;
        const f64 clean = scores[i] - shift[i], own = (f64)gain[i];
        f64 sum = 0.0;
        for (i32 place = 0; place < places; ++place) {
            const f64 drop = own_place == place ? 0.0 : drops[place - (own_place < place)];
            if (drop == 0.0)
                continue;
            const f64 away = (placed[begin + place] - clean) * inverse, steps = -0.5 * (away * away);
            sum += (((f64)placed_gain[begin + place] - own) * drop) * exp_of(steps < FARTHEST ? FARTHEST : steps);
        }
        sums[i] = first ? sum : sums[i] + sum;
    }
}

// Estimates of a list without their mean and their part along its centred scores, in place, a thread to a list.
extern "C" __global__ void __launch_bounds__(256)
project_lists(const f64 *scores, const i32 *start, i32 lists, f64 nu, f64 *sums)
{
    for (i32 q = blockIdx.x * blockDim.x + threadIdx.x; q < lists; q += gridDim.x * blockDim.x) {
        const i32 begin = start[q], end = start[q + 1];
        f64 sum_g = 0.0, sum_z = 0.0, square = 0.0, along = 0.0;
        for (i32 i = begin; i < end; ++i) {
            sum_g += sums[i];
            sum_z += scores[i];
        }
        const f64 count = (f64)(end - begin), mean_g = sum_g / count, mean_z = sum_z / count;
        for (i32 i = begin; i < end; ++i) {
            const f64 centred = scores[i] - mean_z;
            sums[i] -= mean_g;
            square += centred * centred;
            along += sums[i] * centred;
        }
        if (end - begin < 3)
            continue;
        const f64 norm = sqrt(square) + nu, share = along / (norm * norm);
        for (i32 i = begin; i < end; ++i)
            sums[i] -= share * (scores[i] - mean_z);
    }
}
