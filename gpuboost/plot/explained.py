"""Rows with their contributions, as the plots of contributions need them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_integer
from gpuboost.data.dataset import Dataset
from gpuboost.data.frames import collected
from gpuboost.data.tables import as_table
from gpuboost.errors import InputError
from gpuboost.plot.axes import check_estimator, names_of

Floats = NDArray[np.float64]

MOST_BYTES = 1 << 27
"""Interactions in memory at once, at most."""


@dataclass(frozen=True, slots=True)
class ExplainedRows:
    """Feature values and contributions of some rows, for one output."""

    names: list[str]
    values: Floats  # (n, d) numbers; of categories their codes
    contributions: Floats  # (n, d)
    levels: tuple[Any, ...]  # (d,) labels of the codes of a column; None if numeric

    def shades(self, column: int) -> Floats:
        """(n,) rank of each value in its column, from 0 to 1; NaN where it is missing."""
        values = self.values[:, column]
        shades = np.full(len(values), np.nan)
        seen = ~np.isnan(values)
        distinct, place = np.unique(values[seen], return_inverse=True)
        shades[seen] = place / max(1, len(distinct) - 1)
        return shades


def explained(model: Any, X: Any, output: Any) -> ExplainedRows:
    """The rows of X with ``model.predict_contributions`` for one output.

    Raises:
        InputError: if the model is not of trees, X does not fit it, or there is no such output.
    """
    check_estimator(model, "predict_contributions")
    if not is_integer(output, 0, model.ensemble_.n_outputs - 1):
        raise InputError(f"output: must be from 0 to {model.ensemble_.n_outputs - 1}; got {output!r}.")
    if hasattr(X, "__cuda_array_interface__"):
        raise InputError(
            f"X: rows to draw must be in the host's memory; got {type(X).__name__}. Copy some of them there."
        )
    host = kept(X)
    all_contributions = np.asarray(model.predict_contributions(host))
    contributions = all_contributions[:, output, :-1] if all_contributions.ndim == 3 else all_contributions[:, :-1]
    return ExplainedRows(names_of(model), feature_values(model, host), contributions, tuple(model.columns_.categories))


def kept(X: Any) -> Any:
    """X, or the rows of a lazy frame or a stream, which can be read once only."""
    return X if isinstance(X, Dataset) else collected(X)


def feature_values(model: Any, X: Any) -> Floats:
    """(n, d) numbers in the columns of X, of categories their codes. X: rows in the host's memory, or a Dataset."""
    columns = replace(model.columns_, statistics=None)  # which would be in other places
    numbers = X.x[:] if isinstance(X, Dataset) else columns.encode(as_table(X))
    return np.asarray(numbers.toarray() if hasattr(numbers, "toarray") else numbers, np.float64)


def interactions_with(model: Any, X: Any, column: int, output: int) -> Floats:
    """(n, d) the interaction of one column with each, for one output; a few rows at a time."""
    host = X if isinstance(X, Dataset) else as_table(collected(X))
    d, n = model.n_features_in_, host.shape[0]
    interactions, step = np.empty((n, d)), max(1, MOST_BYTES // (8 * model.ensemble_.n_outputs * (d + 1) ** 2))
    for first in range(0, n, step):
        some = np.arange(first, min(first + step, n))
        values = model.predict_interactions(host.take(some) if isinstance(host, Dataset) else host.rows(some))
        interactions[some] = values[..., column, :-1] if values.ndim == 3 else values[:, output, column, :-1]
    return interactions


def column_of(names: list[str], feature: Any, argument: str = "feature") -> int:
    """The number of a column, given by name or number. Raises InputError if there is none."""
    column = names.index(feature) if isinstance(feature, str) and feature in names else feature
    if not is_integer(column, -len(names), len(names) - 1):
        raise InputError(f"{argument}: must be one of {', '.join(names)}, or its number; got {feature!r}.")
    return int(column) % len(names)
