"""Ranking losses on the CPU. Plain fits import no module of it."""

from typing import TYPE_CHECKING

from gpuboost._imports.lazy import lazy_modules

if TYPE_CHECKING:
    from gpuboost.backends.cpu.rankings import cross_entropy, ranking, smoothed_ranking

__all__ = ["cross_entropy", "ranking", "smoothed_ranking"]

__getattr__ = lazy_modules(__name__, *__all__)
