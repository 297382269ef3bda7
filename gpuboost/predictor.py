"""Predictions of a fitted model without an estimator: arrays in, arrays out.

Loading one imports neither scikit-learn nor numba. Few rows are predicted by NumPy until there is work enough for the
compiled kernels, with the same bytes.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.prediction.numpy_forest import NumpyForest
from gpuboost.errors import InputError
from gpuboost.model.outputs import decision, labels, probabilities
from gpuboost.model.rounds import rounds_of
from gpuboost.training import files
from gpuboost.types import Array

KERNELS = "gpuboost.backends.prediction.predictor"
WORK_WITHOUT_KERNELS = 1 << 21
"""Rows times trees that NumPy predicts in about the time that it takes to load the kernels."""

ROWS_OF_ALL_KERNELS = 32  # few rows have a kernel of their own
FLOATS = np.dtype(np.float64), np.dtype(np.float32)


class _TreePredictor(ABC):
    """Scores of arrays of floats by a model of trees."""

    def __init__(self, saved: files.Saved, n_rounds: Any = None) -> None:
        """saved: a model that ``predictor_of`` checked."""
        self._ensemble, self._loss = rounds_of(saved.ensemble, n_rounds), saved.loss
        plain = saved.columns.missing is None and all(c is None for c in saved.columns.categories)
        self._columns = None if plain else saved.columns
        self.n_features_in_, self.n_rounds = saved.columns.n_features, self._ensemble.n_rounds
        self._reset()

    def _reset(self) -> None:
        self._numpy: NumpyForest | None = None
        self._kernels: Any = None  # a ForestPredictor
        self._work_left = WORK_WITHOUT_KERNELS

    def __getstate__(self) -> dict[str, Any]:
        made = ("_numpy", "_kernels", "_work_left")
        return {name: value for name, value in vars(self).items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset()

    @abstractmethod
    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Predictions of the rows of X, as the estimator's."""

    def warm_up(self) -> None:
        """Load the compiled kernels now, and not when there is work enough for them.

        Kernels that are not in the cache are compiled, for some seconds.
        """
        from gpuboost.backends.prediction.predictor import ForestPredictor

        if self._kernels is None:
            self._kernels = ForestPredictor.of(self._ensemble)
            for n in (1, ROWS_OF_ALL_KERNELS):
                self._scores(np.zeros((n, self.n_features_in_)))
        self._numpy = None

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """(k, n) float64"""
        x = self._numbers(X)
        if self._kernels is None and self._is_little(len(x)):
            forest = self._numpy or NumpyForest.of(self._ensemble)
            self._numpy = forest
            return forest.scores(x)
        from gpuboost.backends.prediction.predictor import predict

        if self._kernels is None:
            self.warm_up()
        out = np.empty((self._ensemble.n_outputs, len(x)))
        predict(self._kernels, x, 0, len(x), out)
        return out

    def _is_little(self, n_rows: int) -> bool:
        """True if the kernels are not loaded, and the rows so far do not make up for the time to load them."""
        self._work_left -= n_rows * max(1, len(self._ensemble.trees))
        return KERNELS not in sys.modules and self._work_left >= 0

    def _numbers(self, X: Any) -> Array:
        """X as float32 or float64, as trees see it."""
        if type(X) is not np.ndarray:
            X = _array(X)
        if X.dtype not in FLOATS:
            if X.dtype.kind not in "biuf":
                raise TypeError(f"X: a predictor takes numbers; got an array of {X.dtype}. NaN is missing.")
            X = X.astype(np.float64) if self._columns is None else X  # whose categories may be beyond the floats
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            raise InputError(
                f"X: must have shape (rows, {self.n_features_in_}); got {X.shape}. One row is X.reshape(1, -1)."
            )
        if np.isinf(X).any():
            raise InputError("X: infinity (inf) is neither a number nor missing. Use NaN for missing.")
        if self._columns is None:
            return X
        return self._columns.encode(X) if len(X) else np.empty((0, self._ensemble.cuts.n_columns))


