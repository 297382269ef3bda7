"""What a split takes off the loss, doubled: the one sequence of operations that gains are formed by."""

from gpuboost.kernels.common.jit import kernel

NOISE = 2.0**-40  # a gain below this share of the parent's score is rounding, not gain


@kernel
def score(g, h, ridge):
    """What a leaf with these sums takes off the loss, doubled."""
    return g * g / (h + ridge)
