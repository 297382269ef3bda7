// histograms: exact integer sums of (g, h) per bin. Definition: reference.growth.
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

// Blocks that a multiprocessor should hold. For lists as many as shared memory allows; but sm_75 holds 1,024 threads
// only, and for sm_100, or tiles of 16 features, the compiler would spill registers.
#if COUNTS || WIDTH == 16 || (defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 800 || __CUDA_ARCH__ >= 1000))
#define LIST_BLOCKS 2
#else
#define LIST_BLOCKS 3
#endif
#define ROOT_BLOCKS 2 // a third would leave no registers for what is on its way

// 32 rows of one warp, on their way from memory to the planes.
struct Stage {
    uint2 pair[32];  // g and h; 0 where there is no row
    i64 offset[32];  // of its bins, in bytes
    i32 there[COUNTS ? 32 : 1];
};

// Number of a tile's ``cells`` cells, from ``low`` on, that one pass holds.
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

static __device__ __forceinline__ void put(Stage &stage, i32 row, bool there, uint2 pair)
{
    const i32 lane = threadIdx.x & 31;
    stage.pair[lane] = pair;
    stage.offset[lane] = there ? (i64)row * WIDTH : 0;
    if (COUNTS)
        stage.there[COUNTS ? lane : 0] = there;
}

// tile: the bins of a tile of features, WORDS to a row; low: the first bin of the pass; words: those that are of use, bit
// by bit. What a lane adds to, and by how much it turns its words so that byte i is the one of step i, is the same for all
// rows: two instructions to an addition.
static __device__ __forceinline__ void add_stage(u32 *plane, const Stage &stage, const u32 *__restrict__ tile, u32 low,
                                                 i32 words)
{
    const i32 lane = threadIdx.x & 31, r = lane / WORDS, w = lane % WORDS;
    if (!(words >> w & 1))
        return;
    const char *own = (const char *)(tile + w);
    char *column[4];
    u32 word[WORDS];
#pragma unroll
    for (i32 i = 0; i < 4; ++i)
        column[i] = (char *)(plane + (r >> 2) * WIDTH + 4 * w + (i + r & 3));
#pragma unroll
    for (i32 s = 0; s < WORDS; ++s) // a row that is not there adds nothing to the bins of row 0
        word[s] = *(const u32 *)(own + stage.offset[s * ROWS_AT_ONCE + r]);
#pragma unroll
    for (i32 s = 0; s < WORDS; ++s) {
        const i32 k = s * ROWS_AT_ONCE + r;
        if (COUNTS && !stage.there[COUNTS ? k : 0])
            continue;
        const uint2 pair = stage.pair[k];
        const u32 turned = __funnelshift_r(word[s], word[s], 8 * (r & 3));
#pragma unroll
        for (i32 i = 0; i < 4; ++i) {
            const u32 bin = __byte_perm(turned, 0, 0x4440 + i) - low;
            if (PASSES > 1 && bin >= SPAN)
                continue;
            u32 *cell = (u32 *)(column[i] + bin * 128);
            atomicAdd(cell, pair.x);
            atomicAdd(cell + PLANE, pair.y);
            if (COUNTS)
                atomicAdd((u32 *)(column[i] + bin / 2 * 128) + 2 * PLANE, bin & 1 ? 1u << 16 : 1u);
        }
    }
}

