// histograms: exact integer sums of (g, h) per bin. Definition: Reference.histograms.
//
// A row's bins lie side by side, WIDTH bytes to a tile of features: a warp loads 128 / WIDTH rows at once, 4 features to
// a lane. Shared memory holds one plane of 32 columns for g and one for h, a line to a bin. At each of four steps the
// lanes of a warp add to 32 different columns, that is, to 32 different banks:
//
//     lane = row r, word w      step i: byte b = (i + r) % 4      column = (r / 4) * WIDTH + 4 w + b
//
// so that no two additions ever meet, whatever the data; features of less than 32 columns have several, side by side.
// Each stretch of rows writes sums of its own, by plain stores; ``evaluate`` adds them up.
//
// Compiled for one WIDTH (4, 8, 16, 32 features to a tile), CELLS (64, 128, 256: bins of a feature that there is room
// for), COUNTS (1: rows are counted, too) and PASSES (2 where shared memory has no room for the planes: the rows are
// then read twice, first for the lower half of the bins).

#define THREADS 512
constexpr int WARPS = THREADS / 32;
#define WORDS (WIDTH / 4) // of a row; also the loads that 32 rows take
#define ROWS_AT_ONCE (128 / WIDTH)
#define COPIES (32 / WIDTH)
#define SPAN (CELLS / PASSES) // bins of a pass
#define PLANE (SPAN * 32)
#define ALL_PLANES (2 * PLANE + COUNTS * PLANE / 2) // counts have 16 bits each: those of two bins share a word

// Blocks that a multiprocessor should hold: as shared memory allows. sm_75 has room for 1,024 threads, and for sm_100 the
// compiler would spill registers.
#if COUNTS || (defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 800 || __CUDA_ARCH__ >= 1000))
#define BLOCKS 2
#else
#define BLOCKS 3
#endif

// 32 rows of one warp, on their way from memory to the planes.
struct Stage {
    i32 row[32]; // -1: none
    i32 g[32];
    u32 h[32];
};

// Of a tile whose features use ``cells`` of them, those from ``low`` on that a pass has room for.
static __device__ __forceinline__ i32 cells_of_pass(i32 cells, i32 low)
{
    return PASSES > 1 ? min(cells - low, (i32)SPAN) : cells;
}

static __device__ void clear_planes(u32 *plane, i32 cells)
{
    for (i32 i = threadIdx.x; i < cells * 32; i += THREADS) {
        plane[i] = 0;
        plane[PLANE + i] = 0;
        if (COUNTS && i < cells * 16)
            plane[2 * PLANE + i] = 0;
    }
}

// tile: the bins of a tile of features, WORDS to a row; low: the first bin of the pass.
static __device__ __forceinline__ void add_stage(u32 *plane, const Stage &stage, const u32 *__restrict__ tile, u32 low)
{
    const i32 lane = threadIdx.x & 31, r = lane / WORDS, w = lane % WORDS;
    const i32 first_column = (r >> 2) * WIDTH + 4 * w;
    u32 word[WORDS];
#pragma unroll
    for (i32 s = 0; s < WORDS; ++s) {
        const i32 row = stage.row[s * ROWS_AT_ONCE + r];
        word[s] = row < 0 ? 0 : tile[(i64)row * WORDS + w];
    }
#pragma unroll
    for (i32 s = 0; s < WORDS; ++s) {
        const i32 k = s * ROWS_AT_ONCE + r;
        if (stage.row[k] < 0)
            continue;
        const u32 g = (u32)stage.g[k], h = stage.h[k];
#pragma unroll
        for (i32 i = 0; i < 4; ++i) {
            const i32 byte = (i + r) & 3;
            const u32 bin = (word[s] >> (8 * byte) & 255) - low;
            if (PASSES > 1 && bin >= SPAN)
                continue;
            u32 *column = plane + first_column + byte;
            atomicAdd(column + bin * 32, g);
            atomicAdd(column + bin * 32 + PLANE, h);
            if (COUNTS)
                atomicAdd(column + bin / 2 * 32 + 2 * PLANE, bin & 1 ? 1u << 16 : 1u);
        }
    }
}

