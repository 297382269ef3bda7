"""The two forms of X: a matrix of numbers, or columns of several kinds.

Nothing is copied without need, and the user's arrays are never written to. Libraries are recognised by the modules
imported already: no pandas object exists in a process that has not imported pandas.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import declares, unmasked
from gpuboost.data.frames import MOST_EXACT, eager_frame, matrix_of, needs_package, values_of
from gpuboost.data.sparse import check_sparse
from gpuboost.errors import InputError
from gpuboost.records import dataclass
from gpuboost.types import DeviceMatrix

NUMBERS = "biuf"  # numpy's letters for bool, int, unsigned, float


@dataclass(frozen=True, slots=True)
class Column:
    """One column of mixed data: numbers (n,), or Python objects (n,) with None for missing.

    With ``levels``, the numbers are positions in that list of distinct values, and -1 is missing.
    """

    values: NDArray[Any]
    levels: tuple[Any, ...] | None = None

    @property
    def is_numeric(self) -> bool:
        return self.levels is None and self.values.dtype.kind in NUMBERS

    def row_values(self) -> NDArray[Any]:
        """(n,) the values of the rows; of a column with levels an array of objects, None where one is missing."""
        if self.levels is None:
            return self.values
        looked_up: NDArray[Any] = np.array([*self.levels, None], dtype=object)[self.values]  # -1 is the last one
        return looked_up


@dataclass(frozen=True, slots=True)
class Table:
    """X, recognised. Either ``matrix`` or ``columns`` is given."""

    shape: tuple[int, int]
    names: tuple[str, ...] | None = None
    matrix: Any = None  # (n, d) numpy array of numbers, scipy CSR in canonical form, or DeviceMatrix
    columns: tuple[Column, ...] = ()
    query: str | None = None  # name of the column of query ids that was taken out of X

    @property
    def is_sparse(self) -> bool:
        return self.matrix is not None and not isinstance(self.matrix, np.ndarray | DeviceMatrix)

    @property
    def on_device(self) -> bool:
        return not isinstance(self.matrix, np.ndarray) and isinstance(self.matrix, DeviceMatrix)

    def column(self, f: int) -> Column:
        """Column f of dense data; brought to the host if it is on a device."""
        if isinstance(self.matrix, DeviceMatrix):
            return Column(self.matrix.host_column(f))
        return self.columns[f] if self.matrix is None else Column(self.matrix[:, f])

    def rows(self, numbers: NDArray[Any]) -> Table:
        """Some of the rows, by number."""
        shape = len(numbers), self.shape[1]
        if self.matrix is not None:
            return replace(self, shape=shape, matrix=self.matrix[numbers])
        return replace(self, shape=shape, columns=tuple(Column(c.values[numbers], c.levels) for c in self.columns))

    def select(self, names: Sequence[str]) -> Table:
        """The columns of these names, in their order."""
        places = [(self.names or ()).index(name) for name in names]
        shape = self.shape[0], len(places)
        if self.matrix is not None:
            return replace(self, shape=shape, names=tuple(names), matrix=self.matrix[:, places])
        return replace(self, shape=shape, names=tuple(names), columns=tuple(self.columns[f] for f in places))

    def label(self, f: int) -> str:
        """The name of column f in error messages."""
        return f"column {f}" if self.names is None else f"column {self.names[f]!r}"


def as_table(X: Any) -> Table:
    """Recognise X: a Table, numpy array, list of rows, pandas frame, scipy sparse matrix, or a frame of
    polars, pyarrow, modin or DuckDB (by narwhals). Lazy frames of polars and DuckDB are collected.

    Raises
    ------
    InputError
        If X is not two-dimensional, is empty, is ragged, holds complex numbers or dates, or two columns share a name.
    """
    if isinstance(X, Table):
        return X
    if type(X) is np.ndarray:  # the other questions take longer than to predict a row
        return _from_numpy(X)
    if isinstance(X, DeviceMatrix):
        return Table(X.shape, matrix=X)
    _refuse_device(X)
    scipy_sparse, pandas = sys.modules.get("scipy.sparse"), sys.modules.get("pandas")
    if scipy_sparse is not None and scipy_sparse.issparse(X):
        return _from_sparse(X)
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return _from_pandas(X)
    frame = eager_frame(X)
    return _from_other(X) if frame is None else _from_frame(frame)


def _from_other(X: Any) -> Table:
    """Any other X, as a pandas frame or a numpy array."""
    if declares(X, "to_pandas"):
        return _from_pandas(as_pandas(X))
    if declares(X, "collect"):  # of dask, Spark
        raise InputError(f"X: a {type(X).__name__} says how to come to its rows, and does not hold them. Collect it.")
    return _from_numpy(X)


def as_pandas(X: Any) -> Any:
    """The table as a pandas frame. Raises InputError if a package that this takes is not installed."""
    try:
        return X.to_pandas()
    except ModuleNotFoundError as error:
        raise needs_package(X, error.name) from error


def refuse_infinite(x: Any, table: Table) -> None:
    """Raise InputError naming the first row with an infinity, and its column. x: as ``encode`` returns it."""
    dense = isinstance(x, np.ndarray)  # asked first: it is no protocol
    if not dense and isinstance(x, DeviceMatrix):
        first = x.first_infinite()
        if first is not None:
            _refuse(*first, table)
        return
    values = x if dense else x.data
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # cheaper than looking at each; may fail for other reasons
            return
    height = max(1, 2**20 // values[0].size) if dense else 2**20
    for top in range(0, len(values), height):
        infinite = np.isinf(values[top : top + height])
        if infinite.any():
            if dense:
                row, f = (int(index[0]) for index in np.nonzero(infinite))
                row += top
            else:
                entry = top + int(np.argmax(infinite))
                row, f = int(np.searchsorted(x.indptr, entry, side="right")) - 1, int(x.indices[entry])
            _refuse(row, f, table, "-inf" if x[row, f] < 0 else "inf")


def warn_of_equal_floats(table: Table, is_categorical: NDArray[np.bool_]) -> None:
    """Warn of the first numeric column with different whole numbers that are one number as float64."""
    if table.is_sparse or table.on_device or (table.matrix is not None and not _may_exceed(table.matrix)):
        return
    for f in np.flatnonzero(~is_categorical).tolist():
        column = table.column(f)
        pair = None if column.levels is not None else _equal_floats(column.values)
        if pair is not None:
            warnings.warn(
                f"X: {table.label(f)} has whole numbers beyond 2**53 of which several are one number as float64, such "
                f"as {pair[0]} and {pair[1]}: no split tells them apart. Subtract the least of them, or name the "
                "column in categorical_features if they are ids.",
                stacklevel=2,
            )
            return


def _equal_floats(values: NDArray[Any]) -> tuple[int, int] | None:
    """Two different whole numbers that are the same float64, if there are any. values: (n,) numbers, or objects"""
    if values.dtype == object:
        large = {value for value in values.tolist() if type(value) is int and MOST_EXACT <= abs(value) < 2**1023}
        distinct = np.array(sorted(large), dtype=object)
    elif _may_exceed(values):
        distinct = np.unique(values)
    else:
        return None
    same = np.flatnonzero(np.diff(distinct.astype(np.float64)) == 0.0)
    return (int(distinct[same[0]]), int(distinct[same[0] + 1])) if len(same) else None


def _may_exceed(values: NDArray[Any]) -> bool:
    """True if an array of 64-bit integers has some beyond 2**53."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return False
    return bool(int(values.max()) > MOST_EXACT or int(values.min()) < -MOST_EXACT)


