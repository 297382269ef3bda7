// Results of a metric after each round, kept in a ring. In front: common.cuh.

// ring: row *number % slots = the n words of the result; then *number + 1. arrived: 0 before and after.
extern "C" __global__ void __launch_bounds__(256)
keep_result(const u32 *result, i32 n, u32 *number, i32 slots, u32 *arrived, u32 *ring)
{
    u32 *row = ring + (i64)(*number % (u32)slots) * n;
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        row[i] = result[i];
    if (last_block(arrived) && threadIdx.x == 0)
        *number += 1;
}
