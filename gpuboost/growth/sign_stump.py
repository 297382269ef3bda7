"""The stump of RGBM's theory: b(x) = +1 where x <= cut, -1 beyond (Lu and Mazumder 2020, equation 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuboost.backends.protocol import Backend
from gpuboost.types import Candidates, Limits, Structure, Target, TrainingSet


@dataclass(init=False, slots=True, unsafe_hash=True)
class SignStump:
    """One split, one value v = -(G_L - G_R) / (H + lambda): the leaves are v and -v.

    The split with the largest (G_L - G_R)^2 is taken: among normalised vectors of +1 and -1, the one most parallel to
    the gradient. If none is better than the constant vector, the stump is constant. All other limits apply.
    """

    limits: Limits

    def __init__(self, limits: Limits) -> None:
        self.limits = replace(limits, growth="sign_stump", max_depth=1, max_leaves=2)

    def structure(
        self, backend: Backend, data: TrainingSet, target: Target, output: int, candidates: Candidates
    ) -> Structure:
        return backend.grow(data, target, output, candidates, self.limits)
