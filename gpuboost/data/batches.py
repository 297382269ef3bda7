"""Rows that come in pieces, joined to what they would be in one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import nan
from typing import Any, NamedTuple

import numpy as np

from gpuboost.arguments import declares
from gpuboost.data.frames import MARKS, collected
from gpuboost.data.missing import checked_missing, missing_text
from gpuboost.data.query_column import without_group
from gpuboost.data.sparse import check_sparse
from gpuboost.data.tables import Column, Table, as_table
from gpuboost.data.targets import target_array
from gpuboost.errors import InputError, RecipeError

KEYS = ("X", "y", "weight", "group", "init_score")


class JoinedRows(NamedTuple):
    """Arguments of ``Dataset``: X (n, d); y, weight, group (n,) or None; init_score (n,) or (n, K), or None."""

    X: Any
    y: Any
    weight: Any
    group: Any
    init_score: Any
    missing: float  # the number that stands for missing values in all pieces; NaN if there is none


def joined(batches: Any, missing: float = nan) -> JoinedRows:
    """The rows of all pieces, one after the other; see ``Dataset.from_batches``.

    missing: the number that stands for missing values in pieces that do not say so themselves, as Datasets do.

    Raises
    ------
    InputError, RecipeError
        If there is no piece, or a piece does not match the first one; the message names it.
    """
    asked = checked_missing(missing)
    pieces = _pieces(batches)
    numbers = [checked_missing(piece.pop("missing", missing)) for piece in pieces]
    first = pieces[0]
    for i, piece in enumerate(pieces):
        if piece.keys() != first.keys():
            raise InputError(f"batches: piece 0 has {', '.join(first)}, and piece {i} {', '.join(piece)}.")
    agreed = _agreed(numbers, asked)
    vectors = {name: _vector([piece[name] for piece in pieces], name) for name in KEYS[1:] if name in first}
    held = {name: vectors.get(name) for name in KEYS[1:]}
    return JoinedRows(_matrix([piece["X"] for piece in pieces]), **held, missing=nan if agreed is None else agreed)


def _pieces(batches: Any) -> list[dict[str, Any]]:
    is_list = isinstance(batches, Iterable) and not isinstance(batches, (str, bytes, Mapping))
    if not is_list or getattr(batches, "shape", None) == ():
        raise InputError(f"batches: must be an iterable of (X, y), or of mappings; got {type(batches).__name__}.")
    pieces: list[dict[str, Any]] = []
    after = 0  # the first number that no query of a Dataset before has
    for i, value in enumerate(batches):
        is_dataset = declares(value, "as_batch")
        piece = _piece(value.as_batch() if is_dataset else value, i)
        if is_dataset and "group" in piece:  # each counts its queries for itself
            piece["group"] = piece["group"] - piece["group"].min() + after
            after = int(piece["group"].max()) + 1
        pieces.append(piece)
    if not pieces:
        raise InputError("batches: there is none; an iterator that was read before gives no more.")
    return pieces


def _agreed(numbers: list[float | None], asked: float | None) -> float | None:
    """The one ``missing`` of all pieces. Raises RecipeError if they differ, or another number is asked for."""
    for i, number in enumerate(numbers):
        if number != numbers[0]:
            raise RecipeError(
                f"missing: that of piece 0 is {missing_text(numbers[0])}, and that of piece {i} "
                f"{missing_text(number)}. Make Datasets with one number, and give that of arrays and frames to "
                "from_batches."
            )
    if asked is not None and asked != numbers[0]:
        raise RecipeError(
            f"missing: the Datasets were made with {missing_text(numbers[0])}, from_batches asks for {asked:g}; give "
            "it to each Dataset."
        )
    return numbers[0]


def _piece(value: Any, i: int) -> dict[str, Any]:
    rule = f"batches: piece {i} must be (X, y), (X, y, weight), a Dataset, or a mapping with some of {', '.join(KEYS)}"
    if isinstance(value, tuple):
        if len(value) not in (2, 3):
            raise InputError(f"{rule}; got a tuple of {len(value)}.")
        value = dict(zip(KEYS, value, strict=False))
    if not isinstance(value, Mapping):
        raise InputError(f"{rule}; got {type(value).__name__}.")
    if "X" not in value or set(value) - {*KEYS, "missing"}:
        raise InputError(f"{rule}; got {', '.join(map(repr, value)) or 'none'}.")
    piece = {name: value[name] for name in (*KEYS, "missing") if value.get(name) is not None}
    features, group = without_group(piece["X"], piece.get("group"))
    return piece if group is None else piece | {"X": features, "group": group}


def _vector(parts: list[Any], name: str) -> Any:
    arrays = [target_array(part) for part in parts]
    dimensions, rule = ((1, 2), "one or two dimensions") if name == "init_score" else ((1,), "one dimension")
    for i, array in enumerate(arrays):
        if array.ndim not in dimensions:
            raise InputError(f"batches: {name} of piece {i} must have {rule}; got shape {array.shape}.")
        if array.shape[1:] != arrays[0].shape[1:]:
            raise InputError(
                f"batches: {name} of piece 0 has shape {arrays[0].shape}, and that of piece {i} {array.shape}."
            )
    return np.concatenate(arrays)


def _kind(part: Any) -> str:
    if hasattr(part, "tocsr"):
        return "sparse"
    return (
        "frame"
        if isinstance(part, Table) or hasattr(part, "iloc") or any(declares(part, mark) for mark in MARKS)
        else "array"
    )


def _matrix(parts: list[Any]) -> Any:
    kinds = [_kind(part) for part in parts]
    for i, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise InputError(f"batches: X of piece 0 is of the kind {kinds[0]}, and that of piece {i} {kind}.")
    return _frame(parts) if kinds[0] == "frame" else _numbers(parts, kinds[0])


def _numbers(parts: list[Any], kind: str) -> Any:
    arrays: Any = parts if kind == "sparse" else [np.asarray(part) for part in parts]
    for i, array in enumerate(arrays):
        if array.ndim != 2 or array.shape[1:] != arrays[0].shape[1:]:
            raise InputError(f"batches: X of piece 0 has shape {arrays[0].shape}, and that of piece {i} {array.shape}.")
    if kind == "array":
        return np.concatenate(arrays)
    from scipy.sparse import vstack

    for array in arrays:
        check_sparse(array)
    return vstack(arrays, format="csr")


def _frame(parts: list[Any]) -> Any:
    pandas = sys.modules.get("pandas")
    if pandas is not None and all(isinstance(part, pandas.DataFrame) for part in parts):
        return _pandas_frame(parts)
    return _table([collected(part) for part in parts])


def _pandas_frame(frames: list[Any]) -> Any:
    """One frame; the categories of a column are those of all pieces, in the order of their first appearance."""
    import pandas as pd

    _check_names([list(frame.columns) for frame in frames])
    whole = pd.concat(frames, ignore_index=True)
    for name in frames[0].columns if frames[0].columns.is_unique else ():  # Dataset refuses names that come twice
        parts = [frame[name] for frame in frames]
        if all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
            try:
                whole[name] = pd.api.types.union_categoricals(parts, ignore_order=True)
            except TypeError as error:
                raise InputError(f"batches: the categories of column {name!r} differ in kind; {error}.") from None
    return whole


def _check_names(names: list[list[Any]]) -> None:
    for i, listed in enumerate(names):
        if listed != names[0]:
            raise InputError(f"batches: piece {i} has the columns {listed[:8]}, and piece 0 {names[0][:8]}.")


def _table(frames: list[Any]) -> Table:
    """The rows of frames of any libraries, read without pandas. Pieces without rows are left out."""
    tables = [as_table(frame) for frame in frames if frame.shape[0]] or [as_table(frames[0])]
    _check_names([list(table.names or ()) for table in tables])
    shape = sum(table.shape[0] for table in tables), tables[0].shape[1]
    if all(isinstance(table.matrix, np.ndarray) for table in tables):
        return replace(tables[0], shape=shape, matrix=np.concatenate([table.matrix for table in tables]))
    if any(table.is_sparse for table in tables):
        raise InputError("batches: frames of sparse columns cannot be joined; pass scipy sparse matrices.")
    columns = tuple(_column([table.column(f) for table in tables]) for f in range(shape[1]))
    return Table(shape, tables[0].names, columns=columns, query=tables[0].query)


def _column(parts: list[Column]) -> Column:
    """One column; its levels are those of all parts, in the order of their first appearance."""
    if any(part.levels is None for part in parts):
        return Column(np.concatenate([part.row_values() for part in parts]))
    places: dict[Any, int] = {}
    codes = []
    for part in parts:
        known = [places.setdefault(level, len(places)) for level in part.levels or ()]
        codes.append(np.array([*known, -1], np.int64)[part.values])  # -1, missing, is the last entry
    return Column(np.concatenate(codes), tuple(places))
