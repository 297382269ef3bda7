"""Gains: twice the loss reduction of a split, by one fixed sequence of operations."""

from gpuboost.kernels.common.jit import kernel

NOISE = 2.0**-40  # a gain below this share of the parent's score is rounding, not gain
ALPHA, MOST, SMOOTHING = (
    10,
    11,
    12,
)  # places of reg_alpha, max_delta_step (inf without it) and S in the rule of a search


@kernel
def score(g, h, ridge):
    """Twice the loss reduction of a leaf with these sums."""
    return g * g / (h + ridge)


@kernel
def soft_threshold(g, alpha):
    """G brought nearer to 0 by alpha, and 0 if it is not further from it."""
    return g - alpha if g > alpha else g + alpha if g < -alpha else 0.0


@kernel
def value_within(g, h, ridge, low, high):
    """-G / (H + lambda), clipped to the bounds; 0 without rows. g: after ``soft_threshold``, here and below."""
    value = -g / (h + ridge) if h + ridge > 0.0 else 0.0
    return low if value < low else high if value > high else value


@kernel
def score_of(value, g, below):
    """Twice the loss reduction of a leaf with this value. below: H + lambda."""
    return -(value * (g + g + below * value))


@kernel
def smoothed_within(g, h, ridge, low, high, smoothing, above):
    """``value_within`` drawn to the value of the node above; smoothing: S of ``numerics.monotone``, above 0."""
    value = (h * value_within(g, h, ridge, low, high) + smoothing * above) / (h + smoothing)
    return low if value < low else high if value > high else value


@kernel
def score_within(g, h, ridge, low, high):
    """Twice the loss reduction of a leaf with that clipped value."""
    below = h + ridge
    free = -g / below
    if low <= free <= high:
        return score(g, h, ridge)
    return score_of(low if free < low else high, g, below)
