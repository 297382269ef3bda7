// Gaussian numbers of kernels/common/normal.py, which is linked in as normal_of: the quantile of a Philox word. In front:
// philox.cuh.

static __device__ __forceinline__ f64 normal(const Stream &stream, u64 number, const f64 *table)
{
    const uint4 words = philox(stream, number / 4);
    const u32 place = (u32)number & 3u;
    return normal_of(place == 0 ? words.x : place == 1 ? words.y : place == 2 ? words.z : words.w, table);
}
