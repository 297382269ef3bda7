// The end of a line search, and the search for the absolute and the quantile loss: line_search.pinball, a weighted
// quantile of residual / direction, found digit by digit. In front: common.cuh, tree.cuh, ordered_float.cuh.

enum { LENGTH_THREADS = 256, CHUNK = 16384 }; // rows of a chunk, whose weights' halves add up in 32 bits

// State of the search for the quantile.
struct Quantile {
    u64 key;     // its leading bits
    u64 needed;  // weight that is still to be reached
    u64 up;      // weight of the rows whose direction is upwards
    u64 largest; // bits of the largest weight, before it is an integer; 0 if no row has a direction
};

struct Sides {
    const f64 *y, *scores, *weight, *values;
    const i32 *times, *leaf_of_row;
    i32 has_weight, has_times;

    __device__ __forceinline__ f64 along(i32 i) const { return values[leaf_of_row[i]]; }

    __device__ __forceinline__ f64 size(i32 i, f64 along) const
    {
        const f64 by = along < 0.0 ? -along : along;
        return has_weight ? weight[i] * by : has_times ? (f64)times[i] * by : by;
    }
};

// The power of two that takes the largest weight to 2^30 .. 2^31.
static __device__ __forceinline__ f64 whole_scale(u64 largest)
{
    const i32 exponent = (i32)(largest >> 52 & 0x7ff) - 1022, power = min(31 - exponent, 1000);
    return __longlong_as_double((i64)(power + 1023) << 52);
}

// quantile->largest, 0 before.
extern "C" __global__ void __launch_bounds__(LENGTH_THREADS)
find_largest(const f64 *y, const f64 *scores, const f64 *weight, i32 has_weight, const i32 *times, i32 has_times,
             const i32 *leaf_of_row, const f64 *values, i32 n, Quantile *quantile)
{
    const Sides sides = {y, scores, weight, values, times, leaf_of_row, has_weight, has_times};
    f64 top = 0.0;
    for (i32 i = blockIdx.x * LENGTH_THREADS + threadIdx.x; i < n; i += gridDim.x * LENGTH_THREADS) {
        const f64 size = sides.size(i, sides.along(i));
        top = size > top ? size : top;
    }
    for (i32 d = 16; d; d >>= 1) {
        const f64 other = __shfl_xor_sync(FULL_WARP, top, d);
        top = other > top ? other : top;
    }
    if ((threadIdx.x & 31) == 0 && top > 0.0) // doubles that are not negative order as their bits
        atomicMax(&quantile->largest, (u64)__double_as_longlong(top));
}

// The next digit of the quantile, from the weights by digit, which are 0 afterwards. By one block.
static __device__ void choose(u64 *counts, i32 shift, f64 alpha, Quantile *quantile, f64 *length)
{
    __shared__ u64 of_digit[DIGITS];
    __shared__ u64 total, need;
    of_digit[threadIdx.x] = counts[threadIdx.x];
    counts[threadIdx.x] = 0;
    __syncthreads();
    u64 up_to = 0;
    for (i32 digit = 0; digit <= (i32)threadIdx.x; ++digit)
        up_to += of_digit[digit];
    if (threadIdx.x == DIGITS - 1)
        total = up_to;
    __syncthreads();
    if (threadIdx.x == 0) {
        need = quantile->needed;
        if (shift == 56) {
            const u64 up = quantile->up;
            const f64 share = ceil(alpha * (f64)(i64)up + (1.0 - alpha) * (f64)(i64)(total - up));
            need = share < 1.0 ? 1 : (u64)(i64)share;
            need = need > total ? total : need;
        }
        if (total == 0 && shift == 0)
            *length = 0.0; // no row has a direction
    }
    __syncthreads();
    const u64 count = of_digit[threadIdx.x];
    if (up_to >= need && up_to - count < need && count) { // one thread
        const u64 key = (shift == 56 ? 0 : quantile->key) | (u64)threadIdx.x << shift;
        quantile->key = key;
        quantile->needed = need - (up_to - count);
        if (shift == 0) {
            const f64 found = number(key);
            *length = found > 0.0 ? found : 0.0;
        }
    }
}

// counts[digit] += weight, of the rows that agree with the quantile so far; the last block takes the next digit.
extern "C" __global__ void __launch_bounds__(LENGTH_THREADS)
next_digit(const f64 *y, const f64 *scores, const f64 *weight, i32 has_weight, const i32 *times, i32 has_times,
           const i32 *leaf_of_row, const f64 *values, i32 n, i32 shift, f64 alpha, Quantile *quantile, u64 *counts,
           u32 *arrived, f64 *length)
{
    __shared__ u32 low[DIGITS], high[DIGITS]; // halves of the weights: 32 bits of shared memory add at once
    const Sides sides = {y, scores, weight, values, times, leaf_of_row, has_weight, has_times};
    const f64 scale = whole_scale(quantile->largest);
    const u64 known = quantile->key;
    u64 up = 0;
    for (i32 begin = blockIdx.x * CHUNK; begin < n; begin += gridDim.x * CHUNK) {
        low[threadIdx.x] = high[threadIdx.x] = 0;
        __syncthreads();
        for (i32 i = begin + threadIdx.x; i < min(n, begin + (i32)CHUNK); i += LENGTH_THREADS) {
            const f64 along = sides.along(i);
            if (along == 0.0)
                continue;
            const u64 key = ordered((y[i] - scores[i]) / along);
            if (shift < 56 && (key ^ known) >> (shift + 8) != 0)
                continue;
            const i64 rounded = (i64)rint(sides.size(i, along) * scale);
            const u32 whole = rounded > 1 ? (u32)rounded : 1;
            const i32 digit = (i32)(key >> shift & 255);
            atomicAdd(low + digit, whole & 0xffffu);
            atomicAdd(high + digit, whole >> 16);
            up += along > 0.0 ? whole : 0;
        }
        __syncthreads();
        const u64 sum = ((u64)high[threadIdx.x] << 16) + low[threadIdx.x];
        if (sum)
            atomicAdd(counts + threadIdx.x, sum);
        __syncthreads();
    }
    if (shift == 56) {
        for (i32 d = 16; d; d >>= 1)
            up += __shfl_xor_sync(FULL_WARP, up, d);
        if ((threadIdx.x & 31) == 0 && up)
            atomicAdd(&quantile->up, up);
    }
    if (last_block(arrived))
        choose(counts, shift, alpha, quantile, length);
}

// The values of the tree's nodes times their length. stride: of lengths, in numbers; 0 for one of all.
extern "C" __global__ void __launch_bounds__(LENGTH_THREADS)
go_along(const State *state, Node *nodes, const f64 *length, i32 stride, f64 *values)
{
    for (i32 v = blockIdx.x * LENGTH_THREADS + threadIdx.x; v < state->n_nodes; v += gridDim.x * LENGTH_THREADS) {
        const f64 value = length[(i64)v * stride] * values[v] + 0.0;
        nodes[v].value = value;
        values[v] = value;
    }
}
