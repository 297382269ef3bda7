"""Tables from files: CSV and TSV (also compressed), Parquet, LIBSVM."""

from __future__ import annotations

import csv
import io
import lzma
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.columns import MOST_FEATURES
from gpuboost.data.formats.text_table import (
    is_uneven,
    other_separator,
    read_columns,
    refuse_equal_names,
    table_of,
    uneven,
    unreadable,
)
from gpuboost.data.formats.thousands import numbers_of
from gpuboost.data.tables import Table
from gpuboost.data.text_columns import reads_as_number
from gpuboost.errors import InputError

Read: TypeAlias = tuple[Any, NDArray[Any] | None, NDArray[np.float64] | None, NDArray[Any] | None]

_COMPRESSED = (".gz", ".xz", ".bz2")
_SEPARATOR = {".csv": ",", ".tsv": "\t"}
_MOST_DIGITS = 1000  # of an index; Python reads up to 4,300
_LIBSVM = (".libsvm", ".svm", ".txt")
_ENDINGS = {"csv": ".csv", "tsv": ".tsv", "parquet": ".parquet", "libsvm": ".libsvm", "letor": ".libsvm"}
_KNOWN = ".csv, .tsv, .parquet, .libsvm, .svm or .txt (LIBSVM); text also as .gz, .xz or .bz2"


def read_table(
    path: str | Path,
    target: str | None,
    *,
    weight: str | None = None,
    group: str | None = None,
    categorical: Sequence[str] | None = None,
    n_features: int | None = None,
    separator: str | None = None,
    kind: str | None = None,
    one_based: bool | None = False,
    text: Sequence[str] = (),
    decimal: str | None = None,
    thousands: str | None = None,
) -> Read:
    """(X, y, weight, group); the last three are None where the file or the call names none.

    CSV, TSV, Parquet: X is a pandas frame (of CSV and TSV a ``Table``, if pandas is not installed) of the columns that
    are not named otherwise; what ``categorical`` names has dtype ``category``, and text stays text. LIBSVM: X is a CSR
    matrix whose column i holds the values of index i, so that two files of one data set agree; the label stands in the
    file, ``target`` is not used, and ``qid:`` gives the group. LETOR, which is LIBSVM with ``qid:`` and indices from 1:
    X is a ``Table`` of a CSR matrix, whose columns are named "1", "2", ...

    Parameters
    ----------
    path : file name; the extension decides the format
    target : name of the target's column, or None for rows without one
    weight, group : names of the columns of weights and query ids
    categorical : names of columns of numbers that are categories
    n_features : columns that a LIBSVM file is to have, if it does not show them all
    separator : one character between the fields of a text file, as in pandas' ``sep``; None for a comma, or a tab in
        .tsv. A file of another ending but .parquet is then read as text, too
    kind : "csv", "tsv", "parquet", "libsvm" or "letor", whatever the ending says; None for that of the ending
    one_based : True if the indices of a LIBSVM file start at 1; None: if it has ``qid:`` and no index 0
    text : names of columns of CSV and TSV that hold text, read exactly as written where they look like numbers, too;
        those that the file does not have are left out
    decimal, thousands : decimal point and mark of thousands of CSV and TSV; None for a point, and for no mark

    Raises
    ------
    InputError
        If there is no such file, its ending is unknown, it is damaged or ragged, a named column is not there, or the
        separator or decimal point cannot be that of the file.
    """
    path = Path(path)
    ending = _ending(path, kind if separator is None else None)
    separator = _separator_of(separator, decimal, thousands, path, ending)
    if separator is not None:
        frame = _with_thousands(_read_text(path, separator, text, decimal or "."), text, thousands, decimal or ".")
    elif ending in _LIBSVM:
        if weight or group or categorical:
            raise InputError(f"{path}: a LIBSVM file has no column names; leave weight, group and categorical out.")
        letor = {"libsvm": False, "letor": True}.get(kind or "", one_based)
        return _read_libsvm(path, n_features, letor)
    elif ending == ".parquet":
        frame = _read_parquet(path)
    else:
        raise InputError(f"{path}: cannot tell what kind of file it is; its name must end in {_KNOWN}.")
    return _divide(frame, path, target, weight, group, categorical or ())


