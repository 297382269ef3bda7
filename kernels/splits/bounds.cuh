// The bounds of the leaf values below a node, and path smoothing. Definition: gpuboost/backends/numerics/monotone.py.
//
// Compiled with BOUNDED 1 where monotonic constraints or max_delta_step set them, and where there is reg_alpha or
// path_smooth; with SMOOTHED 1 too where there is path_smooth. In front: common.cuh, tree.cuh.

#ifndef BOUNDED
#define BOUNDED 0
#endif

#ifndef SMOOTHED
#define SMOOTHED 0
#endif

#define NO_BOUND __longlong_as_double(0x7ff0000000000000)

struct Bounds {
    f64 low, high;
#if SMOOTHED
    f64 value; // of the node, to which those of its sides are drawn
#endif
};

static __device__ __forceinline__ f64 clipped(f64 value, Bounds within)
{
    return value < within.low ? within.low : value > within.high ? within.high : value;
}

// -G / (H + lambda), clipped to the bounds; 0 without rows. g: after ``soft_threshold``, here and below.
static __device__ __forceinline__ f64 value_within(f64 g, f64 h, f64 ridge, Bounds within)
{
    return clipped(h + ridge > 0.0 ? -g / (h + ridge) : 0.0, within);
}

// Twice the loss reduction of a leaf with this value. below: H + lambda.
static __device__ __forceinline__ f64 score_of(f64 value, f64 g, f64 below)
{
    return -(value * (g + g + below * value));
}

// Twice the loss reduction of a leaf with that clipped value.
static __device__ __forceinline__ f64 score_within(f64 g, f64 h, f64 ridge, Bounds within)
{
    const f64 below = h + ridge, alone = -g / below;
    if (within.low <= alone && alone <= within.high)
        return g * g / below;
    return score_of(clipped(alone, within), g, below);
}

#if SMOOTHED
// Curvature of path_smooth average rows of the tree: types.Limits.smoothing.
static __device__ __forceinline__ f64 smoothing_of(f64 path_smooth, f64 h, i64 weight)
{
    return path_smooth * h / (f64)(weight > 1 ? weight : 1);
}

static __device__ __forceinline__ f64 smoothing_of(const State *state, const Rule *rule)
{
    return smoothing_of(rule->path_smooth, (f64)state->total_h * state->unit_h, state->weight);
}

// ``value_within`` of a side, drawn to the value of the node.
static __device__ __forceinline__ f64 side_value(f64 g, f64 h, f64 ridge, Bounds within, f64 smoothing)
{
    const f64 own = value_within(g, h, ridge, within);
    return smoothing > 0.0 ? clipped((h * own + smoothing * within.value) / (h + smoothing), within) : own;
}
#endif

// The bounds of the left or the right child of a node, whose sides have these values.
static __device__ __forceinline__ Bounds parted(i32 direction, Bounds within, f64 left, f64 right, bool is_left)
{
#if SMOOTHED
    within.value = is_left ? left : right;
#endif
    if (direction == 0)
        return within;
    const f64 middle = (left + right) / 2.0;
    (is_left == (direction > 0) ? within.high : within.low) = middle;
    return within;
}

// Bounds of node v, from those of its parent, which were written when the parent was searched.
static __device__ __forceinline__ Bounds bounds_of(const Node *nodes, i32 v, const Bounds *bounds,
                                                   const i32 *directions, const State *state, const Rule *rule)
{
    const i32 p = nodes[v].parent;
    const f64 ridge = rule->reg_lambda, alpha = rule->reg_alpha;
    if (p < 0) {
        Bounds root = {-rule->max_delta_step, rule->max_delta_step};
#if SMOOTHED
        const f64 g = (f64)nodes[v].sum_g * state->unit_g, h = (f64)nodes[v].sum_h * state->unit_h;
        root.value = value_within(soft_threshold(g, alpha), h, ridge, root);
#endif
        return root;
    }
    const Node &parent = nodes[p];
    const Bounds within = bounds[p];
    const f64 left_g = (f64)parent.left_g * state->unit_g, left_h = (f64)parent.left_h * state->unit_h;
    const f64 right_g = (f64)(parent.sum_g - parent.left_g) * state->unit_g;
    const f64 right_h = (f64)(parent.sum_h - parent.left_h) * state->unit_h;
#if SMOOTHED
    const f64 smoothing = smoothing_of(state, rule);
    const f64 left = side_value(soft_threshold(left_g, alpha), left_h, ridge, within, smoothing);
    const f64 right = side_value(soft_threshold(right_g, alpha), right_h, ridge, within, smoothing);
#else
    const f64 left = value_within(soft_threshold(left_g, alpha), left_h, ridge, within);
    const f64 right = value_within(soft_threshold(right_g, alpha), right_h, ridge, within);
#endif
    return parted(directions[parent.feature], within, left, right, v == parent.left);
}
