// The candidate features of a tree: a random subset, laid out by tiles as backends/cuda/trees/arena.py lays out one that
// the host draws. In front: common.cuh, blocks.cuh, philox.cuh, subset.cuh.

enum { THREADS = 256 }; // of the one block

// ``count`` of 0 .. d - 1. cells_of_tiles: used cells of each tile of ``width`` features. For the others see
// ``selection_of``. Dynamic shared memory: a bit for each feature, in whole words.
extern "C" __global__ void __launch_bounds__(THREADS)
draw_tree_features(i32 count, i32 d, i32 width, u32 seed_low, u32 seed_high, const u32 *iteration, u32 name,
                   const i32 *cells_of_tiles, i32 *selection, i32 *features, i32 *places, i32 *tiles, i32 *tile_cells,
                   u32 *tile_columns)
{
    extern __shared__ u32 set[];
    const Stream stream = {seed_low, seed_high, *iteration, name};
    const i32 words = (d + 31) / 32;
    for (i32 w = threadIdx.x; w < words; w += THREADS)
        set[w] = 0;
    for (i32 pair = threadIdx.x; 2 * pair < count; pair += THREADS) { // all draws first: one after the other is slow
        const uint4 drawn = philox(stream, (u64)pair);
        for (i32 i = 2 * pair; i < min(2 * pair + 2, count); ++i)
            features[i] = named(drawn, i, d - count + i);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        for (i32 i = 0; i < count; ++i)
            take(set, features[i], d - count + i);
    __syncthreads();

    const u64 mask = width == 64 ? ~(u64)0 : ((u64)1 << width) - 1;
    u32 done = 0, done_tiles = 0;
    for (i32 first = 0; first < words; first += 2 * THREADS) { // two words to a thread: a tile has 64 features at most
        const i32 w = first + 2 * (i32)threadIdx.x;
        const u64 mine = (w < words ? set[w] : 0) | (u64)(w + 1 < words ? set[w + 1] : 0) << 32;
        u32 filled = 0, all, all_tiles;
        for (i32 shift = 0; shift < 64; shift += width)
            filled += (mine >> shift & mask) != 0;
        u32 place = done + block_scan((u32)__popcll(mine), all), tile = done_tiles + block_scan(filled, all_tiles);
        for (i32 shift = 0; shift < 64; shift += width) {
            const u64 columns = mine >> shift & mask;
            if (!columns)
                continue;
            const i32 number = (32 * w + shift) / width;
            tiles[tile] = number;
            tile_cells[tile] = cells_of_tiles[number];
            tile_columns[2 * tile] = (u32)columns;
            tile_columns[2 * tile + 1] = (u32)(columns >> 32);
            for (u64 left = columns; left; left &= left - 1, ++place) {
                const i32 column = __ffsll((i64)left) - 1;
                features[place] = number * width + column;
                places[place] = (i32)tile * width + column;
            }
            ++tile;
        }
        done += all;
        done_tiles += all_tiles;
    }
    if (threadIdx.x == 0) {
        selection[0] = count;
        selection[1] = (i32)done_tiles;
        selection[2] = width;
        selection[3] = 0;
    }
}