// The planes as [feature][bin] pairs, four bins of a feature to a thread; copies of a feature's column are added up,
// each thread beginning with another one, so that they are read without conflicts. sums, counts: of the pass's first bin.
static __device__ void write_sums(const u32 *plane, i32 cells, uint2 *sums, u32 *counts)
{
    const i32 lane = threadIdx.x & 31, feature = lane % WIDTH, part = lane / WIDTH;
    for (i32 at = (threadIdx.x >> 5) * COPIES + part; at * 4 < cells; at += WARPS * COPIES) {
        u32 g[4] = {}, h[4] = {}, n[4] = {};
#pragma unroll
        for (i32 k = 0; k < 4; ++k)
#pragma unroll
            for (i32 c = 0; c < COPIES; ++c) {
                const u32 *column = plane + (c + part) % COPIES * WIDTH + feature;
                g[k] += column[(at * 4 + k) * 32];
                h[k] += column[(at * 4 + k) * 32 + PLANE];
                if (COUNTS)
                    n[k] += column[(at * 2 + k / 2) * 32 + 2 * PLANE] >> 16 * (k & 1) & 0xffff;
            }
        uint4 *to = (uint4 *)(sums + feature * CELLS + at * 4);
        to[0] = make_uint4(g[0], h[0], g[1], h[1]);
        to[1] = make_uint4(g[2], h[2], g[3], h[3]);
        if (COUNTS)
            *(uint4 *)(counts + feature * CELLS + at * 4) = make_uint4(n[0], n[1], n[2], n[3]);
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
static __device__ void init_root(const i64 *sums, i32 n_tiles, State *state, Node *nodes, Line *lines,
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
    root.state = can_split(root, state->unit_h, rule) && enough_rows(root, rule) ? NEW : CLOSED;
    nodes[0] = root;
    const Line line = {0, -1, 0, 1, 1, 0, n_tiles, 0};
    lines[0] = line;
    node_of_slot[0] = 0;
}

// Gradient of a row at the root, before it is an integer: loaded while the row before it is added.
struct Given {
    f32 g, h;
};

static __device__ __forceinline__ Given given(const f32 *__restrict__ g, const f32 *__restrict__ h, i32 row, i32 end)
{
    if (row >= end)
        return {0.0f, 0.0f};
    return {g[row], h[row]};
}

// The root's histogram. Gradients are turned to integers on the way and kept as pairs.
// selection: {candidate features, tiles that hold them, WIDTH}, at least one; tiles, tile_cells: of each such tile, its
// number and how many bins its features have at most and, from bit 16 on, which of its words have any of them. sums: two
// for each stretch of rows.
extern "C" __global__ void __launch_bounds__(THREADS, ROOT_BLOCKS)
root_histogram(const u32 *__restrict__ bins, i32 n, const f32 *__restrict__ g, const f32 *__restrict__ h,
               const i32 *__restrict__ multiplicity, i32 weighted, const i32 *__restrict__ selection,
               const i32 *__restrict__ tiles, const i32 *__restrict__ tile_cells, u32 *pairs, i64 *sums,
               uint2 *partials, u32 *partial_counts, State *state, Node *nodes, Line *lines, i32 *node_of_slot,
               const Rule *rule, i32 least, i32 items)
{
    extern __shared__ u32 shared[];
    u32 *plane = shared;
    Stage &stage = ((Stage *)(shared + ALL_PLANES))[threadIdx.x >> 5];
    const i32 lane = threadIdx.x & 31, across = selection[1], m = state->m;
    const i32 stretch = rows_of_tile(m, across, least, items), down = (m + stretch - 1) / stretch;
    const i32 busy = max(1, min((i32)gridDim.x, down * across));
    if ((i32)blockIdx.x >= busy)
        return;
    for (i32 item = blockIdx.x; item < down * across; item += gridDim.x) {
        const i32 at = item / across, place = item % across, begin = at * stretch, end = min(m, begin + stretch);
        const i32 used = tile_cells[place] & 0xffff, words = tile_cells[place] >> 16;
        const u32 *tile = bins + (i64)tiles[place] * n * WORDS;
        for (i32 low = 0; PASSES > 1 ? low < used : low == 0; low += SPAN) {
            const i32 cells = cells_of_pass(used, low);
            clear_planes(plane, cells);
            __syncthreads();
            i32 row = begin + threadIdx.x;
            Given next = given(g, h, row, end);
            for (i32 first = row - lane; first < end; first += THREADS) {
                const Given now = next;
                next = given(g, h, row + THREADS, end);
                const i32 times = weighted && row < end ? multiplicity[row] : 1;
                const i32 qg = (i32)quantised(now.g, state->scale_g, times, state->error);
                const u32 qh = (u32)quantised(now.h, state->scale_h, times, state->error);
                if (place == 0 && low == 0 && row < end)
                    write_pair(pairs, state->wide, row, qg, qh);
                put(stage, row, row < end, make_uint2((u32)qg, qh));
                __syncwarp();
                add_stage(plane, stage, tile, low, words);
                __syncwarp();
                row += THREADS;
            }
            __syncthreads();
            const i64 part = (i64)item * WIDTH * CELLS + low;
            write_sums(plane, cells, partials + part, partial_counts + part * COUNTS);
            if (place == 0)
                sum_rows(plane, cells, sums + 2 * at, low > 0);
            __syncthreads();
        }
    }
    if (last_block(&state->arrived, busy))
        init_root(sums, down, state, nodes, lines, node_of_slot, rule);
}

// The histograms of the listed children first_line .. last_line - 1, one stretch of rows and tile of features at a time.
extern "C" __global__ void __launch_bounds__(THREADS, LIST_BLOCKS)
list_histogram(const u32 *__restrict__ bins, i32 n, const i32 *__restrict__ list, const u32 *__restrict__ list_pairs,
               const i32 *__restrict__ selection, const i32 *__restrict__ tiles, const i32 *__restrict__ tile_cells,
               const Tile *__restrict__ stretches, const Line *__restrict__ lines, uint2 *partials,
               u32 *partial_counts, const State *__restrict__ state, i32 first_line, i32 last_line)
{
    extern __shared__ u32 shared[];
    u32 *plane = shared;
    Stage &stage = ((Stage *)(shared + ALL_PLANES))[threadIdx.x >> 5];
    const i32 lane = threadIdx.x & 31, across = selection[1], wide = state->wide, stop = min(last_line, state->n_lines);
    if (first_line >= stop)
        return;
    const i32 first_tile = lines[first_line].first_tile;
    const i32 items = (lines[stop - 1].first_tile + lines[stop - 1].n_tiles - first_tile) * across;
    for (i32 item = blockIdx.x; item < items; item += gridDim.x) {
        const i32 place = item % across;
        const Tile stretch = stretches[first_tile + item / across];
        const i32 used = tile_cells[place] & 0xffff, words = tile_cells[place] >> 16;
        const u32 *tile = bins + (i64)tiles[place] * n * WORDS;
        for (i32 low = 0; PASSES > 1 ? low < used : low == 0; low += SPAN) {
            const i32 cells = cells_of_pass(used, low);
            clear_planes(plane, cells);
            __syncthreads();
            for (i32 first = (threadIdx.x >> 5) * 32; first < stretch.count; first += THREADS) {
                const i32 k = first + lane;
                i32 row = 0, g = 0;
                u32 h = 0;
                if (k < stretch.count) {
                    row = list[stretch.begin + k];
                    read_pair(list_pairs, wide, stretch.begin + k, g, h);
                }
                put(stage, row, k < stretch.count, make_uint2((u32)g, h));
                __syncwarp();
                add_stage(plane, stage, tile, low, words);
                __syncwarp();
            }
            __syncthreads();
            const i64 part = (i64)item * WIDTH * CELLS + low;
            write_sums(plane, cells, partials + part, partial_counts + part * COUNTS);
            __syncthreads();
        }
    }
}
