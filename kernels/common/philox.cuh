// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011), as kernels/common/philox.py: number i of a stream is word i % 4 at
// counter (i / 4 low, i / 4 high, iteration, stream), the key being the seed.

struct Stream {
    u32 seed_low, seed_high, iteration, name; // Key.words of gpuboost/keys.py
};

static __device__ __forceinline__ uint4 philox(const Stream &stream, u64 block)
{
    u32 c0 = (u32)block, c1 = (u32)(block >> 32), c2 = stream.iteration, c3 = stream.name;
    u32 k0 = stream.seed_low, k1 = stream.seed_high;
    for (i32 round = 0; round < 10; ++round) {
        const u64 p0 = (u64)0xd2511f53u * c0, p1 = (u64)0xcd9e8d57u * c2;
        c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
        c1 = (u32)p1;
        c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c3 = (u32)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return make_uint4(c0, c1, c2, c3);
}
