"""Data cut into bins once and reused by many fits."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.columns import FROM_DTYPE, Columns
from gpuboost.data.cuts import MOST_BINS, QUANTILE, check_binning, check_max_bins, choose_cuts
from gpuboost.data.given_cuts import check_cuts, replaced
from gpuboost.data.parquet import ParquetRows, read_parquet
from gpuboost.data.queries import check_group, weight_of_rows
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.data.tables import as_table
from gpuboost.data.targets import as_numbers, check_target
from gpuboost.data.weights import check_weight
from gpuboost.errors import InputError, shown
from gpuboost.types import Bins, Cuts, DeviceMatrix, TrainingSet

MOST_THREADS = 4096


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
        For ranking. The rows of a query stand together. ``weight`` may then be (queries,).
    max_bins : int, 2 to 255
        Most bins of a feature, not counting the one for missing values.
    categorical_features : "from_dtype", None, mask, indices or names
        "from_dtype" takes the columns of pandas dtype ``category``.
    cuts : mapping, sequence or the ``cuts`` of another Dataset, optional
        Thresholds of numeric columns that are not to be chosen from the data: ``{column: thresholds}`` by name or
        number, or an entry for each column, None where they are to be chosen. x falls into the bin of the first
        threshold t with x <= t, into the last bin if there is none. At most ``max_bins`` - 1, increasing; an empty
        list keeps the column out of every tree.
    binning : "quantile" or "greedy_log_sum"
        Choice of the other thresholds: bins of about the same weight, or CatBoost's GreedyLogSum.
    n_jobs : int, optional
        Threads to choose cuts with; None for all that there are. The result does not depend on it.

    Raises
    ------
    InputError
        If one of them is invalid; the message names the value and its place.
    """

    __slots__ = ("_bins", "binning", "columns", "cuts", "group", "max_bins", "weight", "x", "y")

    columns: Columns
    cuts: Cuts
    x: Any  # (n, d) numbers, as Columns.encode gives them
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None
    group: NDArray[Any] | None
    max_bins: int
    binning: str
    _bins: dict[str, Bins]

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        weight: Any = None,
        group: Any = None,
        max_bins: int = MOST_BINS,
        categorical_features: Any = FROM_DTYPE,
        cuts: Any = None,
        n_jobs: int | None = None,
        binning: str = QUANTILE,
    ) -> None:
        check_max_bins(max_bins)
        check_binning(binning)
        max_bins = int(max_bins)  # one of numpy's may be a byte
        n_threads = _threads(n_jobs)
        table = as_table(X)
        n = table.shape[0]
        target = None if y is None else check_target(y, n)
        queries = check_group(group, n)
        checked_weight = check_weight(weight_of_rows(weight, queries), n, "weight")
        columns = Columns.learn(table, categorical_features)
        thresholds = check_cuts(cuts, columns, max_bins)
        x = columns.encode(table)
        if len(thresholds) == columns.n_features:
            chosen = Cuts(tuple(thresholds[f] for f in range(len(thresholds))), (None,) * len(thresholds))
        else:
            kinds = columns.is_categorical
            chosen = choose_cuts(x, checked_weight, max_bins, kinds, n_threads=n_threads, binning=binning)
        self._set(columns, replaced(chosen, thresholds), x, target, checked_weight, queries, max_bins, binning)

    def _set(self, *values: Any) -> None:
        names = ("columns", "cuts", "x", "y", "weight", "group", "max_bins", "binning")
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_bins", {})

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        object.__setattr__(self, "binning", QUANTILE)  # of pickles from before there was a choice
        for name, value in state[1].items():
            object.__setattr__(self, name, {} if name == "_bins" else value)  # bins are made again where they are used

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
        features: Sequence[str] | None = None,
        max_bins: int = MOST_BINS,
        cuts: Any = None,
        binning: str = QUANTILE,
    ) -> Dataset:
        """Rows of Parquet files, in the order of the files; the features stay there until they are needed.

        With ``execution=gb.DataParallel(...)`` each shard reads its own rows, from paths that must lead to the same
        files on every machine, and no machine ever holds all of them; any other fit reads them all. Read at once are
        the target, the weights, and up to 200,000 rows that the cuts are chosen from: those rows, and so those cuts,
        that a Dataset of the same rows in memory takes. Needs pyarrow and pandas.

        Parameters
        ----------
        paths : path, pattern, or list of them
            A file, a folder (its .parquet files, sorted by name), or a pattern such as ``"part-*.parquet"``.
        target, weight, group : str, optional
            The columns that hold them.
        features : list of str, optional
            Columns to learn from, all numbers; None for all others. Nulls are missing values.
        max_bins : int, 2 to 255
        cuts, binning : optional
            As for ``Dataset``.

        Raises
        ------
        InputError
            If files cannot be read or differ in their columns, or a column is not there or not of numbers.
        """
        parts = read_parquet(paths, target, weight, group, features, max_bins, cuts, binning)
        dataset = object.__new__(cls)
        dataset._set(parts.columns, parts.cuts, parts.x, parts.y, parts.weight, parts.group, int(max_bins), binning)
        return dataset

    @property
    def in_files(self) -> bool:
        """True if the features are in Parquet files and not in memory."""
        return isinstance(self.x, ParquetRows)

    def loaded(self) -> Dataset:
        """The same Dataset with all rows in memory; itself if they are there already."""
        if not self.in_files:
            return self
        dataset = object.__new__(Dataset)
        dataset._set(self.columns, self.cuts, self.x[:], self.y, self.weight, self.group, self.max_bins, self.binning)
        return dataset

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, features)"""
        return self.x.shape[0], self.x.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        categorical = int(self.columns.is_categorical.sum())
        parts = [f"{self.shape[0]:,} rows", f"{self.shape[1]:,} features"]
        parts += [f"{categorical} of them categorical"] if categorical else []
        parts += ["on a device"] if isinstance(self.x, DeviceMatrix) else []
        if self.in_files:
            parts += [f"in {len(self.x.files)} files"]
        elif not isinstance(self.x, np.ndarray | DeviceMatrix):
            parts += ["sparse"]
        held = [name for name in ("y", "weight", "group") if getattr(self, name) is not None]
        parts += [f"with {', '.join(held)}"] if held else []
        return f"Dataset({', '.join(parts)}, max_bins={self.max_bins})"

    def binned(self, quantise: Callable[[Any, Cuts], Bins], where: str = "host") -> Bins:
        """The bins of all rows, made at the first call; ``where`` tells apart the memories they may lie in."""
        if where not in self._bins:
            self._bins[where] = quantise(self.x[:] if self.in_files else self.x, self.cuts)
        return self._bins[where]

    def training_set(
        self,
        quantise: Callable[[Any, Cuts], Bins],
        y: NDArray[np.float64] | None = None,
        weight: NDArray[np.float64] | None = None,
        where: str = "host",
        group: NDArray[Any] | None = None,
    ) -> TrainingSet:
        """Training rows for the boosting loop: those whose weight is above zero.

        y: (n,) the target as the loss wants it, if it is not the one given as it stands. weight: (n,) the same.
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
        """Some of the rows, with the cuts of all."""
        part = object.__new__(Dataset)
        y, weight, group = (None if held is None else held[rows] for held in (self.y, self.weight, self.group))
        part._set(self.columns, self.cuts, self.x[rows], y, weight, group, self.max_bins, self.binning)
        return part


def _threads(n_jobs: Any) -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return usable
    if not isinstance(n_jobs, (int, np.integer)) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise InputError(f"n_jobs: must be None, a number of threads, or -1 for all; got {n_jobs!r}.")
    if abs(int(n_jobs)) > MOST_THREADS:
        raise InputError(f"n_jobs: must be at most {MOST_THREADS} threads; got {shown(n_jobs)}.")
    return int(n_jobs) if n_jobs > 0 else max(1, usable + 1 + int(n_jobs))
