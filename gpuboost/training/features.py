"""Training rows as numbers: their columns, cuts and encoding, and the rows that are set aside."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil, nan
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import as_float
from gpuboost.backends.protocol import Backend
from gpuboost.data.categories import learn_categories
from gpuboost.data.columns import FROM_DTYPE, Columns, categorical_columns
from gpuboost.data.cuts import DEFAULT_BINS, QUANTILE, check_binning, check_max_bins
from gpuboost.data.dataset import Dataset
from gpuboost.data.encoding import PARTITION
from gpuboost.data.missing import checked_missing, marked, missing_text
from gpuboost.data.queries import query_start
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.data.tables import Column, Table, as_table
from gpuboost.data.weights import check_weight
from gpuboost.errors import DeviceError, GpuBoostError, InputError, RecipeError, shown
from gpuboost.execution import DataParallel
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass
from gpuboost.training.encoding import (
    GroupingOptions,
    check_continued,
    chosen_policy,
    encoded,
    encoded_again,
    encoded_recipe,
)
from gpuboost.training.init_model import Start
from gpuboost.training.monitoring import RawEvalSet
from gpuboost.training.placement.sharding import shared_out
from gpuboost.training.rows import bin_rows, numbers, with_values
from gpuboost.training.targets import TrainingTarget
from gpuboost.types import Cuts, TrainingSet

if TYPE_CHECKING:  # it imports kernels, which take a while
    from gpuboost.backends.sharded.backend import Sharded


_LEAST_SHARE = 0.01  # rows; any larger share is rounded up to one


@dataclass(frozen=True, slots=True)
class Features:
    """Training rows as numbers, with their columns (encoding) and cuts."""

    rows: Any  # (n, d) numbers, or the Dataset that has them
    columns: Columns
    cuts: Cuts
    dataset: Dataset | None  # of these rows, holds their bins once made; None if the cuts are those of another model
    binning: Cuts | None = None  # cuts whose features read columns of x, if those of ``cuts`` are encoded columns

    @property
    def x(self) -> Any:
        """(n, d), read from the file of a Dataset if they have not been used yet."""
        return self.rows.x if isinstance(self.rows, Dataset) else self.rows


def features(
    params: Mapping[str, Any], rows: Any, weight: NDArray[np.float64] | None, start: Start | None, threads: int
) -> Features:
    """Columns and cuts: those of the model to continue, those of the Dataset, or newly chosen ones.

    Raises
    ------
    InputError, RecipeError
        If the data cannot be learned from, or a parameter contradicts the Dataset.
    """
    check_max_bins(params["max_bins"])
    check_binning(params.get("binning", QUANTILE))
    if isinstance(rows, Dataset) and not isinstance(params.get("execution"), DataParallel):
        rows = rows.loaded()
    if start is not None:
        of_rows = replace(start.columns, statistics=None)
        _agree_on_missing(params, of_rows, "the model to continue was fitted", "continue it with that")
        rows = rows if isinstance(rows, Dataset) or not of_rows.is_categorical.any() else as_table(rows)
        x = named(start.argument, lambda: numbers(rows, of_rows, read=False))
        if isinstance(rows, Table):
            _warn_of_new_categories(rows, of_rows, start.argument)
        return Features(x, _with_query(start.columns, rows), start.ensemble.cuts, None)
    if isinstance(rows, Dataset):
        _agree(params, rows)
        dataset = rows
    else:
        dataset = Dataset(
            rows,
            weight=weight,
            max_bins=params["max_bins"],
            binning=params.get("binning", QUANTILE),
            categorical_features=params["categorical_features"],
            missing=params.get("missing", nan),
            n_jobs=threads,
        )
    return Features(dataset, dataset.columns, dataset.cuts, dataset)


def _with_query(columns: Columns, rows: Any) -> Columns:
    """The columns of the model to continue, with the column of query ids of the rows to learn from, if it has none."""
    known = rows.columns if isinstance(rows, Dataset) else rows
    query = known.query if isinstance(known, Columns | Table) else None
    new = query is not None and columns.query is None and columns.names is not None
    return replace(columns, query=query) if new else columns


def _warn_of_new_categories(table: Table, columns: Columns, argument: str) -> None:
    """Warn of categories of the rows to learn from that the model to continue does not have."""
    table = marked(table, columns.missing)
    for f, known in enumerate(columns.categories):
        if known is None:
            continue
        column = table.column(f)
        if column.levels is not None:  # those of the dtype, which rows need not have
            column = Column(column.row_values())
        new = sorted({*learn_categories(column, table.label(f))} - {*known})
        if new:
            warnings.warn(
                f"{argument}: {table.label(f)} has categories that the model to continue does not know, and that count "
                f"as missing: {shown(new[0])}{f' and {len(new) - 1} more' if new[1:] else ''}. To learn them, fit a "
                "new model to all rows.",
                stacklevel=2,
            )


def with_encoding(
    params: Mapping[str, Any], found: Features, recipe: Recipe, target: TrainingTarget, start: Start | None,
    options: GroupingOptions,
) -> tuple[Features, Recipe]:  # fmt: skip
    """The rows with categories as ``categorical_encoding`` says, and the recipe for them.

    Raises
    ------
    RecipeError
        If a piece of the recipe contradicts ordered target statistics.
    """
    if start is None:
        policy = chosen_policy(params, found.columns, recipe)
        if policy == PARTITION:
            return found, _without_statistics(recipe)  # x of a stored Dataset is not read
        bins = found.dataset.max_bins if found.dataset is not None else int(params["max_bins"])
        made = encoded(found.x, found.columns, found.cuts, policy, target, bins, options)
    else:
        check_continued(params, found.columns)
        if found.columns.statistics is None:
            return found, _without_statistics(recipe)
        made = encoded_again(found.x, found.columns, found.columns.statistics, found.cuts, target, options)
    recipe = encoded_recipe(recipe, made, found.columns.n_features)
    return replace(found, rows=made.x, columns=made.columns, cuts=made.cuts, binning=made.binning, dataset=None), recipe


def _without_statistics(recipe: Recipe) -> Recipe:
    return replace(recipe, permutations=0) if recipe.permutations else recipe


def _agree_on_missing(params: Mapping[str, Any], columns: Columns, made: str, advice: str) -> None:
    """Raise RecipeError if another number than NaN is asked for, and columns have another one."""
    asked = checked_missing(params.get("missing", nan))
    if asked is not None and asked != columns.missing:
        known = missing_text(columns.missing)
        raise RecipeError(f"missing: {made} with {known}, the estimator asks for {asked:g}; {advice}.")


def _agree(params: Mapping[str, Any], dataset: Dataset) -> None:
    """Raise RecipeError if a parameter contradicts the Dataset."""
    if params["max_bins"] not in (DEFAULT_BINS, dataset.max_bins):
        raise RecipeError(
            f"max_bins: the Dataset was cut into {dataset.max_bins} bins, the estimator asks for {params['max_bins']}; "
            "give it to the Dataset."
        )
    if params.get("binning", QUANTILE) not in (QUANTILE, dataset.binning):
        raise RecipeError(
            f"binning: the Dataset was cut by {dataset.binning!r}, the estimator asks for {params['binning']!r}; give "
            "it to the Dataset."
        )
    _agree_on_missing(params, dataset.columns, "the Dataset was made", "give it to the Dataset")
    asked, columns = params["categorical_features"], dataset.columns
    if isinstance(asked, str) and asked == FROM_DTYPE:
        return
    if (categorical_columns(Table(dataset.shape, columns.names), asked) != columns.is_categorical).any():
        raise RecipeError(
            "categorical_features: a Dataset has its columns decided, and the estimator asks for others; give it to "
            "the Dataset."
        )


def _check_division(units: int, watched: int, strata: Any, target: TrainingTarget) -> None:
    """Raise InputError unless rows, or queries, and each class, are enough to set ``watched`` of the units aside."""
    what = "rows" if target.rows.group is None else "queries"
    if not watched < units:
        raise InputError(
            f"validation_fraction: {watched} of {units} {what} would be set aside, and none of n_samples="
            f"{len(target.y)} is left to learn from. Set a smaller share aside, or pass an eval_set."
        )
    if strata is None or target.classes is None:
        return
    codes, counts = np.unique(strata, return_counts=True)
    if counts.min() < 2:
        label = target.classes[int(codes[np.argmin(counts)])]
        raise InputError(
            f"validation_fraction: every class needs two rows, one to learn from and one to set aside; class {label} "
            "has one. Leave the class out, or pass an eval_set."
        )
    if min(watched, units - watched) < len(codes):
        raise InputError(
            f"validation_fraction: {watched} of {units} rows would be set aside, and each part must have a row of each "
            f"of {len(codes)} classes. Set another share aside, or pass an eval_set."
        )


def split(
    fraction: Any, seed: int, found: Features, target: TrainingTarget
) -> tuple[Features, TrainingTarget, tuple[RawEvalSet, ...], NDArray[np.int64]]:
    """Set a share of the rows aside as the eval set: the same share of each class, or whole queries for rankings.

    Rows of weight 0 are in neither part. The last value has the numbers of the rows that remain, increasing.

    Raises
    ------
    RecipeError, InputError
        If it is not a share, or there are too few rows to split.
    """
    if found.dataset is not None and found.dataset.in_files:
        raise InputError("validation_fraction: rows of Parquet files stay where they are; pass others as eval_set.")
    from sklearn.model_selection import train_test_split  # slow to import, and few need it

    is_number = isinstance(fraction, Real) and not isinstance(fraction, bool)
    share = as_float(fraction) if is_number else 0.0
    if not 0.0 < share < 1.0:
        raise RecipeError(f"validation_fraction: must be None or a share between 0 and 1; got {shown(fraction)}.")
    group, weight = target.rows.group, target.rows.weight
    sizes = np.ones(len(target.y), np.int64) if group is None else np.diff(query_start(group))
    query = np.repeat(np.arange(len(sizes)), sizes)
    units = np.arange(len(sizes)) if weight is None else np.unique(query[weight > 0.0])
    strata = None if target.classes is None or target.y.ndim == 2 else target.y[units]
    if share * len(units) < _LEAST_SHARE:
        raise RecipeError(f"validation_fraction: {fraction} of {len(units)} is no row; set a larger share aside.")
    _check_division(len(units), ceil(share * len(units)), strata, target)
    learn, watch = train_test_split(units, test_size=share, random_state=seed % 2**32, stratify=strata)
    learn, watch = np.sort(learn), np.sort(watch)
    if group is not None:
        learn, watch = (np.flatnonzero(np.isin(query, some)) for some in (learn, watch))

    def part(rows: NDArray[np.intp]) -> tuple[Any, NDArray[np.float64], RowMetadata]:
        n = len(rows)
        part_weight = None if weight is None else check_weight(weight[rows], n, "validation_fraction")
        offset = None if target.rows.offset is None else np.ascontiguousarray(target.rows.offset[:, rows])
        metadata = RowMetadata.of(n, part_weight, None if group is None else group[rows], offset)
        metadata = replace(metadata, **target.rows.facts_of_lists(rows))
        return found.x[rows], target.y[rows], metadata

    x, y, metadata = part(learn)
    return (
        replace(found, rows=x, dataset=None),
        replace(target, y=y, rows=metadata),
        (RawEvalSet("validation_0", *part(watch)),),
        learn,
    )


def training_set(found: Features, target: TrainingTarget, *, with_x: bool) -> Callable[[Backend], TrainingSet]:
    """A function by which a backend bins the rows; a Dataset keeps its bins. with_x: keep the binned numbers, too."""

    def make(backend: Backend) -> TrainingSet:
        data = binned(backend)
        return with_values(data, found.x, target.rows) if with_x else data

    def binned(backend: Backend) -> TrainingSet:
        if found.binning is not None:
            plain = training_set(replace(found, cuts=found.binning, binning=None, dataset=None), target, with_x=False)
            return replace(plain(backend), cuts=found.cuts)
        if backend.name == "sharded":
            return shared_out(cast("Sharded", backend), found.x, found.cuts, target.y, target.rows)
        if found.dataset is None or target.rows.kept is not None:
            return bin_rows(backend, found.x, found.cuts, target.y, target.rows)
        where = backend.name if backend.name.startswith("cuda") else "host"
        return target.rows.training_set(found.dataset.binned(backend.quantise, where), found.cuts, target.y)

    return make


def named(name: str, call: Callable[[], Any]) -> Any:
    """The result of ``call``; its errors are raised again with the name in front."""
    try:
        return call()
    except DeviceError as error:
        raise DeviceError(f"{name}: {error}") from error
    except (GpuBoostError, ValueError) as error:
        raise InputError(f"{name}: {error}") from error
