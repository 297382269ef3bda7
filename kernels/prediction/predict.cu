// Scores of binned rows by all trees, in the order of operations of backends/prediction/predictor.py. In front: common.cuh, walk.cuh.

// scores (k, n) = bias (k,) of every row.
extern "C" __global__ void __launch_bounds__(256) start(const f64 *bias, i32 n, f64 *scores)
{
    const f64 first = bias[blockIdx.y];
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        scores[(i64)blockIdx.y * n + i] = first;
}

// out = bias + scale * sums, both (k, n).
extern "C" __global__ void __launch_bounds__(256) shrunk(const f64 *sums, const f64 *bias, const f64 *scale, i32 n, f64 *out)
{
    const f64 first = bias[blockIdx.y];
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[(i64)blockIdx.y * n + i] = first + *scale * sums[(i64)blockIdx.y * n + i];
}

// sums[output of t][i] += value of the leaf, tree after tree from ``first`` to ``last``; blockIdx.y is the output.
// Tree t has nodes begin[t] .. begin[t + 1] - 1; values: factor * value of every node. In a forest of ``stride`` outputs
// whose trees take turns, an output looks at its own trees only; else the stride is 1.
extern "C" __global__ void __launch_bounds__(256)
predict(const Step *steps, const u32 *sets, const f64 *values, const i64 *begin, const i32 *output, i32 first, i32 last,
        i32 stride, const u8 *rows, i32 n, i32 shift, f64 *sums)
{
    const BinRows bins = {rows, n, shift};
    f64 *own = sums + (i64)blockIdx.y * n;
    const i32 begun = stride == 1 ? first : first + (i32)blockIdx.y;
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        f64 sum = own[i];
        for (i32 t = begun; t < last; t += stride)
            if (output[t] == (i32)blockIdx.y)
                sum += values[begin[t] + walk(steps + begin[t], sets + begin[t] * 8, 8, bins, i)];
        own[i] = sum;
    }
}

// A step of a compact tree. ``code``: turn | limit << 8 | feature << 16: a row goes left if its bin + turn <= limit, modulo
// 256, so that a missing bin may belong to either side. left: the left child, whose sibling is the next node; a leaf is
// its own left child, and every row goes there. From bit 31 on, of a categorical split: its left set decides.
struct CompactStep {
    u32 code, left;
};

enum { OF_BLOCK = 512, OF_THREAD = 2, BLOCK_ROWS = OF_BLOCK * OF_THREAD, STAGE_NODES = 4096, BY_SET = 1 << 31 };

