// The bin of every value (Reference.quantise), in both layouts. In front: common.cuh, and the macros NARROW_VALUES, 1 for
// float32, and NEAR_ENTRIES, 1 where shared memory has room for the entries of a group.

enum { BIN_ROWS = 128, BIN_THREADS = 256, ENTRIES = 256 };

#if NARROW_VALUES
typedef f32 Value;
static __device__ __forceinline__ f64 value_of(const Value *x) { return widened(*(const u32 *)x); }
#else
typedef f64 Value;
static __device__ __forceinline__ f64 value_of(const Value *x) { return *x; }
#endif

// Rows first .. first + count - 1 of n; x holds those rows only, x[i * row_stride + c * column_stride] being column c.
// entries (groups, 256, across): a feature's thresholds, or its category codes in order, and infinity behind them.
// places (groups, 256, across): the bin of each category. n_bins, categorical, column (d,). blockIdx.y is the group of
// features, a tile or, where it has 64, half of it. rows (tiles, n, width) and, where by_column is 1, columns (d, n).
extern "C" __global__ void __launch_bounds__(BIN_THREADS)
bin(const Value *x, i64 row_stride, i64 column_stride, i32 first, i32 count, i32 n, i32 d, i32 shift,
    const f64 *entries, const u8 *places, const i32 *n_bins, const u8 *categorical, const i32 *column, u8 *rows,
    i32 by_column, u8 *columns)
{
    __shared__ u8 codes[BIN_ROWS][33];
    const i32 of_group = min(shift, 5), across = 1 << of_group, group = blockIdx.y;
    const i32 f = threadIdx.x & (across - 1), feature = group * across + f;
    const f64 *own_entries = entries + (i64)group * ENTRIES * across;
#if NEAR_ENTRIES
    extern __shared__ f64 near[];
    for (i32 i = threadIdx.x; i < ENTRIES * across; i += BIN_THREADS)
        near[i] = own_entries[i];
    __syncthreads();
#else
    const f64 *near = own_entries;
#endif
    u8 *to = rows + (((i64)(feature >> shift) * n + first) << shift) + (feature & ((1 << shift) - 1));
    const bool used = feature < d, sorted = used && !categorical[feature];
    const i32 missing = used ? n_bins[feature] : 0;
    const Value *own = used ? x + column[feature] * column_stride : x;
    for (i32 begin = blockIdx.x * BIN_ROWS; begin < count; begin += gridDim.x * BIN_ROWS) {
        const i32 size = min((i32)BIN_ROWS, count - begin);
        for (i32 row = threadIdx.x >> of_group; row < size; row += BIN_THREADS >> of_group) {
            i32 code = 0;
            if (used) {
                const f64 value = value_of(own + (begin + row) * row_stride);
                for (i32 step = ENTRIES / 2; step > 0; step >>= 1)
                    code += near[((code + step - 1) << of_group) + f] < value ? step : 0;
                if (!sorted) {
                    const bool listed = code < missing && near[(code << of_group) + f] == value;
                    code = listed ? places[((i64)group * ENTRIES + code << of_group) + f] : missing;
                }
                code = value == value ? code : missing;
            }
            if (by_column)
                codes[row][f] = (u8)code;
            to[(i64)(begin + row) << shift] = (u8)code;
        }
        if (!by_column)
            continue;
        __syncthreads();
        for (i32 i = threadIdx.x; i < BIN_ROWS * across; i += BIN_THREADS) {
            const i32 other = group * across + i / BIN_ROWS, row = i % BIN_ROWS;
            if (other < d && row < size)
                columns[(i64)other * n + first + begin + row] = codes[row][i / BIN_ROWS];
        }
        __syncthreads();
    }
}

// Bins that are listed entry by entry (types.SparseBins), laid out densely: first the default of every feature, then
// the entries. Both kernels write both layouts.
extern "C" __global__ void __launch_bounds__(BIN_THREADS)
lay_defaults(const u8 *defaults, i32 n, i32 d, i32 shift, u8 *rows, u8 *columns)
{
    const i32 width = 1 << shift, tile = blockIdx.y;
    const i64 threads = (i64)gridDim.x * blockDim.x, me = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    for (i64 i = me; i < (i64)n * width; i += threads) {
        const i32 feature = tile * width + (i32)(i & (width - 1));
        rows[(i64)tile * n * width + i] = feature < d ? defaults[feature] : 0;
    }
    for (i32 f = tile * width; f < min((tile + 1) * width, d); ++f)
        for (i64 i = me; i < n; i += threads)
            columns[(i64)f * n + i] = defaults[f];
}

extern "C" __global__ void __launch_bounds__(BIN_THREADS)
lay_entries(const i64 *row_start, const i32 *feature, const u8 *bins, i32 n, i32 shift, u8 *rows, u8 *columns)
{
    for (i32 row = blockIdx.x * blockDim.x + threadIdx.x; row < n; row += gridDim.x * blockDim.x)
        for (i64 entry = row_start[row]; entry < row_start[row + 1]; ++entry) {
            const i32 f = feature[entry];
            rows[((((i64)(f >> shift)) * n + row) << shift) + (f & ((1 << shift) - 1))] = bins[entry];
            columns[(i64)f * n + row] = bins[entry];
        }
}

// The same from bins that are dense on the host: rows (n, d) to the tiles and columns of a device.
extern "C" __global__ void __launch_bounds__(BIN_THREADS)
lay_rows(const u8 *bins, i32 first, i32 count, i32 n, i32 d, i32 shift, u8 *rows, u8 *columns)
{
    const i32 width = 1 << shift, tile = blockIdx.y;
    const i64 threads = (i64)gridDim.x * blockDim.x, me = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    for (i64 i = me; i < (i64)count * width; i += threads) {
        const i32 feature = tile * width + (i32)(i & (width - 1));
        const i64 row = i >> shift;
        const u8 code = feature < d ? bins[row * d + feature] : 0;
        rows[(((i64)tile * n + first) << shift) + i] = code;
        if (feature < d)
            columns[(i64)feature * n + first + row] = code;
    }
}
