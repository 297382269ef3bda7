"""The query of each row, for ranking."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import unmasked
from gpuboost.data.categories import is_missing
from gpuboost.errors import InputError

_SORT = (
    'Sort everything by query: order = np.argsort(group, kind="stable"), then X[order], y[order], group[order] and, if '
    "there are any, sample_weight[order]."
)


def check_group(group: Any, n_rows: int) -> NDArray[Any] | None:
    """(n,) the query of each row; None stays None.

    group: one query id for each row, equal ids side by side, or the sizes of the queries in the order of the rows. As
    many entries as there are rows are ids.

    Raises
    ------
    InputError
        If it is neither.
    """
    if group is None:
        return None
    try:
        values = np.asarray(unmasked(group))
    except ValueError as error:
        raise InputError(f"group: needs one query for each row, or the size of each query; {error}.") from None
    if values.ndim != 1:
        hint = " Use numpy.ravel(group)." if values.shape in ((n_rows, 1), (1, n_rows)) else ""
        raise InputError(f"group: must have one dimension; got shape {values.shape}.{hint}")
    return _checked_ids(values) if len(values) == n_rows else _from_sizes(values, n_rows)


def _checked_ids(ids: NDArray[Any]) -> NDArray[Any]:
    _check_kind(ids)
    if ids.dtype.kind in "fO":
        missing = np.isnan(ids) if ids.dtype.kind == "f" else np.array([is_missing(query) for query in ids.tolist()])
        if missing.any():
            row = int(np.argmax(missing))
            held = ids.tolist()[row]
            raise InputError(f"group: every row belongs to a query; row {row} holds {held!r}. Leave it out.")
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    seen: dict[Any, int] = {}
    for start, query in zip(starts.tolist(), ids[starts].tolist(), strict=True):
        if query in seen:
            raise InputError(
                f"group: the rows of a query must stand together; query {query!r}, which begins at row {seen[query]}, "
                f"comes again at row {start}. {_SORT}"
            )
        seen[query] = start
    return ids


def _check_kind(ids: NDArray[Any]) -> None:
    """Raise InputError unless ids are finite numbers or text."""
    rule = "group: a query id is text or a finite number"
    if ids.dtype.kind not in "biufUSO":
        raise InputError(f"{rule}; got {ids.dtype}.")
    if ids.dtype.kind == "f" and np.isinf(ids).any():
        row = int(np.argmax(np.isinf(ids)))
        raise InputError(f"{rule}; row {row} holds {ids.tolist()[row]!r}.")
    if ids.dtype.kind == "O":
        for row, query in enumerate(ids.tolist()):
            if not (isinstance(query, (str, bytes, Real)) or is_missing(query)):
                raise InputError(f"{rule}; row {row} holds a {type(query).__name__}.")


def _from_sizes(sizes: NDArray[Any], n_rows: int) -> NDArray[Any]:
    rule = f"group: must be one query id for each of {n_rows} rows, or the sizes of the queries, which sum to {n_rows}"
    if sizes.dtype.kind == "f" and bool((sizes == np.floor(sizes)).all()):
        sizes = sizes.astype(np.int64)  # as a mean or a join with missing rows makes them
    if sizes.dtype.kind not in "iu":
        raise InputError(f"{rule}; got {len(sizes)} entries of dtype {sizes.dtype}. Give one id for each row.")
    if bool((sizes < 1).any()):
        i = int(np.argmax(sizes < 1))
        raise InputError(f"{rule}; size {i} is {sizes[i]}. A query has a row or more.")
    if int(sizes.sum()) != n_rows:
        raise InputError(f"{rule}; got {len(sizes)} entries with sum {sizes.sum()}. Count each query's rows again.")
    return np.repeat(np.arange(len(sizes)), sizes)


def query_start(group: NDArray[Any]) -> NDArray[np.int64]:
    """(queries + 1,) where each query begins, and the number of rows. group: (n,) as ``check_group`` returns it."""
    if len(group) == 0:
        return np.zeros(1, np.int64)
    changes = np.flatnonzero(group[1:] != group[:-1]) + 1
    return np.concatenate([[0], changes, [len(group)]]).astype(np.int64)


def weight_of_rows(weight: Any, group: NDArray[Any] | None) -> Any:
    """The weights, one for each row; those of queries, (queries,), given to their rows."""
    if weight is None or group is None:
        return weight
    try:
        values, lengths = np.asarray(unmasked(weight)), np.diff(query_start(group))
    except ValueError:  # lists of different lengths, which the check of weights refuses
        return weight
    return np.repeat(values, lengths) if values.shape == lengths.shape else weight


def check_query_weight(weight: NDArray[np.float64] | None, group: NDArray[Any]) -> None:
    """Raise InputError if the rows of a query differ in weight. weight, group: (n,)"""
    if weight is None:
        return
    start = query_start(group)
    differs = weight != np.repeat(weight[start[:-1]], np.diff(start))
    if differs.any():
        row = int(np.argmax(differs))
        first = int(start[np.searchsorted(start, row, side="right") - 1])
        raise InputError(
            f"sample_weight: a query has one weight, since only its list as a whole can count more or less; in query "
            f"{group[row]}, row {first} holds {weight[first]} and row {row} {weight[row]}. Give all its rows the same."
        )