// The same as ``predict``, of trees of at most STAGE_NODES nodes: the block's rows lie in shared memory, and so do the
// trees, some at a time. depth: of each tree. columns: bins of a row. sets: of ``predict``.
extern "C" __global__ void __launch_bounds__(OF_BLOCK, 3)
predict_staged(const CompactStep *steps, const u32 *sets, const f64 *values, const i64 *begin, const i32 *depth,
               const i32 *output, i32 first, i32 last, i32 stride, const u8 *rows, i32 n, i32 shift, i32 columns, f64 *sums)
{
    extern __shared__ uint2 shared[];
    CompactStep *stage = (CompactStep *)shared;
    u8 *near = (u8 *)(shared + STAGE_NODES); // bins: near[column * BLOCK_ROWS + row]
    const BinRows bins = {rows, n, shift};
    f64 *own = sums + (i64)blockIdx.y * n;
    const i32 begun = stride == 1 ? first : first + (i32)blockIdx.y;
    for (i64 top = (i64)blockIdx.x * BLOCK_ROWS; top < n; top += (i64)gridDim.x * BLOCK_ROWS) {
        f64 sum[OF_THREAD];
#pragma unroll
        for (i32 r = 0; r < OF_THREAD; ++r) {
            const i32 place = r * OF_BLOCK + threadIdx.x;
            const i64 row = min(top + place, (i64)n - 1);
            sum[r] = own[row];
            for (i32 column = 0; column < columns; ++column)
                near[column * BLOCK_ROWS + place] = (u8)bins.at(row, column);
        }
        for (i32 t = begun; t < last;) {
            i32 end = t, used = 0;
            for (; end < last; end += stride) {
                const i32 nodes = output[end] == (i32)blockIdx.y ? (i32)(begin[end + 1] - begin[end]) : 0;
                if (used + nodes > STAGE_NODES)
                    break;
                for (i32 i = threadIdx.x; i < nodes; i += OF_BLOCK)
                    stage[used + i] = steps[begin[end] + i];
                used += nodes;
            }
            __syncthreads();
            for (const CompactStep *tree = stage; t < end; t += stride) {
                if (output[t] != (i32)blockIdx.y)
                    continue;
                u32 at[OF_THREAD] = {};
                for (i32 k = 0; k < depth[t]; ++k) {
#pragma unroll
                    for (i32 r = 0; r < OF_THREAD; ++r) {
                        const CompactStep step = tree[at[r]];
                        const u32 code = near[(step.code >> 16) * BLOCK_ROWS + r * OF_BLOCK + threadIdx.x];
                        bool left = (code + step.code & 255) <= (step.code >> 8 & 255);
                        if (step.left & BY_SET)
                            left = sets[(begin[t] + at[r]) * 8 + (code >> 5)] >> (code & 31) & 1;
                        at[r] = (step.left & ~BY_SET) + !left;
                    }
                }
#pragma unroll
                for (i32 r = 0; r < OF_THREAD; ++r)
                    sum[r] += values[begin[t] + at[r]];
                tree += begin[t + 1] - begin[t];
            }
            __syncthreads();
        }
#pragma unroll
        for (i32 r = 0; r < OF_THREAD; ++r)
            if (top + r * OF_BLOCK + threadIdx.x < n)
                own[top + r * OF_BLOCK + threadIdx.x] = sum[r];
    }
}

enum { FEW_TREES = 2048 }; // whose values are in shared memory at once

// The same for few rows: a block takes a row, a thread some of the trees, and one thread adds the values in their order.
// So a row waits for depth * trees / 256 steps, and not for depth * trees. blockIdx.y is the output.
extern "C" __global__ void __launch_bounds__(256)
predict_few(const Step *steps, const u32 *sets, const f64 *values, const i64 *begin, const i32 *output, i32 first,
            i32 last, i32 stride, const u8 *rows, i32 n, i32 shift, f64 *sums)
{
    __shared__ f64 found[FEW_TREES];
    const BinRows bins = {rows, n, shift};
    f64 *own = sums + (i64)blockIdx.y * n;
    const i32 begun = stride == 1 ? first : first + (i32)blockIdx.y;
    for (i32 i = blockIdx.x; i < n; i += gridDim.x) {
        for (i32 top = begun; top < last; top += FEW_TREES * stride) {
            for (i32 k = threadIdx.x, t = top + k * stride; k < FEW_TREES && t < last; k += blockDim.x, t += blockDim.x * stride)
                if (output[t] == (i32)blockIdx.y)
                    found[k] = values[begin[t] + walk(steps + begin[t], sets + begin[t] * 8, 8, bins, i)];
            __syncthreads();
            if (threadIdx.x == 0) {
                f64 sum = own[i];
                for (i32 k = 0, t = top; k < FEW_TREES && t < last; ++k, t += stride)
                    if (output[t] == (i32)blockIdx.y)
                        sum += found[k];
                own[i] = sum;
            }
            __syncthreads();
        }
    }
}

// out (n, trees): the leaf of each row in each tree.
extern "C" __global__ void __launch_bounds__(256)
leaves(const Step *steps, const u32 *sets, const i64 *begin, i32 trees, const u8 *rows, i32 n, i32 shift, i32 *out)
{
    const BinRows bins = {rows, n, shift};
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (i32 t = 0; t < trees; ++t)
            out[(i64)i * trees + t] = walk(steps + begin[t], sets + begin[t] * 8, 8, bins, i);
}
