// Interaction constraints: the features that may split a node. Definition: backends/numerics/interactions.py.
//
// Compiled with INTERACTIONS 1 where there are constraints. In front: common.cuh, tree.cuh.

#ifndef INTERACTIONS
#define INTERACTIONS 0
#endif

// Further parameters of kernels that search splits: the number that features of one column share; ``set_words`` words to
// a feature, a bit for each set that it is in; how many different columns a path may have, 1 or 2, 0 for any number.
#if INTERACTIONS
#define PATHS , const i32 *__restrict__ column_of, const u32 *__restrict__ sets, i32 set_words, i32 most_columns
#else
#define PATHS
#endif

// True if feature f may split node v, given the features of the splits above it. By one warp.
static __device__ __forceinline__ bool may_follow(const Node *nodes, i32 v, i32 f, const i32 *__restrict__ column_of,
                                                  const u32 *__restrict__ sets, i32 set_words, i32 most_columns)
{
    const i32 own = column_of[f];
    i32 other = own;
    bool few = true, together = false;
    for (i32 p = nodes[v].parent; most_columns && p >= 0; p = nodes[p].parent) {
        const i32 column = column_of[nodes[p].feature];
        if (column == own || column == other)
            continue;
        few = few && other == own && most_columns == 2;
        other = column;
    }
    for (i32 w = threadIdx.x & 31; w < set_words; w += 32) {
        u32 common = sets[(i64)f * set_words + w];
        for (i32 p = nodes[v].parent; p >= 0; p = nodes[p].parent)
            common &= sets[(i64)nodes[p].feature * set_words + w];
        together |= common != 0;
    }
    return few && __ballot_sync(FULL_WARP, together) != 0;
}
