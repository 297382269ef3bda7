// Sampling scores of rows before their multiplicity, times a factor for each row; a later draw takes them as given. The
// definition is gpuboost/backends/reference/sampling.py. In front: common.cuh.
//
// g, h (k, n). losses (n,) in place of the derivatives if made_of is LOSSES; kappa: of BOTH. factor (n,), if has_factor.
// out (n,): float32 numbers as float64, times the factor. One thread for each row of a grid of any size.

enum MadeOf { GRADIENT = 0, BOTH = 1, CURVATURE = 2, LOSSES = 3 };

static __device__ __forceinline__ f64 sum_of_squares(const f32 *values, i64 n, i32 k, i64 row)
{
    f64 sum = 0.0;
    for (i32 c = 0; c < k; ++c) {
        const f64 x = widened(((const u32 *)values)[c * n + row]);
        sum += x * x;
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(256)
row_factors(const f32 *g, const f32 *h, const f64 *losses, i32 made_of, f64 kappa, const f64 *factor, i32 has_factor,
            i32 n, i32 k, f64 *out)
{
    for (i64 row = (i64)blockIdx.x * 256 + threadIdx.x; row < n; row += (i64)gridDim.x * 256) {
        f64 s;
        if (made_of == LOSSES) {
            s = losses[row];
        } else {
            const f64 first = sum_of_squares(made_of == CURVATURE ? h : g, n, k, row);
            s = sqrt(made_of == BOTH ? first + kappa * sum_of_squares(h, n, k, row) : first);
            s = s >= 0x1p-126 ? (f64)(f32)min(s, 0x1.fffffep127) : s == s ? 0.0 : s;
        }
        out[row] = has_factor ? s * factor[row] : s;
    }
}
