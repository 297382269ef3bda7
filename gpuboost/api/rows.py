"""From what the user hands to ``fit`` to rows that can be learned from, or watched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from gpuboost.backends.protocol import Backend
from gpuboost.data.columns import Columns
from gpuboost.data.dataset import Dataset
from gpuboost.data.targets import check_target
from gpuboost.data.weights import check_weight, kept_rows, split_weights
from gpuboost.errors import InputError
from gpuboost.types import Array, Cuts, TrainingSet


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows as the user gave them, checked."""

    x: Any  # Table, numpy array or scipy matrix; or a Dataset, whose features are numbers already
    y: NDArray[Any]  # (n,) numbers or labels
    weight: NDArray[np.float64] | None  # (n,)


def labelled(x: Any, y: Any, weight: Any, n_rows: int) -> Labelled:
    """The rows, with target and weights checked.

    Raises
    ------
    InputError
        If there is not one finite target and one weight >= 0 for each row.
    """
    return Labelled(x, check_target(column_or_1d(y, warn=True), n_rows), check_weight(weight, n_rows))


def labelled_dataset(data: Dataset, y: Any, weight: Any) -> Labelled:
    """The rows of a Dataset. A target or weights that it does not hold may come beside it."""
    for name, held, given in (("y", data.y, y), ("sample_weight", data.weight, weight)):
        if held is not None and given is not None:
            raise InputError(f"{name}: the Dataset holds one already; pass it there or here, not both.")
    target = data.y if y is None else y
    if target is None:
        raise InputError("y: a Dataset to fit needs a target; make it with Dataset(X, y).")
    if data.weight is not None:
        return Labelled(data, check_target(target, len(data)), data.weight)
    return labelled(data, target, weight, len(data))


def numbers(x: Any, columns: Columns, name: str = "X") -> Any:
    """x as the model's columns turn it to numbers; of a Dataset, what it holds.

    Raises
    ------
    InputError
        If x does not have those columns.
    """
    if not isinstance(x, Dataset):
        return columns.encode(x)
    known, seen = columns, x.columns
    same_names = known.names is None or seen.names is None or known.names == seen.names
    if known.n_features != seen.n_features or known.categories != seen.categories or not same_names:
        raise InputError(
            f"{name}: a Dataset must have the features, and the categories, of the training data; this one has "
            f"{seen.n_features} features, the training data {known.n_features}. Pass the data itself."
        )
    return x.x


def bin_rows(
    backend: Backend, x: Any, cuts: Cuts, y: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> TrainingSet:
    """Rows of numbers as the loop and the watchers want them; those of weight 0 are left out."""
    rows = kept_rows(weight)
    if rows is not None and weight is not None:
        x, y, weight = x[rows], y[rows], weight[rows]
    return TrainingSet(backend.quantise(x, cuts), cuts, y, *split_weights(weight))


def weight_of(data: TrainingSet) -> Array | None:
    """(n,) float64 weights, or None if all are 1."""
    return None if data.weight is None and data.multiplicity is None else data.row_weight()


def eval_sets(given: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """(name, X, y, weight) of each eval set.

    given: None, one set, a list of sets, or a mapping from names to sets; a set is (X, y), (X, y, weight) or a Dataset.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if given is None:
        return
    if isinstance(given, (tuple, Dataset)):
        given = [given]
    if isinstance(given, list):
        given = {f"validation_{i}": one for i, one in enumerate(given)}
    if not isinstance(given, Mapping):
        raise InputError(
            "eval_set: must be (X, y), a list of such pairs, or a mapping from names to them; got "
            f"{type(given).__name__}."
        )
    for name, one in given.items():
        if isinstance(one, Dataset):
            yield str(name), one, None, None
        elif isinstance(one, tuple) and len(one) in (2, 3):
            yield str(name), one[0], one[1], one[2] if len(one) == 3 else None
        else:
            raise InputError(f"eval_set: {name} must be (X, y), (X, y, weight) or a Dataset; got {type(one).__name__}.")
