"""Contracts that a piece of your own can be held to, as test suites to subclass. They run under pytest.

The built-in pieces pass the same suites.
"""

from __future__ import annotations

from gpuboost.testing.backend import BackendContract
from gpuboost.testing.sampling import SamplingContract

__all__ = ["BackendContract", "SamplingContract"]
