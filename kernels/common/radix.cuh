// A stable sort by eight bits at a time: each time a launch of count_digits, of place_digits and of order_by_digit. What
// is sorted is an object with ``digit(at, shift)``, the eight bits of item ``at`` above ``shift``, and with
// ``move(at, place)``, which writes the item where it is next. In front: common.cuh, blocks.cuh.

enum {
    RADIX = 256,
    ORDER_THREADS = 256,
    ORDER_WARPS = ORDER_THREADS / 32,
    CHUNK = 4096,                          // items of a block
    ITEMS_OF_WARP = CHUNK / ORDER_WARPS
};

// counts[digit][chunk]: how many items of a chunk have that digit.
template <class Items>
static __device__ __forceinline__ void count_digits(const Items &items, i32 n, i32 shift, i32 chunks, u32 *counts)
{
    __shared__ u32 count[RADIX];
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        count[threadIdx.x] = 0;
        __syncthreads();
        for (i32 at = chunk * CHUNK + threadIdx.x; at < min(n, (chunk + 1) * CHUNK); at += ORDER_THREADS)
            atomicAdd(count + items.digit(at, shift), 1u);
        __syncthreads();
        counts[(i64)threadIdx.x * chunks + chunk] = count[threadIdx.x];
        __syncthreads();
    }
}

// counts[digit][chunk]: what of that digit is in earlier chunks; bases[digit]: what is of smaller digits. A block to a
// digit; of a single block a thread to a digit, for few chunks.
static __device__ __forceinline__ void place_digits(i32 chunks, u32 *counts, u32 *bases, u32 *arrived)
{
    if (gridDim.x == 1) {
        u32 *own = counts + (i64)threadIdx.x * chunks, before = 0, total;
        for (i32 chunk = 0; chunk < chunks; ++chunk) {
            const u32 count = own[chunk];
            own[chunk] = before;
            before += count;
        }
        bases[threadIdx.x] = block_scan(before, total);
        return;
    }
    for (i32 digit = blockIdx.x; digit < RADIX; digit += gridDim.x) {
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

// Move the items in the order of this digit, those of one digit as they were. A warp takes its items of a chunk in order.
template <class Items>
static __device__ __forceinline__ void order_by_digit(const Items &items, i32 n, i32 shift, i32 chunks, const u32 *counts,
                                                       const u32 *bases)
{
    __shared__ u32 next[ORDER_WARPS][RADIX];
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (i32 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const i32 begin = chunk * CHUNK + warp * ITEMS_OF_WARP;
        for (i32 w = 0; w < ORDER_WARPS; ++w)
            next[w][threadIdx.x] = 0;
        __syncthreads();
        for (i32 at = begin + lane; at < min(n, begin + (i32)ITEMS_OF_WARP); at += 32)
            atomicAdd(&next[warp][items.digit(at, shift)], 1u);
        __syncthreads();
        u32 place = bases[threadIdx.x] + counts[(i64)threadIdx.x * chunks + chunk];
        for (i32 w = 0; w < ORDER_WARPS; ++w) {
            const u32 own = next[w][threadIdx.x];
            next[w][threadIdx.x] = place;
            place += own;
        }
        __syncthreads();
        for (i32 first = begin; first < min(n, begin + (i32)ITEMS_OF_WARP); first += 32) {
            const i32 at = first + lane, digit = at < n ? items.digit(at, shift) : -1;
            const u32 mates = __match_any_sync(FULL_WARP, digit), earlier = mates & ((1u << lane) - 1);
            const u32 place_of_first = digit < 0 ? 0 : next[warp][digit];
            __syncwarp();
            if (digit >= 0)
                items.move(at, place_of_first + __popc(earlier));
            if (digit >= 0 && earlier == 0)
                next[warp][digit] = place_of_first + __popc(mates);
            __syncwarp();
        }
        __syncthreads();
    }
}

// sum = that of the values of all threads of a block.
static __device__ __forceinline__ void keep_total(u64 own, u64 *sum)
{
    u64 total;
    block_scan(own, total);
    if (threadIdx.x == 0)
        *sum = total;
}

// sums (chunks + 1,): of each chunk what the chunks before it have, and last the total.
static __device__ void scan_chunks(u64 *sums, i32 chunks)
{
    u64 before = 0;
    for (i32 first = 0; first < chunks; first += ORDER_THREADS) {
        const i32 chunk = first + threadIdx.x;
        u64 total;
        const u64 earlier = block_scan(chunk < chunks ? sums[chunk] : 0, total);
        if (chunk < chunks)
            sums[chunk] = before + earlier;
        before += total;
    }
    if (threadIdx.x == 0)
        sums[chunks] = before;
}
