"""Gains: twice the loss reduction of a split, by one fixed sequence of operations."""

from gpuboost.kernels.common.jit import kernel

NOISE = 2.0**-40  # a gain below this share of the parent's score is rounding, not gain
ALPHA, MOST = 10, 11  # places of reg_alpha and max_delta_step (inf without it) in the rule of a search


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
def score_within(g, h, ridge, low, high):
    """Twice the loss reduction of a leaf with that clipped value."""
    below = h + ridge
    free = -g / below
    if low <= free <= high:
        return score(g, h, ridge)
    value = low if free < low else high
    return -(value * (g + g + below * value))
