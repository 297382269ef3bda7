"""The columns that trees see in place of categories: statistics of the target, beside the columns of X.

The column of an encoded category holds its mean target. More columns follow the last one of X: the means of further
classes, numbers of training rows, and the statistics of combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.category_groups import Floats, RowGroups, joined
from gpuboost.data.encoding import AUTO, OrderedTargetStatistics
from gpuboost.data.target_statistics import MOST_KEYS, StatisticsTable, TargetMoments, tables_of
from gpuboost.errors import InputError
from gpuboost.records import dataclass
from gpuboost.types import DeviceMatrix

_KEYS = {"prior", "prior_weight", "counts", "permutations", "tables"}
_TABLE_KEYS = {"columns", "keys", "weight", "sums"}


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """A column that trees see, and the columns of X that it is made of."""

    columns: tuple[int, ...]
    table: int = -1  # of the statistics; -1 for a column of X
    output: int | None = None  # the class whose mean it is; None for the number of rows, and for a column of X

    @property
    def is_mean(self) -> bool:
        return self.output is not None


@dataclass(frozen=True, slots=True, eq=False)
class TargetStatistics:
    """The statistics of a model, of all training rows."""

    prior: Floats  # (k,) mean target
    counts: bool
    permutations: int
    tables: tuple[StatisticsTable, ...]

    @property
    def encoded(self) -> tuple[int, ...]:
        """The columns of X that are encoded, increasing."""
        return tuple(sorted(table.columns[0] for table in self.tables if len(table.columns) == 1))

    def layout(self, n_columns: int) -> tuple[EncodedColumn, ...]:
        """The columns that trees see. n_columns: of X."""
        columns = [EncodedColumn((f,)) for f in range(n_columns)]
        for number, table in enumerate(self.tables):
            outputs: list[int | None] = list(range(len(self.prior)))
            if len(table.columns) == 1:
                columns[table.columns[0]] = EncodedColumn(table.columns, number, 0)
                outputs = outputs[1:]
            outputs += [None] if self.counts else []
            columns += [EncodedColumn(table.columns, number, output) for output in outputs]
        return tuple(columns)

    def applied(self, x: Any, sizes: Sequence[int]) -> Any:
        """Rows to predict: x (n, d) with codes of categories, as trees see it. sizes: categories of each column."""
        columns: list[Any] = []
        rows: dict[int, tuple[Floats, Floats]] = {}
        codes = {f: codes_of(x, f) for f in self.encoded}
        for column in self.layout(x.shape[1]):
            if column.table < 0:
                columns.append(column.columns[0])
                continue
            if column.table not in rows:
                table = self.tables[column.table]
                keys = joined([codes[f] for f in table.columns], [sizes[f] for f in table.columns])
                rows[column.table] = table.means_of(keys, self.prior), table.counts_of(keys)
            means, counts = rows[column.table]
            columns.append(counts if column.output is None else means[:, column.output])
        return arranged(x, columns)

    def folded(self, values: Floats, n_columns: int) -> Floats:
        """Values of the columns that trees see, on the last axis, as values of the columns of X.

        Columns that were combined have equal shares. Entries beyond the columns stay at the end.
        """
        layout = self.layout(n_columns)
        out = np.zeros((*values.shape[:-1], n_columns + values.shape[-1] - len(layout)))
        for place, column in enumerate(layout):
            for f in column.columns:
                out[..., f] += values[..., place] / len(column.columns)
        out[..., n_columns:] = values[..., len(layout) :]
        return out

    def names(self, names: Sequence[str], classes: Sequence[Any] | None = None) -> list[str]:
        """A name for each column that trees see: "city", "city+job: mean", "city+job: rows"."""
        named = []
        for column in self.layout(len(names)):
            name = "+".join(names[f] for f in column.columns)
            if column.table >= 0:
                label = "" if len(self.prior) == 1 or column.output is None else f" of class {column.output}"
                if classes is not None and label:
                    label = f" of class {classes[column.output or 0]}"
                name += ": rows" if column.output is None else f": mean{label}"
            named.append(name)
        return named

    def to_json(self) -> dict[str, Any]:
        """The statistics as JSON values; whole numbers are written as integers."""
        tables = [
            {
                "columns": list(table.columns),
                "keys": table.keys.tolist(),
                "weight": _short(table.weight),
                "sums": [_short(sums) for sums in table.sums.T],
            }
            for table in self.tables
        ]
        weights = [table.prior_weight.tolist() for table in self.tables]
        return {
            "prior": self.prior.tolist(),
            "prior_weight": weights if len(set(chain(*weights))) > 1 else weights[0][0],
            "counts": self.counts,
            "permutations": self.permutations,
            "tables": tables,
        }

    @classmethod
    def from_json(cls, value: Any, sizes: Sequence[int | None]) -> TargetStatistics:
        """The inverse of ``to_json``. sizes: categories of each column of X, None for numeric ones.

        Raises
        ------
        InputError
            If it is anything else.
        """
        _demand(isinstance(value, dict) and set(value) == _KEYS, f"must be an object of {', '.join(sorted(_KEYS))}")
        prior = _finite(value["prior"], "prior")
        _demand(len(prior) > 0, "prior must hold a number for each class, so at least one")
        _demand(isinstance(value["counts"], bool), "counts must be true or false")
        permutations = value["permutations"]
        _demand(type(permutations) is int and 1 <= permutations <= 64, "permutations must be an integer from 1 to 64")
        _demand(isinstance(value["tables"], list) and value["tables"], "tables must be a list of one or more")
        weights = _prior_weights(value["prior_weight"], len(value["tables"]), len(prior))
        tables = tuple(_table(table, f"tables[{i}]", weights[i], sizes) for i, table in enumerate(value["tables"]))
        made = cls(prior, value["counts"], permutations, tables)
        listed = [table.columns for table in tables]
        _demand(len(set(listed)) == len(listed), "each table must be of other columns")
        joint = {f for columns in listed for f in columns}
        _demand(joint == set(made.encoded), "a column of a combination must have a table of its own")
        return made


def learned(
    columns: tuple[int, ...],
    sizes: dict[int, int],
    groups: RowGroups,
    target: Floats,
    weight: Floats | None,
    policy: OrderedTargetStatistics,
) -> TargetStatistics:
    """The statistics of training rows. columns: of X, increasing; target: (n, k) of the kept rows."""
    moments = TargetMoments.of(target, weight)
    prior_weight = None if policy.prior_weight == AUTO else float(policy.prior_weight)
    tables = tables_of(columns, sizes, groups, moments, most=policy.combinations, prior_weight=prior_weight)
    return TargetStatistics(moments.mean, policy.counts, policy.permutations, tables)


def training_columns(statistics: TargetStatistics, n_columns: int, groups: RowGroups) -> tuple[list[Any], list[int]]:
    """The columns that trees are grown on, and the place of each among those that trees see.

    A column of X is its number. A mean is ``permutations`` columns of (n,) float32, one after the other, in which no
    row's own target has a part; a number of rows is one.
    """

    def of(table: StatisticsTable) -> list[list[Any]]:
        return groups.ordered(table.columns, statistics.prior, table.prior_weight)

    with ThreadPoolExecutor(groups.threads) as pool:  # numpy sorts without the GIL
        means = list(pool.map(of, statistics.tables))
    columns: list[Any] = []
    places: list[int] = []
    for place, column in enumerate(statistics.layout(n_columns)):
        if column.table < 0:
            made: list[Any] = [column.columns[0]]
        elif column.output is None:
            table = statistics.tables[column.table]
            made = [groups.looked_up(table.columns, table.keys, table.weight, 0.0)]
        else:
            made = [of_order[column.output] for of_order in means[column.table]]
        columns += made
        places += [place] * len(made)
    return columns, places


def codes_of(x: Any, f: int) -> NDArray[Any]:
    """(n,) codes of column f, on the host."""
    codes: NDArray[Any] = x.host_column(f) if isinstance(x, DeviceMatrix) else x[:, f]
    return codes


def arranged(x: Any, columns: Sequence[Any]) -> Any:
    """A matrix of x's kind, device and dtype. columns: the number of a column of x, or (n,) values, rounded to float32;
    of a matrix on a device also such values there, in its dtype.

    Float32 in matrices of float64 too, so that a value is in the same bin whatever the dtype of X.
    """
    if isinstance(x, DeviceMatrix):
        return x.arranged([c.astype(np.float32) if isinstance(c, np.ndarray) else c for c in columns])
    out = np.empty((x.shape[0], len(columns)), x.dtype, order="F")
    for place, column in enumerate(columns):
        out[:, place] = x[:, column] if isinstance(column, int) else column.astype(np.float32)
    return out


def _short(values: Floats) -> list[int | float]:
    return [int(v) if v.is_integer() and abs(v) < 2**53 else v for v in values.tolist()]


def _prior_weights(value: Any, n_tables: int, k: int) -> list[Floats]:
    """(k,) of each table: of a number for all, or a list for each."""
    if not isinstance(value, list):
        value = [[value] * k] * n_tables
    _demand(len(value) == n_tables, "prior_weight must be a number, or a list for each table")
    weights = [_finite(item, f"prior_weight[{i}]", k) for i, item in enumerate(value)]
    _demand(all(bool((item > 0.0).all()) for item in weights), "prior_weight must be above 0")
    return weights


def _table(value: Any, where: str, prior_weight: Floats, sizes: Sequence[int | None]) -> StatisticsTable:
    is_table = isinstance(value, dict) and set(value) == _TABLE_KEYS
    _demand(is_table, f"{where} must be an object of {', '.join(sorted(_TABLE_KEYS))}")
    columns = value["columns"]
    listed = isinstance(columns, list) and len(columns) > 0 and all(type(f) is int for f in columns)
    _demand(listed and columns == sorted(set(columns)), f"{where}.columns must be increasing column numbers")
    _demand(columns[0] >= 0 and columns[-1] < len(sizes), f"{where}.columns must be columns of X")
    _demand(all(sizes[f] is not None for f in columns), f"{where}.columns must be categorical")
    limit = 1
    for f in columns:
        limit *= (sizes[f] or 0) + 1
    _demand(limit <= MOST_KEYS, f"{where}.columns have more combinations than a key can number")
    keys = value["keys"]
    whole = isinstance(keys, list) and all(type(key) is int and 0 <= key < limit for key in keys)
    _demand(whole and all(a < b for a, b in pairwise(keys)), f"{where}.keys must be increasing")
    weight = _finite(value["weight"], f"{where}.weight", len(keys))
    _demand(bool((weight >= 0.0).all()), f"{where}.weight must be 0 or more")
    _demand(
        isinstance(value["sums"], list) and len(value["sums"]) == len(prior_weight),
        f"{where}.sums must be a list for each class",
    )
    sums = [_finite(item, f"{where}.sums[{j}]", len(keys)) for j, item in enumerate(value["sums"])]
    return StatisticsTable(tuple(columns), np.array(keys, np.int64), weight, np.stack(sums, axis=1), prior_weight)


def _finite(value: Any, where: str, length: int | None = None) -> Floats:
    numbers = isinstance(value, list) and all(type(v) in (int, float) and abs(v) < 1e300 for v in value)
    _demand(numbers, f"{where} must be a list of finite numbers")
    _demand(length is None or len(value) == length, f"{where} must have an entry for each key")
    return np.array(value, np.float64)


def _demand(holds: Any, rule: str) -> None:
    if not holds:
        raise InputError(f"columns: statistics: {rule}.")
