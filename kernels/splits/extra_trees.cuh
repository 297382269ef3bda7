// extra_trees: one random cut of each feature in a node. Definition: backends/numerics/extra_trees.py.
//
// Compiled with EXTRA_TREES 1 where there are random cuts; then philox.cuh is in front, too. In front: common.cuh.

#ifndef EXTRA_TREES
#define EXTRA_TREES 0
#endif

// Further parameters of kernels that search splits: the stream of the cuts.
#if EXTRA_TREES
#define CUTS , u32 cut_seed_low, u32 cut_seed_high, const u32 *cut_iteration, u32 cut_name
#else
#define CUTS
#endif

// A node's part of the number of a Philox block. g, h: its sums; for a level that shares a split, its depth and 0.
static __device__ __forceinline__ u64 number_of(i64 g, i64 h)
{
    return (u64)g * 0x9e3779b97f4a7c15ull + (u64)h * 0xc2b2ae3d27d4eb4full;
}

// The block of a feature in that node.
static __device__ __forceinline__ u64 block_of(u64 number, i32 feature)
{
    return number + (u64)feature * 0x165667b19e3779f9ull;
}

// One of 0 .. count - 1.
static __device__ __forceinline__ i32 place_of(u32 word, i32 count) { return (i32)((u64)word * (u32)count >> 32); }

// The bin below the random cut, -1 if there is none. first, last: bins that there are rows of; last is -1 without any.
static __device__ __forceinline__ i32 cut_between(u32 word, i32 first, i32 last, bool some_missing)
{
    const i32 cuts = last < 0 ? 0 : last - first + some_missing;
    return cuts > 0 ? first + place_of(word, cuts) : -1;
}

// The least and the largest over a warp.
static __device__ __forceinline__ void widen_over_warp(i32 &first, i32 &last)
{
    for (i32 d = 16; d; d >>= 1) {
        first = min(first, __shfl_xor_sync(FULL_WARP, first, d));
        last = max(last, __shfl_xor_sync(FULL_WARP, last, d));
    }
}
