"""A sketch of the outputs whose gradients are largest."""

from __future__ import annotations

import numpy as np

from gpuboost.arguments import checked_count
from gpuboost.backends.optional_verbs import OneTreeGrower
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.types import Gradients


@dataclass(frozen=True, slots=True)
class TopOutputs:
    """The k outputs of the largest sums of squared gradients, of the rows that the tree is grown on.

    Args:
        k: outputs, 1 or more; all of them if there are no more.

    Raises:
        RecipeError: if k is not such a number.
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked_count("sketch", "k", self.k))

    def of(self, machine: OneTreeGrower, gradients: Gradients, key: Key) -> Gradients:
        if self.k >= gradients.g.shape[0]:
            return gradients
        order = np.argsort(-machine.squared_norms(gradients), kind="stable")[: self.k]
        chosen = np.sort(order)
        return machine.chosen_outputs(gradients, chosen, np.ones(self.k))
