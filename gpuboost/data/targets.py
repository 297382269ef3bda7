"""The target, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import declares, refuse_dates, unmasked
from gpuboost.data.categories import is_missing
from gpuboost.errors import InputError


def check_target(y: Any, n_rows: int, several: bool = False) -> NDArray[Any]:
    """(n,) of any dtype: numbers or labels. several: also (n, k), k being 2 or more.

    Raises
    ------
    InputError
        If there is not one value for each row, or one is missing or infinite.
    """
    values = target_array(y)
    if values.ndim != 1 and not (several and values.ndim == 2 and values.shape[1] > 1):
        hint = " Use numpy.ravel(y)." if values.shape in ((n_rows, 1), (1, n_rows)) else ""
        raise InputError(f"y: must have one dimension; got shape {values.shape}.{hint}")
    if len(values) != n_rows:
        raise InputError(f"y: needs one value for each row of X; got {len(values)} for {n_rows} rows.")
    if values.dtype.kind == "f":
        wrong = ~np.isfinite(values)
        wrong = wrong if wrong.ndim == 1 else wrong.any(axis=1)
    elif values.dtype.kind == "O":
        rows = values.reshape(n_rows, -1).tolist()
        wrong = np.array([any(map(is_missing, row)) for row in rows], dtype=np.bool_)
    else:
        return values
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"y: must not hold NaN, infinity or None; row {row} holds {values[row]}. Leave such rows out.")
    return values


def check_answers(y: Any, predicted: NDArray[Any]) -> NDArray[Any]:
    """``check_target`` for targets to judge predictions by, which may be a column, as for scikit-learn's metrics."""
    values = target_array(y)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    checked = check_target(values, len(predicted), several=predicted.ndim == 2)
    if checked.shape != predicted.shape:
        raise InputError(f"y: the model has {predicted.shape[1]} targets for each row; got shape {checked.shape}.")
    return checked


def target_array(y: Any) -> NDArray[Any]:
    """y as an array.

    Raises
    ------
    InputError
        If y holds lists of different lengths, or complex numbers, or is a sparse matrix or a lazy frame.
    """
    if hasattr(y, "tocsr"):
        raise InputError(f"y: must be dense; got a sparse matrix of shape {y.shape}. Give y.toarray().")
    refuse_lazy(y)
    try:
        values = np.asarray(unmasked(y))
    except ValueError as error:
        raise InputError(f"y: needs one value for each row of X; {error}.") from None
    refuse_complex(values)
    if values.dtype.kind == "U" and isinstance(y, (list, tuple)) and not all(isinstance(label, str) for label in y):
        values = np.array(y, dtype=object)  # NumPy made text of what stands beside it: "nan" of NaN
    return _numbers_of(values) if values.dtype.kind == "O" else values


def _numbers_of(values: NDArray[Any]) -> NDArray[Any]:
    """Python objects that all are numbers, or all are True and False, as an array of these; else the objects.

    pandas keeps labels so where some were missing before, and scikit-learn takes them for labels of no known kind.
    """
    kinds = set(map(type, values.ravel().tolist()))
    for family, letters in (((bool, np.bool_), "b"), ((int, np.integer), "iu"), ((int, float, np.number), "f")):
        if all(issubclass(kind, family) for kind in kinds) and (bool not in kinds or letters == "b"):
            numbers = np.asarray(values.tolist())
            return numbers if numbers.dtype.kind in letters else values  # integers too large for it are no int64
    return values


def refuse_lazy(y: Any) -> None:
    """Raise InputError for a lazy frame, which NumPy takes for one object."""
    if declares(y, "collect") and not declares(y, "__array__"):
        raise InputError(f"y: a {type(y).__name__} says how to come to its rows, and does not hold them. Collect it.")


def refuse_complex(y: Any) -> None:
    """Raise InputError for an array, or series, of complex numbers."""
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "kind", None) == "c":
        raise InputError(f"y: must hold real numbers; got {dtype}. Complex data not supported.")


def as_numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    """(n,) or (n, k) float64.

    Raises
    ------
    InputError
        If y holds something else than real numbers.
    """
    refuse_complex(y)
    refuse_dates("y", y.dtype)
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"y: must hold numbers; {error}.") from None


def signed_times(y: NDArray[Any]) -> NDArray[np.float64]:
    """(n,) float64 times, negative where they are censored, of a structured array of events and times.

    y: (n,) with two fields, as scikit-survival has: True for an event, and the time. Another array is ``as_numbers``.

    Raises
    ------
    InputError
        If the fields are others, a time is not positive, or y is no array of numbers.
    """
    if y.dtype.names is None:
        return as_numbers(y)
    kinds = {y.dtype[name].kind: name for name in y.dtype.names}
    event, time = kinds.get("b"), kinds.get("f")
    if len(y.dtype.names) != 2 or event is None or time is None:
        raise InputError(
            f"y: a structured array of times has two fields, a truth value (True for an event) and a float; got "
            f"{y.dtype}. Or give numpy.where(event, time, -time)."
        )
    times = y[time].astype(np.float64)
    wrong = ~(times > 0.0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"y: times must be positive; row {row} holds {float(times[row])!r} in field {time!r}.")
    return np.where(y[event], times, -times)
