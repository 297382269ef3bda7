"""A sketch of outputs that are drawn at random."""

from __future__ import annotations

import numpy as np

from gpuboost.arguments import checked_count
from gpuboost.backends.optional_verbs import OneTreeGrower
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.types import Gradients


@dataclass(frozen=True, slots=True)
class RandomOutputs:
    """k draws of an output, with replacement, by its share p of the squared gradients of the tree's rows.

    The gradient of a drawn output is divided by sqrt(k p), so that the expected gain of a split is that of all outputs.

    Args:
        k: draws, 1 or more; with as many outputs or fewer there is no sketch.

    Raises:
        RecipeError: if k is not such a number.
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked_count("sketch", "k", self.k))

    def of(self, machine: OneTreeGrower, gradients: Gradients, key: Key) -> Gradients:
        from gpuboost.backends.numerics.feature_subsets import fractions

        if self.k >= gradients.g.shape[0]:
            return gradients
        norms = machine.squared_norms(gradients)
        reached = np.cumsum(norms)
        if not reached[-1] > 0.0:
            return gradients
        drawn = np.searchsorted(reached, fractions(self.k, key) * reached[-1], side="right").clip(max=len(norms) - 1)
        return machine.chosen_outputs(gradients, drawn, np.sqrt(reached[-1] / (self.k * norms[drawn])))
