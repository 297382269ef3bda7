"""Gradient-based one-side sampling (Ke et al., LightGBM, NIPS 2017)."""

from __future__ import annotations

from typing import ClassVar

from gpuboost.backends.numerics.probabilities import GossRule
from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.sampling.protocol import explaining_leaf_values, leaves_from, share
from gpuboost.types import Gradients, Sample


@explaining_leaf_values
@dataclass(frozen=True, slots=True)
class GOSS:
    """The rows with the largest gradients, a share ``top`` of all, and a share ``other`` of all from the rest.

    The latter are drawn with probability other / (1 - top) each and weighted by its inverse. Rows that tie at the
    border are equally likely. Leaf values are those of all rows, or of the sample: ``variance_control`` as of
    ``gb.ImportanceSampling``.

    As in the paper a gradient's size is |g|, or its norm for several outputs; LightGBM's code takes |g h|, leaves its
    first rounds unsampled, and draws by blocks of rows that depend on the number of threads.

    Raises:
        RecipeError: if a share is not in (0, 1], or both together are more than all rows.
    """

    top: float = 0.2
    other: float = 0.1
    variance_control: str = "leaf_refit"

    unbiased: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    repeatable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        share("top", self.top)
        share("other", self.other)
        leaves_from(self.variance_control)
        if self.top + self.other > 1.0:
            raise RecipeError(
                f"sampling: top and other are shares of the same rows, at most 1 together; got {self.top!r} and "
                f"{self.other!r}."
            )

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        return backend.draw(gradients, 0.0, GossRule(float(self.top), float(self.other)), key)
