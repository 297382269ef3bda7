"""Gains: twice the loss reduction of a split, by one fixed sequence of operations."""

from gpuboost.kernels.common.jit import kernel

NOISE = 2.0**-40  # a gain below this share of the parent's score is rounding, not gain


@kernel
def score(g, h, ridge):
    """Twice the loss reduction of a leaf with these sums."""
    return g * g / (h + ridge)