def _ending(path: Path, kind: str | None) -> str:
    """The ending of a file's name for its format, without that of its compression; that of the kind, if one is given.
    InputError if there is no file."""
    if not path.is_file():
        raise InputError(f"{path}: no such file." if not path.exists() else f"{path}: not a file.")
    if kind is not None:
        return _ENDINGS[kind]
    endings = [ending.lower() for ending in path.suffixes]
    return "".join(endings[-2:-1] if endings and endings[-1] in _COMPRESSED else endings[-1:])


def _separator_of(given: str | None, decimal: str | None, thousands: str | None, path: Path, ending: str) -> str | None:
    """The character between the fields of a text file; None for other files. InputError if it, the decimal point, or
    the mark of thousands, cannot be that of the file."""
    if given is not None:
        if ending == ".parquet":
            raise InputError(f"separator: {path} is Parquet, which has none; leave it out.")
        if len(given) != 1 or given in '\r\n"':
            raise InputError(f"separator: must be one character that is no quote and no line end; got {given!r}.")
    separator = given or _SEPARATOR.get(ending)
    if decimal is not None and separator is None:
        raise InputError(f"decimal: is of CSV and TSV, and {path} is neither; leave it out.")
    if decimal is not None and decimal == separator:
        raise InputError(f"decimal: {separator!r} separates the fields of {path}; name another separator, as by --sep.")
    _check_thousands(thousands, separator, decimal or ".", path)
    return separator


def _check_thousands(thousands: str | None, separator: str | None, decimal: str, path: Path) -> None:
    """Raise InputError if thousands cannot be set apart by this character in the file."""
    if thousands is None:
        return
    if separator is None:
        raise InputError(f"thousands: is of CSV and TSV, and {path} is neither; leave it out.")
    if thousands == separator:
        raise InputError(
            f"thousands: {separator!r} separates the fields of {path}; name another separator, as by --sep."
        )
    if thousands == decimal:
        raise InputError(f"thousands: {decimal!r} is the decimal point; name another one, as by --decimal.")


def _with_thousands(frame: Any, text: Sequence[str], thousands: str | None, decimal: str) -> Any:
    """The columns of a file, with numbers in place of texts of numbers whose thousands are set apart, if any are."""
    if thousands is None:
        return frame
    is_plain = isinstance(frame, dict)
    for name in list(frame):
        values = frame[name] if is_plain else np.asarray(frame[name], dtype=object)
        if name in text or values.dtype != object:
            continue
        numbers = numbers_of(values, thousands, decimal)
        if numbers is not None:
            frame[name] = numbers
    return frame


def _divide(
    frame: Any, path: Path, target: str | None, weight: str | None, group: str | None, categorical: Sequence[str]
) -> Read:
    """Features apart from the rest."""
    roles = {"target": target, "weight": weight, "group": group}
    _check_roles(
        [str(name) for name in (frame if isinstance(frame, dict) else frame.columns)], path, roles, categorical
    )
    if isinstance(frame, dict):
        return _divide_columns(frame, path, roles, categorical)
    y, weights, groups = (None if name is None else _plain(frame[name]) for name in roles.values())
    features = frame.drop(columns=[name for name in roles.values() if name is not None])
    if features.shape[1] == 0:
        raise InputError(f"{path}: no feature is left beside {', '.join(name for name in roles.values() if name)}.")
    kinds = {name: "category" for name in categorical if name in features.columns}
    if weights is not None:
        try:
            weights = weights.astype(np.float64)
        except ValueError as error:
            raise InputError(f"weight: column {weight!r} of {path} must hold numbers; {error}.") from None
    return features.astype(kinds), y, weights, groups


