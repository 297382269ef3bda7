"""Tables from files: CSV and TSV (also compressed), Parquet, LIBSVM."""

from __future__ import annotations

import csv
import io
import lzma
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.columns import MOST_FEATURES
from gpuboost.errors import InputError

Read: TypeAlias = tuple[Any, NDArray[Any] | None, NDArray[np.float64] | None, NDArray[Any] | None]

_COMPRESSED = (".gz", ".xz", ".bz2")
_SEPARATOR = {".csv": ",", ".tsv": "\t"}
_MOST_DIGITS = 1000  # of an index; Python reads up to 4,300
_LIBSVM = (".libsvm", ".svm", ".txt")
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
) -> Read:
    """(X, y, weight, group); the last three are None where the file or the call names none.

    CSV, TSV, Parquet: X is a pandas frame of the columns that are not named otherwise; text, and what ``categorical``
    names, has dtype ``category``. LIBSVM: X is a CSR matrix whose column i holds the values of index i, so that two
    files of one data set agree; the label stands in the file, ``target`` is not used, and ``qid:`` gives the group.

    Parameters
    ----------
    path : file name; the extension decides the format
    target : name of the target's column, or None for rows without one
    weight, group : names of the columns of weights and query ids
    categorical : names of columns of numbers that are categories
    n_features : columns that a LIBSVM file is to have, if it does not show them all
    separator : one character between the fields of a text file, as in pandas' ``sep``; None for a comma, or a tab in
        .tsv. A file of another ending but .parquet is then read as text, too

    Raises
    ------
    InputError
        If there is no such file, its ending is unknown, it is damaged or ragged, a named column is not there, or the
        separator is not one character or of a Parquet file.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file." if not path.exists() else f"{path}: not a file.")
    endings = [ending.lower() for ending in path.suffixes]
    ending = "".join(endings[-2:-1] if endings and endings[-1] in _COMPRESSED else endings[-1:])
    if separator is not None:
        _check_separator(separator, path, ending)
        return _divide(_read_text(path, separator), path, target, weight, group, categorical or ())
    if ending in _LIBSVM:
        if weight or group or categorical:
            raise InputError(f"{path}: a LIBSVM file has no column names; leave weight, group and categorical out.")
        return _read_libsvm(path, n_features)
    if ending in _SEPARATOR:
        frame = _read_text(path, _SEPARATOR[ending])
    elif ending == ".parquet":
        frame = _read_parquet(path)
    else:
        raise InputError(f"{path}: cannot tell what kind of file it is; its name must end in {_KNOWN}.")
    return _divide(frame, path, target, weight, group, categorical or ())


def _check_separator(separator: str, path: Path, ending: str) -> None:
    if ending == ".parquet":
        raise InputError(f"separator: {path} is Parquet, which has none; leave it out.")
    if len(separator) != 1 or separator in '\r\n"':
        raise InputError(f"separator: must be one character that is no quote and no line end; got {separator!r}.")


def _divide(
    frame: Any, path: Path, target: str | None, weight: str | None, group: str | None, categorical: Sequence[str]
) -> Read:
    """Features apart from the rest."""
    names = [str(name) for name in frame.columns]
    roles = {"target": target, "weight": weight, "group": group}
    for role, name in [*roles.items(), *(("categorical", name) for name in categorical)]:
        if name is not None and name not in names:
            close = get_close_matches(name, names)
            hint = f"close to it: {', '.join(close)}" if close else f"it has {', '.join(names[:10])}"
            hint += " ..." if not close and len(names) > 10 else ""
            if len(names) == 1 and (marks := [mark for mark in ";\t|" if mark in names[0]]):
                hint += (
                    f": fields seem to be separated by {marks[0]!r}, and are expected to be by commas, or tabs in .tsv"
                )
            raise InputError(f"{role}: {path} has no column {name!r}; {hint}.")
    y, weights, groups = (None if name is None else _plain(frame[name]) for name in roles.values())
    features = frame.drop(columns=[name for name in roles.values() if name is not None])
    if features.shape[1] == 0:
        raise InputError(f"{path}: no feature is left beside {', '.join(name for name in roles.values() if name)}.")
    text = features.select_dtypes(exclude=["number", "bool", "category", "datetime", "datetimetz", "timedelta"])
    kinds = {name: "category" for name in [*text.columns, *categorical] if name in features.columns}
    if weights is not None:
        try:
            weights = weights.astype(np.float64)
        except ValueError as error:
            raise InputError(f"weight: column {weight!r} of {path} must hold numbers; {error}.") from None
    return features.astype(kinds), y, weights, groups


def _plain(series: Any) -> NDArray[Any]:
    """A column as a numpy array: numbers, or objects with None where there is nothing."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if isinstance(series.dtype, np.dtype):
        values: NDArray[Any] = series.to_numpy()
        return values
    if is_numeric_dtype(series.dtype) and not is_bool_dtype(series.dtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    objects = series.astype(object)
    return np.asarray(objects.where(objects.notna(), None), dtype=object)


def _read_text(path: Path, separator: str) -> Any:
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, sep=separator, index_col=False, low_memory=False)
    except pd.errors.EmptyDataError:
        raise InputError(f"{path}: the file is empty; its first line must hold the column names.") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        reason = _uneven_line(path, separator) or str(error).strip()
        raise InputError(f"{path}: cannot be read; {reason}.") from None
    except (OSError, EOFError, lzma.LZMAError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read; {error}.") from None
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
        reader = csv.reader(io.TextIOWrapper(stream, encoding="utf-8", newline=""), delimiter=separator)
        width = len(next(reader))
        for fields in reader:
            if fields and len(fields) != width:
                return (
                    f"every line must have as many fields as the first, {width}; line {reader.line_num} has "
                    f"{len(fields)}"
                )
    return ""


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
        return read_parquet(path).to_pandas()
    except (ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet; {error}.") from None


def _read_libsvm(path: Path, n_features: int | None) -> Read:
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
    if n_features is not None:
        if x.shape[1] > n_features:
            raise InputError(f"{path}: the highest index must be below {n_features} features; got {x.shape[1] - 1}.")
        x.resize(x.shape[0], n_features)
    return x, y, None, queries if len(queries) else None


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
    """Name the first line that breaks the rules, as the beginning of a sentence."""
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
