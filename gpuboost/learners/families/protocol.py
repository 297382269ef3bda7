"""Base classes of the families of base learners. A new family derives from a class of this file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar, Self, TypeAlias

import numpy as np

from gpuboost.backends.smoothing import Smoothing
from gpuboost.components import Grid, Space
from gpuboost.errors import InputError
from gpuboost.learners.families.basis import Axes, Axis
from gpuboost.types import Cuts

Column: TypeAlias = int | str
"""Number or name of a column of X."""

Columns: TypeAlias = tuple[Column, ...] | None
"""None for every column of the kind that the family is for."""


class Family(ABC):
    """Base class of families: frozen dataclasses, whose fields are written to model files."""

    __slots__ = ()

    kind: ClassVar[str]  # its name in ``gpuboost.public``; also in model files, for functions of bins
    on_gpu: ClassVar[bool] = True  # True: GPUs have kernels for it

    def numbered(self, number: Callable[[Column], int]) -> Self:
        """The family with each of its columns replaced by ``number(column)``."""
        return self


class SmoothFamily(Family):
    """A family of functions of the bins of one feature or two, fitted by penalised least squares."""

    __slots__ = ()

    @abstractmethod
    def spaces(self, axes: Axes) -> Iterator[Space]:
        """A space for each feature, or pair of features, of the family.

        Raises:
            InputError: if there is no feature of its kind, or a column that it names does not exist or is of another
                kind.
        """

    @abstractmethod
    def grids(self, cuts: Cuts) -> Iterator[Grid]:
        """Grids of ``spaces`` if only the cuts are known, with the maximum number of cells.

        Raises:
            InputError: as ``spaces``.
        """


class OneFeatureFamily(SmoothFamily):
    """A family of functions of one feature, for a dataclass with a field ``columns``."""

    __slots__ = ()

    for_categories: ClassVar[bool] = False  # True: for categorical features; False: for numeric ones

    columns: Columns

    @abstractmethod
    def space(self, axis: Axis, smoothing: Smoothing) -> Space:
        """The functions of that feature. A numeric feature has two distinct values or more."""

    def spaces(self, axes: Axes) -> Iterator[Space]:
        for feature in self._features(axes.data.cuts):
            axis = axes.of(feature)
            if self.for_categories or axis.varies:
                yield self.space(axis, axes.smoothing)

    def grids(self, cuts: Cuts) -> Iterator[Grid]:
        for feature in self._features(cuts):
            yield Grid((feature,), (np.zeros(256, np.int32),), int(cuts.n_bins[feature]) + 2)

    def numbered(self, number: Callable[[Column], int]) -> Self:
        if self.columns is None:
            return self
        return replace(self, columns=tuple(map(number, self.columns)))  # type: ignore[type-var]  # it is a dataclass

    def _features(self, cuts: Cuts) -> list[int]:
        kind = cuts.is_categorical
        if self.columns is not None:
            named = [f for column in self.columns for f in features_of(cuts, self, column)]
            wrong = [f for f in named if kind[f] and not self.for_categories]
            if wrong:
                column = int(cuts.columns[wrong[0]])
                raise InputError(f"base_learner: {self!r} is for numeric features; column {column} is categorical.")
            return named
        features = np.flatnonzero(kind if self.for_categories else ~kind).tolist()
        if not features:
            wanted = "categorical" if self.for_categories else "numeric"
            raise InputError(
                f"base_learner: {self!r} is for {wanted} features; X has none. Leave it out, or name "
                "them in categorical_features."
            )
        return [int(f) for f in features]


class TreeFamily(Family, ABC):
    """A family of trees, for a dataclass with fields ``max_depth`` and ``reg_lambda``."""

    __slots__ = ()

    max_depth: int
    reg_lambda: float

    @property
    def ridge(self) -> float | None:
        """L2 term on the slopes of lines in the leaves; None for leaves that are constants."""
        return None


def features_of(cuts: Cuts, family: Family, column: Column) -> list[int]:
    """The features that are made of a column. Raises InputError if there is none."""
    features = [int(f) for f in np.flatnonzero(cuts.columns == column)]
    if not features:
        raise InputError(f"base_learner: {family!r} names column {column!r}; X has {cuts.n_columns} columns.")
    return features


def numeric_feature(cuts: Cuts, family: Family, column: Column) -> int:
    """The first feature of a column. Raises InputError if there is none, or it is categorical."""
    features = features_of(cuts, family, column)
    if cuts.is_categorical[features[0]]:
        raise InputError(f"base_learner: {family!r} is for numeric features; column {column!r} is categorical.")
    return features[0]
