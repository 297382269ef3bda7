"""Contract tests for user-defined pieces, as pytest suites to subclass.

The built-in pieces pass the same suites.
"""

from __future__ import annotations

from gpuboost.testing.losses import ListLossContract, LossContract
from gpuboost.testing.sampling import SamplingContract

__all__ = ["ListLossContract", "LossContract", "SamplingContract"]
