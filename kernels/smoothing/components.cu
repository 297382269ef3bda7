// Functions of cells: sums of gradients in each, and what they add to scores. A cell is a bin of one feature, or a pair of
// groups of bins of two. In front: common.cuh, tree.cuh.

enum {
    LEAST_ROWS = 2048,        // of a block before it hands on its sums; at most MOST_ROWS, so that 32 bits are enough
    MOST_TOGETHER = 8,        // grids whose sums a block adds up at once
    SUMS_HEAD = 4             // numbers in front of the sums
};

// Grid of cells. A row's cell is the sum of its bins' entries in the tables of one feature, or of two.
struct Grid {
    i32 feature, second;      // second: -1 if there is none
    i32 tables;               // number of the first one, of 256 entries; that of the second feature follows
    i32 begin;                // of its cells among those of all grids
};

// The cell of a row. n: rows of a column.
static __device__ __forceinline__ i32 cell_of(const Grid &grid, const i32 *tables, const u8 *columns, i32 n, i32 row)
{
    const i32 *own = tables + 256 * grid.tables;
    const i32 cell = own[columns[(i64)grid.feature * n + row]];
    return grid.second < 0 ? cell : cell + own[256 + columns[(i64)grid.second * n + row]];
}

// sums[SUMS_HEAD + 2 c], and the next, += exact g and h of the target's rows in cell c. The sums are 0 before. Block row y
// has the grids batches[y] .. batches[y + 1] - 1; grids has one more, which begins where the last one's cells end. Blocks
// whose cells are at most ``near_cells`` first add up in 8 bytes of shared memory each. The head is the units of g and h,
// as bits, the target's error, and what went wrong as its rows were drawn (``Lost`` of drawn.cuh).
extern "C" __global__ void __launch_bounds__(512)
cell_sums(const f32 *g, const f32 *h, const i32 *times, i32 has_times, const i32 *rows, i32 has_rows,
          const State *state, const i32 *lost, const u8 *columns, i32 n, const Grid *grids, const i32 *batches,
          const i32 *tables, i32 near_cells, u64 *sums)
{
    extern __shared__ u32 near[];
    __shared__ Grid here[MOST_TOGETHER];
    const f64 scale_g = state->scale_g, scale_h = state->scale_h;
    const i32 error = state->error, m = state->m;
    const i32 first = batches[blockIdx.y], count = batches[blockIdx.y + 1] - first;
    const i32 begin_cell = grids[first].begin, cells = grids[first + count].begin - begin_cell;
    const bool own = cells <= near_cells;
    u64 *all = sums + SUMS_HEAD + 2 * (i64)begin_cell;
    if (threadIdx.x < count)
        here[threadIdx.x] = grids[first + threadIdx.x];
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
        sums[0] = (u64)__double_as_longlong(state->unit_g);
        sums[1] = (u64)__double_as_longlong(state->unit_h);
        sums[2] = (u64)error;
        sums[3] = (u64)*lost;
    }
    __syncthreads();
    const i32 stretch = (i32)min(rows_of_share(m, 1, LEAST_ROWS), (i64)MOST_ROWS);
    for (i64 begin = (i64)blockIdx.x * stretch; begin < m; begin += (i64)gridDim.x * stretch) {
        const i32 end = (i32)(begin + stretch < m ? begin + stretch : m);
        if (own) {
            for (i32 c = threadIdx.x; c < 2 * cells; c += blockDim.x)
                near[c] = 0;
            __syncthreads();
        }
        for (i32 i = (i32)begin + threadIdx.x; i < end; i += blockDim.x) {
            const i32 row = has_rows ? rows[i] : i, count_of_row = has_times ? times[i] : 1;
            const i32 a = quantised(g[i], scale_g, count_of_row, error);
            const i32 b = quantised(h[i], scale_h, count_of_row, error);
            for (i32 k = 0; k < count; ++k) {
                const i32 cell = here[k].begin - begin_cell + cell_of(here[k], tables, columns, n, row);
                if (own) {
                    atomicAdd(near + 2 * cell, (u32)a);
                    atomicAdd(near + 2 * cell + 1, (u32)b);
                } else {
                    atomicAdd(all + 2 * cell, (u64)(i64)a);
                    atomicAdd(all + 2 * cell + 1, (u64)(u32)b);
                }
            }
        }
        if (own) {
            __syncthreads();
            for (i32 c = threadIdx.x; c < cells; c += blockDim.x) {
                if (near[2 * c] != 0)
                    atomicAdd(all + 2 * c, (u64)(i64)(i32)near[2 * c]);
                if (near[2 * c + 1] != 0)
                    atomicAdd(all + 2 * c + 1, (u64)near[2 * c + 1]);
            }
            __syncthreads();
        }
    }
}

// scores[i] += steps of the cell of row i, grid after grid. steps: of the cells of all grids.
extern "C" __global__ void __launch_bounds__(256)
add_cells(const Grid *grids, i32 count, const i32 *tables, const f64 *steps, const u8 *columns, i32 n, f64 *scores)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        f64 score = scores[i];
        for (i32 k = 0; k < count; ++k) {
            const Grid grid = grids[k];
            score += steps[grid.begin + cell_of(grid, tables, columns, n, i)];
        }
        scores[i] = score;
    }
}
