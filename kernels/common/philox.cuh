// Philox4x32-10 of kernels/common/philox.py, which is linked in as philox_words: number i of a stream is word i % 4 at
// counter (i / 4 low, i / 4 high, iteration, stream), the key being the seed.

static __device__ __forceinline__ uint4 philox(const Stream &stream, u64 block)
{
    u32 words[4];
    philox_words((u32)block, (u32)(block >> 32), stream.iteration, stream.name, stream.seed_low, stream.seed_high,
                 words);
    return make_uint4(words[0], words[1], words[2], words[3]);
}
