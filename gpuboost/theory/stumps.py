"""The weak learners of RGBM's theory as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import real_numbers
from gpuboost.data.dataset import Dataset
from gpuboost.data.tables import as_table
from gpuboost.data.weights import check_weight
from gpuboost.errors import InputError


def sign_stumps(
    X: Any, *, max_bins: int = 255, constant: bool = True, sample_weight: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """+1 where a feature is at most a cut, -1 beyond, of length 1, for all features and cuts of a Dataset of X.

    The stumps of ``growth="sign_stump"``. Stumps of two values contain them, so their angles are no smaller. Row i is
    multiplied by the root of its weight: the cosines are then those of the weighted loss.

    Parameters
    ----------
    X : (n, d) array of numbers without NaN
    max_bins : int
        As for ``Dataset``.
    constant : bool
        Whether the constant learner stands, once, at the end.
    sample_weight : (n,) not negative, optional
        The weights that the model is fitted with. They choose the cuts, too, and rows of weight 0 have none.

    Returns
    -------
    B, feature : (n, K) float64 and (K,) int32
        Learners, and the feature of each, -1 for the constant.

    Raises
    ------
    InputError
        If X has missing values, or the weights are not as described.
    """
    dense = as_table(X).matrix.toarray() if hasattr(X, "toarray") else X  # SciPy does not check the column numbers
    try:
        x = real_numbers("X", dense)
    except InputError:
        raise InputError("X: must be an array of numbers; this one holds something else.") from None
    if x.ndim != 2:
        raise InputError(f"X: must be an array of two dimensions, rows and features; the shape is {x.shape}.")
    if np.isnan(x).any():
        raise InputError("X: the theory's stumps are of numbers without NaN.")
    checked = check_weight(sample_weight, len(x))
    weight = np.ones(len(x)) if checked is None else checked
    cuts = Dataset(x, weight=checked, max_bins=max_bins).cuts
    columns, features = [], []
    for f, thresholds in enumerate(cuts.thresholds):
        for threshold in thresholds:
            columns.append(np.where(x[:, f] <= threshold, 1.0, -1.0))
            features.append(f)
    if constant or not columns:
        columns.append(np.ones(len(x)))
        features.append(-1)
    learners = np.stack(columns, axis=1) * np.sqrt(weight / weight.sum())[:, None]
    return learners, np.array(features, np.int32)
