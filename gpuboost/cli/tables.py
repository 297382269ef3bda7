"""Files as the estimators take them."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.categories import is_missing
from gpuboost.data.tables import Column, Table, as_table
from gpuboost.data.text_columns import WITH_COMMAS, reads_as_number
from gpuboost.errors import InputError, shown
from gpuboost.losses.registry import CLASSES
from gpuboost.storage import same_file
from gpuboost.types import Pairs

MOST_CLASSES = 20
"""Whole numbers of at most this many different values are taken for labels, unless the user says otherwise."""

INDEX = re.compile(r"|Unnamed: \d+|index|level_\d+|__index_level_\d+__")
"""Names of a column that a frame's index is written to."""

FEWEST_ROWS = 20
"""Rows from which a column of their numbers is judged to be that."""


@dataclass(frozen=True)
class InputTable:
    """x: a pandas frame, a ``Table`` or a CSR matrix of n rows; y: (n,), or (n, k) of k targets; weight: (n,) or None;
    group: (n,) or None."""

    x: Any
    y: Any
    weight: Any = None
    group: Any = None
    offset: Any = None  # (n,) numbers added to the scores, or None
    position: Any = None  # (n,) where each row was shown, or None
    pairs: Pairs | None = None

    @property
    def n_rows(self) -> int:
        return int(self.x.shape[0])

    def taken(self, rows: Any) -> InputTable:
        """Some of the rows, by number."""
        if isinstance(self.x, Table):
            x: Any = self.x.rows(rows)
        else:
            x = self.x.iloc[rows] if hasattr(self.x, "iloc") else self.x[rows]
        weight, group, offset, position = (
            None if values is None else values[rows] for values in (self.weight, self.group, self.offset, self.position)
        )
        pairs = None if self.pairs is None else self.pairs.of_rows(rows, self.n_rows)
        return InputTable(x, self.y[rows], weight, group, offset, position, pairs)

    def facts_of_lists(self, task: str) -> dict[str, Any]:
        """The arguments of a ranker's ``fit`` that are there. InputError if there are any, and it is no ranking."""
        facts = {} if self.position is None else {"position": self.position}
        if self.pairs is not None:
            winners = np.stack([self.pairs.winner, self.pairs.loser], axis=1)
            facts |= {"pairs": winners, "pairs_weight": self.pairs.weight}
        if facts and task != "rank":
            name = next(iter(facts))
            raise InputError(f"--{name}: is of rankings, and this is a {task}; leave it out, or add --group.")
        return facts


def read(
    path: str,
    target: str | list[str] | None = None,
    weight: str | None = None,
    categorical: list[str] | None = None,
    n_features: int | None = None,
    group: str | None = None,
    separator: str | None = None,
    offset: str | None = None,
    position: str | None = None,
    **form: Any,
) -> InputTable:
    """The rows of a file. InputError if it cannot be read or lacks a column. form: ``kind``, ``one_based``, ``text``,
    ``decimal``, ``thousands``.

    target: a column, or several, which must hold numbers.
    """
    from gpuboost.data.formats.files import read_table

    first, *others = target if isinstance(target, list) else [target]
    try:
        columns: dict[str, Any] = {"weight": weight, "group": group, "categorical": categorical}
        x, y, w, queries = read_table(path, first, n_features=n_features, separator=separator, **columns, **form)
    except ModuleNotFoundError as error:
        raise InputError(f"{path}: reading it needs {error.name}; pip install {error.name}.") from None
    x = x if group is None else replace(as_table(x), query=group)  # which rows to predict in Python may have
    x, offsets = (x, None) if offset is None else _without(x, offset, path, "--offset")
    x, places = (x, None) if position is None else _without(x, position, path, "--position")
    x, y = _with_targets(x, y, others, path)
    return InputTable(x, y, w, queries, offsets, places)


def _without(x: Any, column: str, path: str, option: str) -> tuple[Any, Any]:
    """The table without a column of numbers, and the (n,) float64 column. InputError if there is no such numbers."""
    names = names_of(x)
    if names is None:
        raise InputError(f"{option}: {path} is a LIBSVM file, which has no column names; leave it out.")
    if column not in names:
        raise InputError(f"{option}: {path} has no column {column!r} beside target and weights.")
    values = as_table(selected(x, [column])).column(0)
    if not values.is_numeric:
        raise InputError(f"{option}: column {column!r} of {path} must hold numbers, and holds others.")
    return selected(x, [name for name in names if name != column]), values.values.astype(np.float64)


