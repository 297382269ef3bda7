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

enum { ENTRIES = 4 }; // of a class and a verdict: the weight's three pieces, and the number of rows

// sums (classes, 2, ENTRIES) += the pieces of the rows' weights times ``scale``, and their number, by predicted class and
// whether it is the row's. y, scores: as of sum_hits; the earlier of classes of equal scores is predicted. Where ``own``
// is 1 a block first adds up in 8 * size bytes of its own; size: entries of ``sums``.
extern "C" __global__ void __launch_bounds__(256)
sum_classes(const f64 *y, const f64 *scores, const f64 *weight, i32 has_weight, i32 n, i32 k, f64 scale, i32 size,
            i32 own, i64 *sums)
{
    extern __shared__ u64 near[];
    if (own) {
        for (i32 j = threadIdx.x; j < size; j += blockDim.x)
            near[j] = 0;
        __syncthreads();
    }
    for (i32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        i32 predicted = 0;
        if (k == 1) {
            predicted = scores[i] > 0.0;
        } else {
            f64 top = scores[i];
            for (i32 c = 1; c < k; ++c) {
                const f64 score = scores[(i64)c * n + i];
                if (score > top) {
                    top = score;
                    predicted = c;
                }
            }
        }
        Pieces pieces = {};
        pieces.add((has_weight ? weight[i] : 1.0) * scale);
        u64 *to = (own ? near : (u64 *)sums) + (2 * predicted + ((f64)predicted == y[i])) * ENTRIES;
        for (i32 place = 0; place < 3; ++place)
            atomicAdd(to + place, (u64)pieces.sums[place]);
        atomicAdd(to + 3, (u64)1);
    }
    if (own) {
        __syncthreads();
        for (i32 j = threadIdx.x; j < size; j += blockDim.x)
            if (near[j] != 0)
                atomicAdd((u64 *)sums + j, near[j]);
    }
}
