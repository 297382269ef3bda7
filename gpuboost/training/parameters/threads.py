"""The number of threads that ``n_jobs`` asks for."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from gpuboost.backends.devices import usable_threads
from gpuboost.data.dataset import MOST_THREADS
from gpuboost.errors import RecipeError, shown


def threads_of(n_jobs: Any) -> int:
    """Number of threads for ``n_jobs``: all that this process may use for None and -1, all but one for -2."""
    if n_jobs is None:
        return usable_threads()
    asked = int(n_jobs) if isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool) else 0
    if asked == 0:
        raise RecipeError(
            f"n_jobs: must be None, a number of threads, -1 for all or -2 for all but one; got {n_jobs!r}."
        )
    if abs(asked) > MOST_THREADS:
        raise RecipeError(f"n_jobs: must be at most {MOST_THREADS} threads; got {shown(n_jobs)}.")
    return asked if asked > 0 else max(1, usable_threads() + 1 + asked)
