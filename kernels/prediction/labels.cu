// Classes and decisions by the scores (k, n) of rows. In front: common.cuh.

// labels (n,) of ``size`` bytes each: of one score, the second class where it is above 0; of several, the class of the
// highest, the first one on a tie. A score that is not a number counts as the highest, as for NumPy. classes (k,), or (2,).
extern "C" __global__ void __launch_bounds__(256)
write_labels(const f64 *scores, i32 n, i32 k, const u8 *classes, i32 size, u8 *labels)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        f64 top = scores[i];
        i32 best = k == 1 && top > 0.0;
        for (i32 c = 1; c < k && top == top; ++c) {
            const f64 score = scores[(i64)c * n + i];
            if (!(score <= top)) {
                top = score;
                best = c;
            }
        }
        if (size == 8)
            ((u64 *)labels)[i] = ((const u64 *)classes)[best];
        else if (size == 4)
            ((u32 *)labels)[i] = ((const u32 *)classes)[best];
        else if (size == 2)
            ((u16 *)labels)[i] = ((const u16 *)classes)[best];
        else
            labels[i] = classes[best];
    }
}

// signs (n, k): 1 where a score is above 0, else 0.
extern "C" __global__ void __launch_bounds__(256) write_signs(const f64 *scores, i32 n, i32 k, i64 *signs)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (i32 c = 0; c < k; ++c)
            signs[(i64)i * k + c] = scores[(i64)c * n + i] > 0.0;
}

// rows (n, k): the scores of each row side by side.
extern "C" __global__ void __launch_bounds__(256) write_rows(const f64 *scores, i32 n, i32 k, f64 *rows)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (i32 c = 0; c < k; ++c)
            rows[(i64)i * k + c] = scores[(i64)c * n + i];
}

// differences (n,): the second score less the first.
extern "C" __global__ void __launch_bounds__(256) write_differences(const f64 *scores, i32 n, f64 *differences)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        differences[i] = scores[(i64)n + i] - scores[i];
}
