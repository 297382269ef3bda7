"""Frames of other libraries than pandas, read through narwhals: polars, pyarrow, modin, DuckDB and their like."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import declares
from gpuboost.errors import InputError

LAZY = ("polars", "duckdb")
"""Libraries whose lazy frames are collected; those of others may be larger than the memory of this machine."""

MOST_EXACT = 2**53
"""Floats hold every integer up to this one."""

MARKS = ("__dataframe__", "__arrow_c_stream__", "__narwhals_dataframe__", "collect", "to_pandas", "fetch_arrow_table")
"""Attributes by which frames are recognised: each library's has one or more of them."""


def eager_frame(X: Any) -> Any | None:
    """X as a narwhals ``DataFrame``; None if it is not a frame that narwhals knows. Lazy frames are collected.

    Raises
    ------
    InputError
        If it is a lazy frame of a cluster, two columns share a name, or reading it takes a package that is not
        installed.
    """
    if isinstance(X, (np.ndarray, list, tuple)) or not any(declares(X, mark) for mark in MARKS):
        return None
    import narwhals as nw  # no frame, no import

    try:
        frame: Any = nw.from_native(X, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            if type(X).__module__.partition(".")[0].lstrip("_") not in (*LAZY, "narwhals"):
                raise InputError(
                    f"X: a {type(X).__name__} says how to come to its rows, and does not hold them. Collect it."
                )
            return frame.collect()
        if isinstance(frame, nw.DataFrame):
            return frame
        if _is_batch(X) or (declares(X, "__arrow_c_stream__") and not declares(X, "__array__")):  # no series
            return nw.from_arrow(X, backend="pyarrow")
    except ModuleNotFoundError as error:
        raise needs_package(X, error.name) from error
    except nw.exceptions.DuplicateError as error:
        said = " ".join(str(error).split())
        raise InputError(f"X: every column needs a name of its own; narwhals says: {said}.") from error
    return None


class _Names:
    """Shape and names of a frame, as scikit-learn before 1.9 asks for them."""

    def __init__(self, names: Sequence[str], shape: tuple[int, ...]) -> None:
        self._names, self.shape = names, shape

    def __dataframe__(self, **options: Any) -> _Names:
        return self

    def column_names(self) -> Sequence[str]:
        return self._names


def for_scikit_learn(X: Any, names: Sequence[str] | None) -> Any:
    """X, or what stands in for a frame whose names (d,) this scikit-learn does not find, such as one of polars 2."""
    if names is None or declares(X, "__dataframe__") or finds_every_name():
        return X
    return _Names(names, X.shape)


def finds_every_name() -> bool:
    """True if scikit-learn finds the names of all frames; before 1.9 of those with the interchange protocol only."""
    import sklearn  # not where a predictor alone is used

    return tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)


def needs_package(X: Any, package: str | None) -> InputError:
    """The error of a frame that cannot be read without a package."""
    return InputError(
        f"X: reading a {type(X).__module__.partition('.')[0]} {type(X).__name__} needs the package {package}; pip "
        f"install {package}, or pass X.to_numpy()."
    )


def collected(X: Any) -> Any:
    """X; a lazy frame, or a stream or batch of Arrow, as a frame of its library or of pyarrow that has names."""
    lazy = declares(X, "collect") or declares(X, "fetch_arrow_table")
    if declares(X, "shape") and not lazy and not _is_batch(X):
        return X
    frame = eager_frame(X)
    return X if frame is None else frame.to_native()


def _is_batch(X: Any) -> bool:
    """True for a batch of pyarrow, of which scikit-learn reads no names."""
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and isinstance(X, pyarrow.RecordBatch)


def lazy_frame(X: Any) -> Any | None:
    """X as a narwhals ``LazyFrame`` if it is a lazy frame that would be collected; else None."""
    if not (declares(X, "collect") or declares(X, "fetch_arrow_table")):
        return None
    import narwhals as nw

    frame = nw.from_native(X, pass_through=True)
    known = type(X).__module__.partition(".")[0].lstrip("_") in (*LAZY, "narwhals")
    return frame if known and isinstance(frame, nw.LazyFrame) else None


def with_only(frame: Any, names: Collection[str]) -> Any:
    """A narwhals ``LazyFrame`` in which the columns of other names are null, so that they are not read."""
    import narwhals as nw

    null = nw.lit(None, dtype=nw.Float64)
    listed = frame.collect_schema().names()
    return frame.select(*(nw.col(name) if name in names else null.alias(name) for name in listed))


def matrix_of(frame: Any) -> NDArray[Any] | None:
    """(n, d) float32 or float64 if all columns of a narwhals frame are of one of the two; else None."""
    import narwhals as nw

    kinds = set(frame.schema.values())
    if kinds not in ({nw.Float32()}, {nw.Float64()}):
        return None
    dtype = np.float32 if kinds == {nw.Float32()} else np.float64
    return np.asarray(frame.to_numpy(), dtype)


def values_of(series: Any) -> tuple[NDArray[Any], tuple[Any, ...] | None]:
    """Values of a narwhals series: numbers with NaN for null, or objects with None; and the levels of a categorical.

    With levels, the values are positions among them, and -1 is missing. Dates have a dtype of kind "M" or "m".
    """
    import narwhals as nw

    kind = series.dtype
    if isinstance(kind, (nw.Categorical, nw.Enum)):
        return _coded(series.cast(nw.String).to_list())
    if kind.is_temporal():
        return np.empty(0, "timedelta64[us]" if isinstance(kind, nw.Duration) else "datetime64[us]"), None
    if isinstance(kind, (nw.Decimal, nw.Int128, nw.UInt128)):  # NumPy has no such numbers
        series = series.cast(nw.Float64)
    elif not (kind.is_numeric() or isinstance(kind, nw.Boolean)):
        return _objects(series.to_list()), None
    elif series.null_count() > 0:
        if kind.is_integer() and _is_beyond_floats(series):
            return _objects(series.to_list()), None
        series = series.cast(nw.Float32 if isinstance(kind, nw.Float32) else nw.Float64)
    return np.asarray(series.to_numpy()), None


def _is_beyond_floats(series: Any) -> bool:
    """True if floats cannot hold each of the integers of a narwhals series: they may be ids."""
    ends = [end for end in (series.min(), series.max()) if end is not None]
    return any(abs(int(end)) > MOST_EXACT for end in ends)


def _coded(values: list[Any]) -> tuple[NDArray[Any], tuple[Any, ...]]:
    places: dict[Any, int] = {}
    codes = np.array([-1 if value is None else places.setdefault(value, len(places)) for value in values], np.int64)
    return codes, tuple(places)


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
