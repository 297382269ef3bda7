"""Settings of a search: grids, scikit-learn's distributions, and distributions of Optuna."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler

from gpuboost.errors import RecipeError, shown

Setting: TypeAlias = dict[str, Any]

OF_THE_SEARCH = {
    "n_estimators": "the search finds the number of rounds from the curves; set the most on the model",
    "early_stopping_rounds": "set it on the model, for all settings",
    "eval_metric": "settings are compared by one metric; set it on the model",
    "validation_fraction": "the folds hold rows out",
    "callbacks": "set them on the model",
    "n_jobs": "set it on the model; it is the number of threads of the whole search",
    "device": "set it on the model",
    "warm_start": "a search fits anew",
}
"""Parameters that are no part of a space, with the reason."""


def check_space(space: Any) -> tuple[Mapping[str, Any], ...]:
    """The space as a tuple of mappings from parameters to values.

    Raises
    ------
    RecipeError
        If it is no mapping or list of mappings, or an entry is neither a list of values nor a distribution.
    """
    parts = (space,) if isinstance(space, Mapping) else space
    is_list = isinstance(parts, Sequence) and not isinstance(parts, str) and len(parts) > 0
    if not isinstance(parts, tuple) and (not is_list or not all(isinstance(part, Mapping) for part in parts)):
        raise RecipeError(
            "space: must be a mapping from parameters to lists of values or distributions, or a list of such; "
            f"got {shown(space)}."
        )
    for part in parts:
        if not part:
            raise RecipeError("space: has no parameter; give at least one.")
        for name, values in part.items():
            _check_entry(name, values)
        if any(map(_is_optuna, part.values())) and any(map(_is_scipy, part.values())):
            raise RecipeError("space: has distributions of Optuna and of SciPy; use those of one library.")
    return tuple(parts)


def _check_entry(name: Any, values: Any) -> None:
    if not isinstance(name, str):
        raise RecipeError(f"space: names of parameters are text; got {shown(name)}.")
    if name in OF_THE_SEARCH:
        raise RecipeError(f"space: {name} cannot be searched: {OF_THE_SEARCH[name]}.")
    if _is_scipy(values) or _is_optuna(values):
        return
    is_list = values.ndim > 0 if isinstance(values, np.ndarray) else isinstance(values, Sequence)
    if not is_list or isinstance(values, (str, bytes)) or not len(values):
        raise RecipeError(
            f"space: {name} must be a list of values, a distribution of scipy.stats (an object with rvs), or one of "
            f"optuna.distributions; got {shown(values)}."
        )


def is_grid(space: Iterable[Mapping[str, Any]]) -> bool:
    """True if all entries are lists."""
    return not any(_is_scipy(values) or _is_optuna(values) for part in space for values in part.values())


def grid_size(space: Sequence[Mapping[str, Any]]) -> int:
    """Number of settings of a grid."""
    return len(ParameterGrid(list(space)))


def settings_of(space: Sequence[Mapping[str, Any]], count: int, seed: int) -> list[Setting]:
    """``count`` settings: those of a grid in scikit-learn's order if that is all of them, else drawn by the seed.

    Draws are those of scikit-learn's ``ParameterSampler``, without repetition from a grid; with distributions of Optuna
    those of its ``RandomSampler``.

    Raises
    ------
    ImportError
        If the space is Optuna's, and Optuna is not installed.
    """
    if is_grid(space) and count >= grid_size(space):
        return list(ParameterGrid(list(space)))
    if any(_is_optuna(values) for part in space for values in part.values()):
        return _of_optuna(space, count, seed)
    return list(ParameterSampler(list(space), count, random_state=seed))


def _of_optuna(space: Sequence[Mapping[str, Any]], count: int, seed: int) -> list[Setting]:
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it tells of each study
    try:
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
        chosen = np.random.default_rng(seed).integers(len(space), size=count)
        asked = [{name: _as_optuna(optuna, values) for name, values in part.items()} for part in space]
        return [dict(study.ask(asked[part]).params) for part in chosen]
    finally:
        optuna.logging.set_verbosity(before)


def _as_optuna(optuna: Any, values: Any) -> Any:
    return values if _is_optuna(values) else optuna.distributions.CategoricalDistribution(list(values))


def _is_scipy(values: Any) -> bool:
    return hasattr(values, "rvs")


def _is_optuna(values: Any) -> bool:
    return any(kind.__module__.startswith("optuna.") for kind in type(values).__mro__)