def _check_roles(names: Sequence[str], path: Path, roles: dict[str, str | None], categorical: Sequence[str]) -> None:
    """Raise InputError for a name that is not a column, or that is the column of something else already."""
    given = [(role, name) for role, name in roles.items() if name is not None]
    for number, (what, column) in enumerate(given):
        taken = [other for other, known in given[:number] if known == column]
        if taken or column in categorical:
            first = taken[0] if taken else "categorical"
            raise InputError(f"{first}: {column!r} is also the column of {what}; name another, or leave one out.")
    for role, name in [*roles.items(), *(("categorical", name) for name in categorical)]:
        if name is not None and name not in names:
            raise InputError(f"{role}: {path} has no column {name!r}; {_near(name, names)}{other_separator(names)}.")


def _near(name: str, names: Sequence[str]) -> str:
    """Names like the one that is lacking, or all of them; and advice where they are no names."""
    if 2 * sum(map(reads_as_number, names)) >= len(names):
        return f"its first line, which must hold the column names, is {', '.join(names[:10])}"
    close = get_close_matches(name, names)
    if close:
        return f"close to it: {', '.join(map(repr, close))}"
    return f"it has {', '.join(names[:10])}" + (" ..." if len(names) > 10 else "")


def _divide_columns(
    columns: dict[str, NDArray[Any]], path: Path, roles: dict[str, str | None], categorical: Sequence[str]
) -> Read:
    """``_divide`` without pandas."""
    y, weights, groups = (None if name is None else columns[name] for name in roles.values())
    features = {name: values for name, values in columns.items() if name not in roles.values()}
    if not features:
        raise InputError(f"{path}: no feature is left beside {', '.join(name for name in roles.values() if name)}.")
    if weights is not None:
        try:
            weights = weights.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"weight: column {roles['weight']!r} of {path} must hold numbers; {error}.") from None
    return table_of(features, categorical), y, weights, groups


def _plain(series: Any) -> NDArray[Any]:
    """A column as a numpy array: numbers, or objects with None where there is nothing. Integers stay integers."""
    from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

    if isinstance(series.dtype, np.dtype):
        values: NDArray[Any] = series.to_numpy()
        return values
    if (is_integer_dtype(series.dtype) or is_bool_dtype(series.dtype)) and not series.isna().any():
        whole: NDArray[Any] = series.to_numpy(dtype=getattr(series.dtype, "numpy_dtype", None))
        return whole
    if is_numeric_dtype(series.dtype) and not is_bool_dtype(series.dtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    objects = series.astype(object)
    return np.asarray(objects.where(objects.notna(), None), dtype=object)


def _read_text(path: Path, separator: str, text: Sequence[str], decimal: str) -> Any:
    if find_spec("pandas") is None:  # the standard library does it, slower
        with _opened(path) as stream:
            return read_columns(stream, separator, str(path), text, decimal)
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            kinds: Any = dict.fromkeys(text, str)
            form: Any = {"sep": separator, "decimal": decimal, "index_col": False, "low_memory": False}
            frame = pd.read_csv(path, dtype=kinds, **form)
    except pd.errors.EmptyDataError:
        raise InputError(f"{path}: the file is empty; its first line must hold the column names.") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        reason = _uneven_line(path, separator) or str(error).strip()
        raise InputError(f"{path}: cannot be read; {reason}.") from None
    except (OSError, EOFError, lzma.LZMAError, UnicodeError) as error:
        raise unreadable(str(path), error) from None
    refuse_equal_names(_header(path, separator), str(path))
    if len(frame) == 0:
        raise InputError(f"{path}: the file has column names but no rows.")
    if frame.iloc[:, -1].isna().any():  # a missing value, or a line that ends early: only a second look can tell
        reason = _uneven_line(path, separator)
        if reason:
            raise InputError(f"{path}: cannot be read; {reason}.")
    return frame


def _uneven_line(path: Path, separator: str) -> str:
    """Describe the first line with more or fewer fields than there are names; empty if there is none."""
    with _opened(path) as stream, suppress(UnicodeError, csv.Error):  # of which pandas has said something
        reader = csv.reader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), delimiter=separator)
        header = next(reader)
        for fields in reader:
            if is_uneven(header, fields):
                return uneven(header, reader.line_num, fields)
    return ""


def _header(path: Path, separator: str) -> list[str]:
    """The names in the first line that is not empty."""
    with _opened(path) as stream:
        reader = csv.reader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), delimiter=separator)
        return next((fields for fields in reader if fields), [])


