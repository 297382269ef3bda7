"""Rows that come in pieces, joined to what they would be in one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gpuboost.data.sparse import check_sparse
from gpuboost.data.tables import as_pandas
from gpuboost.data.targets import target_array
from gpuboost.errors import InputError

KEYS = ("X", "y", "weight", "group")


class JoinedRows(NamedTuple):
    """Arguments of ``Dataset``: X (n, d); y, weight, group (n,) or None."""

    X: Any
    y: Any
    weight: Any
    group: Any


def joined(batches: Any) -> JoinedRows:
    """The rows of all pieces, one after the other; see ``Dataset.from_batches``.

    Raises
    ------
    InputError
        If there is no piece, or a piece does not match the first one; the message names it.
    """
    is_list = isinstance(batches, Iterable) and not isinstance(batches, (str, bytes, Mapping))
    if not is_list or getattr(batches, "shape", None) == ():
        raise InputError(f"batches: must be an iterable of (X, y), or of mappings; got {type(batches).__name__}.")
    pieces = [_piece(value, i) for i, value in enumerate(batches)]
    if not pieces:
        raise InputError("batches: there is none; an iterator that was read before gives no more.")
    first = pieces[0]
    for i, piece in enumerate(pieces):
        if piece.keys() != first.keys():
            raise InputError(f"batches: piece 0 has {', '.join(first)}, and piece {i} {', '.join(piece)}.")
    vectors = {name: _vector([piece[name] for piece in pieces], name) for name in KEYS[1:] if name in first}
    return JoinedRows(_matrix([piece["X"] for piece in pieces]), *(vectors.get(name) for name in KEYS[1:]))


def _piece(value: Any, i: int) -> dict[str, Any]:
    rule = f"batches: piece {i} must be (X, y), (X, y, weight), or a mapping with some of {', '.join(KEYS)}"
    if isinstance(value, tuple):
        if len(value) not in (2, 3):
            raise InputError(f"{rule}; got a tuple of {len(value)}.")
        value = dict(zip(KEYS, value, strict=False))
    if not isinstance(value, Mapping):
        raise InputError(f"{rule}; got {type(value).__name__}.")
    if "X" not in value or set(value) - set(KEYS):
        raise InputError(f"{rule}; got {', '.join(map(repr, value)) or 'none'}.")
    return {name: value[name] for name in KEYS if value.get(name) is not None}


def _vector(parts: list[Any], name: str) -> Any:
    arrays = [target_array(part) for part in parts]
    for i, array in enumerate(arrays):
        if array.ndim != 1:
            raise InputError(f"batches: {name} of piece {i} must have one dimension; got shape {array.shape}.")
    return np.concatenate(arrays)


def _matrix(parts: list[Any]) -> Any:
    parts = [as_pandas(part) if hasattr(part, "to_pandas") else part for part in parts]
    kinds = ["sparse" if hasattr(part, "tocsr") else "frame" if hasattr(part, "iloc") else "array" for part in parts]
    for i, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise InputError(f"batches: X of piece 0 is of the kind {kinds[0]}, and that of piece {i} {kind}.")
    if kinds[0] == "frame":
        return _frame(parts)
    arrays: Any = parts if kinds[0] == "sparse" else [np.asarray(part) for part in parts]
    for i, array in enumerate(arrays):
        if array.ndim != 2 or array.shape[1:] != arrays[0].shape[1:]:
            raise InputError(f"batches: X of piece 0 has shape {arrays[0].shape}, and that of piece {i} {array.shape}.")
    if kinds[0] == "array":
        return np.concatenate(arrays)
    from scipy.sparse import vstack

    for array in arrays:
        check_sparse(array)
    return vstack(arrays, format="csr")


def _frame(frames: list[Any]) -> Any:
    """One frame; the categories of a column are those of all pieces, in the order of their first appearance."""
    import pandas as pd

    for i, frame in enumerate(frames):
        if list(frame.columns) != list(frames[0].columns):
            raise InputError(
                f"batches: piece {i} has the columns {list(frame.columns)[:8]}, and piece 0 "
                f"{list(frames[0].columns)[:8]}."
            )
    whole = pd.concat(frames, ignore_index=True)
    for name in frames[0].columns if frames[0].columns.is_unique else ():  # Dataset refuses names that come twice
        parts = [frame[name] for frame in frames]
        if all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
            try:
                whole[name] = pd.api.types.union_categoricals(parts, ignore_order=True)
            except TypeError as error:
                raise InputError(f"batches: the categories of column {name!r} differ in kind; {error}.") from None
    return whole
