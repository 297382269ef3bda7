// Means over rows of a term of the prediction and the target (metrics/formulas.py), as exact sums. In front: common.cuh,
// links.cuh, pieces.cuh, exp_of and log_of.

enum Rule {
    SQUARED, ABSOLUTE, RELATIVE, SYMMETRIC, LOGARITHMIC, POISSON, GAMMA, TWEEDIE, QUANTILE, EXPECTILE, HUBER, COVERAGE,
    WIDTH
};

// Least prediction in a deviance, so that its logarithm is a number.
static constexpr f64 LEAST_MEAN = 1e-304;

// The term of a prediction m and a target y. a: the metric's parameter.
static __device__ f64 term_of(f64 y, f64 m, i32 rule, f64 a)
{
    const f64 r = m - y, size = fabs(r);
    if (rule == SQUARED)
        return r * r;
    if (rule == ABSOLUTE)
        return size;
    if (rule == RELATIVE)
        return size / (fabs(y) > 0x1p-52 ? fabs(y) : 0x1p-52);
    if (rule == SYMMETRIC) {
        const f64 both = fabs(m) + fabs(y);
        return both > 0.0 ? 2.0 * size / both : 0.0;
    }
    if (rule == QUANTILE)
        return r < 0.0 ? -a * r : (1.0 - a) * r;
    if (rule == EXPECTILE)
        return (r < 0.0 ? a : 1.0 - a) * r * r;
    if (rule == HUBER)
        return size <= a ? 0.5 * size * size : a * (size - 0.5 * a);
    const f64 mean = m < LEAST_MEAN ? LEAST_MEAN : m;
    const f64 of_mean = rule == LOGARITHMIC ? (m > 1e-6 - 1.0 ? m : 1e-6 - 1.0) + 1.0 : mean;
    const f64 of_target = rule == LOGARITHMIC ? y + 1.0 : rule == POISSON && !(y > 0.0) ? 1.0 : y;
    f64 log_mean = 0.0, log_target = 0.0;
    for (i32 part = 0; part < 2; ++part) {
        log_mean = log_target;
        log_target = log_of(part ? of_target : of_mean);
    }
    if (rule == LOGARITHMIC)
        return (log_mean - log_target) * (log_mean - log_target);
    if (rule == POISSON)
        return y * (log_target - log_mean) - y + mean;
    if (rule == GAMMA)
        return log_mean - log_target + y / mean - 1.0;
    const f64 rising = 2.0 - a, falling = 1.0 - a;
    f64 sum = 0.0;
    for (i32 part = 0; part < 3; ++part) {
        const f64 e = exp_of(part == 0 ? falling * log_mean : rising * (part == 1 ? log_mean : log_target));
        sum = part == 0 ? y * e / falling : part == 1 ? e / rising - sum : e / (rising * falling) + sum;
    }
    return sum;
}

// terms (n,). y (n,); scores (k, n); scale: of scores, in front of a logistic link.
extern "C" __global__ void __launch_bounds__(256)
write_terms(const f64 *y, const f64 *scores, i32 n, i32 k, i32 link, f64 scale, i32 rule, f64 a, f64 *terms)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        f64 f = scores[i];
        if (rule == COVERAGE || rule == WIDTH) {
            f64 top = f;
            for (i32 c = 1; c < k; ++c) {
                const f64 score = scores[(i64)c * n + i];
                f = score < f ? score : f;
                top = score > top ? score : top;
            }
            terms[i] = rule == WIDTH ? top - f : (f64)(f <= y[i] && y[i] <= top);
        } else {
            terms[i] = term_of(y[i], prediction_of(f, link, scale), rule, a);
        }
    }
}

// terms (n,): the sum over the classes, from the first one on, of the squared differences of their probabilities and 1 for
// the row's class, 0 for others. y (n,) numbers of classes; scores (k, n).
extern "C" __global__ void __launch_bounds__(256)
write_class_terms(const f64 *y, const f64 *scores, i32 n, i32 k, f64 *terms)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const f64 *own = scores + i;
        const f64 top = top_of(own, n, k);
        f64 total = 0.0, sum = 0.0;
        for (i32 at = 0; at < 2 * k; ++at) {
            const i32 c = at < k ? at : at - k;
            const f64 e = exp_of(own[(i64)c * n] - top);
            if (at < k) {
                total += e;
            } else {
                const f64 difference = e / total - ((f64)c == y[i] ? 1.0 : 0.0);
                sum += difference * difference;
            }
        }
        terms[i] = sum;
    }
}

// The largest of the absolute values of the terms as bits: above[0] of those not below 0, above[1] of the others, both of
// a term that is not a number.
extern "C" __global__ void __launch_bounds__(256) find_largest(const f64 *terms, i32 n, i64 *above)
{
    u64 largest[2] = {0, 0};
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const f64 term = terms[i];
        const u64 size = (u64)__double_as_longlong(fabs(term));
        for (i32 side = 0; side < 2; ++side)
            if ((side == (term < 0.0) || term != term) && size > largest[side])
                largest[side] = size;
    }
    for (i32 side = 0; side < 2; ++side) {
        for (i32 d = 16; d; d >>= 1) {
            const u64 other = __shfl_xor_sync(FULL_WARP, largest[side], d);
            largest[side] = other > largest[side] ? other : largest[side];
        }
        if ((threadIdx.x & 31) == 0)
            atomicMax((u64 *)above + side, largest[side]);
    }
}

// The upper 26 bits of x.
static __device__ __forceinline__ f64 upper(f64 x)
{
    const f64 scaled = 134217729.0 * x;
    return scaled - (scaled - x);
}

// sums (3,) += the pieces of the terms times their weights; nothing if one is not finite. above: of find_largest.
// heaviest: the largest weight.
extern "C" __global__ void __launch_bounds__(256)
sum_weighted(const f64 *terms, const f64 *weight, i32 has_weight, i32 n, const i64 *above, f64 heaviest, i64 *sums)
{
    const u64 top = (u64)(above[0] > above[1] ? above[0] : above[1]);
    const f64 largest = __longlong_as_double((i64)top) * heaviest;
    const i32 exponent = (i32)((u64)__double_as_longlong(largest) >> 52), shift = 31 + 1022 - exponent;
    if (exponent == 0x7ff)
        return;
    const f64 scale = __longlong_as_double((i64)((shift < 1000 ? shift : 1000) + 1023) << 52);
    Pieces own = {};
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const f64 x = terms[i];
        if (has_weight) {
            const f64 w = weight[i], high = upper(x), low = x - high, w_high = upper(w), w_low = w - w_high;
            const f64 product = x * w;
            own.add(product * scale);
            own.add((((high * w_high - product) + high * w_low + low * w_high) + low * w_low) * scale);
        } else {
            own.add(x * scale);
        }
    }
    add_pieces(own, sums);
}
