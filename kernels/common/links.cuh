// Predictions of scores, with the bits of the losses' inverse_link. In front: common.cuh and exp_of.

enum Link { IDENTITY, LOGARITHM, LOGISTIC };

// The prediction of a score by itself. scale: of the score, in front of a logistic link.
static __device__ f64 prediction_of(f64 score, i32 link, f64 scale)
{
    if (link == IDENTITY)
        return score;
    const f64 e = exp_of(link == LOGISTIC ? -(scale * score) : score > 700.0 ? 700.0 : score);
    return link == LOGISTIC ? 1.0 / (1.0 + e) : e;
}

// The largest of k scores of a row, n apart.
static __device__ __forceinline__ f64 top_of(const f64 *own, i32 n, i32 k)
{
    f64 top = own[0];
    for (i32 c = 1; c < k; ++c) {
        const f64 score = own[(i64)c * n];
        top = score > top ? score : top;
    }
    return top;
}
