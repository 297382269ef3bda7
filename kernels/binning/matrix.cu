// X as a user left it on a device, before it is binned. In front: common.cuh, and SOURCE and RESULT: types of numbers;
// BITS: the unsigned integer of RESULT's size. Floating-point numbers are handled by their bits.

// out (m, d): the rows of x (n, d) whose numbers are listed.
extern "C" __global__ void __launch_bounds__(256) gather_rows(const BITS *x, const i64 *rows, i64 m, i32 d, BITS *out)
{
    const i64 stride = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < m * d; i += stride)
        out[i] = x[rows[i / d] * d + i % d];
}

// first = min(first, place of the first infinity among ``size`` numbers).
extern "C" __global__ void __launch_bounds__(256) find_infinite(const BITS *x, i64 size, u64 *first)
{
    const BITS sign = (BITS)1 << (sizeof(BITS) * 8 - 1);
    const BITS infinite = sizeof(BITS) == 4 ? (BITS)0x7f800000u : (BITS)0x7ff0000000000000ull;
    const i64 stride = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += stride)
        if ((x[i] & ~sign) == infinite)
            atomicMin(first, (u64)i);
}

// Whole numbers and truth values as floating-point numbers.
extern "C" __global__ void __launch_bounds__(256) to_floats(const SOURCE *x, i64 size, RESULT *out)
{
    const i64 stride = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += stride)
        out[i] = (RESULT)x[i];
}

// Column f of x (n, d).
extern "C" __global__ void __launch_bounds__(256) take_column(const BITS *x, i64 n, i32 d, i32 f, BITS *out)
{
    const i64 stride = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        out[i] = x[i * d + f];
}

extern "C" __global__ void __launch_bounds__(256) put_column(const BITS *column, i64 n, i32 d, i32 f, BITS *x)
{
    const i64 stride = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        x[i * d + f] = column[i];
}
