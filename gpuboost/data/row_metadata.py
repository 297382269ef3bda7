"""Weights and queries of rows in the form that training needs, found once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import writable_view
from gpuboost.data.queries import query_start
from gpuboost.data.weights import kept_rows, split_weights
from gpuboost.records import dataclass
from gpuboost.types import Array, Bins, Cuts, Pairs, TrainingSet

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RowMetadata:
    """The rows that have weight, how much or how often each of them counts, and where their queries start.

    ``weight`` and ``group`` are as they were given, for all n rows; the other fields are of the m rows that are kept.
    """

    n_rows: int
    weight: Floats | None  # (n,) 0 or more; None: all are 1
    group: NDArray[Any] | None  # (n,) the query of each row, for ranking
    kept: NDArray[np.int64] | None  # (m,) numbers of the rows of positive weight, increasing; None: every row
    real_weight: Floats | None  # (m,) positive; None if the weights are whole numbers or all 1
    multiplicity: NDArray[np.int32] | None  # (m,) weights that are whole numbers; None if there is none, or all are 1
    query_start: NDArray[np.int64] | None  # (queries + 1,) where each query starts, and m
    offset: Floats | None = None  # (k, n) of all n rows, added to their scores; None: all are 0
    pairs: Pairs | None = None  # of all n rows
    position: NDArray[np.int64] | None = None  # (n,) of all n rows, where each was shown in its query

    @classmethod
    def of(
        cls,
        n_rows: int,
        weight: Floats | None = None,
        group: NDArray[Any] | None = None,
        offset: Floats | None = None,
    ) -> RowMetadata:
        """The record of checked weights and queries, each (n,), and offsets (k, n)."""
        kept = kept_rows(weight)
        some = slice(None) if kept is None else kept
        real_weight, multiplicity = split_weights(None if weight is None else weight[some])
        start = None if group is None else query_start(group[some])
        return cls(n_rows, weight, group, kept, real_weight, multiplicity, start, offset)

    @property
    def n_kept(self) -> int:
        return self.n_rows if self.kept is None else len(self.kept)

    @property
    def n_counted(self) -> int:
        """Number of rows, each as often as its weight says if weights are whole numbers; without rows of weight 0."""
        return self.n_kept if self.multiplicity is None else int(np.sum(self.multiplicity, dtype=np.int64))

    @property
    def kept_offset(self) -> Floats | None:
        """(k, m) offsets of the kept rows."""
        return self.offset if self.offset is None or self.kept is None else self.offset[:, self.kept]

    def facts_of_lists(self, rows: NDArray[np.int64] | None) -> dict[str, Any]:
        """The pairs of some rows, numbered among these, and their positions. rows: increasing; None: all."""
        if rows is None:
            return {"pairs": self.pairs, "position": self.position}
        pairs = None if self.pairs is None else self.pairs.of_rows(rows, self.n_rows)
        return {"pairs": pairs, "position": None if self.position is None else self.position[rows]}

    def select(self, values: Any) -> Any:
        """The kept rows of an array whose first axis is of all rows; the array itself if every row is kept."""
        return values if self.kept is None else values[self.kept]

    def training_set(self, bins: Bins, cuts: Cuts, y: Array) -> TrainingSet:
        """The kept rows as the loop learns from them. bins: of the kept rows; y: (n,), of all rows."""
        return TrainingSet(
            bins,
            cuts,
            writable_view(self.select(y)),
            writable_view(self.real_weight),
            self.multiplicity,
            self.query_start,
            offset=writable_view(self.kept_offset),
            **self.facts_of_lists(self.kept),
        )
