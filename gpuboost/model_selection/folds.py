"""Folds of a cross-validation: numbers of rows."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from gpuboost.api.base import GradientBoosting
from gpuboost.data.labels import whole_labels
from gpuboost.data.queries import query_start
from gpuboost.errors import InputError, RecipeError, shown
from gpuboost.training.parameters.values import integer
from gpuboost.training.row_sampling import check_rows_of, for_training_rows

Rows: TypeAlias = NDArray[np.intp]


def splits_of(
    folds: Any, n_rows: int, y: Any, group: Any, random_state: Any, *, classify: bool, name: str = "folds"
) -> list[tuple[Rows, Rows]]:
    """(training rows, held-out rows) of each fold, increasing.

    folds: an int, a splitter of scikit-learn, or pairs of row numbers. y, group: (n_rows,) the target, and the query of
    each row or None. name: of the argument, in messages.

    Raises
    ------
    RecipeError
        If folds is none of these, or a pair does not hold numbers of rows.
    InputError
        If the training rows of a fold lack a class.
    """
    if isinstance(folds, Integral) and not isinstance(folds, bool):
        folds = _splitter(folds, n_rows, group, random_state, name, classify=classify and np.ndim(y) == 1)
    pairs = _pairs_of(folds, n_rows, y, group, name) if _is_splitter(folds) else folds
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable) or getattr(pairs, "shape", None) == ():
        raise RecipeError(f"{name}: must be an int, a splitter, or an iterable of pairs of row numbers; got {folds!r}.")
    splits = [_pair(fold, pair, name) for fold, pair in enumerate(pairs)]
    if not splits:
        raise RecipeError(f"{name}: at least one is needed; got none.")
    for fold, chosen in enumerate(splits):
        for part in chosen:
            if part.ndim != 1 or part.dtype.kind not in "iu" or not len(part) or part[0] < 0 or part[-1] >= n_rows:
                raise RecipeError(
                    f"{name}: row numbers are whole, from 0 to {n_rows - 1}, one or more in each part; those of "
                    f"fold {fold} are not."
                )
    if classify and np.ndim(y) == 1:
        _check_classes(splits, y, name)
    return splits


def _check_classes(splits: list[tuple[Rows, Rows]], y: Any, name: str) -> None:
    """Raise InputError if the training rows of a fold lack a class that rows of a fold have."""
    coded = whole_labels(y)
    if coded is None:
        if y.dtype.kind == "f" or (y.dtype.kind == "O" and len(set(map(type, y))) > 1):
            return  # no labels, as the fit says
        coded = np.unique(y, return_inverse=True)
    classes, codes = coded
    counts = [[np.bincount(codes[part], minlength=len(classes)) for part in pair] for pair in splits]
    needed = np.any([learn + judge > 0 for learn, judge in counts], axis=0)
    for fold, (learn, _) in enumerate(counts):
        lacking = np.flatnonzero(needed & (learn == 0))
        if len(lacking):
            label, rows = classes[lacking[0]], np.count_nonzero(codes == lacking[0])
            raise InputError(
                f"{name}: the training rows of each fold must hold every class; those of fold {fold} have none of the "
                f"{rows} of class {label}. Leave that class out, or choose other folds."
            )


def for_fold(model: GradientBoosting, learn: Rows, n_rows: int) -> GradientBoosting:
    """A clone for the training rows of a fold: a sampling rule of one number for each row has those of these rows.

    Raises
    ------
    RecipeError
        If the rule is for another number of rows than all n_rows.
    """
    made: GradientBoosting = clone(model)
    check_rows_of(made.sampling, n_rows)
    made.sampling = for_training_rows(made.sampling, learn, None)
    return made


def _pairs_of(splitter: Any, n_rows: int, y: Any, group: Any, name: str) -> list[Any]:
    """The pairs of a splitter of scikit-learn for these rows. RecipeError if it refuses them."""
    try:
        return list(splitter.split(np.zeros(n_rows), y, group))
    except ValueError as error:
        said, advice = str(error).rstrip("."), ""
        if group is None and "groups" in said:
            advice = " Pass group=: the group of each row, equal ones side by side."
        raise RecipeError(f"{name}: {type(splitter).__name__} says: {said}.{advice}") from error


def _pair(fold: int, pair: Any, name: str) -> tuple[Rows, Rows]:
    """Training and held-out rows of a fold, sorted."""
    try:
        learn, judge = (np.sort(np.asarray(part)) for part in pair)
    except (TypeError, ValueError):
        raise RecipeError(
            f"{name}: must be an int, a splitter, or an iterable of pairs of row numbers; fold {fold} is no such pair."
        ) from None
    return learn, judge


def _splitter(folds: Any, n_rows: int, group: Any, random_state: Any, name: str, *, classify: bool) -> Any:
    """The splitter of scikit-learn for a number of folds."""
    n_folds = integer(name, folds, 2)
    max_folds = n_rows if group is None else len(query_start(group)) - 1
    if n_folds > max_folds:
        kind = "rows" if group is None else "queries"
        raise RecipeError(f"{name}: each needs one of the {max_folds} {kind}; got {shown(folds)}.")
    if group is not None:
        return GroupKFold(n_folds)
    spread = StratifiedKFold if classify else KFold
    return spread(n_folds, shuffle=True, random_state=random_state)


def _is_splitter(folds: Any) -> bool:
    return hasattr(folds, "split") and not isinstance(folds, (str, bytes, type))
