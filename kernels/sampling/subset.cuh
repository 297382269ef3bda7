// A random subset, drawn as kernels/sampling/feature_subsets.py draws it (Floyd 1987): item ``of - count + i``, the last
// of step i, stands for itself, or for one before it that fraction i of the stream names, if that one was not taken
// yet. In front: common.cuh, philox.cuh.

// The item of 0 .. last that fraction i names; drawn: block i / 2 of the stream.
static __device__ __forceinline__ i32 named(const uint4 &drawn, i32 i, i32 last)
{
    const u64 bits = i & 1 ? (u64)drawn.z << 21 | drawn.w >> 11 : (u64)drawn.x << 21 | drawn.y >> 11;
    return (i32)((f64)(i64)bits * 0x1p-53 * (f64)(last + 1));
}

// Takes the item, or ``last`` if it is taken, into the set of bits.
static __device__ __forceinline__ void take(u32 *set, i32 item, i32 last)
{
    if (set[item >> 5] >> (item & 31) & 1)
        item = last;
    set[item >> 5] |= 1u << (item & 31);
}
