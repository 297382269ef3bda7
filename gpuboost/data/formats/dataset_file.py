"""The file of a Dataset: its parts as arrays that are mapped into memory, checked before they are used.

Target, weights, queries, columns and cuts are checked when the file is opened, bins and features when they are first
used (``stored_rows``), since only that reads them. The checks are those of the checksums, and those that keep kernels
within their arrays if someone has made a file with right checksums.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.columns import Columns
from gpuboost.data.cuts import FEATURE_BINS, QUANTILE, by_column, check_binning, check_max_bins
from gpuboost.data.formats.parquet import ParquetRows, row_counts
from gpuboost.data.formats.stored_rows import SPARSE_BINS, StoredBins, StoredMatrix, named_errors
from gpuboost.data.offsets import check_offset
from gpuboost.data.queries import check_group
from gpuboost.data.targets import check_target
from gpuboost.data.weights import check_weight
from gpuboost.errors import InputError
from gpuboost.records import dataclass
from gpuboost.storage import ArrayFile, can_hold, write_arrays
from gpuboost.types import Bins, Cuts, DenseBins, DeviceMatrix, SparseBins

KIND, VERSION, WHAT = "dataset", 1, "dataset file"

_ABOUT = {"columns", "max_bins", "binning", "shape", "layout", "bins", "labels", "parquet"}

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class DatasetParts:
    """Parts of a Dataset, by the names of its attributes. ``bins``: on the host, or None."""

    columns: Columns
    cuts: Cuts
    x: Any
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None
    group: NDArray[Any] | None
    init_score: NDArray[np.float64] | None
    max_bins: int
    binning: str
    bins: Bins | StoredBins | None


def write(path: str | os.PathLike[str], parts: DatasetParts) -> None:
    """Write a Dataset, with the bins of the host unless its features are in Parquet files.

    Raises
    ------
    InputError
        If ``path`` is not a path, or target or queries are objects that a file cannot hold.
    OSError
        If the file cannot be written.
    """
    about: dict[str, Any] = {
        "columns": parts.columns.to_json(),
        "max_bins": parts.max_bins,
        "shape": list(parts.x.shape),
        "layout": "dense",
        "bins": None,
        "labels": {},
        "parquet": None,
    }
    if parts.binning != QUANTILE:
        about["binning"] = parts.binning  # files of quantiles have the bytes of those from before there was a choice
    arrays = _arrays_of_cuts(parts.cuts)
    if parts.weight is not None:
        arrays["weight"] = parts.weight
    if parts.init_score is not None:
        arrays["init_score"] = parts.init_score
    for name, values in (("y", parts.y), ("group", parts.group)):
        if values is not None:
            arrays[name], levels = _plain(values, name)
            about["labels"] |= {} if levels is None else {name: levels}
    if isinstance(parts.x, ParquetRows):
        about["layout"] = "parquet"
        files = [os.path.abspath(file) for file in parts.x.files]
        about["parquet"] = {"files": files, "counts": [list(counts) for counts in parts.x.counts]}
    else:
        about["layout"], about["bins"] = _add_rows(arrays, parts)
    write_arrays(path, KIND, VERSION, about, arrays)


def read(path: str | os.PathLike[str]) -> DatasetParts:
    """The parts of a Dataset that ``write`` wrote; features and bins stay in the file until they are used.

    Raises
    ------
    InputError
        If it is not a file of a Dataset, is damaged, or was written by a newer gpuboost; the message names the file.
    OSError
        If it cannot be read.
    """
    file = ArrayFile.open(path, KIND, VERSION, WHAT)
    with named_errors(file):
        about = {"binning": QUANTILE} | file.about
        n, d = _shape(about)
        columns = Columns.from_json(about["columns"])
        check_max_bins(about["max_bins"])
        check_binning(about["binning"])
        if columns.n_features != d:
            raise InputError(f"columns: there are {columns.n_features}, and features of {d}.")
        cuts = _cuts(file, columns, about["max_bins"])
        weight = file.array("weight", "f8", (n,)).read() if "weight" in file.arrays else None
        init_score = _init_score(file, n)
        y, group = (_labels(file, name, n) for name in ("y", "group"))
        x, bins = _features(file, columns, cuts, (n, d))
        check_weight(weight, n, "weight")
        if y is not None:
            check_target(y, n, several=True)
        if group is not None:
            check_group(group, n)
        return DatasetParts(columns, cuts, x, y, weight, group, init_score, about["max_bins"], about["binning"], bins)


def _init_score(file: ArrayFile, n: int) -> NDArray[np.float64] | None:
    """(n,) or (n, K) offsets of scores, or None."""
    if "init_score" not in file.arrays:
        return None
    shape = file.arrays["init_score"].shape
    values: NDArray[np.float64] = file.array("init_score", "f8", (n, *shape[1:])).read()
    check_offset(values, n)
    return values


def _shape(about: dict[str, Any]) -> tuple[int, int]:
    if set(about) != _ABOUT or not isinstance(about["labels"], dict) or about["labels"].keys() - {"y", "group"}:
        raise InputError("it does not hold what a Dataset has.")
    shape = about["shape"]
    if not isinstance(shape, list) or len(shape) != 2 or not all(type(length) is int for length in shape):
        raise InputError("its shape is not that of rows and features.")
    if not (0 <= shape[0] < 2**48 and shape[1] > 0):
        raise InputError(f"its shape is {shape}.")
    return shape[0], shape[1]


def _add_rows(arrays: Arrays, parts: DatasetParts) -> tuple[str, str]:
    """Add features and bins; return their layouts."""
    x, bins, layout = parts.x, parts.bins, "dense"
    if isinstance(x, DeviceMatrix):
        x = x.host_rows(None)
    if hasattr(x, "indptr"):
        arrays |= {"x.data": x.data, "x.indices": x.indices, "x.indptr": x.indptr}
        layout = "sparse"
    else:
        arrays["x"] = x
    if isinstance(bins, SparseBins):
        arrays |= {f"bins.{name}": getattr(bins, name) for name in SPARSE_BINS}
        return layout, "sparse"
    assert isinstance(bins, DenseBins)
    arrays |= {"bins.rows": bins.rows, "bins.columns": bins.columns}
    return layout, "dense"


def _features(file: ArrayFile, columns: Columns, cuts: Cuts, shape: tuple[int, int]) -> tuple[Any, StoredBins | None]:
    about = file.about
    if about["layout"] == "parquet":
        return _parquet(about["parquet"], columns, shape[0]), None
    if about["layout"] not in ("dense", "sparse") or about["bins"] not in ("dense", "sparse"):
        raise InputError("its layout is not known.")
    sparse = about["layout"] == "sparse"
    if sparse and columns.is_categorical.any():
        raise InputError("columns: those of a sparse matrix are numbers.")
    file.array("x.data", "f4 f8", (None,)) if sparse else file.array("x", "f4 f8", shape)
    return StoredMatrix(file, columns, shape, sparse), StoredBins(file, cuts, shape[0], about["bins"] == "sparse")


def _parquet(about: Any, columns: Columns, n_rows: int) -> ParquetRows:
    """The rows in Parquet files, which must be those that were there."""
    listed = (
        isinstance(about, dict)
        and set(about) == {"files", "counts"}
        and isinstance(about["files"], list)
        and all(isinstance(name, str) for name in about["files"])
        and columns.names is not None
        and not columns.is_categorical.any()
    )
    if not listed:
        raise InputError("its list of Parquet files is damaged.")
    files = tuple(about["files"])
    counts, names = row_counts(files)
    rows = ParquetRows(files, counts, columns)
    if [list(of_file) for of_file in counts] != about["counts"] or rows.shape[0] != n_rows:
        raise InputError(f"the Parquet files that it names ({files[0]!r}, ...) have other rows now.")
    if missing := set(columns.names or ()) - set(names):
        raise InputError(f"the Parquet files that it names have no column {sorted(missing)[0]!r} now.")
    return rows


def _plain(values: NDArray[Any], name: str) -> tuple[NDArray[Any], list[Any] | None]:
    """Values as a file holds them: as they are or, for Python objects, as places in a list."""
    if values.dtype != object:
        if not can_hold(values.dtype):
            raise InputError(f"{name}: a file cannot hold {values.dtype}; give numbers or text.")
        return values, None
    places: dict[tuple[type, Any], int] = {}
    codes = np.empty(len(values), np.int64)
    for row, value in enumerate(values.tolist()):
        plain = value.item() if isinstance(value, np.generic) else value
        if type(plain) not in (str, int, float, bool):
            raise InputError(f"{name}: a file holds text and numbers; row {row} holds a {type(plain).__name__}.")
        codes[row] = places.setdefault((type(plain), plain), len(places))
    return codes, [value for _, value in places]


def _labels(file: ArrayFile, name: str, n_rows: int) -> NDArray[Any] | None:
    stored = file.arrays.get(name)
    levels = file.about["labels"].get(name)
    if stored is None:
        return None
    several = name == "y" and len(stored.shape) == 2 and stored.shape[1] > 1
    if stored.shape != (n_rows,) and not (several and stored.shape[0] == n_rows):
        raise InputError(f"{name}: there are {n_rows} rows, and it has shape {stored.shape}.")
    values = stored.read()
    if levels is None:
        if values.dtype.kind == "U" and values.size and values.view(np.uint32).max() > 0x10FFFF:
            raise InputError(f"{name}: it holds characters that do not exist.")
        return values
    if not isinstance(levels, list) or not all(type(level) in (str, int, float, bool) for level in levels):
        raise InputError(f"{name}: its labels are neither text nor numbers.")
    if values.dtype != np.int64 or (n_rows and not 0 <= values.min() <= values.max() < len(levels)):
        raise InputError(f"{name}: it refers to labels that are not there.")
    table: NDArray[Any] = np.empty(len(levels), dtype=object)
    table[:] = levels
    objects: NDArray[Any] = table[values]
    return objects


def _arrays_of_cuts(cuts: Cuts) -> Arrays:
    none = np.empty(0, np.int64)
    codes = [none if of_feature is None else of_feature for of_feature in cuts.categories]
    arrays: Arrays = {
        "cuts.start": _starts(cuts.thresholds),
        "cuts.thresholds": np.concatenate([np.empty(0), *cuts.thresholds]),
        "cuts.category_start": _starts(codes),
        "cuts.categories": np.concatenate([none, *codes]).astype(np.int64),
        "cuts.is_categorical": cuts.is_categorical,
    }
    return arrays if cuts.source is None else arrays | {"cuts.source": cuts.source}


def _starts(parts: Any) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def _cuts(file: ArrayFile, columns: Columns, max_bins: int) -> Cuts:
    """The cuts. Raises InputError unless they are such as a Dataset of these columns can have."""
    listed = file.array("cuts.is_categorical", "b1", (None,)).read().view(np.uint8) != 0
    d = len(listed)
    source = file.array("cuts.source", "i4", (d,)).read() if "cuts.source" in file.arrays else None
    column = np.arange(d, dtype=np.int32) if source is None else source
    steps = np.diff(column)
    if not d or column[0] != 0 or column[-1] != columns.n_features - 1 or ((steps != 0) & (steps != 1)).any():
        raise InputError("cuts: their columns are not those of the data.")
    if not np.array_equal(listed, columns.is_categorical[column]) or (listed[1:] != listed[:-1])[steps == 0].any():
        raise InputError("cuts: they are of other columns.")
    thresholds = _pieces(file, "cuts.start", "cuts.thresholds", "f8", d)
    codes = _pieces(file, "cuts.category_start", "cuts.categories", "i8", d)
    for f, (numbers, places) in enumerate(zip(thresholds, codes, strict=True)):
        categories = columns.categories[column[f]]
        if categories is None:
            right = len(numbers) < FEATURE_BINS and not len(places) and bool(np.isfinite(numbers).all())
            right = right and bool((np.diff(numbers) > 0.0).all())
        else:
            right = not len(numbers) and 0 < len(places) <= min(max_bins, FEATURE_BINS)
            right = right and len(set(places.tolist())) == len(places)
            right = right and places.min() >= 0 and places.max() < max(1, len(categories))
        if not right:
            raise InputError(f"cuts: those of feature {f} are not such as a Dataset has.")
    chosen = tuple(places if is_set else None for places, is_set in zip(codes, listed.tolist(), strict=True))
    cuts = Cuts(tuple(thresholds), chosen, source)
    for c, whole in enumerate(by_column(cuts)[0]):
        if len(whole) >= max_bins or (np.diff(whole) <= 0.0).any():
            raise InputError(f"cuts: those of column {c} are not such as a Dataset has.")
    return cuts


def _pieces(file: ArrayFile, starts: str, values: str, kind: str, d: int) -> list[NDArray[Any]]:
    """(d,) arrays that stand one after the other."""
    start, whole = file.array(starts, "i8", (d + 1,)).read(), file.array(values, kind, (None,)).read()
    if start[0] != 0 or start[-1] != len(whole) or (np.diff(start) < 0).any():
        raise InputError(f"cuts: {starts!r} is damaged.")
    return [whole[a:b].copy() for a, b in pairwise(start.tolist())]
