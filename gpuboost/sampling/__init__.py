"""Row sampling: the rows that a tree is fitted to, and their weights.

A policy is one small class with ``draw``. Rows are kept by independent coin flips q_i ~ Bernoulli(p_i), each flip a
function of (seed, round, row) alone, and weighted by 1 / p_i, so that every sum over rows keeps its expectation.
"""

from __future__ import annotations

from gpuboost.backends.numerics.probabilities import GossRule, ProbabilityRule, ThresholdRule, TrimmingRule
from gpuboost.sampling.by_row import RowProbabilities
from gpuboost.sampling.control_variates import recall, sampler_of
from gpuboost.sampling.goss import GOSS
from gpuboost.sampling.importance import ImportanceSampling
from gpuboost.sampling.presets import MVS, smart_first_order, smart_second_order
from gpuboost.sampling.protocol import Sampling
from gpuboost.sampling.sampler import Sampler
from gpuboost.sampling.trimming import WeightTrimming
from gpuboost.sampling.uniform import EveryRow, UniformSampling

__all__ = [
    "GOSS",
    "MVS",
    "EveryRow",
    "GossRule",
    "ImportanceSampling",
    "ProbabilityRule",
    "RowProbabilities",
    "Sampler",
    "Sampling",
    "ThresholdRule",
    "TrimmingRule",
    "UniformSampling",
    "WeightTrimming",
    "recall",
    "sampler_of",
    "smart_first_order",
    "smart_second_order",
]
