// Shapley values of leaves, and interactions of two columns, in the order of operations of prediction/contributions.py.
// In front: common.cuh, walk.cuh. A thread has a row of its own at a time, and room of ``longest`` numbers for each of
// met, before and total (or after); numbers of one place are next to each other over the threads.
//
// The arrays of every kernel: start (leaves + 1,) into conditions; column and share, per condition; test_start
// (conditions + 1,) into tests; feature and accepted (4 words, a bit for each bin), per test; value and output, per
// leaf; points, weights (q, q): the Gauss-Legendre rule of i + 1 points on [0, 1] in row i.

// met[e * threads] = 1 if the row meets condition first + e of a leaf, 0 if not; e below m.
static __device__ __forceinline__ void meet(const BinRows &bins, i64 row, i64 first, i32 m, const i64 *test_start,
                                            const i32 *feature, const u64 *accepted, f64 *met, i64 threads)
{
    for (i32 e = 0; e < m; ++e) {
        bool meets = true;
        for (i64 test = test_start[first + e]; test < test_start[first + e + 1]; ++test) {
            const u32 code = bins.at(row, feature[test]);
            meets = meets && (accepted[4 * test + (code >> 6)] >> (code & 63u) & 1u);
        }
        met[e * threads] = meets ? 1.0 : 0.0;
    }
}

// phi (n, outputs, columns + 1) += contributions of every leaf; the last column is set to expected (outputs,).
extern "C" __global__ void __launch_bounds__(256)
contributions(const i64 *start, i32 leaves, const i32 *column, const f64 *share, const i64 *test_start,
              const i32 *feature, const u64 *accepted, const f64 *value, const i32 *output, const f64 *points,
              const f64 *weights, i32 q, i32 longest, const u8 *rows, i32 n, i32 shift, const f64 *expected,
              i32 outputs, i32 columns, f64 *room, f64 *phi)
{
    const BinRows bins = {rows, n, shift};
    const i64 threads = (i64)gridDim.x * blockDim.x, thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    f64 *met = room + thread, *before = met + longest * threads, *total = before + longest * threads;
    for (i64 row = thread; row < n; row += threads) {
        f64 *own = phi + row * outputs * (columns + 1);
        for (i32 k = 0; k < outputs; ++k)
            own[k * (columns + 1) + columns] = expected[k];
        for (i32 leaf = 0; leaf < leaves; ++leaf) {
            const i64 first = start[leaf];
            const i32 m = (i32)(start[leaf + 1] - first), used = (m + 1) / 2;
            meet(bins, row, first, m, test_start, feature, accepted, met, threads);
            for (i32 j = 0; j < used; ++j) {
                const f64 t = points[(used - 1) * q + j];
                f64 product = weights[(used - 1) * q + j];
#pragma unroll 1
                for (i32 e = 0; e < m; ++e) {
                    before[e * threads] = product;
                    product = product * (t * met[e * threads] + (1.0 - t) * share[first + e]);
                }
                f64 after = 1.0;
#pragma unroll 1
                for (i32 e = m - 1; e >= 0; --e) {
                    total[e * threads] = before[e * threads] * after + (j > 0 ? total[e * threads] : 0.0);
                    after = after * (t * met[e * threads] + (1.0 - t) * share[first + e]);
                }
            }
            f64 *to = own + output[leaf] * (columns + 1);
#pragma unroll 1
            for (i32 e = 0; e < m; ++e)
                to[column[first + e]] += value[leaf] * ((met[e * threads] - share[first + e]) * total[e * threads]);
        }
    }
}

// phi (n, outputs, columns + 1, columns + 1) += interactions above the diagonal, of every leaf.
extern "C" __global__ void __launch_bounds__(256)
interactions(const i64 *start, i32 leaves, const i32 *column, const f64 *share, const i64 *test_start,
             const i32 *feature, const u64 *accepted, const f64 *value, const i32 *output, const f64 *points,
             const f64 *weights, i32 q, i32 longest, const u8 *rows, i32 n, i32 shift, i32 outputs, i32 columns,
             f64 *room, f64 *phi)
{
    const BinRows bins = {rows, n, shift};
    const i64 threads = (i64)gridDim.x * blockDim.x, thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    const i64 side = columns + 1;
    f64 *met = room + thread, *after = met + longest * threads;
    for (i64 row = thread; row < n; row += threads) {
        for (i32 leaf = 0; leaf < leaves; ++leaf) {
            const i64 first = start[leaf];
            const i32 m = (i32)(start[leaf + 1] - first), used = m / 2;
            if (m < 2)
                continue;
            meet(bins, row, first, m, test_start, feature, accepted, met, threads);
            f64 *pairs = phi + (row * outputs + output[leaf]) * side * side;
            const f64 half = 0.5 * value[leaf];
            for (i32 j = 0; j < used; ++j) {
                const f64 t = points[(used - 1) * q + j];
                after[m * threads] = 1.0;
                for (i32 e = m - 1; e > 0; --e)
                    after[e * threads] =
                        after[(e + 1) * threads] * (t * met[e * threads] + (1.0 - t) * share[first + e]);
                f64 before = weights[(used - 1) * q + j];
                for (i32 e = 0; e < m - 1; ++e) {
                    const f64 own = half * (met[e * threads] - share[first + e]);
                    f64 both = before;
                    for (i32 f = e + 1; f < m; ++f) {
                        const f64 without = both * after[(f + 1) * threads];
                        pairs[column[first + e] * side + column[first + f]] +=
                            own * ((met[f * threads] - share[first + f]) * without);
                        both = both * (t * met[f * threads] + (1.0 - t) * share[first + f]);
                    }
                    before = before * (t * met[e * threads] + (1.0 - t) * share[first + e]);
                }
            }
        }
    }
}

// The diagonal of pairs (n * outputs, columns + 1, columns + 1), so that rows sum to alone (n * outputs, columns + 1),
// and the entries below it. A thread has the matrix of one row and output at a time.
extern "C" __global__ void __launch_bounds__(256) complete(const f64 *alone, i64 matrices, i32 columns, f64 *pairs)
{
    const i64 side = columns + 1;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < matrices; i += (i64)gridDim.x * blockDim.x) {
        f64 *own = pairs + i * side * side;
        for (i64 a = 0; a < side; ++a) {
            f64 rest = alone[i * side + a];
            for (i64 b = 0; b < side; ++b)
                if (b < a)
                    own[a * side + b] = own[b * side + a];
            for (i64 b = 0; b < columns; ++b)
                if (b != a)
                    rest -= own[a * side + b];
            own[a * side + a] = rest;
        }
    }
}
