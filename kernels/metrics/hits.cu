// The weight of rows whose class is among those of largest score, and of rows by predicted class. In front: common.cuh,
// pieces.cuh.

// sums (3,) += the pieces of the hits' weights times ``scale``. y (n,) numbers of classes; scores (k, n); of one output
// the class is 1 where the score is above 0. places: how many classes of largest score count; later_leads: 1 if the
// later one of equal scores is taken for the larger.
extern "C" __global__ void __launch_bounds__(256)
sum_hits(const f64 *y, const f64 *scores, const f64 *weight, i32 has_weight, i32 n, i32 k, i32 places, i32 later_leads,
         f64 scale, i64 *sums)
{
    Pieces own = {};
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        bool hit;
        if (k == 1) {
            hit = (scores[i] > 0.0 ? 1.0 : 0.0) == y[i];
        } else {
            const i32 label = (i32)y[i];
            const f64 score = scores[(i64)label * n + i];
            i32 ahead = 0;
            for (i32 c = 0; c < k; ++c) {
                const f64 other = scores[(i64)c * n + i];
                ahead += other > score || (other == score && (later_leads ? c > label : c < label));
            }
            hit = ahead < places;
        }
        if (hit)
            own.add((has_weight ? weight[i] : 1.0) * scale);
    }
    add_pieces(own, sums);
}

// cells (n,): twice the class of the largest score of each row, the earlier of equal ones, and 1 if it is the row's. y,
// scores: as of sum_hits.
extern "C" __global__ void __launch_bounds__(256)
predict_classes(const f64 *y, const f64 *scores, i32 n, i32 k, i32 *cells)
{
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        f64 top = scores[i];
        i32 predicted = k == 1 && top > 0.0;
        for (i32 c = 1; c < k; ++c) {
            const f64 score = scores[(i64)c * n + i];
            if (score > top) {
                top = score;
                predicted = c;
            }
        }
        cells[i] = 2 * predicted + ((f64)predicted == y[i]);
    }
}

enum { ENTRIES = 4 }; // of a cell: the pieces of the rows' weights, and the number of rows

// sums (classes, 2, ENTRIES) += the pieces of the rows' weights times ``scale``, and their number, by cell. The second
// dimension of the grid is the predicted class.
extern "C" __global__ void __launch_bounds__(256)
sum_cells(const i32 *cells, const f64 *weight, i32 has_weight, i32 n, f64 scale, i64 *sums)
{
    const i32 cell = 2 * blockIdx.y;
    Pieces misses = {}, hits = {};
    u32 n_misses = 0, n_hits = 0;
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const i32 own = cells[i];
        if (own == cell) {
            misses.add((has_weight ? weight[i] : 1.0) * scale);
            ++n_misses;
        } else if (own == cell + 1) {
            hits.add((has_weight ? weight[i] : 1.0) * scale);
            ++n_hits;
        }
    }
    i64 *to = sums + (i64)cell * ENTRIES;
    add_pieces(misses, to);
    add_pieces(hits, to + ENTRIES);
    for (i32 d = 16; d; d >>= 1) {
        n_misses += __shfl_xor_sync(FULL_WARP, n_misses, d);
        n_hits += __shfl_xor_sync(FULL_WARP, n_hits, d);
    }
    if ((threadIdx.x & 31) == 0) {
        atomicAdd((u64 *)to + 3, (u64)n_misses);
        atomicAdd((u64 *)to + ENTRIES + 3, (u64)n_hits);
    }
}