// The planes as [feature][bin] pairs, four bins of a feature to a thread; copies of a feature's column are added up,
// each thread beginning with another one, so that they are read without conflicts. sums, counts: of the pass's first bin.
static __device__ void write_sums(const u32 *plane, i32 cells, uint2 *sums, u32 *counts)
{
    const i32 lane = threadIdx.x & 31, feature = lane % WIDTH, part = lane / WIDTH;
    for (i32 at = (threadIdx.x >> 5) * COPIES + part; at * 4 < cells; at += WARPS * COPIES) {
#pragma unroll
        for (i32 k = 0; k < 4; ++k) {
            u32 g = 0, h = 0, n = 0;
#pragma unroll
            for (i32 c = 0; c < COPIES; ++c) {
                const u32 *column = plane + (c + part) % COPIES * WIDTH + feature;
                g += column[(at * 4 + k) * 32];
                h += column[(at * 4 + k) * 32 + PLANE];
                if (COUNTS)
                    n += column[(at * 2 + k / 2) * 32 + 2 * PLANE] >> 16 * (k & 1) & 0xffff;
            }
            sums[feature * CELLS + at * 4 + k] = make_uint2(g, h);
            if (COUNTS)
                counts[feature * CELLS + at * 4 + k] = n;
        }
    }
}

