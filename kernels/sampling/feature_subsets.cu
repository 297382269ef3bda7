// Features that compete in a node: a random subset of the candidates for each number that a node may have, or for each
// depth, the one that backends/numerics/feature_subsets.py draws on the host. In front: common.cuh, philox.cuh,
// subset.cuh.

// zlib.crc32 of the text ``/number``, continued from ``crc``: gpuboost/keys.py folds a number into a name in this way.
static __device__ u32 folded(u32 crc, u32 number)
{
    u8 digits[10];
    i32 count = 0;
    do {
        digits[count++] = (u8)('0' + number % 10);
        number /= 10;
    } while (number);
    crc = ~crc;
    for (i32 at = count; at >= 0; --at) {
        crc ^= at == count ? (u8)'/' : digits[at];
        for (i32 bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
    }
    return ~crc;
}

// The stream of node, or of level, v (Candidates.node_key): that of the tree for the root; another one's is named by v below ``nodes``,
// or, where the path has no number yet (numbered is 0), has v for its iteration.
static __device__ __forceinline__ Stream stream_of(i32 v, const Stream &of_tree, u32 nodes, i32 numbered)
{
    if (v == 0)
        return of_tree;
    if (numbered)
        return {of_tree.seed_low, of_tree.seed_high, of_tree.iteration, folded(nodes, (u32)v)};
    return {of_tree.seed_low, of_tree.seed_high, (u32)v, nodes};
}

// ``count`` of 0 .. of - 1 as bits of chosen, ``words`` words to a node; a thread to a node.
extern "C" __global__ void __launch_bounds__(64)
draw_features(i32 count, i32 of, i32 words, i32 n_nodes, u32 seed_low, u32 seed_high, const u32 *iteration, u32 name,
              u32 nodes, i32 numbered, u32 *chosen)
{
    const Stream of_tree = {seed_low, seed_high, *iteration, name};
    for (i32 v = blockIdx.x * blockDim.x + threadIdx.x; v < n_nodes; v += gridDim.x * blockDim.x) {
        const Stream stream = stream_of(v, of_tree, nodes, numbered);
        u32 *own = chosen + (i64)v * words;
        for (i32 w = 0; w < words; ++w)
            own[w] = 0;
        for (i32 first = 0; first < count; first += 2) {
            const uint4 drawn = philox(stream, (u64)(first / 2));
            for (i32 i = first; i < min(first + 2, count); ++i) {
                const i32 last = of - count + i;
                take(own, named(drawn, i, last), last);
            }
        }
    }
}
