// What a tree needs of drawn rows, side by side. In front: common.cuh, blocks.cuh, tree.cuh, fixed_point.cuh.

// Gradients of the drawn rows times 1 / p, and what the State must know of them; blockIdx.y is the output. 1 / p is
// ``by``, or where has_each is 1 each[j] of the j-th drawn row. g, h (k, n) of all rows; drawn_g, drawn_h (k, room),
// drawn_times (room,) those of the drawn ones.
extern "C" __global__ void __launch_bounds__(EXTENT_THREADS, 2)
weigh(const f32 *g, const f32 *h, const i32 *times, i32 has_times, const i32 *rows, const i32 *m, f32 by,
      const f32 *each, i32 has_each, i32 n, i32 room, f32 *drawn_g, f32 *drawn_h, i32 *drawn_times, f64 *sums, u64 *tops,
      u64 *weights, i32 *most, u32 *arrived, State *state)
{
    const i32 output = blockIdx.y, count_all = *m;
    const i64 from = (i64)output * n, to = (i64)output * room;
    const i32 most_stretches = (room + STRETCH - 1) / STRETCH;
    const Extents extents = {sums + (i64)output * 2 * most_stretches, tops + output * 2,
                             (count_all + STRETCH - 1) / STRETCH};
    i64 weight = 0;
    i32 largest = 1;
    const auto load = [&](i32 i) { return rows[i]; };
    const auto make = [&](i32 i, i32 row) {
        const f64 factor = widened(has_each ? ((const u32 *)each)[i] : __float_as_uint(by));
        const u32 g_bits = narrowed(weighted(widened(((const u32 *)g)[from + row]), factor));
        const u32 h_bits = narrowed(weighted(widened(((const u32 *)h)[from + row]), factor));
        const i32 own = has_times ? times[row] : 1;
        ((u32 *)drawn_g)[to + i] = g_bits;
        ((u32 *)drawn_h)[to + i] = h_bits;
        if (has_times) {
            weight += own;
            largest = max(largest, own);
            if (output == 0)
                drawn_times[i] = own;
        }
        return MadeRow{g_bits, h_bits, own};
    };
    make_and_measure(extents, count_all, load, make);
    finish_counted(extents, count_all, has_times, weight, largest, weights + output, most + output, arrived + output,
                   state + output);
}

enum { GATHER_ROWS = 128, GATHER_THREADS = 256 };
enum { ROW_WORDS = 17 }; // 64 features, and a word to spare, so that columns fall into all banks

// Bins of the drawn rows in the layouts of all rows; blockIdx.y is the tile of features. rows (tiles, n, width),
// columns (d, n) of all rows; those drawn have ``room`` in place of n, a multiple of 128.
extern "C" __global__ void __launch_bounds__(GATHER_THREADS)
gather(const u8 *all_rows, const i32 *drawn, const i32 *m, i32 n, i32 room, i32 d, i32 width, u8 *rows, u8 *columns)
{
    __shared__ u32 words[GATHER_ROWS * ROW_WORDS];
    const i32 tile = blockIdx.y, per_row = width / 4, count = *m;
    const u32 *from = (const u32 *)(all_rows + (i64)tile * n * width);
    u32 *to = (u32 *)(rows + (i64)tile * room * width);
    const i32 features = min(width, d - tile * width);
    for (i32 begin = blockIdx.x * GATHER_ROWS; begin < count; begin += gridDim.x * GATHER_ROWS) {
        for (i32 i = threadIdx.x; i < GATHER_ROWS * per_row; i += GATHER_THREADS) {
            const i32 place = i / per_row, word = i % per_row;
            const u32 bins = begin + place < count ? from[(i64)drawn[begin + place] * per_row + word] : 0u;
            words[place * ROW_WORDS + word] = bins;
            to[(i64)(begin + place) * per_row + word] = bins;
        }
        __syncthreads();
        for (i32 i = threadIdx.x; i < features * (GATHER_ROWS / 4); i += GATHER_THREADS) {
            const i32 feature = i / (GATHER_ROWS / 4), place = i % (GATHER_ROWS / 4) * 4;
            u32 four = 0;
            for (i32 j = 0; j < 4; ++j)
                four |= (words[(place + j) * ROW_WORDS + feature / 4] >> (feature % 4 * 8) & 255u) << (8 * j);
            ((u32 *)(columns + (i64)(tile * width + feature) * room))[(begin + place) / 4] = four;
        }
        __syncthreads();
    }
}
