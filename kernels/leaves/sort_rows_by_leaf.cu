// All rows in the order of the leaves that they are in, those of one leaf as they come. In front: common.cuh, blocks.cuh,
// radix.cuh.

enum { STRETCH = 4096 }; // of one leaf's rows, as in fixed_point.cuh

// rows: the order so far, where ``given``.
struct ByLeaf {
    const i32 *leaf_of_row, *rows;
    i32 given;
    i32 *ordered;

    __device__ __forceinline__ i32 row(i32 at) const { return given ? rows[at] : at; }
    __device__ __forceinline__ i32 digit(i32 at, i32 shift) const { return leaf_of_row[row(at)] >> shift & 255; }
    __device__ __forceinline__ void move(i32 at, u32 place) const { ordered[place] = row(at); }
};

extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
count_leaves(const i32 *leaf_of_row, const i32 *rows, i32 given, i32 n, i32 shift, i32 chunks, u32 *counts)
{
    count_digits(ByLeaf{leaf_of_row, rows, given, nullptr}, n, shift, chunks, counts);
}

extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
place_leaves(i32 chunks, u32 *counts, u32 *bases, u32 *arrived)
{
    place_digits(chunks, counts, bases, arrived);
}

extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
order_leaves(const i32 *leaf_of_row, const i32 *rows, i32 given, i32 n, i32 shift, i32 chunks, const u32 *counts,
             const u32 *bases, i32 *ordered)
{
    order_by_digit(ByLeaf{leaf_of_row, rows, given, ordered}, n, shift, chunks, counts, bases);
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
