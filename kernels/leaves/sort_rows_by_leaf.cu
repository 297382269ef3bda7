// All rows in the order of the leaves that they are in, those of one leaf as they come: a stable sort by eight bits at a
// time. In front: common.cuh, blocks.cuh.

enum {
    DIGITS = 256,
    ORDER_THREADS = 256,
    ORDER_WARPS = ORDER_THREADS / 32,
    CHUNK = 4096,                          // rows of a block
    ROWS_OF_WARP = CHUNK / ORDER_WARPS,
    STRETCH = 4096                         // of one leaf's rows, as in fixed_point.cuh
};

static __device__ __forceinline__ i32 row_at(const i32 *rows, i32 given, i32 at) { return given ? rows[at] : at; }

// counts[digit][chunk]: how many rows of a chunk have a leaf of that digit. rows: the order so far, where ``given``.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
count_leaves(const i32 *leaf_of_row, const i32 *rows, i32 given, i32 n, i32 shift, i32 chunks, u32 *counts)
{
    __shared__ u32 count[DIGITS];
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        count[threadIdx.x] = 0;
        __syncthreads();
        for (i32 at = chunk * CHUNK + threadIdx.x; at < min(n, (chunk + 1) * CHUNK); at += ORDER_THREADS)
            atomicAdd(count + (leaf_of_row[row_at(rows, given, at)] >> shift & 255), 1u);
        __syncthreads();
        counts[(i64)threadIdx.x * chunks + chunk] = count[threadIdx.x];
        __syncthreads();
    }
}

// counts[digit][chunk]: what of that digit is in earlier chunks; bases[digit]: what is of smaller digits. A block to a
// digit.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
place_leaves(i32 chunks, u32 *counts, u32 *bases, u32 *arrived)
{
    for (i32 digit = blockIdx.x; digit < DIGITS; digit += gridDim.x) {
        u32 before = 0;
        for (i32 first = 0; first < chunks; first += ORDER_THREADS) {
            const i32 chunk = first + threadIdx.x;
            u32 total;
            const u32 earlier = block_scan(chunk < chunks ? counts[(i64)digit * chunks + chunk] : 0, total);
            if (chunk < chunks)
                counts[(i64)digit * chunks + chunk] = before + earlier;
            before += total;
        }
        if (threadIdx.x == 0)
            bases[digit] = before;
    }
    if (last_block(arrived)) {
        u32 total;
        const u32 smaller = block_scan(bases[threadIdx.x], total);
        bases[threadIdx.x] = smaller;
    }
}

// ordered: the rows, sorted by this digit, those of one digit as they were. A warp takes its rows of a chunk in order.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
order_leaves(const i32 *leaf_of_row, const i32 *rows, i32 given, i32 n, i32 shift, i32 chunks, const u32 *counts,
             const u32 *bases, i32 *ordered)
{
    __shared__ u32 next[ORDER_WARPS][DIGITS];
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const i32 begin = chunk * CHUNK + warp * ROWS_OF_WARP;
        for (i32 w = 0; w < ORDER_WARPS; ++w)
            next[w][threadIdx.x] = 0;
        __syncthreads();
        for (i32 at = begin + lane; at < min(n, begin + (i32)ROWS_OF_WARP); at += 32)
            atomicAdd(&next[warp][leaf_of_row[row_at(rows, given, at)] >> shift & 255], 1u);
        __syncthreads();
        u32 place = bases[threadIdx.x] + counts[(i64)threadIdx.x * chunks + chunk];
        for (i32 w = 0; w < ORDER_WARPS; ++w) {
            const u32 own = next[w][threadIdx.x];
            next[w][threadIdx.x] = place;
            place += own;
        }
        __syncthreads();
        for (i32 first = begin; first < min(n, begin + (i32)ROWS_OF_WARP); first += 32) {
            const i32 at = first + lane, row = at < n ? row_at(rows, given, at) : 0;
            const i32 digit = at < n ? leaf_of_row[row] >> shift & 255 : -1;
            const u32 mates = __match_any_sync(FULL_WARP, digit), earlier = mates & ((1u << lane) - 1);
            const u32 place_of_first = digit < 0 ? 0 : next[warp][digit];
            __syncwarp();
            if (digit >= 0)
                ordered[place_of_first + __popc(earlier)] = row;
            if (digit >= 0 && earlier == 0)
                next[warp][digit] = place_of_first + __popc(mates);
            __syncwarp();
        }
        __syncthreads();
    }
}

// begins (leaves + 1,): where each leaf's rows begin in the order, and n; first_stretch (leaves + 1,): the number of its
// first stretch of rows, and how many there are.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
find_begins(const i32 *leaf_of_row, const i32 *rows, i32 n, i32 leaves, i32 *begins, i32 *first_stretch, u32 *arrived)
{
    for (i32 at = blockIdx.x * ORDER_THREADS + threadIdx.x; at <= n; at += gridDim.x * ORDER_THREADS) {
        const i32 last = at < n ? leaf_of_row[rows[at]] : leaves;
        for (i32 leaf = at > 0 ? leaf_of_row[rows[at - 1]] + 1 : 0; leaf <= last; ++leaf)
            begins[leaf] = at;
    }
    if (!last_block(arrived))
        return;
    u32 before = 0;
    for (i32 first = 0; first < leaves; first += ORDER_THREADS) {
        const i32 leaf = first + threadIdx.x;
        u32 total;
        const u32 own = leaf < leaves ? (u32)(begins[leaf + 1] - begins[leaf] + STRETCH - 1) / STRETCH : 0;
        const u32 earlier = block_scan(own, total);
        if (leaf < leaves)
            first_stretch[leaf] = (i32)(before + earlier);
        before += total;
    }
    if (threadIdx.x == 0)
        first_stretch[leaves] = (i32)before;
}
