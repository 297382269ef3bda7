"""Data cut into bins once and reused by many fits.

The module is one class; its methods are short, and a third of the lines document them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.batches import joined
from gpuboost.data.columns import FROM_DTYPE, Columns
from gpuboost.data.cuts import DEFAULT_BINS, QUANTILE, check_binning, check_max_bins, choose_cuts, divided
from gpuboost.data.formats.dataset_file import DatasetParts, read, write
from gpuboost.data.formats.parquet import ParquetRows, read_parquet
from gpuboost.data.formats.stored_rows import StoredBins, StoredMatrix
from gpuboost.data.given_cuts import check_cuts, replaced
from gpuboost.data.missing import checked_missing
from gpuboost.data.offsets import check_offset
from gpuboost.data.peer_names import explaining_unknown_arguments
from gpuboost.data.queries import check_group, weight_of_rows
from gpuboost.data.query_column import without_group
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.data.tables import Table, as_table
from gpuboost.data.targets import as_numbers, check_target
from gpuboost.data.weights import check_weight
from gpuboost.errors import InputError, shown
from gpuboost.storage import checked_path
from gpuboost.types import Bins, Cuts, DeviceMatrix, TrainingSet

MOST_THREADS = 4096


@explaining_unknown_arguments
class Dataset:
    """Features, target, weights and queries, checked, with the cuts chosen. Never written to.

    Parameters
    ----------
    X : (n, d) array, list of rows, pandas frame, scipy sparse matrix, Arrow or polars table
        NaN is missing; entries that a sparse matrix does not store are 0. Kept by reference where no conversion is
        needed, so it must not be changed later.
    y : (n,) numbers or labels, optional
    weight : (n,) not negative, optional
        A row of weight 3 counts as three rows, one of weight 0 as none.
    group : (n,) query ids or (queries,) sizes, optional
        For ranking; text names a column of X that has the ids. The rows of a query stand together. ``weight`` may then
        be (queries,).
    init_score : (n,) or (n, K) numbers, or one number, optional
        Offsets that are added to the scores of the rows, in ``fit`` and ``predict``.
    max_bins : int, 2 to 65,535
        Most bins of a column, not counting the one for missing values. A column of more than 255 is read by several
        features of the trees, one for each 254 thresholds: a tree takes as many times the time for it.
    categorical_features : "from_dtype", None, mask, indices or names
        "from_dtype" takes the columns of text and of dtype ``category``.
    cuts : mapping, sequence or the ``cuts`` of another Dataset, optional
        Thresholds of numeric columns that are not to be chosen from the data: ``{column: thresholds}`` by name or
        number, or an entry for each column, None where they are to be chosen. x falls into the bin of the first
        threshold t with x <= t, into the last bin if there is none. At most ``max_bins`` - 1, increasing; an empty
        list keeps the column out of every tree.
    binning : "quantile" or "greedy_log_sum"
        Choice of the other thresholds: bins of about the same weight, or CatBoost's GreedyLogSum.
    missing : float
        Number in X that stands for missing values beside NaN; models of it take it for missing in ``predict`` too.
    n_jobs : int, optional
        Threads to choose cuts with; None for all that there are. The result does not depend on it.

    Raises
    ------
    InputError
        If one of them is invalid; the message names the value and its place.
    """

    __slots__ = ("_bins", "_x", "binning", "columns", "cuts", "group", "init_score", "max_bins", "weight", "y")

    columns: Columns
    cuts: Cuts
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None
    group: NDArray[Any] | None
    init_score: NDArray[np.float64] | None  # (n,) or (n, K)
    max_bins: int
    binning: str  # choice of thresholds
    _bins: dict[str, Bins | StoredBins]
    _x: Any  # (n, d) numbers, as Columns.encode gives them; or a StoredMatrix until they are used

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        weight: Any = None,
        group: Any = None,
        init_score: Any = None,
        max_bins: int = DEFAULT_BINS,
        categorical_features: Any = FROM_DTYPE,
        cuts: Any = None,
        n_jobs: int | None = None,
        binning: str = QUANTILE,
        missing: float = nan,
    ) -> None:
        check_max_bins(max_bins)
        check_binning(binning)
        max_bins = int(max_bins)  # one of numpy's may be a byte
        n_threads = _threads(n_jobs)
        X, group = without_group(X, group)
        table = as_table(X)
        n = table.shape[0]
        target = None if y is None else check_target(y, n, several=True)
        queries = check_group(group, n)
        checked_weight = check_weight(weight_of_rows(weight, queries), n, "weight")
        offset = check_offset(init_score, n)
        columns = Columns.learn(table, categorical_features, checked_missing(missing))
        thresholds = check_cuts(cuts, columns, max_bins)
        x = columns.encode(table)
        if len(thresholds) == columns.n_features:
            chosen = divided([thresholds[f] for f in range(len(thresholds))])
        else:
            kinds = columns.is_categorical
            chosen = choose_cuts(x, checked_weight, max_bins, kinds, n_threads=n_threads, binning=binning)
        made = replaced(chosen, thresholds)
        self._set(columns, made, x, target, checked_weight, queries, max_bins, binning, offset=offset)

    def _set(self, *values: Any, offset: NDArray[np.float64] | None = None) -> None:
        """Set the fields; offset: (k, n)."""
        names = ("columns", "cuts", "_x", "y", "weight", "group", "max_bins", "binning")
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)
        rows = offset[0] if offset is not None and len(offset) == 1 else offset
        object.__setattr__(self, "init_score", rows if rows is None else rows.T)
        object.__setattr__(self, "_bins", {})

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        named = ("columns", "cuts", "x", "y", "weight", "group", "init_score", "max_bins", "binning")
        return None, {name: getattr(self, name) for name in named}  # bins are made again where they are used

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        older = {"init_score": None, "binning": QUANTILE}  # what pickles from before these fields stand for
        for name, value in (older | state[1]).items():
            object.__setattr__(self, "_x" if name == "x" else name, value)
        object.__setattr__(self, "_bins", {})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Dataset is never written to; make a new one with another {name}")

    @classmethod
    def from_parquet(
        cls,
        paths: Any,
        target: str | None = None,
        *,
        weight: str | None = None,
        group: str | None = None,
        init_score: str | Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        max_bins: int = DEFAULT_BINS,
        cuts: Any = None,
        binning: str = QUANTILE,
        missing: float = nan,
    ) -> Dataset:
        """Rows of Parquet files, in the order of the files; the features stay there until they are needed.

        With ``execution=gb.DataParallel(...)`` each shard reads its own rows, from paths that must lead to the same
        files on every machine, and no machine ever holds all of them; any other fit reads them all. Read at once are
        the target, weights and offsets, and up to 200,000 rows that the cuts are chosen from: those rows, and so those
        cuts, that a Dataset of the same rows in memory takes. Needs pyarrow and pandas.

        Parameters
        ----------
        paths : path, pattern, or list of them
            A file, a folder (its .parquet files, sorted by name), or a pattern such as ``"part-*.parquet"``.
        target, weight, group : str, optional
            The columns that hold them.
        init_score : str or list of str, optional
            The column of the offsets of the scores; a list for a loss of several scores a row, one column for each.
        features : list of str, optional
            Columns to learn from, all numbers; None for all others. Nulls are missing values.
        max_bins : int, 2 to 65,535
        cuts, binning, missing : optional
            As for ``Dataset``.

        Raises
        ------
        InputError
            If files cannot be read or differ in their columns, or a column is not there or not of numbers.
        """
        parts = read_parquet(paths, target, weight, group, features, max_bins, cuts, binning, init_score, missing)
        dataset = object.__new__(cls)
        rows = parts.columns, parts.cuts, parts.x, parts.y, parts.weight, parts.group, int(max_bins), binning
        dataset._set(*rows, offset=parts.offset)
        return dataset

    def save(self, path: str | os.PathLike[str], *, n_jobs: int | None = None) -> None:
        """Write everything to a file, with the features binned; ``load`` maps it into memory.

        LightGBM's ``Dataset.save_binary`` and XGBoost's ``DMatrix.save_binary`` are alike, but here the features
        themselves are in the file too, so that every use of a Dataset goes on. It takes 2 bytes for each value besides
        the 4 or 8 of the value; less if the features are sparse. Features in Parquet files stay there: the file has
        the paths of these, and no bins; ``loaded().save(path)`` writes all. The same Dataset gives the same bytes.

        Parameters
        ----------
        path : str or path
            A file there is replaced when the new one is complete.
        n_jobs : int, optional
            Threads to bin with; None for all that there are.

        Raises
        ------
        InputError
            If target or queries are objects other than text and numbers.
        OSError
            If the file cannot be written.
        """
        from gpuboost import backends  # it imports kernels, which take a while

        checked_path(path)
        threads = _threads(n_jobs)
        bins: Bins | None = None
        if not self.in_files:
            x = self.x.host_rows(None) if isinstance(self.x, DeviceMatrix) else self.x
            bins = self.binned(lambda _, cuts: backends.get("cpu", threads).quantise(x, cuts))
        rows = self.columns, self.cuts, self.x, self.y, self.weight, self.group, self.init_score
        write(path, DatasetParts(*rows, self.max_bins, self.binning, bins))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dataset:
        """The Dataset that ``save`` wrote, in milliseconds: the rows are mapped into memory, and read when used.

        Fits give the same bytes as those of the Dataset that was saved. On GPUs features are binned again. Nothing of
        the file is run. The file must not be changed while it is used; to replace it by ``save`` is safe.

        Raises
        ------
        InputError
            If the file is damaged, is not a file of a Dataset, or is of a newer gpuboost; the message names it. Damage
            of features and bins is found at their first use, which compares their checksums.
        OSError
            If it cannot be read.
        """
        parts = read(path)
        dataset = object.__new__(cls)
        rows = parts.columns, parts.cuts, parts.x, parts.y, parts.weight, parts.group
        offset = check_offset(parts.init_score, parts.x.shape[0])
        dataset._set(*rows, parts.max_bins, parts.binning, offset=offset)
        if parts.bins is not None:
            dataset._bins["host"] = parts.bins
        return dataset

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[Any],
        *,
        max_bins: int = DEFAULT_BINS,
        categorical_features: Any = FROM_DTYPE,
        cuts: Any = None,
        n_jobs: int | None = None,
        binning: str = QUANTILE,
        missing: float = nan,
    ) -> Dataset:
        """Rows that come in pieces, such as those of a generator or a list; the Dataset of all of them at once.

        As XGBoost's ``DataIter`` and LightGBM's lists of ``Sequence``, but the rows are held in memory; for data that
        do not fit there see ``from_parquet``.

        Parameters
        ----------
        batches : iterable of (X, y), of (X, y, weight), of mappings, or of Datasets
            Datasets are joined: of them the rows are taken, categories as their values, and the cuts are chosen anew.
            A mapping has "X" and some of "y", "weight", "group", "init_score" and "missing". Pieces of any kind of X
            that ``Dataset`` takes, all of the same kind and columns. The categories of a column of dtype ``category``
            are those of all pieces. ``group`` has query ids, one for each row; the rows of a query stand together,
            also where a piece ends. ``init_score`` has a number, or K of them, for each row.
        max_bins, categorical_features, cuts, n_jobs, binning
            As for ``Dataset``.
        missing : float
            As for ``Dataset``, of arrays and frames; a Dataset has its own, which must be the same in all pieces.

        Raises
        ------
        InputError
            If there is no piece, or a piece does not match the first one, or the rows are invalid.
        RecipeError
            If pieces have different numbers for missing values.
        """
        rows = joined(batches, missing)
        return cls(
            rows.X, rows.y, weight=rows.weight, group=rows.group, max_bins=max_bins,
            categorical_features=categorical_features, cuts=cuts, n_jobs=n_jobs, binning=binning,
            init_score=rows.init_score, missing=rows.missing,
        )  # fmt: skip

    def as_batch(self) -> dict[str, Any]:
        """The rows as a piece for ``from_batches``: X and ``missing``; target, weight, queries and offsets it has."""
        if self.device is not None:
            raise InputError(
                f"batches: Datasets are joined on the host; one is on {self.device}. Join their arrays there."
            )
        x, names = self.loaded().x, self.columns.names
        if self.columns.is_categorical.any():
            features: Any = Table(self.shape, names, columns=self.columns.decoded(x), query=self.columns.query)
        else:
            features = x if names is None else Table(self.shape, names, matrix=x, query=self.columns.query)
        held = {"y": self.y, "weight": self.weight, "group": self.group, "init_score": self.init_score}
        known = self.columns.missing
        given = {"X": features, "missing": nan if known is None else known}
        return given | {name: values for name, values in held.items() if values is not None}

    @property
    def x(self) -> Any:
        """(n, d) numbers: array, scipy CSR matrix or matrix on a device; ``ParquetRows`` if they are in files."""
        if isinstance(self._x, StoredMatrix):
            object.__setattr__(self, "_x", self._x.read())
        return self._x

    @property
    def device(self) -> str | None:
        """The GPU that holds the features, such as "cuda:0"; None if they are in the host's memory or in files."""
        return self._x.device if isinstance(self._x, DeviceMatrix) else None

    @property
    def n_values(self) -> int:
        """Number of stored values: of all entries, or of those that a sparse matrix stores."""
        if isinstance(self._x, StoredMatrix):
            return self._x.n_values
        return int(self._x.nnz) if hasattr(self._x, "nnz") else self.shape[0] * self.shape[1]

    @property
    def is_array(self) -> bool:
        """True if the features are a dense array in the host's memory: not sparse, not on a device, not in a file."""
        return isinstance(self._x, np.ndarray)

    @property
    def in_files(self) -> bool:
        """True if the features are in Parquet files and not in memory."""
        return isinstance(self._x, ParquetRows)

    def loaded(self) -> Dataset:
        """The same Dataset with all rows in memory; itself if they are there already."""
        if not self.in_files:
            return self
        dataset = object.__new__(Dataset)
        parts = self.columns, self.cuts, self.x[:], self.y, self.weight, self.group, self.max_bins, self.binning
        dataset._set(*parts, offset=check_offset(self.init_score, len(self)))
        return dataset

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, features)"""
        return self._x.shape[0], self._x.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        categorical = int(self.columns.is_categorical.sum())
        parts = [f"{self.shape[0]:,} rows", f"{self.shape[1]:,} features"]
        parts += [f"{categorical} of them categorical"] if categorical else []
        parts += ["on a device"] if self.device else []
        if self.in_files:
            parts += [f"in {len(self.x.files)} files"]
        elif self._x.sparse if isinstance(self._x, StoredMatrix) else hasattr(self._x, "nnz"):
            parts += ["sparse"]
        held = [name for name in ("y", "weight", "group", "init_score") if getattr(self, name) is not None]
        parts += [f"with {', '.join(held)}"] if held else []
        return f"Dataset({', '.join(parts)}, max_bins={self.max_bins})"

    def binned(self, quantise: Callable[[Any, Cuts], Bins], where: str = "host") -> Bins:
        """The bins of all rows, made at the first call; ``where`` tells apart the memories they may lie in."""
        bins = self._bins.get(where)
        if bins is None:
            bins = quantise(self.x[:] if self.in_files else self.x, self.cuts)
        elif isinstance(bins, StoredBins):
            bins = bins.read()
        self._bins[where] = bins
        return bins

    def training_set(
        self,
        quantise: Callable[[Any, Cuts], Bins],
        y: NDArray[np.float64] | None = None,
        weight: NDArray[np.float64] | None = None,
        where: str = "host",
        group: NDArray[Any] | None = None,
    ) -> TrainingSet:
        """Training rows for the boosting loop: those whose weight is above zero.

        y: (n,) the target as the loss takes it; None: the one of this Dataset. weight: (n,) the same.
        group: (n,) the query of each row, if it is not held here.

        Raises
        ------
        InputError
            If there is no target, or it does not hold numbers.
        """
        if y is None:
            if self.y is None:
                raise InputError("y: a Dataset to fit needs a target; make it with Dataset(X, y).")
            y = as_numbers(self.y)
        weight = self.weight if weight is None else weight
        group = self.group if group is None else group
        rows = RowMetadata.of(len(self), weight, group)
        bins = self.binned(quantise, where) if rows.kept is None else quantise(rows.select(self.x), self.cuts)
        return rows.training_set(bins, self.cuts, y)

    def take(self, rows: NDArray[np.integer[Any]]) -> Dataset:
        """Some of the rows, with the cuts of all; raises InputError unless they are numbers of rows or a mask."""
        rows = _row_numbers(rows, len(self))
        part = object.__new__(Dataset)
        y, weight, group = (None if held is None else held[rows] for held in (self.y, self.weight, self.group))
        offset = None if self.init_score is None else check_offset(self.init_score[rows], len(rows))
        parts = self.columns, self.cuts, self.x[rows], y, weight, group, self.max_bins, self.binning
        part._set(*parts, offset=offset)
        return part


def _row_numbers(rows: Any, n: int) -> NDArray[np.int64]:
    try:
        numbers: NDArray[np.int64] = np.arange(n)[rows]
    except (IndexError, OverflowError, TypeError, ValueError):
        numbers = np.zeros((), np.int64)
    if np.ndim(numbers) != 1 or not len(numbers):
        raise InputError(f"rows: must be numbers of rows, below {n}, or a mask; got {shown(rows)}.")
    return numbers


def _threads(n_jobs: Any) -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return usable
    if not isinstance(n_jobs, (int, np.integer)) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise InputError(f"n_jobs: must be None, a number of threads, or -1 for all; got {n_jobs!r}.")
    if abs(int(n_jobs)) > MOST_THREADS:
        raise InputError(f"n_jobs: must be at most {MOST_THREADS} threads; got {shown(n_jobs)}.")
    return int(n_jobs) if n_jobs > 0 else max(1, usable + 1 + int(n_jobs))
