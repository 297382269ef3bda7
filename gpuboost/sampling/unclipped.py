"""Importance sampling without a row of probability 1, for learners that ignore weights."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.numerics.probabilities import ThresholdRule
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.sampling import scores_of
from gpuboost.keys import Key
from gpuboost.records import dataclass
from gpuboost.sampling.importance import ImportanceSampling
from gpuboost.types import Gradients, Sample


@dataclass(frozen=True, slots=True)
class UnclippedSampling:
    """The rule with rho at most 1 / max h: p is then in proportion to h on every row, and h / p is one number.

    A learner that takes no weights needs this (SMART, section 4.2): min(1, rho h) leaves the rows at 1 a weight of
    their own. Where the rule would clip, fewer rows are drawn than it asks for.
    """

    rule: ImportanceSampling

    def draw(self, backend: Backend, gradients: Gradients, key: Key) -> Sample:
        sample = self.rule.draw(backend, gradients, key)
        weights = sample.inverse_probability
        if sample.rows is not None and not bool((np.asarray(backend.to_host(weights)) <= 1.0).any()):
            return sample  # a row of probability 1 is always drawn, so none has it
        largest = float(scores_of(gradients, self.rule.kappa, None).max(initial=0.0))
        if largest == 0.0:
            return sample
        return backend.draw(gradients, self.rule.kappa, ThresholdRule(None, 1.0 / largest), key)
