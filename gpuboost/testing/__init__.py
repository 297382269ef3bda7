"""Test suites for the pieces of a third party: subclass one, name the piece, and run it with pytest.

The built-in pieces pass the same suites.
"""

from __future__ import annotations

from gpuboost.testing.backend import BackendContract
from gpuboost.testing.losses import ListLossContract, LossContract
from gpuboost.testing.sampling import SamplingContract

__all__ = ["BackendContract", "ListLossContract", "LossContract", "SamplingContract"]
