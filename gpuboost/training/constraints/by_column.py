"""Parameters that say something of single columns, by the numbers of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gpuboost.data.columns import Columns, categorical_columns
from gpuboost.data.dataset import Dataset
from gpuboost.data.encoded_columns import EncodedColumn
from gpuboost.data.tables import as_table
from gpuboost.training.constraints.feature_numbers import column_costs, feature_weights
from gpuboost.training.constraints.forced_splits import forced_splits
from gpuboost.training.constraints.interactions import interaction_sets
from gpuboost.training.constraints.monotone import monotone_constraints
from gpuboost.types import ColumnCosts, ForcedSplit, Interactions, Limits

NAMES = ("monotonic_cst", "interaction_cst", "forced_splits", "feature_costs", "feature_weights")


class ByColumn(NamedTuple):
    """Fields of ``Limits`` that go by columns, and the weights by which columns are drawn."""

    directions: tuple[int, ...] | None = None
    interactions: Interactions | None = None
    forced: ForcedSplit | None = None
    costs: ColumnCosts | None = None
    weights: tuple[float, ...] | None = None

    @property
    def of_limits(self) -> dict[str, Any]:
        """The fields of ``Limits``."""
        return {name: value for name, value in self._asdict().items() if name != "weights"}

    @staticmethod
    def of(params: Mapping[str, Any], columns: Columns) -> ByColumn:
        """The constraints on known columns. Raises RecipeError if a parameter does not fit them."""
        n, names = columns.n_features, columns.names
        return ByColumn(
            monotone_constraints(params.get("monotonic_cst"), n, names, columns.is_categorical),
            interaction_sets(params.get("interaction_cst"), n, names),
            forced_splits(params.get("forced_splits"), n, names, columns.is_categorical),
            column_costs(params.get("feature_costs"), n, names),
            feature_weights(params.get("feature_weights"), n, names),
        )

    @staticmethod
    def of_rows(params: Mapping[str, Any], X: Any, known: Columns | None = None) -> ByColumn:
        """The constraints on rows whose columns are not learned yet.

        X: a Dataset, or any input of ``as_table``. known: the columns of a model to continue.
        """
        if all(params.get(name) is None for name in NAMES):
            return NOTHING
        if isinstance(X, Dataset):
            return ByColumn.of(params, X.columns)
        table = as_table(X)
        n, names = table.shape[1], table.names
        categorical = categorical_columns(table, params["categorical_features"]) if known is None else None
        is_categorical = known.is_categorical if categorical is None and known is not None else categorical
        return ByColumn(
            monotone_constraints(params.get("monotonic_cst"), n, names, is_categorical),
            interaction_sets(params.get("interaction_cst"), n, names),
            forced_splits(params.get("forced_splits"), n, names, is_categorical),
            column_costs(params.get("feature_costs"), n, names),
            feature_weights(params.get("feature_weights"), n, names),
        )


NOTHING = ByColumn()


def of_encoded(limits: Limits, layout: tuple[EncodedColumn, ...], n_columns: int) -> ByColumn:
    """The constraints on the ``n_columns`` columns of X, as constraints on the columns that trees see.

    A column that is made of several columns of X has no direction, and is in those interaction sets that hold all of
    them; in none if the number of columns of a path is limited.
    """
    directions, rule, costs = limits.directions, limits.interactions, limits.costs
    if costs is not None:
        costs = costs._replace(made_of=tuple(column.columns for column in layout))
    if directions is not None:
        directions = (*directions, *(0,) * (len(layout) - n_columns))
    if rule is None:
        return ByColumn(directions, None, limits.forced, costs)
    single = [len(column.columns) == 1 or not rule.most for column in layout]
    sets = tuple(
        tuple(i for i, column in enumerate(layout) if single[i] and set(column.columns) <= set(members))
        for members in rule.sets
    )
    joined = Interactions(sets, rule.most, tuple(column.columns[0] for column in layout))
    return ByColumn(directions, joined, limits.forced, costs)
