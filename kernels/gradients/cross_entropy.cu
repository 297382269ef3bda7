// Derivatives of XE-NDCG (backends/reference/cross_entropy.py), a warp to a list. In front: common.cuh, philox.cuh and
// exp_of. Sums over a list have 32 lanes, document i in lane i % 32.

// The sum of what 32 lanes have, halves onto halves; in all of them.
static __device__ __forceinline__ f64 sum_of_warp(f64 own)
{
#pragma unroll
    for (i32 half = 16; half > 0; half /= 2)
        own += __shfl_xor_sync(FULL_WARP, own, half);
    return own;
}

static __device__ __forceinline__ f64 rest_of(f64 rho)
{
    const f64 rest = 1.0 - rho;
    return rest < LEAST_REST ? LEAST_REST : rest;
}

// g and h (n,) of all documents, unweighted; rho, term (n,): scratch. power (n,): 2^label; start (lists + 1,); newton: 1
// for Newton's terms, 0 for the gradient itself, where h is not written but for lists of one document. iteration: a word
// on the device.
extern "C" __global__ void __launch_bounds__(256)
cross_entropy(const f64 *scores, const f64 *power, const i32 *start, i32 lists, i32 newton, u32 seed_low, u32 seed_high,
              const u32 *iteration, u32 name, f64 *rho, f64 *term, f64 *g, f64 *h)
{
    const Stream stream = {seed_low, seed_high, *iteration, name};
    const i32 lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
    for (i32 q = (blockIdx.x * blockDim.x + threadIdx.x) / 32; q < lists; q += warps) {
        const i32 first = start[q] + lane, end = start[q + 1];
        if (end - start[q] < 2) {
            if (first < end)
                g[first] = h[first] = 0.0;
            continue;
        }
        f64 top = scores[start[q]], sum = 0.0, whole = 0.0;
        for (i32 i = first; i < end; i += 32)
            top = top < scores[i] ? scores[i] : top;
#pragma unroll
        for (i32 half = 16; half > 0; half /= 2) {
            const f64 other = __shfl_xor_sync(FULL_WARP, top, half);
            top = top < other ? other : top;
        }
        for (i32 i = first; i < end; i += 32) {
            const f64 below = scores[i] - top;
            const uint4 words = philox(stream, (u64)i / 4);
            const u32 word = i % 4 == 0 ? words.x : i % 4 == 1 ? words.y : i % 4 == 2 ? words.z : words.w;
            rho[i] = exp_of(below < FARTHEST ? FARTHEST : below);
            term[i] = power[i] - (f64)word * 0x1p-32;
            sum += rho[i];
            whole += term[i];
        }
        sum = sum_of_warp(sum);
        whole = sum_of_warp(whole);
        for (i32 i = first; i < end; i += 32) {
            rho[i] /= sum;
            g[i] = term[i] = rho[i] - term[i] / whole;
        }
        for (i32 order = 0; newton && order < 2; ++order) {
            f64 total = 0.0;
            for (i32 i = first; i < end; i += 32)
                total += term[i] / rest_of(rho[i]);
            total = sum_of_warp(total);
            for (i32 i = first; i < end; i += 32) {
                term[i] = rho[i] * (total - term[i] / rest_of(rho[i]));
                g[i] += term[i];
                h[i] = rho[i] * rest_of(rho[i]);
            }
        }
    }
}
