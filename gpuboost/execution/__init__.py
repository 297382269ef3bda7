"""Where trees are built, and how stale the gradients they are fitted to may be."""

from gpuboost.execution.protocol import Execution, Fit, Workers
from gpuboost.execution.serial import Serial

__all__ = ["Execution", "Fit", "Serial", "Workers"]
