// Extents of gradients, and the scale at which they become integers: numerics/exact_sums.py, numerics/fixed_point.py.

enum {
    LANES = 16,                      // partial sums side by side
    STRETCH = 4096,                  // rows whose lanes are summed before the next stretch begins
    STRETCHES = 16,                  // stretches of a block of rows
    EXTENT_THREADS = 512
};

// The sizes of g and h of one stretch, as the lanes that sum them read them: no two in one bank of shared memory.
struct Sizes {
    u32 bits[2 * STRETCH];
    u16 times[STRETCH]; // multiplicities, at most 4096; not set where there are none

    __device__ __forceinline__ void put(i32 row, u32 g, u32 h)
    {
        u32 *line = bits + row / LANES * 2 * LANES + row % LANES;
        line[0] = g & 0x7fffffffu;
        line[LANES] = h & 0x7fffffffu;
    }
};

// Extents over all rows of one output: two sums per stretch (of g, then of h), and the largest size of each as bits.
struct Extents {
    f64 *sums;
    u64 *tops; // 0 before a launch and after it
    i32 stretches;
};

// One warp sums a stretch: lanes 0 .. 15 those of g, 16 .. 31 those of h. ``top`` keeps each lane's largest.
static __device__ __forceinline__ void sum_stretch(const Sizes &sizes, bool has_times, i32 count, i32 stretch,
                                                   const Extents &extents, f64 &top)
{
    const i32 lane = threadIdx.x;
    f64 sum = 0.0;
    for (i32 row = lane % LANES; row < count; row += LANES) {
        f64 size = widened(sizes.bits[row / LANES * 2 * LANES + lane]);
        if (has_times)
            size *= (f64)sizes.times[row];
        sum += size;
        top = size > top ? size : top;
    }
    f64 total = 0.0;
    for (i32 other = 0; other < LANES; ++other)
        total += __shfl_sync(FULL_WARP, sum, lane / LANES * LANES + other);
    if (lane % LANES == 0)
        extents.sums[lane / LANES * extents.stretches + stretch] = total;
}

static __device__ __forceinline__ void keep_tops(const Extents &extents, f64 top)
{
    if (threadIdx.x < 32 && top > 0.0) // doubles that are not negative order as their bits
        atomicMax(extents.tops + threadIdx.x / LANES, (u64)__double_as_longlong(top));
}

// The total of ``stretches`` sums: blocks of 16 stretches in order, then the blocks in order. All threads of the block;
// thread 0 has the answer. The sums are used up.
static __device__ f64 total_in_order(f64 *sums, i32 stretches)
{
    __shared__ f64 in_block[EXTENT_THREADS];
    const i32 blocks = (stretches + STRETCHES - 1) / STRETCHES;
    f64 total = 0.0;
    for (i32 first = 0; first < blocks; first += EXTENT_THREADS) {
        const i32 b = first + threadIdx.x;
        if (threadIdx.x < EXTENT_THREADS && b < blocks) {
            f64 sum = 0.0;
            for (i32 s = b * STRETCHES; s < (b + 1) * STRETCHES && s < stretches; ++s)
                sum += sums[s];
            in_block[threadIdx.x] = sum;
        }
        __syncthreads();
        if (threadIdx.x == 0)
            for (i32 i = 0; i < EXTENT_THREADS && first + i < blocks; ++i)
                total += in_block[i];
        __syncthreads();
    }
    return total;
}

// The largest power of two that is not above x, a positive normal number.
static __device__ __forceinline__ f64 power_below(f64 x)
{
    return __longlong_as_double(__double_as_longlong(x) & 0x7ff0000000000000ll);
}

// fixed_point_scale of fixed_point.py for sums of ``bits`` bits. The total is finite.
static __device__ f64 scale_of(f64 top, f64 total, f64 most, f64 weight, i32 bits)
{
    if (!(top > 0.0))
        return 1.0;
    const f64 row_room = (bits == 31 ? 32768.0 : 65536.0) - 1.0 - 0.5 * most;
    const f64 sum_room = (bits == 31 ? 2147483648.0 : 4294967296.0) - 1.0 - 0.5 * weight;
    const f64 by_row = row_room > 0.0 ? power_below(row_room / top) : 0.0;
    const f64 by_sum = sum_room > 0.0 ? power_below(sum_room / (total * (1.0 + 0x1p-20))) : 0.0;
    return by_row > by_sum ? by_row : by_sum;
}

// The last block of an output: the target's part of ``State``. m: rows; weight: what they stand for; most: largest
// multiplicity. All threads of the block.
static __device__ void settle_extents(const Extents &extents, i32 m, i64 weight, i32 most, State *state)
{
    const f64 total_g = total_in_order(extents.sums, extents.stretches);
    const f64 total_h = total_in_order(extents.sums + extents.stretches, extents.stretches);
    if (threadIdx.x != 0)
        return;
    const f64 top_g = __longlong_as_double((i64)extents.tops[0]), top_h = __longlong_as_double((i64)extents.tops[1]);
    extents.tops[0] = extents.tops[1] = 0;
    const bool finite = total_g - total_g == 0.0 && total_h - total_h == 0.0;
    const f64 scale_g = finite ? scale_of(top_g, total_g, (f64)most, (f64)weight, 31) : 1.0;
    const f64 scale_h = finite ? scale_of(top_h, total_h, (f64)most, (f64)weight, 32) : 1.0;
    const bool narrow = top_g * scale_g + 0.5 * most <= 32767.0 && top_h * scale_h + 0.5 * most <= 65535.0;
    state->scale_g = scale_g;
    state->scale_h = scale_h;
    state->unit_g = 1.0 / scale_g;
    state->unit_h = 1.0 / scale_h;
    state->weight = weight;
    state->m = m;
    state->wide = narrow ? 0 : 1;
    state->error = finite ? 0 : 1;
}

// The same, unless other shards have rows of the target too: then sums and tops wait for theirs (shards.cu).
static __device__ void finish_extents(const Extents &extents, i32 m, i64 weight, i32 most, State *state)
{
    if (!SHARDED)
        settle_extents(extents, m, weight, most, state);
}

// The same where multiplicities are counted on the way: each thread's sum of them and the largest it saw. ``weights``
// and ``most`` are 0 before a launch and after it. All threads of all blocks of an output.
static __device__ void finish_counted(const Extents &extents, i32 m, i32 has_times, i64 weight, i32 largest,
                                      u64 *weights, i32 *most, u32 *arrived, State *state)
{
    if (has_times) {
        for (i32 d = 16; d > 0; d >>= 1) {
            weight += __shfl_xor_sync(FULL_WARP, weight, d);
            largest = max(largest, __shfl_xor_sync(FULL_WARP, largest, d));
        }
        if (threadIdx.x % 32 == 0 && weight > 0) {
            atomicAdd(weights, (u64)weight);
            atomicMax(most, largest);
        }
    }
    if (!last_block(arrived, gridDim.x))
        return;
    finish_extents(extents, m, has_times ? (i64)*weights : m, has_times ? max(*most, 1) : 1, state);
    __syncthreads();
    if (threadIdx.x == 0 && has_times) {
        *weights = 0;
        *most = 0;
    }
}

// |q| <= 32767 and q_h <= 65535 in the narrow case, as q = rint(x * scale) * times <= x * times * scale + times / 2.
