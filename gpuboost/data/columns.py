"""Feature names of a model, and the categories of its categorical features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_real
from gpuboost.data.categories import Category, category_codes, learn_categories, numbers
from gpuboost.data.encoded_columns import EncodedColumn, TargetStatistics
from gpuboost.data.missing import marked
from gpuboost.data.tables import Column, Table, as_floats, as_table, fits_float32, refuse_infinite, warn_of_equal_floats
from gpuboost.data.text_columns import categories_by_dtype
from gpuboost.errors import InputError
from gpuboost.records import dataclass, restored
from gpuboost.types import DeviceMatrix

FROM_DTYPE = "from_dtype"
_EXACT_IN_FLOAT32 = 2**24
MOST_FEATURES = 2**24  # a model file may not claim more
OPTIONAL = {"statistics", "missing", "query"}  # entries that not every model file has


@dataclass(frozen=True, slots=True)
class Columns:
    """Names and categories of the training data, which are saved with the model; every prediction encodes X by them.

    A numeric column is passed on as it is, a categorical one as codes: the place of each value among its categories,
    NaN for a missing value or one that was not there in training. Values decide, not the codes that pandas gave.
    """

    n_features: int
    names: tuple[str, ...] | None  # None if the training data had no names
    categories: tuple[tuple[Category, ...] | None, ...]  # d entries in code order; None if numeric
    statistics: TargetStatistics | None = None  # of columns that trees see as numbers; None if there is none
    missing: float | None = None  # a number that stands for missing values; None: NaN alone does
    query: str | None = None  # a column of query ids, which rows may have beside these; None: there is none

    def __setstate__(self, state: Sequence[Any]) -> None:
        restored(self, state)

    @classmethod
    def learn(cls, X: Any, categorical_features: Any = FROM_DTYPE, missing: float | None = None) -> Columns:
        """The columns of X.

        X: any input of ``tables.as_table``. categorical_features: "from_dtype" (categories and text), None, a
        mask (d,), indices, or names. missing: the number that stands for missing values.

        Raises
        ------
        InputError
            If X cannot be learned from, or ``categorical_features`` does not fit it.
        """
        table = marked(as_table(X), missing)
        if table.shape[1] > MOST_FEATURES:
            raise InputError(f"X: must have at most {MOST_FEATURES:,} features; got {table.shape[1]:,}.")
        wanted = categorical_columns(table, categorical_features)
        if table.is_sparse and wanted.any():
            raise InputError(
                f"categorical_features: columns of a sparse matrix cannot be categorical, since what is not stored "
                f"is 0; got {table.label(int(np.argmax(wanted)))}. Give the data dense, or one-hot encoded."
            )
        warn_of_equal_floats(table, wanted)
        categories = tuple(
            learn_categories(table.column(f), table.label(f)) if wanted[f] else None for f in range(table.shape[1])
        )
        return cls(table.shape[1], table.names, categories, missing=missing, query=table.query)

    @property
    def is_categorical(self) -> NDArray[np.bool_]:
        """(d,)"""
        return np.array([categories is not None for categories in self.categories], dtype=np.bool_)

    @property
    def layout(self) -> tuple[EncodedColumn, ...]:
        """The columns that trees see: those of X, unless target statistics stand in for categories."""
        if self.statistics is None:
            return tuple(EncodedColumn((f,)) for f in range(self.n_features))
        return self.statistics.layout(self.n_features)

    @property
    def sequences(self) -> int:
        """Number of sequences of trees that grow in turn: one for each permutation of target statistics."""
        return 1 if self.statistics is None else self.statistics.permutations

    def seen_names(self, classes: Sequence[Any] | None = None) -> list[str]:
        """Names of the columns that trees see, or numbers as text; "city+job: mean" and "city: rows" of statistics."""
        names = [str(f) for f in range(self.n_features)] if self.names is None else list(self.names)
        return names if self.statistics is None else self.statistics.names(names, classes)

    @property
    def sees_categories(self) -> NDArray[np.bool_]:
        """(columns that trees see,) True for those of category codes."""
        return np.array([c.table < 0 and self.categories[c.columns[0]] is not None for c in self.layout], np.bool_)

    @property
    def sizes(self) -> tuple[int, ...]:
        """(d,) numbers of categories; 0 for numeric columns."""
        return tuple(0 if categories is None else len(categories) for categories in self.categories)

    def without_query(self, table: Table) -> Table:
        """The table without the column of query ids, which is no feature; itself if it has none."""
        if self.query is None or table.names is None or self.query not in table.names:
            return table
        return table.select([name for name in table.names if name != self.query])

    def check(self, X: Any) -> None:
        """Raise InputError unless X has the number of columns, and the names in the order, that were learned.

        Data without names is taken by position.
        """
        table = self.without_query(as_table(X))
        if self.names is not None and table.names is not None and table.names != self.names:
            _refuse_names(table.names, self.names)
        if table.shape[1] != self.n_features:
            raise InputError(
                f"X: must have the {self.n_features} features of the training data; got {table.shape[1]}. Give the "
                "same columns in the same order."
            )

    def encode(self, X: Any) -> Any:
        """X as numbers: (n, d) float32 or float64, C or F contiguous, or scipy CSR of either in canonical form.

        Such an array passes through untouched, unless it holds the number ``missing``. NaN is missing.

        Raises
        ------
        InputError
            If names or numbers of columns differ from training, text is found in a numeric column, or an infinity.
        """
        table = marked(self.without_query(as_table(X)), self.missing)
        self.check(table)
        if table.matrix is not None and not any(categories is not None for categories in self.categories):
            x = table.matrix if table.is_sparse or table.on_device else as_floats(table.matrix)
        else:
            x = self._assemble(table)
        refuse_infinite(x, table)
        return self.with_statistics(x)

    def decoded(self, x: NDArray[Any]) -> tuple[Column, ...]:
        """The columns of x (n, d), as ``encode`` made it without statistics: numbers, or codes and categories."""
        return tuple(
            Column(x[:, f]) if levels is None else Column(np.nan_to_num(x[:, f], nan=-1.0).astype(np.int64), levels)
            for f, levels in enumerate(self.categories)
        )

    def with_statistics(self, x: Any) -> Any:
        """x with codes of categories, as trees see it: with their statistics, if there are any."""
        return x if self.statistics is None else self.statistics.applied(x, self.sizes)

    def _assemble_there(self, table: Table) -> DeviceMatrix:
        """The matrix on its device. Only categorical columns are copied to the host, and their codes back."""
        codes = {
            f: category_codes(table.column(f), categories, table.label(f))
            for f, categories in enumerate(self.categories)
            if categories is not None
        }
        largest = max(codes, key=lambda f: len(self.categories[f] or ()))
        if table.matrix.dtype == np.float32 and len(self.categories[largest] or ()) > _EXACT_IN_FLOAT32:
            raise InputError(
                f"X: {table.label(largest)} has more categories than float32 can count; give X as float64."
            )
        return cast(DeviceMatrix, table.matrix.with_columns(codes))

    def _assemble(self, table: Table) -> Any:
        if table.is_sparse:
            raise InputError("X: the model has categorical columns, which a sparse matrix cannot hold; give it dense.")
        if table.on_device:
            return self._assemble_there(table)
        parts = [
            numbers(table.column(f), table.label(f))
            if categories is None
            else category_codes(table.column(f), categories, table.label(f))
            for f, categories in enumerate(self.categories)
        ]
        narrow = all(
            fits_float32(part.dtype) if categories is None else len(categories) <= _EXACT_IN_FLOAT32
            for part, categories in zip(parts, self.categories, strict=True)
        )
        x = np.empty(table.shape, dtype=np.float32 if narrow else np.float64, order="F")
        for f, part in enumerate(parts):
            x[:, f] = part
        return x

    def to_json(self) -> dict[str, Any]:
        """The columns as JSON values; categories are listed by the number of their column."""
        listed = {str(f): list(categories) for f, categories in enumerate(self.categories) if categories is not None}
        names = None if self.names is None else list(self.names)
        made: dict[str, Any] = {"n_features": self.n_features, "names": names, "categories": listed}
        made |= {} if self.missing is None else {"missing": self.missing}
        made |= {} if self.query is None else {"query": self.query}
        return made if self.statistics is None else made | {"statistics": self.statistics.to_json()}

    @classmethod
    def from_json(cls, value: Any) -> Columns:
        """Columns from the object that ``to_json`` wrote.

        Raises
        ------
        InputError
            If it is anything else.
        """
        if not isinstance(value, dict) or set(value) - OPTIONAL != {"n_features", "names", "categories"}:
            raise InputError('columns: must be an object of "n_features", "names" and "categories".')
        d, names, listed = value["n_features"], value["names"], value["categories"]
        if not isinstance(d, int) or isinstance(d, bool) or not 1 <= d <= MOST_FEATURES:
            raise InputError(f"columns: n_features must be an integer from 1 to {MOST_FEATURES}; got {d!r}.")
        if names is not None and not _is_list_of_text(names, d):
            raise InputError(f"columns: names must be null or a list of {d} strings.")
        if not isinstance(listed, dict):
            raise InputError("columns: categories must be an object.")
        categories: list[tuple[Category, ...] | None] = [None] * d
        for key, entries in listed.items():
            f = int(key) if isinstance(key, str) and key.isascii() and key.isdecimal() else -1
            if not 0 <= f < d or str(f) != key or not _is_list_of_categories(entries):
                raise InputError(
                    f"columns: categories must map a column number below {d} to distinct strings, or to distinct "
                    f"finite numbers; the entry {key!r} does not."
                )
            categories[f] = tuple(entries)
        sizes = [None if entries is None else len(entries) for entries in categories]
        statistics = TargetStatistics.from_json(value["statistics"], sizes) if "statistics" in value else None
        if "missing" in value and not is_real(value["missing"]):
            raise InputError(f"columns: missing must be a finite number; got {value['missing']!r}.")
        missing = float(value["missing"]) if "missing" in value else None
        return cls(
            d, None if names is None else tuple(names), tuple(categories), statistics, missing, _query_from(value)
        )


def categorical_columns(table: Table, categorical_features: Any) -> NDArray[np.bool_]:
    """(d,) bool: True for categorical columns.

    Raises
    ------
    InputError
        If a name or number is not a column of X, or text cannot be a category.
    """
    d = table.shape[1]
    wanted = np.zeros(d, dtype=np.bool_)
    if categorical_features is None:
        return wanted
    if isinstance(categorical_features, str):
        if categorical_features != FROM_DTYPE:
            raise InputError(
                f'categorical_features: must be "{FROM_DTYPE}", None, a mask, indices or names; got '
                f"{categorical_features!r}. One name goes into a list: [{categorical_features!r}]."
            )
        return categories_by_dtype(table)
    try:
        listed = np.asarray(categorical_features)
    except ValueError:  # lists of different lengths
        raise InputError(f"categorical_features: must be a flat list; got {categorical_features!r}.") from None
    if listed.ndim != 1:
        raise InputError(f"categorical_features: must be a flat list; got shape {listed.shape}.")
    if listed.dtype.kind == "b":
        if len(listed) != d:
            raise InputError(
                f"categorical_features: a mask needs one entry for each of {d} columns; got {len(listed)}."
            )
        return listed
    wanted[[column_number(item, table.names, d, "categorical_features") for item in listed.tolist()]] = True
    return wanted


def column_number(item: Any, names: tuple[str, ...] | None, n_features: int, argument: str) -> int:
    """The number of the column that ``item``, a name or a number, stands for; InputError on ``argument`` if none."""
    if isinstance(item, str):
        if names is None:
            raise InputError(f"{argument}: X has no column names to find {item!r} in; give indices.")
        if item not in names:
            raise InputError(f"{argument}: X has no column {item!r}{_hint(item, names)}.")
        return names.index(item)
    if isinstance(item, bool) or not isinstance(item, (int, np.integer)) or not 0 <= item < n_features:
        raise InputError(f"{argument}: an index must be an integer from 0 to {n_features - 1}; got {item!r}.")
    return int(item)


def _hint(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name, names)
    return f"; close to it: {', '.join(map(repr, close))}" if close else ""


def _refuse_names(seen: tuple[str, ...], learned: tuple[str, ...]) -> None:
    missing = [name for name in learned if name not in set(seen)]
    extra = [name for name in seen if name not in set(learned)]
    parts = [
        f"{what} {', '.join(map(repr, some[:5]))}{' ...' if len(some) > 5 else ''}"
        for what, some in (("missing:", missing), ("not in training:", extra))
        if some
    ]
    if not parts:
        f = next(f for f, pair in enumerate(zip(seen, learned, strict=False)) if pair[0] != pair[1])
        parts = [f"the order differs from column {f} on: {seen[f]!r} instead of {learned[f]!r}"]
    raise InputError(
        f"X: must have the columns of the training data in the same order; {'; '.join(parts)}. "
        "Select them with X[model.feature_names_in_]."
    )


def _query_from(value: Mapping[str, Any]) -> str | None:
    if "query" not in value:
        return None
    query, names = value["query"], value["names"]
    if not isinstance(query, str) or names is None or query in names:
        raise InputError(f"columns: query must be the name of a column beside those in names; got {query!r}.")
    return query


def _is_list_of_text(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length and all(isinstance(item, str) for item in value)


def _is_list_of_categories(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    text = all(isinstance(item, str) for item in value)
    finite = all(isinstance(item, (bool, int, float)) and abs(item) < float("inf") for item in value)
    return (text or finite) and len(set(value)) == len(value)
