// Leaves that are weighted quantiles of the residuals: numerics.leaf_values.weighted_quantile, found digit by digit. In front:
// common.cuh, tree.cuh, ordered_float.cuh.
//
// Eight passes over the rows add up, per leaf, the weights of the numbers that agree with the quantile so far, by their
// next eight bits. Weights are integers, so sums have no order.

// counts[leaf][digit] += weight. found[leaf]: the quantile's leading bits, those above ``shift`` + 8.
extern "C" __global__ void __launch_bounds__(256)
count_digits(const f64 *y, const f64 *scores, const f64 *weight, i32 has_weight, f64 per_unit, const i32 *times,
             i32 has_times, const i32 *leaf_of_row, i32 n, i32 shift, const u64 *found, u64 *counts)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const u64 key = ordered(y[i] - scores[i] + 0.0);
        const i32 leaf = leaf_of_row[i];
        if (shift < 56 && (key ^ found[leaf]) >> (shift + 8) != 0)
            continue;
        i64 by = has_times ? times[i] : 1;
        if (has_weight)
            by = max((i64)rint(weight[i] * per_unit), 1ll);
        atomicAdd(counts + (i64)leaf * DIGITS + (i32)(key >> shift & 255), (u64)by);
    }
}

// The next digit of every leaf; after the last (shift 0) its value. One block a node. needed[leaf]: weight that is still
// to be reached. The counts are 0 afterwards.
extern "C" __global__ void __launch_bounds__(DIGITS)
choose_digit(const State *state, Node *nodes, f64 alpha, i32 shift, u64 *found, u64 *needed, u64 *counts, f64 *values)
{
    __shared__ u64 of_warp[DIGITS / 32];
    __shared__ u64 total;
    for (i32 v = blockIdx.x; v < state->n_nodes; v += gridDim.x) {
        if (nodes[v].feature >= 0)
            continue;
        u64 *own = counts + (i64)v * DIGITS + threadIdx.x;
        const u64 count = *own;
        *own = 0;
        u64 up_to = count;
        for (i32 d = 1; d < 32; d <<= 1) {
            const u64 before = __shfl_up_sync(FULL_WARP, up_to, d);
            if ((i32)(threadIdx.x & 31) >= d)
                up_to += before;
        }
        if ((threadIdx.x & 31) == 31)
            of_warp[threadIdx.x >> 5] = up_to;
        __syncthreads();
        for (i32 warp = 0; warp < (i32)(threadIdx.x >> 5); ++warp)
            up_to += of_warp[warp];
        if (threadIdx.x == DIGITS - 1)
            total = up_to;
        __syncthreads();
        u64 need = needed[v];
        if (shift == 56) {
            const f64 share = ceil(alpha * (f64)(i64)total);
            need = share < 1.0 ? 1 : (u64)(i64)share;
            need = need > total ? total : need;
        }
        __syncthreads(); // all have read needed[v] and total
        if (total == 0) {
            if (threadIdx.x == 0 && shift == 56) {
                nodes[v].value = 0.0;
                values[v] = 0.0;
            }
        } else if (up_to >= need && up_to - count < need) { // one thread
            const u64 key = (shift == 56 ? 0 : found[v]) | (u64)threadIdx.x << shift;
            found[v] = key;
            needed[v] = need - (up_to - count);
            if (shift == 0) {
                const f64 value = number(key);
                nodes[v].value = value;
                values[v] = value;
            }
        }
        __syncthreads();
    }
}
