// Scores of many binned rows by trees that are laid out as complete binary trees, as ``predict`` of predict.cu gives them.
// In front: common.cuh, walk.cuh, and CATEGORIES: 1 where some split is of categories.
//
// The children of node v are 2 v + 1 and 2 v + 2, so that a node is one word: limit << 24 | turn << 16 | offset. A row
// goes left if its bin + turn <= limit, modulo 256; so a missing bin may come before all others, or after them. The offset
// is that of the feature among a row's bins: 4 * BLOCK_ROWS * (feature / 4) + feature % 4. BY_SET: the left set decides.
//
// A step is some ten instructions, as there are billions of them. The first nodes of a tree, and the bins of the rows of a
// warp, lie in different banks of shared memory, so that threads do not wait for each other.

enum {
    THREADS = 512, ROWS_OF_THREAD = 2, BLOCK_ROWS = THREADS * ROWS_OF_THREAD,
    STAGE = 2048, // places in shared memory for the nodes, and for the leaves, of some trees
    BY_SET = 4, OFFSET = CATEGORIES ? 0xfffb : 0xffff
};

// The bins of a row, four to a word: near[word * BLOCK_ROWS].
static __device__ __forceinline__ void bring_bins(const BinRows &bins, i64 row, i32 columns, u32 *near)
{
    for (i32 column = 0; column < columns; column += 4) {
        const i64 tile = column >> bins.shift;
        const i64 at = ((tile * bins.n + row) << bins.shift) + (column & ((1 << bins.shift) - 1));
        near[column / 4 * BLOCK_ROWS] = *(const u32 *)(bins.bins + at);
    }
}

// Tree t has depth[t], and places begin[t] ... for 2^depth - 1 nodes, and for as many leaves and 1; leaves: factor * value.
// sets: 8 words to a place, with the bit of what is missing where that goes left. Other arguments as of ``predict``;
// columns: bins of a row, a multiple of 4 and at most 64.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
predict_complete(const u32 *nodes, const f64 *leaves, const u32 *sets, const i64 *begin, const i32 *depth,
                 const i32 *output, i32 first, i32 last, i32 stride, const u8 *rows, i32 n, i32 shift, i32 columns,
                 f64 *sums)
{
    extern __shared__ f64 shared[];
    f64 *near_leaves = shared;
    u32 *near_nodes = (u32 *)(shared + STAGE), *near = near_nodes + STAGE;
    const BinRows bins = {rows, n, shift};
    f64 *own = sums + (i64)blockIdx.y * n;
    const i32 begun = stride == 1 ? first : first + (i32)blockIdx.y;
    for (i64 top = (i64)blockIdx.x * BLOCK_ROWS; top < n; top += (i64)gridDim.x * BLOCK_ROWS) {
        f64 sum[ROWS_OF_THREAD];
#pragma unroll
        for (i32 r = 0; r < ROWS_OF_THREAD; ++r) {
            const i64 row = min(top + r * THREADS + (i32)threadIdx.x, (i64)n - 1);
            sum[r] = own[row];
            bring_bins(bins, row, columns, near + r * THREADS + threadIdx.x);
        }
        for (i32 t = begun; t < last;) {
            i32 end = t, used = 0;
            for (; end < last; end += stride) {
                const i32 size = output[end] == (i32)blockIdx.y ? 1 << depth[end] : 0;
                if (used + size > STAGE)
                    break;
                for (i32 i = threadIdx.x; i < size; i += THREADS) {
                    near_nodes[used + i] = nodes[begin[end] + i];
                    near_leaves[used + i] = leaves[begin[end] + i];
                }
                used += size;
            }
            __syncthreads();
            for (u32 base = 0; t < end; t += stride) { // place of the tree
                if (output[t] != (i32)blockIdx.y)
                    continue;
                const i32 levels = depth[t];
                const u32 to_left = 4 - 4 * base, to_right = 8 - 4 * base; // of twice a node's byte
                u32 at[ROWS_OF_THREAD];
#pragma unroll
                for (i32 r = 0; r < ROWS_OF_THREAD; ++r)
                    at[r] = 4 * base;
                for (i32 level = 0; level < levels; ++level) {
#pragma unroll
                    for (i32 r = 0; r < ROWS_OF_THREAD; ++r) {
                        const u32 node = *(const u32 *)((const u8 *)near_nodes + at[r]);
                        const u32 code = ((const u8 *)(near + r * THREADS + threadIdx.x))[node & OFFSET];
                        bool left = (code << 24) + ((node & 0xff0000u) << 8) <= node;
#if CATEGORIES
                        if (node & BY_SET)
                            left = sets[(begin[t] + at[r] / 4 - base) * 8 + (code >> 5)] >> (code & 31) & 1;
#endif
                        at[r] = 2 * at[r] + (left ? to_left : to_right);
                    }
                }
#pragma unroll
                for (i32 r = 0; r < ROWS_OF_THREAD; ++r)
                    sum[r] += near_leaves[at[r] / 4 - ((1 << levels) - 1)];
                base += 1 << levels;
            }
            __syncthreads();
        }
#pragma unroll
        for (i32 r = 0; r < ROWS_OF_THREAD; ++r)
            if (top + r * THREADS + threadIdx.x < n)
                own[top + r * THREADS + threadIdx.x] = sum[r];
    }
}
