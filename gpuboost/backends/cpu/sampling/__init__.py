"""Drawing of rows, their weights, and the noise on their gradients, on the CPU. Plain fits import no module of it."""

from typing import TYPE_CHECKING

from gpuboost._imports.lazy import lazy_modules

if TYPE_CHECKING:
    from gpuboost.backends.cpu.sampling import control_variates, draws, noise

__all__ = ["control_variates", "draws", "noise"]

__getattr__ = lazy_modules(__name__, *__all__)
