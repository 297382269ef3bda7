"""Seeds of fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gpuboost.arguments import is_integer
from gpuboost.errors import RecipeError, shown
from gpuboost.execution import Replay


def seed_of(random_state: Any) -> int:
    """Seed of a fit: ``random_state`` itself if it is an int, else a drawn one.

    Raises
    ------
    RecipeError
        If it is not an int, None, a RandomState or a Generator.
    """
    if is_integer(random_state, 0):
        return int(random_state)
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    raise RecipeError(
        "random_state: must be None, an integer of at least 0, or a numpy RandomState or Generator; got "
        f"{random_state!r}."
    )


def seed_of_run(params: Mapping[str, Any]) -> int:
    """Seed of the fit, which is that of the log to replay. Raises RecipeError if ``random_state`` is another one."""
    random_state, execution = params["random_state"], params.get("execution")
    if not isinstance(execution, Replay):
        return seed_of(random_state)
    known = execution.log.seed
    if random_state is not None and seed_of(random_state) != known:
        raise RecipeError(
            f"random_state: the log to replay is of a run with the seed {known}; got {shown(random_state)}. Give that, "
            "or None."
        )
    return known
