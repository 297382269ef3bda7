// Choice of the feature that splits a node, without and with noise on the gains (random_strength).
// Definition: backends/numerics/random_strength.py. In front: blocks.cuh, extra_trees.cuh, search.cuh.
//
// Compiled with DISTURBED 1 where there is noise; then philox.cuh and normal.cuh are in front, too.

#ifndef DISTURBED
#define DISTURBED 0
#endif

struct GainNoise {
    f64 deviation; // in units of the mean gain
    Stream stream;
    const f64 *table;
};

// Standard deviation of the noise on a gain: ``deviation`` times the mean of the positive gains. Sums have a fixed order,
// by the features' numbers. By one warp.
static __device__ f64 spread_of(const Candidate *candidates, const i32 *features, i32 t, f64 deviation)
{
    const i32 lane = threadIdx.x & 31;
    f64 sum = 0.0, total = 0.0;
    i32 competing = 0;
    for (i32 j = 0; j < t; ++j)
        if ((features[j] & 31) == lane && candidates[j].found.gain > 0.0) {
            sum += candidates[j].found.gain;
            ++competing;
        }
    for (i32 d = 16; d; d >>= 1)
        competing += __shfl_xor_sync(FULL_WARP, competing, d);
    for (i32 l = 0; l < 32; ++l)
        total += __shfl_sync(FULL_WARP, sum, l);
    return competing > 1 ? deviation * (total / (f64)competing) : 0.0;
}

// The first candidate with the largest noisy gain, and its gain without noise; NO_KEY if none gains. By one warp.
static __device__ i32 feature_of(const Candidate *candidates, const i32 *features, i32 t, u64 number,
                                 const GainNoise &noise, f64 &gain)
{
    f64 best = __longlong_as_double((i64)0xfff0000000000000ull); // below all
    i32 key = NO_KEY;
    const f64 spread = DISTURBED ? spread_of(candidates, features, t, noise.deviation) : 0.0;
    for (i32 j = threadIdx.x & 31; j < t; j += 32) {
        f64 seems = candidates[j].found.gain;
        if (!(seems > 0.0))
            continue;
#if DISTURBED
        seems += spread * normal_of(philox(noise.stream, block_of(number, features[j])).x, noise.table);
#endif
        if (seems > best) {
            best = seems;
            key = j;
        }
    }
    best_lane(best, key);
    gain = key == NO_KEY ? 0.0 : candidates[key].found.gain;
    return key;
}
