"""Groups of weak learners: a partition of the features, by column or by labels that the user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.records import dataclass
from gpuboost.types import Cuts

WORDS = ("feature", "root")


def labels_of(groups: Any) -> Any:
    """A name unchanged, labels as a tuple, so that a policy is immutable and can be compared.

    Raises:
        RecipeError: if groups is neither.
    """
    if isinstance(groups, str):
        if groups not in WORDS:
            raise RecipeError(f"groups: must be 'feature', 'root', or a label for each column; got {groups!r}.")
        return groups
    if isinstance(groups, np.ndarray):
        groups = groups.tolist()
    if not isinstance(groups, Sequence) or not groups:
        raise RecipeError(f"groups: must be 'feature', 'root', or a label for each column; got {groups!r}.")
    if not all(isinstance(label, (str, int, float)) for label in groups):
        raise RecipeError(f"groups: a label is a number or a text, equal ones for one group; got {groups!r}.")
    return tuple(label.item() if isinstance(label, np.generic) else label for label in groups)


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The group of each feature."""

    count: int
    group_of: NDArray[np.int32] | None = None  # (d,); None: each is its own

    def members(self, groups: NDArray[np.int32]) -> NDArray[np.int32]:
        """The features of the given groups, increasing."""
        if self.group_of is None:
            return groups
        chosen = np.zeros(self.count, np.bool_)
        chosen[groups] = True
        return np.flatnonzero(chosen[self.group_of]).astype(np.int32)


def partition(groups: Any, n_groups: int, cuts: Cuts | None = None) -> Partition:
    """Partition of features that may share columns. Groups are numbered in the order in which labels first occur.

    Raises:
        RecipeError: if there is not one label for each column.
    """
    shared = cuts is not None and cuts.source is not None and n_groups == cuts.n_features
    columns = cuts.columns if cuts is not None and shared else np.arange(n_groups, dtype=np.int32)
    n_columns = int(columns[-1]) + 1 if n_groups else 0
    if isinstance(groups, str):
        return Partition(n_columns, columns if shared else None)
    if len(groups) != n_columns:
        pairs = cuts is not None and n_groups != cuts.n_features
        each, those = ("pair of family and feature", "pairs") if pairs else ("column", "columns")
        raise RecipeError(f"groups: a label for each {each} is needed; got {len(groups)} for {n_columns} {those}.")
    numbers: dict[Any, int] = {}
    group_of = np.array([numbers.setdefault(label, len(numbers)) for label in groups], np.int32)
    return Partition(len(numbers), group_of[columns])
