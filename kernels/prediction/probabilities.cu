// Probabilities and means of the scores of rows. In front: common.cuh, exp_of and links.cuh.

// predictions (n, k) of scores (k, n), each of one score by itself.
extern "C" __global__ void __launch_bounds__(256)
write_predictions(const f64 *scores, i32 n, i32 k, i32 link, f64 scale, f64 *predictions)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (i32 c = 0; c < k; ++c)
            predictions[(i64)i * k + c] = prediction_of(scores[(i64)c * n + i], link, scale);
}

// probabilities (n, 2) of class 0 and class 1 by the logistic link of scores (n,) times ``scale``.
extern "C" __global__ void __launch_bounds__(256)
write_two_classes(const f64 *scores, i32 n, f64 scale, f64 *probabilities)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const f64 p = prediction_of(scores[i], LOGISTIC, scale);
        probabilities[2 * (i64)i] = 1.0 - p;
        probabilities[2 * (i64)i + 1] = p;
    }
}

// probabilities (n, k): the softmax of scores (k, n), whose sum begins with class 0.
extern "C" __global__ void __launch_bounds__(256)
write_classes(const f64 *scores, i32 n, i32 k, f64 *probabilities)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        f64 *own = probabilities + (i64)i * k;
        const f64 top = top_of(scores + i, n, k);
        f64 total = 0.0;
        for (i32 c = 0; c < k; ++c) {
            own[c] = exp_of(scores[(i64)c * n + i] - top);
            total += own[c];
        }
        for (i32 c = 0; c < k; ++c)
            own[c] /= total;
    }
}
