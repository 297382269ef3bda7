// histograms: exact integer sums of (g, h) per bin. Definition: reference.growth.
//
// A row's bins lie side by side, WIDTH bytes to a tile of features: a warp loads 128 / WIDTH rows at once, 4 features to
// a lane. Shared memory holds one plane of 32 columns for g and one for h, or of 64 where a tile has as many features, a
// line to a bin. At each of four steps the lanes of a warp add to columns of 32 different banks:
//
//     lane = row r, word w      step i: byte b = (i + r) % 4      column = (r / 4) * WIDTH + 4 w + b
//
// so that no two additions ever meet, whatever the data; features of less than 32 columns have several, side by side. Of
// 64 columns two share a bank: there the words of the upper half begin two bytes further, b = (i + r + 2 (w / 8)) % 4.
//
// A block of as many threads as a multiprocessor can well hold takes an equal share of the work: of the sequence that
// the lists form, tile after tile of features, with some work behind each list. Where a list ends, it adds its planes to
// the sums of the list's line in memory, by additions of 64 bits, which are exact in any order. ``evaluate`` reads these sums, and leaves them at 0.
// While a warp adds 32 rows (16 of 64 features, so that as many bytes are on their way), the bins of its next 32 are on
// their way from memory, and the numbers of those after them.
//
// Compiled for one WIDTH (4, 8, 16, 32, 64 features to a tile), CELLS (64, 128, 256: bins of a feature that there is room
// for), COUNTS (1: rows are counted, too), THREADS (1,024, or 512 where shared memory has no room for the stages of their
// warps) and PASSES (2 where it has no room for the planes: the rows are then read twice, first for the lower half of the
// bins).

constexpr int WARPS = THREADS / 32;
#define WORDS (WIDTH / 4) // of a row
#define ROWS_AT_ONCE (128 / WIDTH)
#define LOADS (WORDS < 8 ? WORDS : 8) // of a stage
#define STAGE_ROWS (LOADS * ROWS_AT_ONCE)
#define COLUMNS (WIDTH < 32 ? 32 : WIDTH) // of a plane
#define COPIES (COLUMNS / WIDTH)
#define SPAN (CELLS / PASSES) // bins of a pass
#define PLANE (SPAN * COLUMNS)
#define ALL_PLANES (2 * PLANE + COUNTS * PLANE / 2) // counts have 16 bits each: those of two bins share a word
#define OF_FEATURE ((2 + COUNTS) * CELLS) // numbers of a feature's sums: g of every bin, h of every bin, rows of every bin

#if WIDTH > 32
typedef u64 Mask; // of the features of a tile
#else
typedef u32 Mask;
#endif

// Rows of one warp, on their way from memory to the planes.
struct Stage {
    uint2 pair[STAGE_ROWS]; // g and h; 0 where there is no row
    i32 row[STAGE_ROWS];    // or -1, where rows are counted
};

// A row and its pair.
struct Given {
    i32 row;
    uint2 pair;
};

// A tile of features. columns: bit by bit, those that compete; the sums of others are not asked for.
struct Features {
    const u32 *bins; // WORDS to a row
    i32 cells;
    Mask columns;
};

// Words of a row that are of use, bit by bit: always the first, since the sums of rows are computed from it.
static __device__ __forceinline__ bool is_used(Mask columns, i32 word)
{
    return word == 0 || columns >> 4 * word & 15;
}

// The tile in this place of those that are asked for. tile_columns: two words for each.
static __device__ __forceinline__ Features features_of(const u32 *bins, i32 n, const i32 *tiles, const i32 *tile_cells,
                                                       const u32 *tile_columns, i32 place)
{
    Mask columns = tile_columns[2 * place];
#if WIDTH > 32
    columns |= (Mask)tile_columns[2 * place + 1] << 32;
#endif
    return {bins + (i64)tiles[place] * n * WORDS, tile_cells[place], columns};
}

// Number of a tile's ``cells`` cells, from ``low`` on, that one pass holds.
static __device__ __forceinline__ i32 cells_of_pass(i32 cells, i32 low)
{
    return PASSES > 1 ? min(cells - low, (i32)SPAN) : cells;
}

static __device__ void clear_planes(u32 *plane, i32 cells)
{
    const uint4 none = {0, 0, 0, 0};
    for (i32 i = threadIdx.x; i < cells * (COLUMNS / 4); i += THREADS) {
        ((uint4 *)plane)[i] = none;
        ((uint4 *)(plane + PLANE))[i] = none;
        if (COUNTS && i < cells * (COLUMNS / 8))
            ((uint4 *)(plane + 2 * PLANE))[i] = none;
    }
}

