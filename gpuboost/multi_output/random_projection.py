"""A sketch by a random projection."""

from __future__ import annotations

import numpy as np

from gpuboost.arguments import checked_count
from gpuboost.backends.optional_verbs import OneTreeGrower
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.types import Gradients


@dataclass(frozen=True, slots=True)
class RandomProjection:
    """k sums over the outputs of their gradients times normal numbers of variance 1 / k, drawn anew for each tree.

    The expected sum of squares is that of all outputs (Johnson and Lindenstrauss). All k have one curvature, the mean
    over the outputs; for the squared error that is the number of rows.

    Args:
        k: sums, 1 or more; with as many outputs or fewer there is no sketch.

    Raises:
        RecipeError: if k is not such a number.
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked_count("sketch", "k", self.k))

    def of(self, machine: OneTreeGrower, gradients: Gradients, key: Key) -> Gradients:
        from gpuboost.backends.numerics.random_numbers import gaussian_of, uniform_bits

        outputs = gradients.g.shape[0]
        if self.k >= outputs:
            return gradients
        normal = gaussian_of(uniform_bits(outputs * self.k, key)).reshape(outputs, self.k)
        return machine.projected_outputs(gradients, normal / np.sqrt(float(self.k)))
