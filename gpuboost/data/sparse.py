"""The check of a sparse matrix before any kernel, or SciPy itself, follows its row pointers and column numbers.

SciPy does not check them when it is given the arrays, and a wrong number makes compiled code read or write elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError

_MAJOR = {"csr": ("row", "column"), "csc": ("column", "row"), "bsr": ("block row", "block column")}


def check_sparse(X: Any) -> None:
    """Check the structure of a SciPy sparse matrix or array, in time proportional to its stored entries.

    Raises
    ------
    InputError
        If row pointers fall, do not start at 0 or do not end at the number of entries, or if a row or column number is
        out of range.
    """
    if X.format in _MAJOR:
        _check_compressed(X, *_MAJOR[X.format])
    elif X.format == "coo":
        for name, numbers, size in zip(("row", "column"), (X.row, X.col), X.shape, strict=True):
            _check_numbers(numbers, name, size)


def _check_compressed(X: Any, major: str, minor: str) -> None:
    blocks = X.blocksize if X.format == "bsr" else (1, 1)
    rows, columns = X.shape[0] // blocks[0], X.shape[1] // blocks[1]
    n_major, n_minor = (columns, rows) if X.format == "csc" else (rows, columns)
    pointers, numbers = X.indptr, X.indices
    entries = min(len(numbers), len(X.data))
    if pointers.shape != (n_major + 1,):
        raise InputError(
            f"X: indptr of a sparse matrix of {n_major} {major}s has {n_major + 1} entries; got {len(pointers)}."
        )
    if pointers[0] != 0:
        raise InputError(f"X: indptr of a sparse matrix starts at 0; got {pointers[0]}.")
    falls = pointers[1:] < pointers[:-1]
    if falls.any():
        position = int(np.argmax(falls))
        raise InputError(
            f"X: indptr of a sparse matrix never falls; at {major} {position} it goes from {pointers[position]} to "
            f"{pointers[position + 1]}."
        )
    if pointers[-1] > entries:
        raise InputError(f"X: indptr of a sparse matrix ends at its {entries} stored entries; got {pointers[-1]}.")
    _check_numbers(numbers[: int(pointers[-1])], minor, n_minor)


def _check_numbers(numbers: NDArray[np.integer[Any]], name: str, size: int) -> None:
    if not len(numbers) or (numbers.min() >= 0 and numbers.max() < size):
        return
    entry = int(np.argmax((numbers < 0) | (numbers >= size)))
    raise InputError(
        f"X: {name} numbers of this sparse matrix must be 0 to {size - 1}; stored entry {entry} has {numbers[entry]}."
    )
