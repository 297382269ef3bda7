"""Every row, and the same probability for every row."""

from __future__ import annotations

from typing import ClassVar

from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.records import dataclass, restored
from gpuboost.sampling.protocol import explaining_leaf_values, leaves_from, share
from gpuboost.types import Gradients, Sample

_EVERY = Sample()


@dataclass(frozen=True, slots=True)
class EveryRow:
    """q_i = 1."""

    unbiased: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    repeatable: ClassVar[bool] = True
    follows_gradients: ClassVar[bool] = False

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        return _EVERY


@explaining_leaf_values
@dataclass(frozen=True, slots=True)
class UniformSampling:
    """p_i = rate: stochastic gradient boosting (Friedman 2002), with a new draw for each tree.

    Parameters
    ----------
    rate : float in (0, 1]
    variance_control : "leaf_refit", "none" or "horvitz_thompson"
        Source of the leaf values. "leaf_refit": the exact sums of all rows of a leaf. "none": sums over its drawn rows
        in numerator and denominator, -sum q/p g / sum q/p h (Hajek; Friedman's). "horvitz_thompson": the drawn rows in
        the numerator and all rows in the denominator, -sum q/p g / sum h, which is V (V'V)^-1 V' L'_random of
        Asynch-SGBDT (equation 14) for gradient steps. The tree is then fitted to all rows, the gradient of a row that
        was not drawn being 0, so it costs as much as one without sampling. Control variates, two more sources, are in
        ``gb.ImportanceSampling``: a leaf has one value, so they are one choice with these.

    Raises
    ------
    RecipeError
        If the rate is not in (0, 1], or there is no such variance control.
    """

    rate: float
    variance_control: str = "leaf_refit"

    unbiased: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    repeatable: ClassVar[bool] = True
    follows_gradients: ClassVar[bool] = False

    __setstate__ = restored

    @property
    def draws_every_row(self) -> bool:
        return self.rate == 1.0

    def __post_init__(self) -> None:
        share("rate", self.rate)
        leaves_from(self.variance_control)

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        if self.rate == 1.0:
            return Sample()
        return backend.sample(self.rate, gradients.g.shape[1], key)
