"""Tests of single arguments, for checks whose messages are their own, and the numbers that arguments hold."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from math import inf
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import InputError, RecipeError, shown


def is_integer(value: Any, low: float = -inf, high: float = inf) -> bool:
    """True for an integer from ``low`` to ``high``, of Python or NumPy; not for a bool."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        return False
    return low <= int(value) <= high


def checked_count(argument: str, name: str, value: Any) -> int:
    """The value as an int of 1 or more; raises RecipeError otherwise."""
    if not is_integer(value, 1):
        raise RecipeError(f"{argument}: {name} must be a whole number, 1 or more; got {shown(value)}.")
    return int(value)


def is_real(value: Any, low: float = -inf, high: float = inf) -> bool:
    """True for a finite number from ``low`` to ``high`` that float64 can hold; not for a bool."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        return False
    return -inf < number < inf and low <= number <= high


def as_float(value: Real) -> float:
    """The number as float64; infinite if it is too large for that."""
    try:
        return float(value)
    except OverflowError:
        return inf


def misfit(function: Any, count: int) -> str:
    """Reason why calls with ``count`` arguments cannot be compiled, "" if there is none.

    Compiled code leaves no argument to its default value.
    """
    try:
        signature = inspect.signature(function)
        signature.bind(*[0.0] * count)
    except (TypeError, ValueError) as error:  # some built-in functions have no signature
        return str(error)
    more = list(signature.parameters)[count:]
    return f"{', '.join(more)} would have a value of its own; let it be a variable outside the function" if more else ""


def is_one_of(value: Any, words: Collection[str]) -> bool:
    """True for a text that is one of the words; an array, which has no one answer, is none."""
    return isinstance(value, str) and value in words


def is_flat(value: Any) -> bool:
    """True for an array, or a sequence, of one dimension."""
    try:
        return np.ndim(value) == 1
    except ValueError:  # lists of different lengths
        return False


def declares(x: Any, name: str) -> bool:
    """``hasattr`` that calls no ``__getattr__``: that of a pandas frame is slow, and loses interrupts."""
    return hasattr(type(x), name) or name in getattr(x, "__dict__", ())


class _ReadOnlyMemory:
    """Memory that a kernel may have as if it could be written to."""

    def __init__(self, array: Any) -> None:
        self.owner = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def writable_view(array: Any) -> Any:
    """The array; of a read-only array of NumPy its memory, as an array that could be written to.

    Kernels never write to what they are given to read, but are compiled again for arrays that are read-only: columns of
    pandas, files that are mapped into memory, objects that Ray shares.
    """
    if not isinstance(array, np.ndarray) or array.flags.writeable or not array.size:
        return array
    return np.asarray(_ReadOnlyMemory(array))


def unmasked(values: Any) -> Any:
    """The values; of a masked array those that it does not hide, and NaN in place of the others."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values) or values.dtype.kind in "mM":  # dates, which are refused
        return np.asarray(values)
    kind = np.result_type(values.dtype, np.float32) if values.dtype.kind in "biufc" else np.dtype(object)
    return np.ma.filled(values.astype(kind), np.nan)


def real_numbers(name: str, value: Any) -> NDArray[np.float64]:
    """The value as a float64 array of any shape.

    Raises:
        InputError: if it holds anything but real numbers; with NumPy's reason.
    """
    try:
        values = np.asarray(unmasked(value))
        if values.dtype.kind == "c":
            raise TypeError(f"got {values.dtype}")
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: must hold numbers; {error}.") from None
    refuse_dates(name, values.dtype)
    return numbers


def refuse_dates(name: str, dtype: np.dtype[Any]) -> None:
    """Raise InputError for a dtype of dates or time spans, which NumPy converts to their number of units."""
    if dtype.kind in "mM":
        raise InputError(
            f"{name}: dates and time spans are not numbers; got {dtype}. Give, for example, seconds or days."
        )


def floats(name: str, value: Any) -> NDArray[np.float64]:
    """The value as a float64 array.

    Raises:
        InputError: if it is not an array of numbers, or a list of such.
    """
    try:
        values = np.asarray(unmasked(value))
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}: must be an array of numbers; got {shown(value)[:80]}.") from None
    refuse_dates(name, values.dtype)
    return numbers


def true_classes(y: NDArray[Any], classes: Any) -> NDArray[np.bool_]:
    """(n, K) True where the (n,) label is the class; a row of False for a label that is none of them."""
    if y.dtype.kind == "O":  # pandas.NA is equal to nothing, and says so by an error
        y = np.array([None if type(label).__name__ == "NAType" else label for label in y.tolist()], dtype=object)
    known = np.asarray(classes)
    same = np.asarray(y[:, None] == known[None, :])
    return same if same.shape == (len(y), len(known)) else np.zeros((len(y), len(known)), np.bool_)


C = TypeVar("C", bound=type)


def explaining(answers: Mapping[str, str]) -> Callable[[C], C]:
    """Decorator of a class: the TypeError of its constructor for an unknown parameter names the one that is meant.

    answers: other names, and what each is called here.
    """

    def decorated(described: C) -> C:
        construct = described.__init__  # type: ignore[misc]  # of the class itself: a subclass has its own
        known = [name for name in inspect.signature(construct).parameters if name != "self"]

        @functools.wraps(construct)
        def checked(self: Any, *args: Any, **params: Any) -> None:
            if unknown := [name for name in params if name not in known]:
                raise TypeError(f"{described.__name__}: {unknown_parameter(unknown[0], known, answers)}")
            construct(self, *args, **params)

        described.__init__ = checked  # type: ignore[misc]
        return described

    return decorated


def unknown_parameter(name: str, known: Iterable[str], answers: Mapping[str, str]) -> str:
    """The sentences that say that there is no such parameter, and which one may be meant."""
    if name in answers:
        return f"unknown parameter {name!r}; here it is {answers[name]}."
    close = get_close_matches(name, list(known), 1)
    return f"unknown parameter {name!r}" + (f"; close to it: {close[0]!r}." if close else ".")
