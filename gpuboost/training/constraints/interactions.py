"""``interaction_cst=``: the columns that may split the nodes of one path of a tree."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gpuboost.data.columns import column_number
from gpuboost.errors import InputError, RecipeError, shown
from gpuboost.types import Interactions

RULE = (
    'None, "pairwise", "no_interactions", or sets of columns by name or index that may interact, such as '
    '[["age", "income"], ["town", "rent"]]'
)
WORDS = {"no_interactions": 1, "pairwise": 2}


def interaction_sets(value: Any, n_columns: int, names: tuple[str, ...] | None) -> Interactions | None:
    """The constraints; None if they forbid nothing. Columns of no set are one more set, as in scikit-learn.

    Raises
    ------
    RecipeError
        If it is neither a word nor sets of columns, or a name or index is not a column.
    """
    if value is None:
        return None
    every = tuple(range(n_columns))
    if isinstance(value, str) and value in WORDS:
        return Interactions((every,), WORDS[value]) if n_columns > WORDS[value] else None
    sets = [_members(column_set, value, n_columns, names) for column_set in _listed(value, value)]
    rest = set(every).difference(*sets)
    sets += [tuple(sorted(rest))] if rest else []
    return None if every in sets else Interactions(tuple(dict.fromkeys(sets)))


def _listed(value: Any, whole: Any) -> Collection[Any]:
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Collection) or not len(value):
        raise RecipeError(f"interaction_cst: must be {RULE}; got {shown(whole)}.")
    return value


def _members(column_set: Any, whole: Any, n_columns: int, names: tuple[str, ...] | None) -> tuple[int, ...]:
    """The columns of one set, increasing."""
    try:
        numbers = {column_number(item, names, n_columns, "interaction_cst") for item in _listed(column_set, whole)}
    except InputError as error:
        raise RecipeError(str(error)) from None
    return tuple(sorted(numbers))


def of_size(value: Any, n_columns: int) -> Interactions | None:
    """Constraints of the same size, for an estimate of memory. Invalid values count as none; they are refused later."""
    if value is None or n_columns < 1:
        return None
    sets = 1 if isinstance(value, str) or not isinstance(value, Collection) else len(value) + 1
    return Interactions(((0,),) * sets)
