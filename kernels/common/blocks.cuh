// Sums and orders over one warp, and over one block of up to 1,024 threads.

#define NO_KEY 0x7fffffff

// The lane that holds the largest gain, of equals that with the smallest key; both become known to all lanes.
static __device__ __forceinline__ i32 best_lane(f64 &gain, i32 &key)
{
    i32 from = threadIdx.x & 31;
#pragma unroll
    for (i32 d = 16; d; d >>= 1) {
        const f64 other = __shfl_xor_sync(FULL_WARP, gain, d);
        const i32 other_key = __shfl_xor_sync(FULL_WARP, key, d), other_from = __shfl_xor_sync(FULL_WARP, from, d);
        if (other > gain || (other == gain && other_key < key)) {
            gain = other;
            key = other_key;
            from = other_from;
        }
    }
    return from;
}

// The sum of the values of all earlier threads; ``total`` gets that of all. Of u32, or of u64.
template <class Whole>
static __device__ Whole block_scan(Whole value, Whole &total)
{
    __shared__ Whole of_warp[32];
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    Whole up_to = value;
    for (i32 d = 1; d < 32; d <<= 1) {
        const Whole before = __shfl_up_sync(FULL_WARP, up_to, d);
        if (lane >= d)
            up_to += before;
    }
    if (lane == 31)
        of_warp[warp] = up_to;
    __syncthreads();
    Whole before = 0, sum = 0;
    for (i32 w = 0; w < warps; ++w) {
        before += w < warp ? of_warp[w] : 0;
        sum += of_warp[w];
    }
    __syncthreads();
    total = sum;
    return before + up_to - value;
}

static __device__ u32 block_sum(u32 value)
{
    u32 total;
    block_scan(value, total);
    return total;
}