def _with_targets(x: Any, y: Any, others: Sequence[Any], path: str) -> tuple[Any, Any]:
    """The table without the other targets, and (n, k) float64 of all of them. InputError if one holds no numbers."""
    if not others:
        return x, y
    columns = []
    for name in others:
        x, column = _without(x, name, path, "--targets")
        columns.append(column)
    if not np.issubdtype(y.dtype, np.number):
        raise InputError(f"--targets: the first column of {path} that is named must hold numbers, and holds others.")
    if x.shape[1] == 0:
        raise InputError(f"--targets: no feature is left in {path} beside them; name fewer.")
    return x, np.column_stack([y.astype(np.float64), *columns])


def with_pairs(rows: InputTable, path: str | None) -> InputTable:
    """The rows with the pairs in a CSV file of two columns or three. InputError if it holds anything else."""
    if path is None:
        return rows
    from gpuboost.data.pairs import check_pairs

    try:
        values = np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise InputError(f"--pairs: {path} must hold lines winner,loser or winner,loser,weight; {error}.") from None
    if values.shape[1] not in (2, 3):
        raise InputError(f"--pairs: {path} must hold two columns or three; it holds {values.shape[1]}.")
    weight = values[:, 2] if values.shape[1] == 3 else None
    return replace(rows, pairs=check_pairs(values[:, :2], weight, rows.n_rows, rows.group))


def check_targets(y: NDArray[Any], path: str) -> None:
    """Raise InputError if a row has no target."""
    if y.dtype == object:
        lacks = np.array([is_missing(value) for value in y.ravel()], np.bool_).reshape(y.shape)
    else:
        lacks = np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, np.bool_)
    rows = np.flatnonzero(lacks if lacks.ndim == 1 else lacks.any(axis=1))
    if len(rows):
        raise InputError(f"--target: row {rows[0]} of {path} has no value ({len(rows)} such rows). Leave them out.")


def warn_of_row_numbers(rows: InputTable, path: str) -> None:
    """Warn of a column that numbers the rows, or is named as a frame's index and tells the rows apart."""
    numbers = np.arange(rows.n_rows)
    for name in names_of(rows.x) or ():
        column = as_table(selected(rows.x, [name])).column(0)
        if rows.n_rows < FEWEST_ROWS or column.levels is not None or column.values.dtype.kind not in "iuf":
            continue
        values = column.values
        counted = np.array_equal(values, numbers) or np.array_equal(values, numbers + 1)
        if counted or (INDEX.fullmatch(name) and len(np.unique(values)) == rows.n_rows):
            warnings.warn(
                f"{path}: column {name!r} seems to number the rows, and is a feature all the same. If it is the index "
                "of a frame, write the file with to_csv(..., index=False); otherwise take it out of the file.",
                stacklevel=2,
            )


def names_of(x: Any) -> list[str] | None:
    """Names of the columns of a frame or ``Table``; None for a matrix."""
    names = x.names if isinstance(x, Table) else getattr(x, "columns", None)
    return None if names is None else [str(name) for name in names]


def text_columns(rows: InputTable, target: str | None) -> list[str]:
    """Names of the columns that hold text, the target among them."""
    names, columns = names_of(rows.x) or (), as_table(rows.x).columns
    listed = [name for name, column in zip(names, columns, strict=False) if _is_text(column)]
    return listed if target is None or not holds_text(rows.y) else [*listed, target]


def _is_text(column: Column) -> bool:
    if column.is_numeric:
        return False
    values = column.values if column.levels is None else column.levels
    return holds_text([value for value in values if value is not None])


def holds_text(values: Any) -> bool:
    """True if the first of the values is text; False for None, and for none at all."""
    return values is not None and len(values) > 0 and isinstance(values[0], str)


def selected(x: Any, names: list[str]) -> Any:
    """Some columns of a frame or ``Table``."""
    return x.select(names) if isinstance(x, Table) else x[names]


def check_place(option: str, path: str, *read: str | None) -> None:
    """Refuse before any work a file that could not be written at its end, or is one of those to ``read``."""
    for source in read:
        if source is not None and same_file(path, source):
            raise InputError(f"{option}: {path} is also read by this command, and would be destroyed. Name another.")
    place = Path(os.path.realpath(path))
    if place.is_dir() or path.endswith(("/", os.sep)):
        raise InputError(f"{option}: a file is written, and {path} is a folder. Name a file in it.")
    if not place.parent.is_dir():
        raise InputError(f"{option}: the folder {place.parent} does not exist. Make it, or name another.")
    if place.exists() and not place.is_file():  # a device or a pipe is written into
        return
    if not os.access(place.parent, os.W_OK):
        raise InputError(f"{option}: the folder {place.parent} cannot be written to. Name another.")