def _refuse(row: int, f: int, table: Table, value: str = "one") -> NoReturn:
    raise InputError(
        f"X: infinity (inf) is neither a number nor missing; row {row} of {table.label(f)} holds {value}. "
        "Use NaN for missing, or a large finite number."
    )


def _refuse_device(X: Any) -> None:
    """Raise InputError if X is on a GPU: estimators accept it, functions of the host do not.

    ``hasattr`` is called for objects that declare the attribute only; it is False for a CPU tensor of torch.
    """
    name = "__cuda_array_interface__"
    if declares(X, name) and hasattr(X, name):
        raise InputError(
            f"X: a {type(X).__name__} on a GPU goes to fit, predict and eval_set of an estimator; here X must be on "
            "the host. Bring it there: X.get() in CuPy, X.cpu() in torch."
        )


def as_floats(matrix: NDArray[Any]) -> NDArray[Any]:
    """The matrix as float32 or float64, C or F contiguous; the same object if it is that already."""
    kind = matrix.dtype
    if kind not in (np.float32, np.float64) or not kind.isnative:
        matrix = matrix.astype(np.float32 if fits_float32(kind) else np.float64)
    if matrix.flags.c_contiguous or matrix.flags.f_contiguous:
        return matrix
    return np.ascontiguousarray(matrix)


def fits_float32(kind: np.dtype[Any]) -> bool:
    """True if float32 represents every number of the dtype."""
    return bool(np.can_cast(kind, np.float32))


def _check_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) != 2:
        raise InputError(
            f"X: must have two dimensions, rows and features; got shape {shape}. Reshape your data: X.reshape(-1, 1) "
            "if it is one feature, X.reshape(1, -1) if it is one row."
        )
    for size, what in zip(shape[::-1], ("feature(s)", "sample(s)"), strict=True):
        if size == 0:
            raise InputError(f"X: must not be empty; got 0 {what} (shape={shape}) while a minimum of 1 is required.")
    return shape[0], shape[1]


