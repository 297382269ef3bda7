"""Conversion of the arguments of ``fit`` to training rows and eval rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from gpuboost.arguments import declares, unmasked
from gpuboost.backends.protocol import Backend
from gpuboost.data.columns import Columns
from gpuboost.data.dataset import Dataset
from gpuboost.data.missing import refuse_another_missing
from gpuboost.data.offsets import check_offset
from gpuboost.data.pairs import check_pairs, check_position
from gpuboost.data.queries import check_group, weight_of_rows
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.data.targets import check_target, target_array
from gpuboost.data.weights import check_weight
from gpuboost.errors import InputError, shown
from gpuboost.losses.protocol import Loss, n_targets
from gpuboost.records import dataclass
from gpuboost.types import Array, Cuts, TrainingSet


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """The user's rows with target, weights and queries, checked."""

    x: Any  # Table, numpy array or scipy matrix; or a Dataset, whose features are numbers already
    y: NDArray[Any]  # (n,) numbers or labels; (n, k) of k targets
    metadata: RowMetadata


def labelled(x: Any, y: Any, weight: Any, n_rows: int, group: Any = None, offset: Any = None) -> LabelledRows:
    """The rows, with target, weights, queries and offsets checked.

    Raises
    ------
    InputError
        If there is not one finite target and one weight >= 0 for each row, or the group does not match the rows.
    """
    if y is None:
        raise InputError("y: a target is needed, one value for each row of X; got None. Pass y.")
    unnamed = isinstance(y, (list, tuple, complex)) or hasattr(y, "tocsr")  # scikit-learn would not name y
    labels = target_array(y) if unnamed or _is_nullable(y) else unmasked(y)
    shape = getattr(labels, "shape", ())
    column = len(shape) < 2 or shape[1:] == (1,)
    target = check_target(column_or_1d(labels, warn=True) if column else labels, n_rows, several=len(shape) == 2)
    queries = check_group(group, n_rows)
    checked_weight = check_weight(weight_of_rows(weight, queries), n_rows)
    return LabelledRows(x, target, RowMetadata.of(n_rows, checked_weight, queries, check_offset(offset, n_rows)))


def _is_nullable(y: Any) -> bool:
    """True for integers and truth values of pandas' own dtypes, categories too: scikit-learn makes floats of them.

    y: an array, an index, a column or several, or anything else.
    """
    frame = declares(y, "iloc") and not declares(y, "dtype")
    kinds = list(y.dtypes) if frame else [getattr(y, "dtype", None)]
    kinds = [kind for kind in kinds if not isinstance(kind, np.dtype)]
    kinds = [getattr(getattr(kind, "categories", None), "dtype", kind) for kind in kinds]
    return any(getattr(kind, "kind", "O") in "biu" for kind in kinds)


def check_columns(y: NDArray[Any], loss: Loss) -> None:
    """Raise InputError unless y (n,) or (n, k) has as many columns as the model of this loss has targets."""
    targets, seen = n_targets(loss), 1 if y.ndim == 1 else y.shape[1]
    if seen != targets:
        raise InputError(f"y: the model has {targets} target(s) for each row; got shape {y.shape}.")


def with_list_facts(rows: LabelledRows, pairs: Any, pairs_weight: Any, position: Any) -> LabelledRows:
    """The rows with checked pairs of them, and positions. Raises InputError, see ``data.pairs``."""
    n, group = rows.metadata.n_rows, rows.metadata.group
    checked_pairs, places = check_pairs(pairs, pairs_weight, n, group), check_position(position, n)
    return replace(rows, metadata=replace(rows.metadata, pairs=checked_pairs, position=places))


def labelled_dataset(data: Dataset, y: Any, weight: Any, group: Any = None, offset: Any = None) -> LabelledRows:
    """The rows of a Dataset. A target, weights, queries or offsets that it does not hold may be passed."""
    held_and_given = (
        ("y", data.y, y),
        ("sample_weight", data.weight, weight),
        ("group", data.group, group),
        ("init_score", data.init_score, offset),
    )
    for name, held, passed in held_and_given:
        if held is not None and passed is not None:
            raise InputError(f"{name}: the Dataset holds one already; pass it there or here, not both.")
    target = data.y if y is None else y
    if target is None:
        raise InputError("y: a Dataset to fit needs a target; make it with Dataset(X, y).")
    group = data.group if group is None else group
    offset = check_offset(data.init_score if offset is None else offset, len(data))
    if data.weight is not None:
        checked_target, queries = check_target(target, len(data), several=True), check_group(group, len(data))
        return LabelledRows(data, checked_target, RowMetadata.of(len(data), data.weight, queries, offset))
    rows = labelled(data, target, weight, len(data), group)
    return replace(rows, metadata=replace(rows.metadata, offset=offset))


def judged_by(X: Any, y: Any, weight: Any) -> tuple[Any, Any]:
    """Target and weights to judge predictions by: those given or, if X is a Dataset, those that it holds.

    Raises
    ------
    InputError
        If there is no target.
    """
    if isinstance(X, Dataset):
        y, weight = X.y if y is None else y, X.weight if weight is None else weight
    if y is None:
        raise InputError("y: a target is needed to be judged by; pass y, or a Dataset that holds one.")
    return y, weight