// The sums over the block, in thread 0.
static __device__ void add_up(i64 &g, i64 &h)
{
    __shared__ i64 of_warp[2][WARPS];
    for (i32 d = 16; d; d >>= 1) {
        g += __shfl_xor_sync(FULL_WARP, g, d);
        h += __shfl_xor_sync(FULL_WARP, h, d);
    }
    if ((threadIdx.x & 31) == 0) {
        of_warp[0][threadIdx.x >> 5] = g;
        of_warp[1][threadIdx.x >> 5] = h;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        for (i32 w = 1; w < WARPS; ++w) {
            g += of_warp[0][w];
            h += of_warp[1][w];
        }
    __syncthreads();
}

// The sums over all rows of a stretch: every row has some bin of the tile's first feature. more: of a later pass.
static __device__ void sum_rows(const u32 *plane, i32 cells, i64 *sums, bool more)
{
    i64 g = 0, h = 0;
    for (i32 i = threadIdx.x; i < cells * COPIES; i += THREADS) {
        const u32 *cell = plane + i / COPIES * 32 + i % COPIES * WIDTH;
        g += (i32)cell[0];
        h += cell[PLANE];
    }
    add_up(g, h);
    if (threadIdx.x == 0) {
        sums[0] = more ? sums[0] + g : g;
        sums[1] = more ? sums[1] + h : h;
    }
}

// The root, once all its stretches are summed. By one block.
static __device__ void plant_root(const i64 *sums, i32 n_tiles, State *state, Node *nodes, Line *lines,
                                  i32 *node_of_slot, const Rule *rule)
{
    i64 g = 0, h = 0;
    for (i32 t = threadIdx.x; t < n_tiles; t += THREADS) {
        g += sums[2 * t];
        h += sums[2 * t + 1];
    }
    add_up(g, h);
    if (threadIdx.x)
        return;
    state->total_g = g;
    state->total_h = h;
    state->rows_per_h = (f64)state->weight / (f64)(h > 1 ? h : 1);
    state->n_nodes = state->n_leaves = state->n_lines = 1;
    state->level_begin = state->finished = state->n_made = 0;
    state->n_tiles = n_tiles;
    Node root = {};
    root.sum_g = g;
    root.sum_h = h;
    root.feature = root.parent = -1;
    root.count = state->m;
    root.state = can_split(root, state->unit_h, rule) && enough_rows(root, rule) ? FRESH : CLOSED;
    nodes[0] = root;
    const Line line = {0, -1, 0, 1, 1, 0, n_tiles, 0};
    lines[0] = line;
    node_of_slot[0] = 0;
}

// The root's histogram. Gradients are turned to integers on the way and kept as pairs.
// contest: {candidate features, tiles that hold them, WIDTH}, at least one; tiles, tile_cells: of each such tile, its number and
// how many bins its features have at most. sums: two for each stretch of rows.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
root_histogram(const u32 *__restrict__ bins, i32 n, const f32 *__restrict__ g, const f32 *__restrict__ h,
               const i32 *__restrict__ multiplicity, i32 weighted, const i32 *__restrict__ contest,
               const i32 *__restrict__ tiles, const i32 *__restrict__ tile_cells, u32 *pairs, i64 *sums,
               uint2 *partials, u32 *partial_counts, State *state, Node *nodes, Line *lines, i32 *node_of_slot,
               const Rule *rule, i32 least, i32 items)
{
    extern __shared__ u32 shared[];
    u32 *plane = shared;
    Stage &stage = ((Stage *)(shared + ALL_PLANES))[threadIdx.x >> 5];
    const i32 lane = threadIdx.x & 31, across = contest[1], m = state->m;
    const i32 stretch = rows_of_tile(m, across, least, items), down = (m + stretch - 1) / stretch;
    for (i32 item = blockIdx.x; item < down * across; item += gridDim.x) {
        const i32 at = item / across, place = item % across, begin = at * stretch, end = min(m, begin + stretch);
        const u32 *tile = bins + (i64)tiles[place] * n * WORDS;
        for (i32 low = 0; PASSES > 1 ? low < tile_cells[place] : low == 0; low += SPAN) {
            const i32 cells = cells_of_pass(tile_cells[place], low);
            clear_planes(plane, cells);
            __syncthreads();
            for (i32 first = begin + (threadIdx.x >> 5) * 32; first < end; first += THREADS) {
                const i32 row = first + lane;
                stage.row[lane] = -1;
                if (row < end) {
                    const i32 times = weighted ? multiplicity[row] : 1;
                    const i32 qg = (i32)quantised(g[row], state->scale_g, times, state->error);
                    const u32 qh = (u32)quantised(h[row], state->scale_h, times, state->error);
                    if (place == 0 && low == 0)
                        write_pair(pairs, state->wide, row, qg, qh);
                    stage.row[lane] = row;
                    stage.g[lane] = qg;
                    stage.h[lane] = qh;
                }
                __syncwarp();
                add_stage(plane, stage, tile, low);
                __syncwarp();
            }
            __syncthreads();
            const i64 part = (i64)item * WIDTH * CELLS + low;
            write_sums(plane, cells, partials + part, partial_counts + part * COUNTS);
            if (place == 0)
                sum_rows(plane, cells, sums + 2 * at, low > 0);
            __syncthreads();
        }
    }
    if (last_block(&state->arrived))
        plant_root(sums, down, state, nodes, lines, node_of_slot, rule);
}

// The histograms of the listed children first_line .. last_line - 1, one stretch of rows and tile of features at a time.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
list_histogram(const u32 *__restrict__ bins, i32 n, const i32 *__restrict__ list, const u32 *__restrict__ list_pairs,
               const i32 *__restrict__ contest, const i32 *__restrict__ tiles, const i32 *__restrict__ tile_cells,
               const Tile *__restrict__ stretches, const Line *__restrict__ lines, uint2 *partials,
               u32 *partial_counts, const State *__restrict__ state, i32 first_line, i32 last_line)
{
    extern __shared__ u32 shared[];
    u32 *plane = shared;
    Stage &stage = ((Stage *)(shared + ALL_PLANES))[threadIdx.x >> 5];
    const i32 lane = threadIdx.x & 31, across = contest[1], wide = state->wide, stop = min(last_line, state->n_lines);
    if (first_line >= stop)
        return;
    const i32 first_tile = lines[first_line].first_tile;
    const i32 items = (lines[stop - 1].first_tile + lines[stop - 1].n_tiles - first_tile) * across;
    for (i32 item = blockIdx.x; item < items; item += gridDim.x) {
        const i32 place = item % across;
        const Tile stretch = stretches[first_tile + item / across];
        const u32 *tile = bins + (i64)tiles[place] * n * WORDS;
        for (i32 low = 0; PASSES > 1 ? low < tile_cells[place] : low == 0; low += SPAN) {
            const i32 cells = cells_of_pass(tile_cells[place], low);
            clear_planes(plane, cells);
            __syncthreads();
            for (i32 first = (threadIdx.x >> 5) * 32; first < stretch.count; first += THREADS) {
                const i32 k = first + lane;
                stage.row[lane] = -1;
                if (k < stretch.count) {
                    stage.row[lane] = list[stretch.begin + k];
                    read_pair(list_pairs, wide, stretch.begin + k, stage.g[lane], stage.h[lane]);
                }
                __syncwarp();
                add_stage(plane, stage, tile, low);
                __syncwarp();
            }
            __syncthreads();
            const i64 part = (i64)item * WIDTH * CELLS + low;
            write_sums(plane, cells, partials + part, partial_counts + part * COUNTS);
            __syncthreads();
        }
    }
}
