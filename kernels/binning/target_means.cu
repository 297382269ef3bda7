// Mean targets of the rows of a category, for ordered target statistics (data/category_groups.py): rows in the order of
// their keys, those of one key in the order of a permutation, and sums up to each. Sums are of whole numbers, so they are
// exact. In front: common.cuh, blocks.cuh, radix.cuh, SOURCE: the type of X, and BITS: the unsigned integer of its size.

// The bits of a value that is rounded to float32, in the type of X.
static __device__ __forceinline__ BITS rounded(f64 value)
{
    const u32 bits = narrowed(value);
    return sizeof(BITS) == 4 ? bits : (BITS)__double_as_longlong(widened(bits));
}

// The key of the categories of some columns in one row of X. A missing category is the one after the last.
static __device__ __forceinline__ u64 key_of(const SOURCE *row, const i32 *columns, const i64 *sizes, i32 n_columns)
{
    i64 key = 0;
    for (i32 j = 0; j < n_columns; ++j) {
        const SOURCE code = row[columns[j]];
        key = key * (sizes[j] + 1) + (code != code ? sizes[j] : (i64)code);
    }
    return (u64)key;
}

// The first place among n increasing keys whose key is at least this one.
static __device__ __forceinline__ i32 lower_bound(const u64 *keys, i32 n, u64 key)
{
    i32 low = 0, high = n;
    while (low < high) {
        const i32 middle = low + (high - low) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Keys and numbers of the training rows in the order of a permutation. kept (n,): the row of X of each, if has_kept.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
make_keys(const SOURCE *x, i32 d, const i64 *kept, i32 has_kept, const u32 *order, i32 n, const i32 *columns,
          const i64 *sizes, i32 n_columns, u64 *keys, u32 *rows)
{
    for (i32 i = blockIdx.x * ORDER_THREADS + threadIdx.x; i < n; i += gridDim.x * ORDER_THREADS) {
        const u32 row = order[i];
        rows[i] = row;
        keys[i] = key_of(x + (has_kept ? kept[row] : (i64)row) * d, columns, sizes, n_columns);
    }
}

struct ByKey {
    const u64 *keys;
    const u32 *rows;
    u64 *moved_keys;
    u32 *moved_rows;

    __device__ __forceinline__ i32 digit(i32 at, i32 shift) const { return (i32)(keys[at] >> shift & 255); }
    __device__ __forceinline__ void move(i32 at, u32 place) const
    {
        moved_keys[place] = keys[at];
        moved_rows[place] = rows[at];
    }
};

extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
count_keys(const u64 *keys, i32 n, i32 shift, i32 chunks, u32 *counts)
{
    count_digits(ByKey{keys, nullptr, nullptr, nullptr}, n, shift, chunks, counts);
}

extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
place_keys(i32 chunks, u32 *counts, u32 *bases, u32 *arrived)
{
    place_digits(chunks, counts, bases, arrived);
}

extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
order_keys(const u64 *keys, const u32 *rows, i32 n, i32 shift, i32 chunks, const u32 *counts, const u32 *bases,
           u64 *moved_keys, u32 *moved_rows)
{
    order_by_digit(ByKey{keys, rows, moved_keys, moved_rows}, n, shift, chunks, counts, bases);
}

// values (n,): the units of the rows in their order.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
gather_units(const i64 *units, const u32 *rows, i32 n, u64 *values)
{
    for (i32 i = blockIdx.x * ORDER_THREADS + threadIdx.x; i < n; i += gridDim.x * ORDER_THREADS)
        values[i] = (u64)units[rows[i]];
}

// values (n,): 1 at the last row of each key, 0 at the others.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS) mark_ends(const u64 *keys, i32 n, u64 *values)
{
    for (i32 i = blockIdx.x * ORDER_THREADS + threadIdx.x; i < n; i += gridDim.x * ORDER_THREADS)
        values[i] = i == n - 1 || keys[i] != keys[i + 1];
}

// sums (chunks + 1,): of each chunk the sum of the values before it, and last the total.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
sum_values(const u64 *values, i32 n, i32 chunks, u64 *sums, u32 *arrived)
{
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        u64 own = 0;
        for (i32 at = chunk * CHUNK + threadIdx.x; at < min(n, (chunk + 1) * CHUNK); at += ORDER_THREADS)
            own += values[at];
        keep_total(own, sums + chunk);
    }
    if (last_block(arrived))
        scan_chunks(sums, chunks);
}

// before (n + 1,): the sum of the values before each row, and last the total.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
scan_values(const u64 *values, i32 n, i32 chunks, const u64 *sums, u64 *before)
{
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        u64 earlier = sums[chunk], total;
        for (i32 first = chunk * CHUNK; first < min(n, (chunk + 1) * CHUNK); first += ORDER_THREADS) {
            const i32 at = first + threadIdx.x;
            const u64 own = earlier + block_scan(at < n ? values[at] : 0, total);
            earlier += total;
            if (at < n)
                before[at] = own;
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        before[n] = sums[chunks];
}

// What a table holds: of each key, in order, itself and the place after its last row. before: the scan of mark_ends.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
write_keys(const u64 *keys, const u64 *before, i32 n, u64 *distinct, i32 *ends)
{
    for (i32 i = blockIdx.x * ORDER_THREADS + threadIdx.x; i < n; i += gridDim.x * ORDER_THREADS)
        if (before[i] != before[i + 1]) {
            distinct[before[i]] = keys[i];
            ends[before[i]] = i + 1;
        }
}

// totals (m,): the sum up to the end of each key. before: the scan of units.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
write_totals(const i32 *ends, const u64 *before, i32 m, u64 *totals)
{
    for (i32 i = blockIdx.x * ORDER_THREADS + threadIdx.x; i < m; i += gridDim.x * ORDER_THREADS)
        totals[i] = before[ends[i]];
}

// out: at the row of X of each training row, the bits of the mean target of the rows of its key that come before it.
// counts, sums (n + 1,): the scans of weights and of weighted targets. prior: the mean of all rows times its weight.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
write_means(const u64 *keys, const u32 *rows, i32 n, const u64 *counts, const u64 *sums, f64 scale_of_counts,
            f64 scale_of_sums, f64 prior, f64 prior_weight, const i64 *kept, i32 has_kept, BITS *out)
{
    for (i32 i = blockIdx.x * ORDER_THREADS + threadIdx.x; i < n; i += gridDim.x * ORDER_THREADS) {
        const i32 first = lower_bound(keys, n, keys[i]);
        const f64 count = (f64)(i64)(counts[i] - counts[first]) * scale_of_counts;
        const f64 sum = (f64)(i64)(sums[i] - sums[first]) * scale_of_sums;
        const i64 row = has_kept ? kept[rows[i]] : (i64)rows[i];
        out[row] = rounded((sum + prior) / (count + prior_weight));
    }
}

// out (n,): of each row of X the bits of the value of its key among m increasing keys; ``absent`` if it is not there.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
look_up(const SOURCE *x, i32 n, i32 d, const i32 *columns, const i64 *sizes, i32 n_columns, const u64 *keys,
        const f64 *values, i32 m, f64 absent, BITS *out)
{
    for (i32 i = blockIdx.x * ORDER_THREADS + threadIdx.x; i < n; i += gridDim.x * ORDER_THREADS) {
        const u64 key = key_of(x + (i64)i * d, columns, sizes, n_columns);
        const i32 place = lower_bound(keys, m, key);
        out[i] = rounded(place < m && keys[place] == key ? values[place] : absent);
    }
}
