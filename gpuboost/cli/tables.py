"""Files as the estimators take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.cli.parser import LOSSES
from gpuboost.errors import InputError

MOST_CLASSES = 20
"""Whole numbers of at most so many different values are taken for labels, unless the user says otherwise."""


@dataclass(frozen=True)
class Rows:
    """x: a pandas frame, an array or a CSR matrix of n rows; y: (n,); weight: (n,) or None."""

    x: Any
    y: Any
    weight: Any = None

    @property
    def n_rows(self) -> int:
        return int(self.x.shape[0])

    def taken(self, rows: Any) -> Rows:
        """Some of the rows, by number."""
        x = self.x.iloc[rows] if hasattr(self.x, "iloc") else self.x[rows]
        return Rows(x, self.y[rows], None if self.weight is None else self.weight[rows])


def read(
    path: str,
    target: str | None = None,
    weight: str | None = None,
    categorical: list[str] | None = None,
    n_features: int | None = None,
) -> Rows:
    """The rows of a file. InputError if it cannot be read or lacks a column."""
    from gpuboost.data.files import read_table

    try:
        x, y, w, _ = read_table(path, target, weight=weight, categorical=categorical, n_features=n_features)
    except ModuleNotFoundError as error:
        raise InputError(f"{path}: reading it needs {error.name}; pip install {error.name}.") from None
    return Rows(x, y, w)


def is_classification(task: str, loss: str | None, y: Any) -> bool:
    """What ``--task`` says; with ``auto`` what the loss is for, else what the target looks like."""
    if task != "auto":
        return task == "classification"
    if loss is not None:
        return LOSSES.get(loss.partition(":")[0]) == "classification"
    if not np.issubdtype(y.dtype, np.number):
        return True
    values = np.unique(y)
    return len(values) <= MOST_CLASSES and bool(np.all(values == np.floor(values)))


def split(rows: Rows, share: float, seed: int, *, classify: bool) -> tuple[Rows, Rows]:
    """Training and held-out rows, drawn by the seed; classes keep their shares where each has two rows."""
    from sklearn.model_selection import train_test_split

    counts = np.unique(rows.y, return_counts=True)[1] if classify else np.zeros(1)
    room = min(share, 1 - share) * rows.n_rows >= len(counts)
    labels = rows.y if classify and counts.min() > 1 and room else None
    train, test = train_test_split(np.arange(rows.n_rows), test_size=share, random_state=seed, stratify=labels)
    return rows.taken(np.sort(train)), rows.taken(np.sort(test))
