// Extents of gradients, and the scale at which they become integers: numerics/exact_sums.py, numerics/fixed_point.py.

enum {
    LANES = 16,                      // partial sums side by side
    STRETCH = 4096,                  // rows whose lanes are summed before the next stretch begins
    STRETCHES = 16,                  // stretches of a block of rows
    EXTENT_THREADS = 512,
    EXTENT_ROWS = 4,                 // of a thread at once
    PIECE = EXTENT_THREADS * EXTENT_ROWS, // rows that a block makes at once; a stretch has some of them
    HALF = EXTENT_THREADS / 2
};

// The sizes of g and h of one piece, times the multiplicity, as the lanes that sum them read them: no two in one bank of
// shared memory.
struct Sizes {
    f64 of[2 * PIECE];
};

// Extents over all rows of one output: two sums per stretch (of g, then of h), and the largest size of each as bits.
struct Extents {
    f64 *sums;
    u64 *tops; // 0 before a launch and after it
    i32 stretches;
};

// Gradient of one row, as bits, and the rows that it stands for (1 where there are no multiplicities).
struct MadeRow {
    u32 g, h;
    i32 times;
};

// One warp adds a piece to the sums of the lanes: lanes 0 .. 15 those of g, 16 .. 31 those of h. ends: the stretch does.
static __device__ __forceinline__ void sum_piece(const Sizes &sizes, i32 count, bool ends, i32 stretch,
                                                 const Extents &extents, f64 &sum)
{
    const i32 lane = threadIdx.x, rows = (count + LANES - 1 - lane % LANES) / LANES;
#pragma unroll 16
    for (i32 k = 0; k < rows; ++k)
        sum += sizes.of[k * 2 * LANES + lane];
    if (!ends)
        return;
    f64 total = 0.0;
    for (i32 other = 0; other < LANES; ++other)
        total += __shfl_sync(FULL_WARP, sum, lane / LANES * LANES + other);
    if (lane % LANES == 0)
        extents.sums[lane / LANES * extents.stretches + stretch] = total;
    sum = 0.0;
}

static __device__ __forceinline__ f64 larger(f64 a, f64 b)
{
    return b > a ? b : a;
}

// The largest sizes that the threads of a block saw.
static __device__ __forceinline__ void keep_tops(Sizes &sizes, const Extents &extents, f64 top_g, f64 top_h)
{
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (i32 d = 16; d > 0; d >>= 1) {
        top_g = larger(top_g, __shfl_xor_sync(FULL_WARP, top_g, d));
        top_h = larger(top_h, __shfl_xor_sync(FULL_WARP, top_h, d));
    }
    if (lane == 0) {
        sizes.of[warp] = top_g;
        sizes.of[EXTENT_THREADS / 32 + warp] = top_h;
    }
    __syncthreads();
    static_assert(2 * EXTENT_THREADS / 32 == 32, "a warp has a lane for each");
    if (warp == 0) {
        f64 top = sizes.of[lane];
        for (i32 d = 8; d > 0; d >>= 1)
            top = larger(top, __shfl_xor_sync(FULL_WARP, top, d));
        if (lane % 16 == 0 && top > 0.0) // doubles that are not negative order as their bits
            atomicMax(extents.tops + lane / 16, (u64)__double_as_longlong(top));
    }
}

