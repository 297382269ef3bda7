"""Categorical columns as trees see them: sets of categories, a feature for each category, or target statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.data.category_groups import RowGroups, grouped
from gpuboost.data.columns import Columns
from gpuboost.data.cuts import FEATURE_BINS, choose_cuts
from gpuboost.data.encoded_columns import TargetStatistics, arranged, learned, training_columns
from gpuboost.data.encoding import AUTO, PARTITION, OrderedTargetStatistics, checked_encoding
from gpuboost.errors import RecipeError
from gpuboost.learners import FeatureViews
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass
from gpuboost.training.constraints.by_column import of_encoded
from gpuboost.training.targets import TrainingTarget
from gpuboost.types import Cuts, DeviceMatrix

Floats = NDArray[np.float64]
Upload = Callable[[NDArray[Any]], DeviceMatrix]


@dataclass(frozen=True, slots=True)
class Encoding:
    """The columns and cuts of a model, and the matrix that its trees are grown on."""

    x: Any  # (n, training columns)
    columns: Columns
    cuts: Cuts  # of the model: each feature reads a column that trees see
    binning: Cuts | None  # the same features, reading columns of x; None if these are the columns of ``cuts``
    permutations: int = 0
    views: FeatureViews | None = None


@dataclass(frozen=True, slots=True)
class GroupingOptions:
    """The options of ``category_groups.grouped`` for a fit."""

    seed: int  # of the permutations
    threads: int
    upload: Upload | None  # to the device that trains

    def grouped(
        self, x: Any, columns: Columns, target: TrainingTarget, values: tuple[Floats, Floats | None], permutations: int
    ) -> RowGroups:
        """The training rows by categories. values: of ``_kept_values``."""
        sizes, kept = _sizes(columns), target.rows.kept
        options: Any = {"seed": self.seed, "threads": self.threads, "upload": self.upload}
        return grouped(x, *values, sizes, kept, permutations=permutations, **options)


def chosen_policy(params: Mapping[str, Any], columns: Columns, recipe: Recipe) -> OrderedTargetStatistics | str:
    """The meaning of ``categorical_encoding`` for these columns: a policy with a column to encode, or a word."""
    value = checked_encoding(params.get("categorical_encoding", AUTO))
    if value == AUTO:
        value = _automatic(columns, recipe)
    if isinstance(value, OrderedTargetStatistics) and not value.columns(_sizes(columns)):
        return PARTITION
    return value


def check_continued(params: Mapping[str, Any], columns: Columns) -> None:
    """Raise RecipeError if statistics are asked for, and the model to continue splits by sets of categories."""
    value = checked_encoding(params.get("categorical_encoding", AUTO))
    asked = isinstance(value, OrderedTargetStatistics) and value.columns(_sizes(columns))
    if asked and columns.statistics is None:
        raise RecipeError(
            "categorical_encoding: the model to continue splits by sets of categories, and its columns stay; got "
            f"{params['categorical_encoding']!r}. Use 'auto', or fit a new model."
        )


def _automatic(columns: Columns, recipe: Recipe) -> OrderedTargetStatistics | str:
    """The policy of ``"auto"``: statistics if a column has more categories than the 255 of one feature, else sets.

    Sets, too, if a piece of the recipe contradicts the several sequences of trees that statistics need.
    """
    policy = OrderedTargetStatistics()
    if max(columns.sizes) <= FEATURE_BINS:
        return PARTITION
    try:
        replace(recipe, permutations=policy.permutations)
    except RecipeError:
        return PARTITION
    return policy


def _sizes(columns: Columns) -> dict[int, int]:
    return {f: size for f, size in enumerate(columns.sizes) if columns.categories[f] is not None}


def encoded(
    x: Any, columns: Columns, cuts: Cuts, policy: OrderedTargetStatistics | str, target: TrainingTarget, max_bins: int,
    options: GroupingOptions,
) -> Encoding:  # fmt: skip
    """The training rows of a new model. x: (n, d) with codes of categories; cuts: of its columns.

    policy: statistics, or "one_hot".
    """
    if not isinstance(policy, OrderedTargetStatistics):
        return Encoding(x, columns, one_hot(cuts), None)
    sizes, values = _sizes(columns), _kept_values(target)
    groups = options.grouped(x, columns, target, values, policy.permutations)
    statistics = learned(policy.columns(sizes), sizes, groups, *values, policy)
    parts, places = training_columns(statistics, columns.n_features, groups)
    matrix = arranged(x, parts)
    new = [i for i, part in enumerate(parts) if not isinstance(part, int)]
    # one feature for each statistic: those of several permutations stand for one column
    cut = choose_cuts(arranged(matrix, new), target.rows.weight, min(max_bins, FEATURE_BINS), n_threads=options.threads)
    return laid_out(matrix, replace(columns, statistics=statistics), cuts, (parts, places), cut)


def laid_out(
    matrix: Any, columns: Columns, cuts: Cuts, parts: tuple[list[Any], list[int]], cuts_of_statistics: Cuts
) -> Encoding:
    """The training rows of a new model that has statistics.

    cuts: of the columns of X. parts: of ``training_columns``; of a column of statistics only its place is read.
    """
    model_cuts, binning = _joined_cuts(*parts, cuts, cuts_of_statistics)
    permutations = 0 if columns.statistics is None else columns.statistics.permutations
    return Encoding(matrix, columns, model_cuts, binning, permutations, _views(columns, model_cuts))


def encoded_recipe(recipe: Recipe, made: Encoding, n_columns: int) -> Recipe:
    """The recipe for encoded columns. n_columns: of X. Raises RecipeError if a piece contradicts target statistics."""
    recipe = replace(
        recipe, permutations=made.permutations, views=made.views, rounds=recipe.rounds * max(1, made.permutations)
    )
    growth: Any = recipe.growth
    limits = replace(growth.limits, **of_encoded(growth.limits, made.columns.layout, n_columns).of_limits)
    return replace(recipe, growth=replace(growth, limits=limits))


def encoded_again(
    x: Any, columns: Columns, statistics: TargetStatistics, cuts: Cuts, target: TrainingTarget, options: GroupingOptions
) -> Encoding:
    """The training rows of a model that is continued, whose columns, statistics and cuts stay.

    Means of training rows are those of these rows, in permutations of this seed; for a fit that is resumed they are
    what they were. Rows to predict have those of the first fit.
    """
    values = _kept_values(target)
    if values[0].shape[1] != len(statistics.prior):
        raise RecipeError("init_model: its target statistics are of other classes.")
    groups = options.grouped(x, columns, target, values, statistics.permutations)
    parts, _ = training_columns(statistics, columns.n_features, groups)
    matrix = arranged(x, parts)
    binning = replace(cuts, source=_source(columns, cuts))
    return Encoding(matrix, columns, cuts, binning, statistics.permutations, _views(columns, cuts))


def _kept_values(target: TrainingTarget) -> tuple[Floats, Floats | None]:
    """(n, k) values and (n,) weights of the training rows."""
    kept, weight = slice(None) if target.rows.kept is None else target.rows.kept, target.rows.weight
    return target_values(target)[kept], None if weight is None else weight[kept]


def target_values(target: TrainingTarget) -> Floats:
    """(n, k) float64 targets whose means are the statistics: of each target, or of each of more than two classes."""
    if target.y.ndim == 2:
        return target.y
    if target.classes is None or len(target.classes) == 2:
        return target.y.reshape(-1, 1)
    return np.asarray(target.y[:, None] == np.arange(len(target.classes)), dtype=np.float64)


def one_hot(cuts: Cuts) -> Cuts:
    """The cuts with a feature for each category: its split sends that category left, and all others right."""
    features: list[tuple[Any, Any, int]] = []
    for thresholds, codes, column in zip(cuts.thresholds, cuts.categories, cuts.columns.tolist(), strict=True):
        listed = [None] if codes is None else [codes[i : i + 1] for i in range(len(codes))]
        features += [(thresholds, part, column) for part in listed]
    values, categories, source = zip(*features, strict=True)
    return Cuts(values, categories, None if len(source) == cuts.n_columns else np.array(source, dtype=np.int32))


def _joined_cuts(parts: list[Any], places: list[int], base: Cuts, new: Cuts) -> tuple[Cuts, Cuts]:
    """Cuts of the model and cuts of the training matrix: the same features, and the columns that they read."""
    thresholds: list[Any] = []
    categories: list[Any] = []
    model: list[int] = []
    training: list[int] = []
    made = 0
    for i, (part, place) in enumerate(zip(parts, places, strict=True)):
        if isinstance(part, int):
            features = np.flatnonzero(base.columns == part).tolist()
            thresholds += [base.thresholds[f] for f in features]
            categories += [base.categories[f] for f in features]
        else:
            features = [made]
            thresholds.append(new.thresholds[made])
            categories.append(None)
            made += 1
        model += [place] * len(features)
        training += [i] * len(features)
    return Cuts(tuple(thresholds), tuple(categories), _columns(model)), Cuts(
        tuple(thresholds), tuple(categories), _columns(training)
    )


def _columns(source: list[int]) -> NDArray[np.int32] | None:
    return None if source == list(range(len(source))) else np.array(source, np.int32)


def _source(columns: Columns, cuts: Cuts) -> NDArray[np.int32] | None:
    """The column of the training matrix that each feature of the model reads: features of a mean have one each."""
    is_mean = [column.is_mean for column in columns.layout]
    source = [0]
    for before, column in pairwise(cuts.columns.tolist()):
        source.append(source[-1] + int(column != before or is_mean[column]))
    return _columns(source)


def _views(columns: Columns, cuts: Cuts) -> FeatureViews | None:
    statistics = columns.statistics
    if statistics is None or statistics.permutations == 1:
        return None
    is_mean = np.array([column.is_mean for column in columns.layout])[cuts.columns]
    first = np.searchsorted(cuts.columns, cuts.columns, side="left")
    number = np.where(is_mean, np.arange(cuts.n_features) - first, -1)
    views = [np.flatnonzero((number == p) | (number < 0)) for p in range(statistics.permutations)]
    return FeatureViews(np.stack(views).astype(np.int32))
