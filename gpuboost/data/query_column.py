"""The query of each row as a column of X."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from gpuboost.data.frames import collected
from gpuboost.data.tables import as_table
from gpuboost.errors import InputError


def without_group(X: Any, group: Any) -> tuple[Any, Any]:
    """X without the column that ``group`` names, and the query ids in it; both as they are if ``group`` is not text.

    X: any input of ``tables.as_table``, with names; a ``Table`` comes back, which has the name as ``query``.

    Raises
    ------
    InputError
        If X has no such column, or no other one.
    """
    if not isinstance(group, str):
        return X, group
    if hasattr(X, "binned"):  # a Dataset, whose columns are decided
        raise InputError(f"group: a Dataset has its columns decided; give it group={group!r} as it is made.")
    table = as_table(collected(X))
    if table.names is None:
        raise InputError(f"group: X has no column names to find {group!r} in; give the query of each row.")
    if group not in table.names:
        close = get_close_matches(group, table.names)
        hint = f"; close to it: {', '.join(map(repr, close))}" if close else ""
        raise InputError(f"group: X has no column {group!r}{hint}.")
    kept = [name for name in table.names if name != group]
    if not kept:
        raise InputError(f"group: X has no column but {group!r}, and so no feature.")
    return replace(table.select(kept), query=group), table.column(table.names.index(group)).row_values()