static __device__ __forceinline__ void put(Stage &stage, const Given &given)
{
    const i32 lane = threadIdx.x & 31;
    if (lane >= STAGE_ROWS)
        return;
    stage.pair[lane] = given.pair;
    stage.row[lane] = given.row;
}

// The words of a lane's rows. A row that is not there adds nothing, or is not counted, in the bins of row 0.
static __device__ __forceinline__ void load_words(u32 (&word)[LOADS], const Stage &stage, const u32 *__restrict__ bins)
{
    const i32 lane = threadIdx.x & 31, r = lane / WORDS, w = lane % WORDS;
#pragma unroll
    for (i32 s = 0; s < LOADS; ++s)
        word[s] = bins[(i64)max(stage.row[s * ROWS_AT_ONCE + r], 0) * WORDS + w];
}

// By how many bytes a lane turns its words so that byte i is the one of step i.
static __device__ __forceinline__ i32 turn_of(i32 lane)
{
    return lane / WORDS + lane % WORDS / 8 * ROWS_AT_ONCE & 3;
}

// The column of a plane that a lane adds to at step i.
static __device__ __forceinline__ i32 column_of(i32 lane, i32 i)
{
    return lane / WORDS / 4 * WIDTH + lane % WORDS * 4 + (i + turn_of(lane) & 3);
}

// Adds the rows of a stage, whose words are there. low: the first bin of the pass. What a lane adds to, and how it turns
// its words, is the same for all rows: two instructions to an addition.
static __device__ __forceinline__ void add_stage(u32 *plane, const Stage &stage, const u32 (&word)[LOADS], u32 low)
{
    const i32 lane = threadIdx.x & 31, turn = turn_of(lane);
    char *column[4];
#pragma unroll
    for (i32 i = 0; i < 4; ++i)
        column[i] = (char *)(plane + column_of(lane, i));
#pragma unroll
    for (i32 s = 0; s < LOADS; ++s) {
        const i32 k = s * ROWS_AT_ONCE + lane / WORDS;
        if (COUNTS && stage.row[k] < 0)
            continue;
        const uint2 pair = stage.pair[k];
        const u32 turned = __funnelshift_r(word[s], word[s], 8 * turn);
#pragma unroll
        for (i32 i = 0; i < 4; ++i) {
            const u32 bin = __byte_perm(turned, 0, 0x4440 + i) - low;
            if (PASSES > 1 && bin >= SPAN)
                continue;
            u32 *cell = (u32 *)(column[i] + bin * (4 * COLUMNS));
            atomicAdd(cell, pair.x);
            atomicAdd(cell + PLANE, pair.y);
            if (COUNTS)
                atomicAdd((u32 *)(column[i] + bin / 2 * (4 * COLUMNS)) + 2 * PLANE, bin & 1 ? 1u << 16 : 1u);
        }
    }
}

// Adds the rows that source(0), ... source(count - 1) give to the planes, a stage to a warp at a time. stages: two of
// this warp's own.
template <class Source>
static __device__ __forceinline__ void add_rows(u32 *plane, Stage *stages, const Features &features, u32 low, i32 count,
                                                const Source &source)
{
    constexpr i32 STEP = WARPS * STAGE_ROWS;
    const i32 lane = threadIdx.x & 31, mine = lane < STAGE_ROWS ? lane : count; // a row that there is not
    const bool used = is_used(features.columns, lane % WORDS);
    u32 word[LOADS], next[LOADS];
    i32 first = (threadIdx.x >> 5) * STAGE_ROWS;
    if (first >= count)
        return;
    put(stages[0], source(first + mine));
    __syncwarp();
    if (used)
        load_words(word, stages[0], features.bins);
    Given given = source(first + STEP + mine);
    for (i32 at = 0; first < count; first += STEP, at ^= 1) {
        const bool more = first + STEP < count;
        if (more) {
            put(stages[at ^ 1], given);
            __syncwarp();
            if (used)
                load_words(next, stages[at ^ 1], features.bins);
            given = source(first + 2 * STEP + mine);
        }
        if (used)
            add_stage(plane, stages[at], word, low);
        __syncwarp(); // before the stage is written again
#pragma unroll
        for (i32 s = 0; s < LOADS; ++s)
            word[s] = next[s];
    }
}