def task_of(task: str, loss: str | None, rows: InputTable) -> str:
    """The task of ``--task``; with ``auto`` the task of the loss, or without a loss a guess from the target.

    "classification", "regression" or "rank". Raises InputError if rows are to be ranked whose queries are not known.
    """
    resolved = task
    if task == "auto":
        resolved = _looks_like(rows) if loss is None else _task_of_loss(loss.partition(":")[0])
    if resolved == "rank" and rows.group is None:
        raise InputError(
            "--task: to rank, the query of each row must be known; name its column with --group, or give each line of "
            "a LIBSVM file a qid."
        )
    return resolved


def _task_of_loss(name: str) -> str:
    """The task of the loss of that name; "regression" if there is none, so that the estimator refuses the name."""
    tasks = {"binary": "classification", "multiclass": "classification", "ranking": "rank"}
    return tasks.get(CLASSES[name].facts.task, "regression") if name in CLASSES else "regression"


def _looks_like(rows: InputTable) -> str:
    if rows.group is not None:
        return "rank"
    if not np.issubdtype(rows.y.dtype, np.number):
        _refuse_mixed(rows.y)
        return "classification"
    values = np.unique(rows.y)
    if rows.y.ndim == 2:
        return "classification" if np.isin(values, (0.0, 1.0)).all() else "regression"
    few = len(values) <= MOST_CLASSES and bool(np.all(values == np.floor(values)))
    return "classification" if few else "regression"


def _refuse_mixed(labels: NDArray[Any]) -> None:
    """Raise InputError if most of many labels are numbers, with decimal points or commas, and some are not."""
    values = list(dict.fromkeys(labels.ravel().tolist()))
    others = [value for value in values if not reads_as_number(str(value))]
    numbers = sum(reads_as_number(str(value).replace(",", ".")) for value in values)
    if len(values) <= MOST_CLASSES or 2 * numbers < len(values) or not others:
        return
    row = int(np.argmax(labels.ravel() == others[0])) // (labels.size // len(labels))
    commas = WITH_COMMAS.fullmatch(str(others[0]).strip()) is not None
    advice = "Name the decimal point with --decimal ','" if commas else "Correct such rows or leave them out"
    raise InputError(
        f"--task: the target has {len(values)} different values, and most are numbers, but row {row} holds "
        f"{shown(others[0])[:40]}. {advice}, or give --task classification."
    )


def split(rows: InputTable, share: float, seed: int, *, task: str) -> tuple[InputTable, InputTable]:
    """Training and held-out rows, drawn by the seed: whole queries of rankings, and as large a share of each class
    where each has two rows."""
    from sklearn.model_selection import train_test_split

    if task == "rank":
        return _split_queries(rows, share, seed)
    _check_share(share, rows.n_rows, "rows")
    classify = task == "classification" and rows.y.ndim == 1
    counts = np.unique(rows.y, return_counts=True)[1] if classify else np.zeros(1)
    stratifiable = min(share, 1 - share) * rows.n_rows >= len(counts)
    labels = rows.y if classify and counts.min() > 1 and stratifiable else None
    train, test = train_test_split(np.arange(rows.n_rows), test_size=share, random_state=seed % 2**32, stratify=labels)
    return rows.taken(np.sort(train)), rows.taken(np.sort(test))


def _check_share(share: float, n: int, what: str) -> None:
    """Raise InputError if no row, or no query, is left to train on."""
    if math.ceil(share * n) >= n:
        raise InputError(f"--eval: with {share:g} of {n} {what} held out, none is left to train on; hold out fewer.")


def _split_queries(rows: InputTable, share: float, seed: int) -> tuple[InputTable, InputTable]:
    from sklearn.model_selection import train_test_split

    from gpuboost.data.queries import check_group, query_start

    check_group(rows.group, rows.n_rows)
    start = query_start(rows.group)
    if len(start) < 3:
        raise InputError(f"--eval: queries are held out whole, so two are needed; the data hold {len(start) - 1}.")
    _check_share(share, len(start) - 1, "queries")
    _, queries = train_test_split(np.arange(len(start) - 1), test_size=share, random_state=seed % 2**32)
    held_out = np.isin(np.repeat(np.arange(len(start) - 1), np.diff(start)), queries)
    return rows.taken(np.flatnonzero(~held_out)), rows.taken(np.flatnonzero(held_out))
