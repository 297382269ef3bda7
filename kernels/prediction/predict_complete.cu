// Scores of many binned rows by trees that are laid out as complete binary trees, as ``predict`` of predict.cu gives them.
// In front: common.cuh, walk.cuh.
//
// The children of node v are 2 v + 1 and 2 v + 2, so that a node is one word: turn | limit << 8 | feature << 16. A row
// goes left if its bin + turn <= limit, modulo 256; so a missing bin may come before all others, or after them. Bit 31: a
// categorical split, whose left set decides. The first nodes of a tree lie in different banks of shared memory: threads
// that look at them do not wait for each other.

enum {
    THREADS = 512, ROWS_OF_THREAD = 2, BLOCK_ROWS = THREADS * ROWS_OF_THREAD,
    STAGE = 2048 // places in shared memory for the nodes, and for the leaves, of some trees
};

// Words ``columns / 4`` of a row's bins, to near[word * BLOCK_ROWS + place].
static __device__ __forceinline__ void bring_bins(const BinRows &bins, i64 row, i32 columns, u32 *near, i32 place)
{
    for (i32 column = 0; column < columns; column += 4) {
        const i64 tile = column >> bins.shift;
        const i64 at = ((tile * bins.n + row) << bins.shift) + (column & ((1 << bins.shift) - 1));
        near[column / 4 * BLOCK_ROWS + place] = *(const u32 *)(bins.bins + at);
    }
}

// Tree t has depth[t], and places begin[t] ... for 2^depth - 1 nodes and as many leaves and 1; leaves: factor * value.
// sets: 8 words to a place, with the bit of what is missing where that goes left; only those of categorical splits are
// read. Other arguments as of ``predict``; columns: bins of a row, a multiple of 4.
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
        const u8 *codes[ROWS_OF_THREAD];
#pragma unroll
        for (i32 r = 0; r < ROWS_OF_THREAD; ++r) {
            const i32 place = r * THREADS + threadIdx.x;
            const i64 row = min(top + place, (i64)n - 1);
            sum[r] = own[row];
            bring_bins(bins, row, columns, near, place);
            codes[r] = (const u8 *)(near + place);
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
            for (i32 at = 0; t < end; t += stride) {
                if (output[t] != (i32)blockIdx.y)
                    continue;
                const i32 levels = depth[t];
                u32 v[ROWS_OF_THREAD] = {};
                for (i32 level = 0; level < levels; ++level) {
#pragma unroll
                    for (i32 r = 0; r < ROWS_OF_THREAD; ++r) {
                        const u32 node = near_nodes[at + v[r]];
                        const u32 code = codes[r][(node >> 18 & 0x1fff) * (4 * BLOCK_ROWS) + (node >> 16 & 3)];
                        bool left = (code + node & 255) <= (node >> 8 & 255);
                        if (node >> 31)
                            left = sets[(begin[t] + v[r]) * 8 + (code >> 5)] >> (code & 31) & 1;
                        v[r] = 2 * v[r] + 2 - left;
                    }
                }
#pragma unroll
                for (i32 r = 0; r < ROWS_OF_THREAD; ++r)
                    sum[r] += near_leaves[at + v[r] - ((1 << levels) - 1)];
                at += 1 << levels;
            }
            __syncthreads();
        }
#pragma unroll
        for (i32 r = 0; r < ROWS_OF_THREAD; ++r)
            if (top + r * THREADS + threadIdx.x < n)
                own[top + r * THREADS + threadIdx.x] = sum[r];
    }
}
