// Exact sums of float64 numbers (losses/averages.py: bounded_sum): each number is split into three integers, whose sums
// have no order. In front: common.cuh.

struct Pieces {
    i64 sums[3];

    // x: times the scale of losses/averages.py: pieces_scale, so that its absolute value is at most 2^31.
    __device__ __forceinline__ void add(f64 x)
    {
#pragma unroll
        for (i32 place = 0; place < 3; ++place) {
            const f64 whole = rint(x);
            sums[place] += (i64)whole;
            x = (x - whole) * 0x1p31;
        }
    }
};

// sums (3,) += the pieces of all threads of the block.
static __device__ __forceinline__ void add_pieces(const Pieces &own, i64 *sums)
{
    for (i32 place = 0; place < 3; ++place) {
        i64 sum = own.sums[place];
        for (i32 d = 16; d; d >>= 1)
            sum += __shfl_xor_sync(FULL_WARP, sum, d);
        if ((threadIdx.x & 31) == 0)
            atomicAdd((u64 *)sums + place, (u64)sum);
    }
}