def _check_real(dtype: np.dtype[Any], where: str = "X") -> None:
    if dtype.kind == "c":
        raise InputError(f"{where}: must hold real numbers; got {dtype}. Complex data not supported.")
    if dtype.kind in "Mm":
        raise InputError(
            f"{where}: dates and time spans are not numbers; got {dtype}. Give what matters about them, such as the "
            "year, the weekday, or the days since a fixed date."
        )


def _from_numpy(X: Any) -> Table:
    X = unmasked(X)
    try:
        values = np.asarray(X)
        if values.dtype.kind in "US" and not isinstance(X, np.ndarray):
            values = np.asarray(X, dtype=object)  # numpy made strings of the numbers too
    except ValueError as error:
        raise InputError(f"X: rows must be of equal length; numpy says: {error}.") from None
    shape = _check_shape(values.shape)
    _check_real(values.dtype)
    if values.dtype.kind in NUMBERS:
        return Table(shape, matrix=values)
    return Table(shape, columns=tuple(Column(column.astype(object)) for column in values.T))


def _from_sparse(X: Any) -> Table:
    shape = _check_shape(X.shape)
    _check_real(X.dtype)
    check_sparse(X)
    csr = X.tocsr()
    if X.format in ("lil", "dok"):  # lists and keys that only the conversion has seen
        check_sparse(csr)
    if csr.dtype not in (np.float32, np.float64):
        csr = csr.astype(np.float32 if csr.dtype.itemsize <= 2 else np.float64)
    if not csr.has_canonical_format:
        csr = csr.copy() if csr is X else csr
        csr.sum_duplicates()
    return Table(shape, matrix=csr)


def _from_pandas(frame: Any) -> Table:
    shape = _check_shape(frame.shape)
    _refuse_doubles(list(frame.columns))
    names = _names(list(frame.columns))
    kinds = set(frame.dtypes)
    if kinds <= {np.dtype(np.float32)} or kinds <= {np.dtype(np.float64)}:
        return Table(shape, names, matrix=frame.to_numpy())
    if all(str(kind).startswith("Sparse") and kind.fill_value == 0 for kind in kinds):
        return Table(shape, names, matrix=_from_sparse(frame.sparse.to_coo()).matrix)
    return Table(shape, names, columns=tuple(_pandas_column(frame.iloc[:, f]) for f in range(shape[1])))


def _from_frame(frame: Any) -> Table:
    """A frame of narwhals."""
    _check_shape(frame.shape)
    _refuse_doubles(list(frame.columns))
    matrix = matrix_of(frame)
    if matrix is not None:
        return Table(matrix.shape, tuple(frame.columns), matrix=matrix)
    columns = []
    for name in frame.columns:
        values, levels = values_of(frame.get_column(name))
        if levels is None:
            _check_real(values.dtype, f"X, column {name!r}")
        columns.append(Column(values, levels))
    return Table(frame.shape, tuple(frame.columns), columns=tuple(columns))


def _refuse_doubles(labels: list[Any]) -> None:
    if len(set(labels)) == len(labels):
        return
    name, times = Counter(labels).most_common(1)[0]
    raise InputError(
        f"X: every column needs a name of its own; {times} are called {name!r}. Rename them, or keep the first of "
        "each name: X.loc[:, ~X.columns.duplicated()]."
    )


def _names(labels: list[Any]) -> tuple[str, ...] | None:
    text = [isinstance(label, str) for label in labels]
    if all(text):
        return tuple(str(label) for label in labels)
    if any(text):
        f = text.index(False)
        raise InputError(
            f"X: column names must be all strings or none; column {f} is called {labels[f]!r}. Rename it, for all "
            "columns: X.columns = X.columns.astype(str)."
        )
    return None


def _pandas_column(series: Any) -> Column:
    import pandas as pd

    kind = series.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return Column(series.cat.codes.to_numpy(), tuple(kind.categories.tolist()))
    where = f"X, column {series.name!r}"
    if isinstance(kind, np.dtype):
        _check_real(kind, where)
    elif isinstance(kind, (pd.DatetimeTZDtype, pd.PeriodDtype)):
        _check_real(np.dtype("datetime64[ns]"), where)
    elif isinstance(kind, pd.SparseDtype):
        return Column(np.asarray(series))
    if pd.api.types.is_numeric_dtype(kind):  # bool as well
        if isinstance(kind, np.dtype):
            return Column(series.to_numpy())
        return Column(_nullable_numbers(series))
    return Column(series.to_numpy(dtype=object, na_value=None))


def _nullable_numbers(series: Any) -> NDArray[Any]:
    """A column of a nullable dtype as floats; as objects if floats cannot hold its integers, which may be ids."""
    from pandas.api.types import is_integer_dtype

    values: NDArray[Any] = series.to_numpy(dtype=np.float64, na_value=np.nan)
    if is_integer_dtype(series.dtype) and (np.abs(values) >= MOST_EXACT).any():
        return np.asarray(series.to_numpy(dtype=object, na_value=None))
    return values
