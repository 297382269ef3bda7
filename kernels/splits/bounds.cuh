// The bounds of the leaf values below a node. Definition: gpuboost/backends/numerics/monotone.py.
//
// Compiled with BOUNDED 1 where monotonic constraints or max_delta_step set them, and where there is reg_alpha. In front:
// common.cuh, tree.cuh.

#ifndef BOUNDED
#define BOUNDED 0
#endif

#define NO_BOUND __longlong_as_double(0x7ff0000000000000)

struct Bounds {
    f64 low, high;
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

// Twice the loss reduction of a leaf with that clipped value.
static __device__ __forceinline__ f64 score_within(f64 g, f64 h, f64 ridge, Bounds within)
{
    const f64 below = h + ridge, alone = -g / below;
    if (within.low <= alone && alone <= within.high)
        return g * g / below;
    const f64 value = clipped(alone, within);
    return -(value * (g + g + below * value));
}

// The bounds of the left or the right child of a node, whose sides have these values.
static __device__ __forceinline__ Bounds parted(i32 direction, Bounds within, f64 left, f64 right, bool is_left)
{
    if (direction == 0)
        return within;
    const f64 middle = (left + right) / 2.0;
    return is_left == (direction > 0) ? Bounds{within.low, middle} : Bounds{middle, within.high};
}

// Bounds of node v, from those of its parent, which were written when the parent was searched.
static __device__ __forceinline__ Bounds bounds_of(const Node *nodes, i32 v, const Bounds *bounds,
                                                   const i32 *directions, const State *state, const Rule *rule)
{
    const i32 p = nodes[v].parent;
    const f64 ridge = rule->reg_lambda, alpha = rule->reg_alpha;
    if (p < 0)
        return {-rule->max_delta_step, rule->max_delta_step};
    const Node &parent = nodes[p];
    const Bounds within = bounds[p];
    const f64 left_g = (f64)parent.left_g * state->unit_g, left_h = (f64)parent.left_h * state->unit_h;
    const f64 right_g = (f64)(parent.sum_g - parent.left_g) * state->unit_g;
    const f64 right_h = (f64)(parent.sum_h - parent.left_h) * state->unit_h;
    const f64 left = value_within(soft_threshold(left_g, alpha), left_h, ridge, within);
    const f64 right = value_within(soft_threshold(right_g, alpha), right_h, ridge, within);
    return parted(directions[parent.feature], within, left, right, v == parent.left);
}
