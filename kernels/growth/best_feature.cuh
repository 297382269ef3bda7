// The end of a node's search: its best feature. In front: random_strength.cuh. Compiled for SETS.

// Over the features: the first of the largest gains becomes the node's split, or the node is closed. By one warp. A call,
// as its registers are then not those of the search.
static __device__ __noinline__ void take_best(Node *node, const Candidate *candidates, const i32 *features, const i32 *kinds,
                                 i32 t, const GainNoise &noise)
{
    const i32 lane = threadIdx.x & 31;
    f64 gain = 0.0;
    const i32 key = feature_of(candidates, features, t, number_of(node->sum_g, node->sum_h), noise, gain);
    if (key == NO_KEY) {
        if (lane == 0)
            node->state = CLOSED;
        return;
    }
    const Candidate &best = candidates[key];
    const bool sets = SETS && kinds[features[key]] >> 16;
    if (lane < 8)
        node->left_set[lane] = sets ? best.left_set[lane] : 0;
    if (lane == 0) {
        node->gain = gain;
        node->left_g = best.found.g;
        node->left_h = best.found.h;
        node->feature = features[key];
        node->bin = best.found.bin;
        node->missing_left = best.found.missing_left;
        node->state = OPEN;
    }
}
