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
// Tree t has nodes begin[t] .. begin[t + 1] - 1; values: factor * value of every node.
extern "C" __global__ void __launch_bounds__(256)
predict(const Step *steps, const u32 *sets, const f64 *values, const i64 *begin, const i32 *output, i32 first, i32 last,
        const u8 *rows, i32 n, i32 shift, f64 *sums)
{
    const BinRows bins = {rows, n, shift};
    f64 *own = sums + (i64)blockIdx.y * n;
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        f64 sum = own[i];
        for (i32 t = first; t < last; ++t)
            if (output[t] == (i32)blockIdx.y)
                sum += values[begin[t] + walk(steps + begin[t], sets + begin[t] * 8, 8, bins, i)];
        own[i] = sum;
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