// sums += the planes, which start with bin ``low``: 8 features and 4 bins to a warp, whose numbers of a feature then lie
// in one sector of memory. Each block begins elsewhere, as others add to the same sums. sums: of the tile's first feature.
// packed: see ``is_packed``; half as many additions are made then, for which memory takes longer than for the rows.
static __device__ void flush(const u32 *plane, const Features &features, i32 low, bool packed, i64 *sums)
{
    constexpr i32 ACROSS = WIDTH < 8 ? WIDTH : 8, DOWN = 32 / ACROSS, GROUPS = WIDTH / ACROSS;
    const i32 lane = threadIdx.x & 31, cells = cells_of_pass(features.cells, low);
    const i32 steps = (cells * GROUPS + DOWN - 1) / DOWN, begin = (i32)((i64)steps * blockIdx.x / gridDim.x);
    for (i32 step = threadIdx.x >> 5; step < steps; step += WARPS) {
        const i32 at = begin + step < steps ? begin + step : begin + step - steps;
        const i32 f = at % GROUPS * ACROSS + lane / DOWN, bin = at / GROUPS * DOWN + lane % DOWN;
        if (bin >= cells || !(features.columns >> f & 1))
            continue;
        u32 g = 0, h = 0, n = 0;
#pragma unroll
        for (i32 c = 0; c < COPIES; ++c) {
            const u32 *column = plane + c * WIDTH + f;
            g += column[bin * COLUMNS];
            h += column[bin * COLUMNS + PLANE];
            if (COUNTS)
                n += column[bin / 2 * COLUMNS + 2 * PLANE] >> 16 * (bin & 1) & 0xffff;
        }
        u64 *to = (u64 *)sums + (i64)f * OF_FEATURE + low + bin;
        if (packed && (g | h))
            atomicAdd(to, ((u64)g << 32) + h);
        if (!packed && g)
            atomicAdd(to, (u64)(i64)(i32)g);
        if (!packed && h)
            atomicAdd(to + CELLS, (u64)h);
        if (COUNTS && n)
            atomicAdd(to + 2 * CELLS, (u64)n);
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

// sums += the sums over all rows of the planes, of which every row has some bin of the tile's first feature.
static __device__ void sum_rows(const u32 *plane, i32 cells, i64 *sums)
{
    i64 g = 0, h = 0;
    for (i32 i = threadIdx.x; i < cells * COPIES; i += THREADS) {
        const u32 *cell = plane + i / COPIES * COLUMNS + i % COPIES * WIDTH;
        g += (i32)cell[0];
        h += cell[PLANE];
    }
    add_up(g, h);
    if (threadIdx.x == 0) {
        sums[0] += g;
        sums[1] += h;
    }
}

// The root, once all its rows are summed. sums: of ``blocks`` blocks. By one block.
static __device__ void init_root(const i64 *sums, i32 blocks, State *state, Node *nodes, Line *lines,
                                  i32 *node_of_slot, const Rule *rule)
{
    i64 g = 0, h = 0;
    for (i32 t = threadIdx.x; t < blocks; t += THREADS) {
        g += sums[2 * t];
        h += sums[2 * t + 1];
    }
    add_up(g, h);
    if (threadIdx.x)
        return;
    make_root(g, h, state, nodes, lines, node_of_slot, rule);
}

// The rows of the root. Their gradients are turned to integers on the way, and kept as pairs.
struct Root {
    const f32 *g, *h;
    const i32 *multiplicity;
    i32 weighted, begin, end;
    bool keep;
    u32 *pairs;
    const State *state;

    __device__ __forceinline__ Given operator()(i32 k) const
    {
        const i32 row = begin + k;
        if (row >= end)
            return {-1, {0, 0}};
        const i32 times = weighted ? multiplicity[row] : 1;
        const i32 qg = (i32)quantised(g[row], state->scale_g, times, state->error);
        const u32 qh = (u32)quantised(h[row], state->scale_h, times, state->error);
        if (keep)
            write_pair(pairs, state->wide, row, qg, qh);
        return {row, {(u32)qg, qh}};
    }
};

// The rows of a list.
struct Listed {
    const i32 *list;
    const u32 *pairs;
    i32 wide, begin, count;

    __device__ __forceinline__ Given operator()(i32 k) const
    {
        if (k >= count)
            return {-1, {0, 0}};
        i32 g;
        u32 h;
        read_pair(pairs, wide, begin + k, g, h);
        return {list[begin + k], {(u32)g, h}};
    }
};

// The root's histogram. selection: {candidate features, tiles that hold them, WIDTH}, at least one; tiles, tile_cells,
// tile_columns: of each such tile, its number, how many bins its features have at most, and which of them compete,
// bit by bit, in two words. block_sums: two for each block.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
root_histogram(const u32 *__restrict__ bins, i32 n, const f32 *__restrict__ g, const f32 *__restrict__ h,
               const i32 *__restrict__ multiplicity, i32 weighted, const i32 *__restrict__ selection,
               const i32 *__restrict__ tiles, const i32 *__restrict__ tile_cells, const u32 *__restrict__ tile_columns,
               u32 *pairs, i64 *block_sums, i64 *line_sums, State *state, Node *nodes, Line *lines, i32 *node_of_slot,
               const Rule *rule, i32 least)
{
    extern __shared__ u32 plane[];
    Stage *stages = (Stage *)(plane + ALL_PLANES) + (threadIdx.x >> 5) * 2;
    const i32 across = selection[1], m = state->m;
    const i64 share = rows_of_share(m, across, least), all = (i64)m * across;
    const i32 busy = blocks_of_shares(all, share);
    if ((i32)blockIdx.x >= busy)
        return;
    if (threadIdx.x == 0)
        block_sums[2 * blockIdx.x] = block_sums[2 * blockIdx.x + 1] = 0;
    const i64 end = min(all, (blockIdx.x + 1) * share);
    for (i64 from = blockIdx.x * share; from < end;) {
        const i32 place = (i32)(from / m), begin = (i32)(from % m);
        const i32 count = (i32)min(min(end - from, (i64)(m - begin)), (i64)MOST_ROWS);
        const Features features = features_of(bins, n, tiles, tile_cells, tile_columns, place);
        for (i32 low = 0; low == 0 || (PASSES > 1 && low < features.cells); low += SPAN) {
            const Root rows = {g, h, multiplicity, weighted, begin, begin + count, place == 0 && low == 0, pairs, state};
            clear_planes(plane, cells_of_pass(features.cells, low));
            __syncthreads();
            add_rows(plane, stages, features, low, count, rows);
            __syncthreads();
            flush(plane, features, low, is_packed(m), line_sums + (i64)place * WIDTH * OF_FEATURE);
            if (place == 0)
                sum_rows(plane, cells_of_pass(features.cells, low), block_sums + 2 * blockIdx.x);
            __syncthreads();
        }
        from += count;
    }
    if (last_block(&state->arrived, busy))
        init_root(block_sums, blocks_of_shares(m, share), state, nodes, lines, node_of_slot, rule);
}

// Line of first_line .. stop - 1 that has work ``at`` of that on all lines. By all threads of the block.
static __device__ i32 line_of(const Line *lines, i32 first_line, i32 stop, i64 at)
{
    __shared__ i32 found;
    for (i32 i = first_line + threadIdx.x; i < stop; i += THREADS) {
        const Line line = lines[i];
        if (at >= line.first && at < (i64)line.first + work_of(line.rows))
            found = i;
    }
    __syncthreads();
    const i32 line = found;
    __syncthreads();
    return line;
}

// The histograms of the listed children first_line .. last_line - 1. line_sums begin with those of line first_line.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
list_histogram(const u32 *__restrict__ bins, i32 n, const i32 *__restrict__ list, const u32 *__restrict__ list_pairs,
               const i32 *__restrict__ selection, const i32 *__restrict__ tiles, const i32 *__restrict__ tile_cells,
               const u32 *__restrict__ tile_columns, const Line *__restrict__ lines, i64 *line_sums,
               const State *__restrict__ state, i32 first_line, i32 last_line, i32 least)
{
    extern __shared__ u32 plane[];
    Stage *stages = (Stage *)(plane + ALL_PLANES) + (threadIdx.x >> 5) * 2;
    const i32 across = selection[1], stop = min(last_line, state->n_lines);
    if (first_line >= stop)
        return;
    const i64 before = lines[first_line].first, m = (i64)lines[stop - 1].first + work_of(lines[stop - 1].rows) - before;
    const i64 share = rows_of_share(m, across, least), end = min(m * across, (blockIdx.x + 1) * share);
    i32 i = -1;
    for (i64 from = blockIdx.x * share; from < end;) {
        const i32 place = (i32)(from / m);
        const i64 at = before + from % m;
        if (i < 0 || at == before)
            i = line_of(lines, first_line, stop, at);
        while (at >= (i64)lines[i].first + work_of(lines[i].rows))
            ++i;
        const Line line = lines[i];
        const i64 k = at - line.first;
        const i32 count = (i32)min(min(end - from, line.rows - k), (i64)MOST_ROWS);
        if (count <= 0) { // behind the list
            from += work_of(line.rows) - k;
            continue;
        }
        const i32 begin = (line.step > 0 ? line.begin : line.begin - line.rows + 1) + (i32)k;
        const Listed rows = {list, list_pairs, state->wide, begin, count};
        const Features features = features_of(bins, n, tiles, tile_cells, tile_columns, place);
        for (i32 low = 0; low == 0 || (PASSES > 1 && low < features.cells); low += SPAN) {
            clear_planes(plane, cells_of_pass(features.cells, low));
            __syncthreads();
            add_rows(plane, stages, features, low, count, rows);
            __syncthreads();
            flush(plane, features, low, is_packed(line.rows),
                  line_sums + ((i64)(i - first_line) * across + place) * WIDTH * OF_FEATURE);
            __syncthreads();
        }
        from += count;
    }
}
