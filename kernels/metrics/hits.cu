// The weight of rows whose class is among those of largest score. In front: common.cuh, pieces.cuh.

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
