"""Rows of a search and their folds, binned once for each way of binning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuboost import backends
from gpuboost.api.base import GradientBoosting
from gpuboost.api.ranker import GradientBoostingRanker
from gpuboost.data.dataset import Dataset
from gpuboost.data.query_column import without_group
from gpuboost.data.tables import Table, as_table
from gpuboost.errors import InputError, RecipeError
from gpuboost.model_selection.cv import dataset_of
from gpuboost.model_selection.folds import Rows
from gpuboost.training.rows import labelled
from gpuboost.types import DeviceMatrix

BINNING = ("max_bins", "binning", "categorical_features", "missing")
"""Parameters that change the bins."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The rows of one fold, as ``fit`` takes them."""

    training: Dataset
    judged: Any  # an eval set
    learn: Rows  # numbers of the training rows, among all n_rows
    n_rows: int

    def bin_now(self, threads: int) -> None:
        """Bin the training rows, once for all fits that come."""
        cpu = backends.get("cpu", threads)
        self.training.binned(cpu.quantise)


@dataclass(frozen=True, slots=True, eq=False)
class SearchData:
    """All rows, checked."""

    given: tuple[Any, ...]  # X, y, weight, group and offsets, for the last fit
    x: Table | Dataset
    y: Any  # (n,)
    weight: Any  # (n,), or None, as group and init_score
    group: Any
    init_score: Any  # (n,) or (n, K)
    by_query: bool

    @classmethod
    def of(cls, model: GradientBoosting, X: Any, y: Any, weight: Any, group: Any, init_score: Any) -> SearchData:
        """The rows, checked.

        Raises
        ------
        InputError
            If there is no target, or the rows are not valid.
        """
        arguments, by_query = (X, y, weight, group, init_score), isinstance(model, GradientBoostingRanker)
        if isinstance(X, Dataset):
            held = dataset_of(model, X, y, weight, group, init_score)
            return cls(arguments, held, held.y, held.weight, held.group, held.init_score, by_query)
        if y is None:
            raise InputError("y: a target is needed; pass search(model, space, X, y), or a Dataset that holds one.")
        features, group = without_group(X, group)
        table = as_table(features)
        rows = labelled(table, y, weight, table.shape[0], group, init_score)
        offset = rows.metadata.offset
        if offset is not None:
            offset = offset[0] if len(offset) == 1 else offset.T
        return cls(arguments, table, rows.y, rows.metadata.weight, rows.metadata.group, offset, by_query)

    @property
    def n_rows(self) -> int:
        return self.x.shape[0]

    @property
    def device(self) -> str | None:
        """The GPU that holds X; None for the host."""
        matrix = self.x.x if isinstance(self.x, Dataset) else self.x.matrix
        return matrix.device if isinstance(matrix, DeviceMatrix) else None

    def check(self, settings: Sequence[Mapping[str, Any]]) -> None:
        """Raise RecipeError if a setting bins otherwise than a Dataset is binned."""
        for setting in settings:
            asked = next((name for name in BINNING if name in setting), None)
            if asked is not None and isinstance(self.x, Dataset):
                raise RecipeError(
                    f"space: {asked} cannot be searched with a Dataset, which has its bins. Pass X and y."
                )

    def folds(self, splits: Sequence[tuple[Rows, Rows]], binning: Mapping[str, Any], threads: int) -> list[Fold]:
        """The folds, with cuts of each one's training rows; those of a Dataset have the cuts of all its rows."""
        if isinstance(self.x, Dataset):
            whole = self.x.loaded()
            return [Fold(whole.take(learn), whole.take(judge), learn, self.n_rows) for learn, judge in splits]
        made = []
        for learn, judge in splits:
            y, weight, group, offset = self._labels(learn)
            training = Dataset(
                self.x.rows(learn), y, weight=weight, group=group, init_score=offset, n_jobs=threads, **binning
            )
            y, weight, group, offset = self._labels(judge)
            labels = (y, group, weight, offset) if self.by_query else (y, weight, offset)
            made.append(Fold(training, (self.x.rows(judge), *labels), learn, self.n_rows))
        return made

    def fit(self, model: GradientBoosting) -> GradientBoosting:
        """The model, fitted to all rows as they were given."""
        X, y, weight, group, offset = self.given
        more = {"group": group} if self.by_query else {}
        return model.fit(X, y, sample_weight=weight, init_score=offset, **more)

    def _labels(self, rows: Rows) -> tuple[Any, ...]:
        return tuple(
            None if held is None else held[rows] for held in (self.y, self.weight, self.group, self.init_score)
        )
