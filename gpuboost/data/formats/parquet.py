"""Rows that stay in Parquet files until they are needed.

Only the target, the weights and a sample for the bin edges are read at first. Shards of a data-parallel fit then read
their own rows, so that no machine ever holds all of them; any other fit reads them all.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.columns import Columns
from gpuboost.data.cuts import QUANTILE, check_binning, check_max_bins, choose_cuts
from gpuboost.data.given_cuts import check_cuts, replaced
from gpuboost.data.missing import checked_missing
from gpuboost.data.offsets import Offset, check_offset
from gpuboost.data.queries import check_group, weight_of_rows
from gpuboost.data.tables import as_table
from gpuboost.data.targets import check_target
from gpuboost.data.weights import check_weight
from gpuboost.errors import InputError, shown
from gpuboost.records import dataclass
from gpuboost.types import Cuts, DeviceMatrix

FilePaths = str | PathLike[str] | Sequence[str | PathLike[str]]


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """(n, d) numbers in files, row after row and file after file. ``x[a:b]`` and ``x[rows]`` read them.

    By row groups, as ``pyarrow.dataset.Dataset.take`` reads all files for a few rows.
    """

    files: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]  # rows of each row group of each file
    columns: Columns

    @property
    def shape(self) -> tuple[int, int]:
        return sum(map(sum, self.counts)), self.columns.n_features

    def __getitem__(self, rows: slice | NDArray[Any]) -> NDArray[Any]:
        """Row groups that hold none of them are not read. rows: a slice of step 1, increasing numbers, or a mask."""
        n = self.shape[0]
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(n)
            return self._read(begin, max(begin, end))
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if not len(numbers):
            return self._read(0, 0)
        parts, first = [], 0
        for count in (count for of_file in self.counts for count in of_file):  # a row group at a time
            wanted = numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, first + count)]
            if len(wanted):
                parts.append(self._read(first, first + count)[wanted - first])
            first += count
        return np.concatenate(parts)

    def _read(self, begin: int, end: int) -> NDArray[Any]:
        """Rows begin .. end - 1, C-contiguous."""
        from pyarrow.parquet import ParquetFile

        parts, first = [], 0
        for file, counts in zip(self.files, self.counts, strict=True):
            for group, count in enumerate(counts):
                a, b = max(begin - first, 0), min(end - first, count)
                if a < b:
                    with ParquetFile(file) as opened:
                        table = opened.read_row_group(group, columns=list(self.columns.names or ()))
                    parts.append(self.columns.encode(table.slice(a, b - a)))
                first += count
        return np.ascontiguousarray(np.concatenate(parts)) if parts else np.empty((0, self.shape[1]))


@dataclass(frozen=True, slots=True)
class ParquetParts:
    """The parts of a Dataset whose features stay in Parquet files. y, weight, group: (n,) in memory, or None.

    offset: (k, n), or None.
    """

    columns: Columns
    cuts: Cuts
    x: ParquetRows
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None
    group: NDArray[Any] | None
    offset: Offset | None


@dataclass(frozen=True, slots=True)
class _Sampled(DeviceMatrix):
    """The sample of rows that ``choose_cuts`` reads."""

    rows: ParquetRows
    device: str = "files"
    array: None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape

    def __getitem__(self, rows: Any) -> Any:
        return self.rows[rows]

    def host_rows(self, rows: NDArray[np.int64] | None) -> NDArray[Any]:
        return self.rows[:] if rows is None else self.rows[rows]

    def host_column(self, f: int) -> NDArray[Any]:
        return self.rows[:][:, f]

    def with_columns(self, columns: Mapping[int, NDArray[np.float64]]) -> NoReturn:
        raise InputError(f"features: columns of Parquet files must be numbers; {list(columns)} are to be replaced.")

    def arranged(self, columns: Sequence[int | NDArray[Any]]) -> NoReturn:
        raise InputError(f"features: columns of Parquet files stay where they are; {len(columns)} are to be arranged.")

    def groups(self, grouping: Any, *, to_host: bool) -> NoReturn:
        raise InputError(f"features: columns of Parquet files must be numbers; {list(grouping.sizes)} are categorical.")

    def first_infinite(self) -> None:
        """None: infinite values are refused where they are read."""

    def on_same_device(self, host: NDArray[Any]) -> NDArray[Any]:
        """The array itself."""
        return host

    def wait(self) -> None:
        """Do nothing: no device works on the rows."""


def read_parquet(
    paths: FilePaths, target: str | None, weight: str | None, group: str | None, features: Sequence[str] | None,
    max_bins: int, given: Any = None, binning: str = QUANTILE, init_score: str | Sequence[str] | None = None,
    missing: float = nan,
) -> ParquetParts:  # fmt: skip
    """Read all but the features of the files, which only a sample is read of; see ``Dataset.from_parquet``."""
    check_max_bins(max_bins)
    check_binning(binning)
    files = files_of(paths)
    asked = (("target", target), ("weight", weight), ("group", group))
    special = {role: _column_name(role, name) for role, name in asked if name is not None}
    offsets = _offset_columns(init_score)
    counts, names = row_counts(files)
    for role, name in [*special.items(), *(("init_score", name) for name in offsets)]:
        if name not in names:
            listed = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
            raise InputError(f"{role}: the files have no column {name!r}; they have {listed}.")
    others = [name for name in names if name not in (*special.values(), *offsets)]
    wanted = others if features is None else _column_names("features", features)
    lacking = [name for name in wanted if name not in names]
    if lacking or not wanted:
        raise InputError(f"features: must name columns of the files; {lacking or 'none'} was asked for.")
    query = special.get("group")
    schema = replace(as_table(_schema_table(files[0], wanted)), query=None if query in wanted else query)
    columns = Columns.learn(schema, missing=checked_missing(missing))
    if columns.is_categorical.any():
        name = wanted[int(np.argmax(columns.is_categorical))]
        raise InputError(
            f"features: columns of Parquet files that stay there must be numbers, since categories would have to be "
            f"counted in all files first; {name!r} is not. Encode it, or read the files and pass the table to Dataset."
        )
    thresholds = check_cuts(given, columns, int(max_bins))
    x = ParquetRows(files, counts, columns)
    held = {role: _column(files, name) for role, name in special.items()}
    y = check_target(held["target"], x.shape[0]) if "target" in held else None
    queries = check_group(held.get("group"), x.shape[0])
    weights = check_weight(weight_of_rows(held.get("weight"), queries), x.shape[0], "weight")
    offset = check_offset(np.column_stack([_column(files, name) for name in offsets]), x.shape[0]) if offsets else None
    cuts = replaced(choose_cuts(_Sampled(x), weights, max_bins, binning=binning), thresholds)
    return ParquetParts(columns, cuts, x, y, weights, queries, offset)


def _offset_columns(init_score: Any) -> list[str]:
    """Names of the columns of offsets."""
    listed = [init_score] if isinstance(init_score, str) else [] if init_score is None else init_score
    return _column_names("init_score", listed)


def _column_name(role: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(f"{role}: must be the name of a column; got {shown(name)}.")
    return name


def _column_names(role: str, names: Any) -> list[str]:
    names = names.tolist() if isinstance(names, np.ndarray) else names
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{role}: must be the name of a column, or a list of names; got {shown(names)}.")
    return [str(name) for name in names]


def _several(paths: Any) -> list[Any]:
    paths = paths.tolist() if isinstance(paths, np.ndarray) else paths
    listed = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, (bytes, Mapping)) else [paths]
    if not all(isinstance(path, (str, PathLike)) for path in listed):
        raise InputError(f"paths: must be the path of a file, a folder or a pattern, or a list; got {shown(paths)}.")
    return listed


def files_of(paths: FilePaths) -> tuple[str, ...]:
    """The files that they name: a file as it is, of a folder or a pattern its .parquet files, sorted by name.

    Raises
    ------
    InputError
        If there is none, or a path leads nowhere.
    """
    files: list[str] = []
    for path in [paths] if isinstance(paths, (str, PathLike)) else _several(paths):
        text = str(path)
        if Path(text).is_dir():
            some = sorted(str(file) for file in Path(text).glob("*.parquet"))
        elif glob.has_magic(text):
            some = sorted(glob.glob(text))
        else:
            some = [text] if Path(text).is_file() else []
        if not some:
            raise InputError(f"paths: must lead to Parquet files, or a folder of them; {text!r} leads to none.")
        files += some
    if not files:
        raise InputError("paths: must lead to Parquet files; got an empty list.")
    return tuple(files)


def row_counts(files: tuple[str, ...]) -> tuple[tuple[tuple[int, ...], ...], list[str]]:
    """Rows of each row group of each file, and the names of the columns, which all files must share."""
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    counts: list[tuple[int, ...]] = []
    schema: Any = None
    for file in files:
        try:
            with ParquetFile(file) as opened:
                about, file_schema = opened.metadata, opened.schema_arrow.remove_metadata()
        except (ArrowInvalid, OSError) as error:
            raise InputError(f"paths: {file!r} cannot be read as Parquet: {error}") from error
        if schema is not None and not file_schema.equals(schema):
            raise InputError(
                f"paths: all files must have the same columns and types; {file!r} differs from {files[0]!r}."
            )
        schema = file_schema
        counts.append(tuple(about.row_group(i).num_rows for i in range(about.num_row_groups)))
    return tuple(counts), list(schema.names)


def _schema_table(file: str, names: Sequence[str]) -> Any:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file) as opened:
        return opened.read_row_group(0, columns=list(names)).select(list(names))


def _column(files: tuple[str, ...], name: str) -> NDArray[Any]:
    """(n,) one column of all files."""
    from pyarrow.parquet import ParquetFile

    parts = []
    for file in files:
        with ParquetFile(file) as opened:
            parts.append(opened.read(columns=[name]).column(name).to_numpy())
    return np.concatenate(parts)