// Make the gradients of n rows, and measure them: each block those of its stretches. load(i): what row i is made of,
// asked for a piece ahead, so that it arrives while one warp sums; make(i, loaded): its MadeRow.
template <class Load, class Make>
static __device__ __forceinline__ void make_and_measure(const Extents &extents, u32 n, Load load, Make make)
{
    __shared__ Sizes sizes;
    decltype(load(0)) loaded[EXTENT_ROWS];
    f64 sum = 0.0, top_g = 0.0, top_h = 0.0;
    u32 begin = blockIdx.x * STRETCH;
#pragma unroll
    for (i32 u = 0; u < EXTENT_ROWS; ++u)
        if (begin + threadIdx.x + u * EXTENT_THREADS < n)
            loaded[u] = load(begin + threadIdx.x + u * EXTENT_THREADS);
    while (begin < n) {
        const u32 stretch = begin / STRETCH, count = min((u32)PIECE, n - begin);
        const bool ends = (begin + PIECE) % STRETCH == 0 || begin + PIECE >= n;
        const u32 next = ends ? (stretch + gridDim.x) * STRETCH : begin + PIECE;
#pragma unroll
        for (i32 u = 0; u < EXTENT_ROWS; ++u) {
            const u32 row = threadIdx.x + u * EXTENT_THREADS;
            if (row < count) {
                const MadeRow made = make(begin + row, loaded[u]);
                const f64 times = (f64)made.times;
                const f64 size_g = widened(made.g & 0x7fffffffu) * times, size_h = widened(made.h & 0x7fffffffu) * times;
                f64 *line = sizes.of + row / LANES * 2 * LANES + row % LANES;
                line[0] = size_g;
                line[LANES] = size_h;
                top_g = larger(top_g, size_g);
                top_h = larger(top_h, size_h);
            }
        }
#pragma unroll
        for (i32 u = 0; u < EXTENT_ROWS; ++u)
            if (next + threadIdx.x + u * EXTENT_THREADS < n)
                loaded[u] = load(next + threadIdx.x + u * EXTENT_THREADS);
        __syncthreads();
        if (threadIdx.x < 32)
            sum_piece(sizes, count, ends, stretch, extents, sum);
        __syncthreads();
        begin = next;
    }
    keep_tops(sizes, extents, top_g, top_h);
}

// The totals of one array of ``stretches`` sums or of two, one after the other: blocks of 16 stretches in order, then the
// blocks in order. All threads of the block; thread 0 has the first, thread 32 the second.
static __device__ f64 total_in_order(const f64 *sums, i32 stretches, i32 arrays = 1)
{
    __shared__ f64 in_block[2][HALF];
    const i32 blocks = (stretches + STRETCHES - 1) / STRETCHES, of = threadIdx.x / HALF, adds = threadIdx.x / 32;
    const f64 *own = sums + (i64)of * stretches;
    f64 total = 0.0;
    for (i32 first = 0; first < blocks; first += HALF) {
        const i32 b = first + threadIdx.x % HALF;
        if (of < arrays && b < blocks) {
            f64 each[STRETCHES], sum = 0.0; // which is never -0: to add 0 changes nothing
#pragma unroll
            for (i32 s = 0; s < STRETCHES; ++s)
                each[s] = b * STRETCHES + s < stretches ? own[b * STRETCHES + s] : 0.0;
#pragma unroll
            for (i32 s = 0; s < STRETCHES; ++s)
                sum += each[s];
            in_block[of][threadIdx.x % HALF] = sum;
        }
        __syncthreads();
        if (threadIdx.x % 32 == 0 && adds < arrays) {
            const i32 here = min((i32)HALF, blocks - first);
#pragma unroll 16
            for (i32 i = 0; i < here; ++i)
                total += in_block[adds][i];
        }
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
    __shared__ f64 scales[2], units[2], largest[2]; // of g, of h: by a thread each
    __shared__ bool finite[2];
    const i32 side = threadIdx.x / 32;
    const bool one = threadIdx.x % 32 == 0 && side < 2;
    const f64 top = one ? __longlong_as_double((i64)extents.tops[side]) : 0.0;
    const f64 total = total_in_order(extents.sums, extents.stretches, 2);
    if (one) {
        const i32 bits = 31 + side;
        const f64 scale = scale_of(top, total, (f64)most, (f64)weight, bits);
        finite[side] = total - total == 0.0;
        scales[side] = scale;
        units[side] = 1.0 / scale;
        largest[side] = top * scale + 0.5 * most;
        extents.tops[side] = 0;
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    const bool sound = finite[0] && finite[1];
    const bool narrow = largest[0] <= 32767.0 && largest[1] <= 65535.0;
    state->scale_g = sound ? scales[0] : 1.0;
    state->scale_h = sound ? scales[1] : 1.0;
    state->unit_g = sound ? units[0] : 1.0;
    state->unit_h = sound ? units[1] : 1.0;
    state->weight = weight;
    state->m = m;
    state->wide = narrow ? 0 : 1;
    state->error = sound ? 0 : 1;
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
