"""Kernels from the first call of a process on, where NumPy or a process in the background would begin."""

from __future__ import annotations

from gpuboost.backends.cpu.compilation import background
from gpuboost.backends.cpu.compilation.first_fit import FIRST_FITS
from gpuboost.backends.cpu.compilation.warm_up import HELPER
from gpuboost.backends.cpu.trees import small_trees
from gpuboost.backends.prediction.first_rows import FIRST


def leave_all_to_kernels() -> None:
    """Let NumPy have no first fits and predictions, and no other process compile anything.

    Such a process would load all libraries beside tests that use all processors. What processes of other tests have
    compiled by then is not looked for: a test finds the same kernels in any order.
    """
    FIRST_FITS.end()
    FIRST.end()
    HELPER.start = lambda *_, **__: None  # type: ignore[method-assign]
    background.start_process = lambda *_, **__: None  # type: ignore[assignment]
    both = (False, True)
    variants = small_trees.PLAIN, *background.LIMITS
    of_levels = {background.levels_kind(variant, categorical=kinds) for kinds in both for variant in variants}
    background.is_noted = {background.PREDICTION, *of_levels}.__contains__  # type: ignore[assignment]