def _opened(path: Path) -> IO[bytes]:
    """The bytes of a file that may be compressed."""
    import bz2
    import gzip

    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    stream: IO[bytes] = openers.get(path.suffix.lower(), open)(path, "rb")
    return stream


def _read_parquet(path: Path) -> Any:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_table as read_parquet
    except ImportError:
        raise InputError(f"{path}: reading Parquet needs pyarrow; pip install pyarrow.") from None
    try:
        frame = read_parquet(path).to_pandas()
    except (ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet; {error}.") from None
    if len(frame) == 0:
        raise InputError(f"{path}: the file has column names but no rows.")
    return frame


def _read_libsvm(path: Path, n_features: int | None, one_based: bool | None) -> Read:
    from sklearn.datasets import load_svmlight_file

    try:
        with _opened(path) as stream:
            x, y, queries = load_svmlight_file(io.BytesIO(stream.read()), query_id=True, zero_based=True)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InputError(f"{path}: cannot be read; {error}.") from None
    except (ValueError, OverflowError) as error:
        _refuse_far_index(path)
        raise InputError(
            f"{path}: cannot be read as LIBSVM, lines of 'label index:value index:value ...' with rising indices; "
            f"{_wrong_line(path)}{error}."
        ) from None
    if x.shape[0] == 0:
        raise InputError(f"{path}: the file is empty.")
    if x.shape[1] > MOST_FEATURES:
        _refuse_far_index(path)
    if 0 < len(queries) < len(y):
        raise InputError(f"{path}: {len(queries)} of {len(y)} lines have a qid; give it to all or to none.")
    shift = bool(len(queries) and not x[:, 0].nnz) if one_based is None else one_based
    x = _of_width(_from_one(x, path) if shift else x, n_features, path, 0 if shift else 1)
    features = Table(x.shape, tuple(str(i + 1) for i in range(x.shape[1])), matrix=x) if shift else x
    return features, y, None, queries if len(queries) else None


def _of_width(x: Any, n_features: int | None, path: Path, from_zero: int) -> Any:
    """The matrix with this many columns. Raises InputError if it has more; from_zero: 1 if indices start at 0."""
    if n_features is not None:
        if x.shape[1] > n_features:
            bound = f"below {n_features} features" if from_zero else f"at most {n_features}"
            raise InputError(f"{path}: the highest index must be {bound}; got {x.shape[1] - from_zero}.")
        x.resize(x.shape[0], n_features)
    return x


def _from_one(x: Any, path: Path) -> Any:
    """The matrix without column 0, as indices start at 1. Raises InputError if that column holds values."""
    if x.shape[1] < 2 or x[:, 0].nnz:
        raise InputError(f"{path}: indices of LETOR files start at 1; index 0 holds a value, or there is no other.")
    return x[:, 1:].tocsr()


def _refuse_far_index(path: Path) -> None:
    """Raise InputError for the first line with an index that stands for too many features."""
    with _opened(path) as stream:
        for number, line in enumerate(stream, 1):
            for field in line.split(b"#")[0].split()[1:]:
                index, _, _ = field.partition(b":")
                if index.isdigit() and (len(index) > _MOST_DIGITS or int(index) >= MOST_FEATURES):
                    shown = index[:20].decode() + ("..." if len(index) > 20 else "")
                    raise InputError(f"{path}: line {number}: indices must be below {MOST_FEATURES:,}; found {shown}.")


def _wrong_line(path: Path) -> str:
    """The text "line 3: " for the first line that is not valid LIBSVM; "" if there is none."""
    with _opened(path) as stream:
        for number, line in enumerate(stream, 1):
            fields = line.split(b"#")[0].split()
            try:
                pairs = [field.split(b":") for field in fields[1:]]
                indices = [int(index) for index, _ in pairs if index != b"qid"]
                for value in [*fields[:1], *(value for _, value in pairs)]:
                    float(value)
            except ValueError:
                return f"line {number}: "
            if any(index < 0 for index in indices[:1]) or any(a >= b for a, b in pairwise(indices)):
                return f"line {number}: "
    return ""
