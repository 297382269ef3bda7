// Trees whose rows are shared out: what one device knows, laid out so that plain sums of integers make of it what all
// know. Sums of 64 bits are exact in any order, so the tree is the one that a single device grows.
//
//     list_histogram -> sum_lines -> [sum over the devices] -> evaluate
//     root_histogram -> sum_lines -> [sum over the devices] -> init_shared_root -> evaluate
//     route -> [sum of the cursors] -> cut_shared_lists (partition.cu)
//
// Compiled for one CELLS and COUNTS (as histogram.cu). In front: common.cuh, tree.cuh.

#define THREADS 256

// The stretches of each of the lines first_line .. last_line - 1, added up: SHARED_HEAD numbers, then of each line its
// cells' pairs (g, h) and, if rows are counted, its cells' counts. Where there is no such line, zeros. The root's sums
// go to the front, from the state; otherwise zeros.
extern "C" __global__ void __launch_bounds__(THREADS)
sum_lines(const uint2 *__restrict__ partials, const u32 *__restrict__ partial_counts, const i32 *__restrict__ selection,
          const Line *__restrict__ lines, const State *__restrict__ state, i32 first_line, i32 last_line, i64 *sums)
{
    const i32 in_line = selection[1] * selection[2] * CELLS, n_lines = state->n_lines;
    const i32 base = first_line < n_lines ? lines[first_line].first_tile : 0;
    const i64 all = (i64)(last_line - first_line) * in_line;
    for (i64 at = (i64)blockIdx.x * THREADS + threadIdx.x; at < all; at += (i64)gridDim.x * THREADS) {
        const i32 number = (i32)(at / in_line), cell = (i32)(at % in_line), i = first_line + number;
        i64 g = 0, h = 0, n = 0;
        if (i < n_lines) {
            const Line line = lines[i];
            for (i32 t = line.first_tile; t < line.first_tile + line.n_tiles; ++t) {
                const i64 part = (i64)(t - base) * in_line + cell;
                g += (i32)partials[part].x;
                h += partials[part].y;
                if (COUNTS)
                    n += partial_counts[part * COUNTS];
            }
        }
        i64 *own = sums + SHARED_HEAD + (i64)number * in_line * (2 + COUNTS);
        own[2 * cell] = g;
        own[2 * cell + 1] = h;
        if (COUNTS)
            own[2 * in_line + cell] = n;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        sums[0] = state->n_nodes == 1 ? state->total_g : 0;
        sums[1] = state->n_nodes == 1 ? state->total_h : 0;
    }
}

// The root again, of the rows of all devices. sums: as above, added up. rows: of the training set. here: rows of each
// node that are on this device. One thread.
extern "C" __global__ void __launch_bounds__(32)
init_shared_root(const i64 *sums, i32 rows, State *state, Node *nodes, i32 *here, const Rule *rule)
{
    state->total_g = sums[0];
    state->total_h = sums[1];
    state->rows_per_h = (f64)state->weight / (f64)(sums[1] > 1 ? sums[1] : 1);
    Node root = nodes[0];
    root.sum_g = sums[0];
    root.sum_h = sums[1];
    root.count = rows;
    root.state = can_split(root, state->unit_h, rule) && enough_rows(root, rule) ? NEW : CLOSED;
    nodes[0] = root;
    here[0] = state->m;
}