class ModelPredictor(_TreePredictor):
    """The predictions of a regressor or ranker for arrays of floats: those of its ``predict``, to the last bit.

    ``model.predictor()`` and ``gb.load_predictor(path)`` make one. It does not change, so several threads may use it at
    once, each on its own thread; it can be pickled. One row of 500 trees takes some tens of microseconds.

    A model of categories that are numbers finds them in the columns of the array, as the estimator does. Columns of
    text, offsets (``init_score``) and base learners other than trees need the estimator, and are refused.

    Attributes
    ----------
    n_features_in_ : int
        Columns of X.
    n_rounds : int
        Rounds of which predictions are made.
    """

    def __init__(self, saved: files.Saved, n_rounds: Any = None) -> None:
        super().__init__(saved, n_rounds)
        self._is_ranker = files.kind_of(saved) == files.RANKER

    def predict(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Predictions of the rows of X.

        Parameters
        ----------
        X : (n, d) array of numbers, or a list of rows
            n may be 0. NaN is missing.

        Returns
        -------
        (n,) float64; (n, q) of q quantiles

        Raises
        ------
        TypeError
            If X is no array of numbers. Frames and sparse matrices are not accepted.
        InputError
            If its shape is another, or it holds an infinity.
        """
        scores = self._scores(X)
        return np.asarray(scores[0] if self._is_ranker else self._loss.inverse_link(scores))


class ClassifierPredictor(_TreePredictor):
    """The predictions of a classifier for arrays of floats: see ``ModelPredictor``.

    Attributes
    ----------
    classes_ : (K,) labels
    """

    def __init__(self, saved: files.Saved, n_rounds: Any = None) -> None:
        super().__init__(saved, n_rounds)
        self.classes_ = np.asarray(saved.classes)

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """(n,) the class of highest probability; the first one on a tie. X: see ``ModelPredictor.predict``."""
        return labels(self._loss, self.classes_, self._scores(X))

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """(n, K) float64 probabilities in the order of ``classes_``. X: see ``ModelPredictor.predict``."""
        return probabilities(self._loss, self._scores(X))

    def decision_function(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """(n,) float64 scores of two classes; (n, K) of K > 2 classes. X: see ``ModelPredictor.predict``."""
        return decision(self._loss, self._scores(X))


def load_predictor(path: str | os.PathLike[str], *, n_rounds: Any = None) -> ModelPredictor | ClassifierPredictor:
    """The predictor of a model file: what ``gb.load_model(path).predictor()`` is, without scikit-learn and numba.

    A process that predicts some rows and ends need not wait for either.

    Parameters
    ----------
    path : str or path
        What ``save_model`` wrote.
    n_rounds : int or (int, int), optional
        As for ``predict`` of the estimators.

    Returns
    -------
    ModelPredictor, or ClassifierPredictor with ``predict_proba`` and ``decision_function``

    Raises
    ------
    InputError
        If the file is damaged, is no model file, or is of a newer gpuboost; or if the model needs an estimator.
    OSError
        If it cannot be read.
    """
    return predictor_of(files.read(path), n_rounds)


def predictor_of(saved: files.Saved, n_rounds: Any = None) -> ModelPredictor | ClassifierPredictor:
    """The predictor of a model. Raises InputError if an array of floats does not suffice, or there are no trees."""
    text = [f for f, listed in enumerate(saved.columns.categories) if listed and isinstance(listed[0], str)]
    if saved.ensemble.components:
        raise InputError("predictor: it is for models of trees; this one has other base learners. Use the estimator.")
    if saved.offsets:
        raise InputError(
            "predictor: the model was fitted with offsets (init_score), which a predictor does not take. Use the "
            "estimator: model.predict(X, init_score=...)."
        )
    if text:
        column = text[0] if saved.columns.names is None else saved.columns.names[text[0]]
        raise InputError(f"predictor: an array of floats cannot hold the text of column {column!r}. Use the estimator.")
    return ModelPredictor(saved, n_rounds) if saved.classes is None else ClassifierPredictor(saved, n_rounds)


def _array(X: Any) -> NDArray[Any]:
    """An array of a list of rows, or of a subclass of NumPy's."""
    if isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and not isinstance(X, np.ma.MaskedArray)):
        try:
            return np.asarray(X)
        except ValueError as error:
            raise InputError(f"X: rows must be of equal length; numpy says: {error}.") from None
    raise TypeError(
        f"X: a predictor takes (n, d) arrays of floats, or lists of rows; got {type(X).__name__}. The estimator takes "
        "frames and sparse matrices."
    )