def numbers(x: Any, columns: Columns, name: str = "X", *, read: bool = True) -> Any:
    """x, converted to numbers by the model's columns; the contents of a Dataset. read: also rows that are in files.

    Raises
    ------
    InputError
        If x does not have those columns, or is a Dataset that takes the model's ``missing`` for a value.
    """
    if not isinstance(x, Dataset):
        return columns.encode(x)
    other = _difference(columns, x.columns)
    if other:
        raise InputError(
            f"{name}: a Dataset must have the features, and the categories, of the training data; {other}. Pass the "
            "data itself."
        )
    refuse_another_missing(columns.missing, x.columns.missing)
    return columns.with_statistics(x.x[:] if read and x.in_files else x.x)


def _difference(known: Columns, seen: Columns) -> str:
    """Description of the first difference between columns; empty if there is none."""
    if known.n_features != seen.n_features:
        return f"this one has {seen.n_features} features, the training data {known.n_features}"
    if known.names is not None and seen.names is not None:
        for f, (before, now) in enumerate(zip(known.names, seen.names, strict=True)):
            if before != now:
                return f"column {f} of this one is {now!r}, that of the training data {before!r}"
    for f, (listed, now_listed) in enumerate(zip(known.categories, seen.categories, strict=True)):
        if listed != now_listed:
            return f"column {f if known.names is None else repr(known.names[f])} has other categories"
    return ""


def bin_rows(backend: Backend, x: Any, cuts: Cuts, y: NDArray[np.float64], rows: RowMetadata) -> TrainingSet:
    """Binned rows for the loop and the watchers, without rows of weight 0."""
    return rows.training_set(backend.quantise(rows.select(x), cuts), cuts, y)


def with_values(data: TrainingSet, x: Any, rows: RowMetadata) -> TrainingSet:
    """The data with the unbinned numbers, for base learners that do not use bins."""
    return replace(data, x=rows.select(x))


def weight_of(data: TrainingSet) -> Array | None:
    """(n,) float64 weights, or None if all are 1."""
    return None if data.weight is None and data.multiplicity is None else data.row_weight()


def eval_sets(given: Any, *, by_query: bool = False) -> Iterator[tuple[str, Any, Any, Any, Any, Any]]:
    """(name, X, y, weight, group, offset) of each eval set.

    given: None, one set, a list of sets, or a mapping from names to sets; a set is (X, y), (X, y, weight),
    (X, y, weight, init_score) or a Dataset. by_query: a set is (X, y, group), (X, y, group, weight),
    (X, y, group, weight, init_score) or a Dataset.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if given is None:
        return
    first, least = ("(X, y, group)", 3) if by_query else ("(X, y)", 2)
    forms = f"{first}, {first[:-1]}, weight), {first[:-1]}, weight, init_score) or a Dataset"
    if isinstance(given, (tuple, Dataset)):
        given = _listed(given)
    if isinstance(given, list):
        given = {f"validation_{i}": eval_set for i, eval_set in enumerate(given)}
    if not isinstance(given, Mapping):
        raise InputError(
            f"eval_set: must be {first}, a list of such, or a mapping from names to them; got {type(given).__name__}."
        )
    _check_names(given)
    for name, eval_set in given.items():
        if isinstance(eval_set, Dataset):
            yield name, eval_set, None, None, None, None
        elif isinstance(eval_set, tuple) and least <= len(eval_set) <= least + 2:
            x, y, *rest = eval_set
            _refuse_name(name, x, y)
            group = rest.pop(0) if by_query else None
            weight, offset, *_ = *rest, None, None
            yield name, x, y, weight, group, offset
        else:
            seen = f"a tuple of {len(eval_set)}" if isinstance(eval_set, tuple) else type(eval_set).__name__
            raise InputError(f"eval_set: {name} must be {forms}; got {seen}.")


def _listed(given: tuple[Any, ...] | Dataset) -> list[Any]:
    """The sets of a tuple of sets, which other libraries take for a list; of anything else, the one set that it is."""

    def is_set(value: Any) -> bool:
        rows = value[0] if isinstance(value, tuple) and len(value) > 1 else value
        return len(getattr(rows, "shape", ())) == 2 and (rows is not value or isinstance(value, Dataset))

    return list(given) if isinstance(given, tuple) and given and all(map(is_set, given)) else [given]


def _refuse_name(name: str, *parts: Any) -> None:
    """Raise InputError for a text in a set, which is meant as its name."""
    for part in parts:
        if isinstance(part, str):
            raise InputError(
                f"eval_set: {name} holds the text {shown(part)}. To name a set, give a mapping: "
                f"{{{shown(part)}: (X, y)}}."
            )


def _check_names(eval_sets: Mapping[Any, Any]) -> None:
    for name in eval_sets:
        if not isinstance(name, str):
            raise InputError(f"eval_set: names must be text; got {name!r}.")
