"""Sampling rules that hold a number for each row of X, and the rows that a fit learns from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.errors import RecipeError
from gpuboost.records import declared
from gpuboost.sampling import Sampling
from gpuboost.sampling.protocol import SamplingTraits


def check_rows_of(sampling: Sampling, n: int) -> None:
    """Raise RecipeError if the rule is for another number of rows than the n of X."""
    rows = declared(SamplingTraits, sampling).n_rows
    if rows is not None and rows != n:
        of_folds = "In cross-validation use gb.cv or gb.search, which take the numbers of each fold's rows."
        folds = f" {of_folds}" if rows > n else ""
        raise RecipeError(f"sampling: {sampling!r} has numbers for {rows} rows; X has {n}.{folds}")


def for_training_rows(sampling: Any, learn: NDArray[np.int64] | None, kept: NDArray[np.int64] | None) -> Sampling:
    """The rule for the rows that are kept of those to learn from; None for all."""
    if declared(SamplingTraits, sampling).n_rows is not None:
        for rows in (learn, kept):
            sampling = sampling if rows is None else sampling.of_rows(rows)
    rule: Sampling = sampling
    return rule
