// Sort keys of the probabilities of one class among several, for the areas of curves.cu. In front: common.cuh,
// links.cuh, ordered_float.cuh and exp_of.

// tops, totals (n,): of each row the largest score, and the sum of e^(score - largest), from the first class on.
extern "C" __global__ void __launch_bounds__(256)
sum_odds(const f64 *scores, i32 n, i32 k, f64 *tops, f64 *totals)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const f64 top = top_of(scores + i, n, k);
        f64 total = 0.0;
        for (i32 c = 0; c < k; ++c)
            total += exp_of(scores[(i64)c * n + i] - top);
        tops[i] = top;
        totals[i] = total;
    }
}

// keys, marks (n,): as of make_keys in curves.cu, by the probability of one class; ``own`` are the scores of that class.
// y (n,) numbers of classes.
extern "C" __global__ void __launch_bounds__(256)
make_class_keys(const f64 *y, const f64 *own, const f64 *tops, const f64 *totals, i32 n, i32 number, u64 *keys,
                u32 *marks)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        keys[i] = ordered(exp_of(own[i] - tops[i]) / totals[i]);
        marks[i] = 2 * (u32)i + (y[i] == (f64)number);
    }
}
