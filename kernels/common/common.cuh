// Common types and functions of all kernels. No header of the toolkit is needed: NVRTC, nvcc and the emulator read the
// same text.

typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

static_assert(sizeof(i32) == 4 && sizeof(i64) == 8 && sizeof(f32) == 4 && sizeof(f64) == 8, "sizes of the types");

#define FULL_WARP 0xffffffffu

#ifndef SHARDED
#define SHARDED 0 // 1: this device has some of a training set's rows, and others have the rest; see shards.cu
#endif

// float32 <-> float64 by their bits. CuPy compiles with -ftz=true, and a conversion instruction would then take a
// subnormal float32 for 0: the host does not.

static __device__ __forceinline__ f64 widened(u32 bits)
{
    const u32 size = bits & 0x7fffffffu;
    if (size < 0x00800000u) {
        const f64 value = (f64)(i32)size * 0x1p-149;
        return bits >> 31 ? -value : value;
    }
    return (f64)__uint_as_float(bits);
}

static __device__ __forceinline__ u32 narrowed(f64 x)
{
    const f64 size = x < 0.0 ? -x : x;
    if (size < 0x1p-126) {
        const u32 sign = (u32)((u64)__double_as_longlong(x) >> 63) << 31;
        return sign | (u32)(i32)rint(size * 0x1p149); // 2^23 of these units are the smallest normal number
    }
    return __float_as_uint((f32)x);
}

struct Stream { // of random numbers
    u32 seed_low, seed_high, iteration, name; // Key.words of gpuboost/keys.py
};

// True in all threads of the block that arrives last of ``blocks``; what the others wrote before is then visible to it.
// The counter is 0 before the launch and after it. One thread fences for all: barriers pass on what it has seen.
static __device__ __forceinline__ bool last_block(u32 *counter, u32 blocks)
{
    __shared__ u32 arrived;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        arrived = atomicInc(counter, blocks - 1);
        if (arrived == blocks - 1)
            __threadfence();
    }
    __syncthreads();
    return arrived == blocks - 1;
}

static __device__ __forceinline__ bool last_block(u32 *counter)
{
    return last_block(counter, gridDim.x * gridDim.y);
}
