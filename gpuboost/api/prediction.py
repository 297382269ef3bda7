"""Predictions of a fitted estimator: the rows as numbers, the backend that predicts, and answers where the rows are."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from gpuboost.api.offsets import offset_of, with_offset
from gpuboost.backends.cuda.device.gpus import gpu_of
from gpuboost.backends.devices import choose_to_predict
from gpuboost.backends.prediction.first_rows import FIRST
from gpuboost.backends.protocol import Backend
from gpuboost.components import fit_for_gpus
from gpuboost.data.columns import Columns
from gpuboost.data.dataset import Dataset
from gpuboost.data.frames import collected, for_scikit_learn, lazy_frame, with_only
from gpuboost.data.offsets import Offset
from gpuboost.data.tables import Table, as_table
from gpuboost.errors import InputError
from gpuboost.model.rounds import rounds_of
from gpuboost.model.used_columns import used_columns
from gpuboost.predictor import ClassifierPredictor, ModelPredictor, predictor_of
from gpuboost.scoring.answers import Answer
from gpuboost.training.files import Saved
from gpuboost.training.parameters.threads import threads_of
from gpuboost.training.placement.device_arrays import as_device_array, on_host, to_caller_device
from gpuboost.training.placement.kept_backends import kept_backend
from gpuboost.training.rows import numbers
from gpuboost.types import Array, DeviceMatrix, Ensemble

MakeAnswer: TypeAlias = Callable[[], Answer]
"""A function that makes the answer for a caller, once the model is known to be fitted"""


class PredictionMixin(ABC):
    """Mixin of ``GradientBoosting``: what all its kinds predict alike, and the helpers of ``predict``."""

    ensemble_: Ensemble
    columns_: Columns
    n_features_in_: int
    base_learner: Any
    device: Any
    n_jobs: Any
    _saved: Callable[[], Saved]
    _has_offsets: Callable[[], bool]

    def predictor(self, *, n_rounds: Any = None) -> ModelPredictor | ClassifierPredictor:
        """A lean object that gives the predictions of this model for arrays of floats, one row in microseconds.

        For services: it is validated once, shares the trees with the model, can be pickled, and serves several threads.
        See ``gb.ModelPredictor``; ``gb.load_predictor`` makes one of a model file.

        Parameters
        ----------
        n_rounds : int or (int, int), optional
            As for ``predict``, for all its predictions.

        Raises
        ------
        InputError
            If the model is not of trees, was fitted with offsets, or has columns of text.
        """
        check_is_fitted(self)
        made = predictor_of(self._saved(), n_rounds)
        made.warm_up()
        return made

    def apply(self, X: Any, *, n_rounds: Any = None) -> NDArray[np.int32]:
        """(n, trees) int32: node number of each row's leaf in each tree; ``n_rounds`` as for ``predict``."""
        self._needs_trees("apply")
        part = rounds_of(self.ensemble_, n_rounds)
        x, machine = self._rows_and_backend(X)
        leaves: NDArray[np.int32] = to_caller_device(machine, x, machine.leaves(part, x))
        return leaves

    def predict_contributions(self, X: Any, *, init_score: Any = None, n_rounds: Any = None) -> NDArray[np.float64]:
        """Contributions of the features to the score of each row: exact (path-dependent) Shapley values.

        ``init_score`` (offsets) and ``n_rounds`` as for ``predict``. Features contribute the same without offsets.

        Returns
        -------
        (n, d + 1) float64, or (n, K, d + 1) for K classes or quantiles
            The contributions of a row sum to its score; the last one is the expected score without any feature, with
            the offset of the row. Scores of several quantiles are those before they are sorted.

        Raises
        ------
        InputError
            If X does not fit the model, the model is not of trees, or the paths in a tree have 2**25 splits together.
        """
        self._needs_trees("predict_contributions")
        part = rounds_of(self.ensemble_, n_rounds)
        x, machine = self._rows_and_backend(X)
        offset = offset_of(X, init_score, x.shape[0], part.n_outputs)
        found = machine.contributions(part, x)
        values: NDArray[np.float64] = self._explanations(machine, x, found, self._of_columns, offset)
        return values

    def predict_interactions(self, X: Any, *, init_score: Any = None, n_rounds: Any = None) -> NDArray[np.float64]:
        """Contributions of each pair of features to the score of each row: exact (path-dependent) SHAP interactions.

        XGBoost: ``pred_interactions=True``; CatBoost: ``ShapInteractionValues``; shap: ``shap_interaction_values``.
        The interaction of two features is divided equally between entries (i, j) and (j, i); the diagonal has what a
        feature contributes by itself. ``init_score`` (offsets) and ``n_rounds`` as for ``predict``. They take
        8 (d + 1)**2 bytes a row and score.

        Returns
        -------
        (n, d + 1, d + 1) float64, or (n, K, d + 1, d + 1) for K classes or quantiles
            Symmetric. Row i sums to the contribution of feature i, and all to the score; the last entry is the expected
            score with the offset of the row, and the rest of its row and column is 0.

        Raises
        ------
        InputError
            As ``predict_contributions``.
        """
        self._needs_trees("predict_interactions")
        part = rounds_of(self.ensemble_, n_rounds)
        x, machine = self._rows_and_backend(X)
        offset = offset_of(X, init_score, x.shape[0], part.n_outputs)

        def of_pairs(values: Any) -> Any:
            return self._of_columns(self._of_columns(values).swapaxes(-1, -2)).swapaxes(-1, -2)

        values: NDArray[np.float64] = self._explanations(machine, x, machine.interactions(part, x), of_pairs, offset)
        return values

    def _explanations(
        self, machine: Backend, x: Any, values: Array, of_columns: Callable[[Any], Any], offset: Offset | None
    ) -> Any:
        """(n, k, ...) values of the columns that trees see, as (n, ...) if k is 1, and of the columns of X.

        offset: (k, n) is added to the last values, those of no feature; None for none.
        """
        n, k, *rest = values.shape
        values = values.reshape((n, *rest)) if k == 1 else values

        def with_offset(of_features: Any) -> Any:
            made = of_columns(of_features)
            if offset is not None:
                last = (-1,) * len(rest)
                made[..., *last] += offset[0] if k == 1 else offset.T
            return made

        as_found = self.columns_.statistics is None and offset is None
        return to_caller_device(machine, x, values, None if as_found else Answer(with_offset))

    def _of_columns(self, values: Any) -> Any:
        """Values of the columns that trees see as values of the columns of X, on the last axis."""
        statistics = self.columns_.statistics
        return values if statistics is None else statistics.folded(values, self.n_features_in_)

    def _answer(self, X: Any, make_answer: MakeAnswer, *, init_score: Any = None, n_rounds: Any = None) -> Any:
        """The answer, of the (k, n) float64 scores."""
        x, device = self._rows_and_device(X)
        part, answer = self._part(X, x, make_answer, init_score, n_rounds)
        few = FIRST.scores(part, x) if device == "cpu" else None
        if few is not None:
            return answer(few)
        machine = self._machine(device)
        return to_caller_device(machine, x, machine.predict(part, x), answer)

    def _staged_answers(
        self, X: Any, make_answer: MakeAnswer, *, init_score: Any = None, n_rounds: Any = None
    ) -> Iterator[Any]:
        x, machine = self._rows_and_backend(X)
        part, answer = self._part(X, x, make_answer, init_score, n_rounds)
        return (to_caller_device(machine, x, scores, answer) for scores in machine.staged_predict(part, x))

    def _part(self, X: Any, x: Any, make_answer: MakeAnswer, init_score: Any, n_rounds: Any) -> tuple[Ensemble, Answer]:
        """The rounds to predict by, and the answer with offsets added to the scores. x: the rows of X as numbers."""
        part, has_offsets = rounds_of(self.ensemble_, n_rounds), self._has_offsets()
        offset = offset_of(X, init_score, x.shape[0], part.n_outputs, warn_of_none=has_offsets)
        return part, with_offset(make_answer(), offset)

    def _rows_and_backend(self, X: Any) -> tuple[Any, Backend]:
        """The rows as numbers, and the backend that predicts."""
        x, device = self._rows_and_device(X)
        return x, self._machine(device)

    def _machine(self, device: str) -> Backend:
        return kept_backend(self, device, threads_of(self.n_jobs))

    def _rows_and_device(self, X: Any) -> tuple[Any, str]:
        """The rows as numbers, and the device that predicts."""
        if "ensemble_" not in vars(self):  # scikit-learn's own question takes longer than a row's prediction
            check_is_fitted(self)
        if self.ensemble_.components:
            on_gpu = gpu_of(X) is not None or str(self.device).startswith("cuda")
            if not (on_gpu and fit_for_gpus(self.ensemble_)):
                return self._numbers(on_host(X)), "cpu"
        X = as_device_array(X, self.device)
        if isinstance(X, DeviceMatrix):
            return self._numbers(X), X.device
        return self._numbers(X), choose_to_predict(self.device).name

    def _numbers(self, X: Any) -> Any:
        """(n, d), or a scipy matrix of them."""
        if isinstance(X, Dataset):
            return numbers(X, self.columns_)
        is_array = type(X) is np.ndarray or isinstance(X, DeviceMatrix)
        if not is_array:
            X = collected(X if (frame := lazy_frame(X)) is None else self._needed(frame))
        given = as_table(X)
        table = self.columns_.without_query(given)
        # scikit-learn's check of names and numbers of columns takes longer than a row's prediction; a Table has its own
        is_plain = is_array and self.columns_.names is None and X.shape[1] == self.n_features_in_
        if not is_plain and not isinstance(X, Table) and table is given:
            self._check_columns(X, table.names)
        return self.columns_.encode(table)

    def _check_columns(self, X: Any, names: Sequence[str] | None) -> None:
        """scikit-learn's check of the names and the number of columns; names (d,) of X."""
        try:
            validate_data(self, for_scikit_learn(X, names), reset=False, skip_check_array=True)
        except ValueError as error:
            known = self.columns_.names
            if names is None or known is None or sorted(names) != sorted(known):
                raise
            f = next(f for f, name in enumerate(names) if name != known[f])
            raise InputError(f"{str(error).rstrip()}\nColumn {f} is {names[f]!r}, and was {known[f]!r}.") from None

    def _needed(self, frame: Any) -> Any:
        """A narwhals lazy frame, of which only the columns are read that predictions depend on."""
        frame = frame.drop(self.columns_.query, strict=False) if self.columns_.query else frame
        self._check_columns(frame.head(0).collect().to_native(), frame.collect_schema().names())
        used = used_columns(self.ensemble_, [encoded.columns for encoded in self.columns_.layout])
        return with_only(frame, {frame.collect_schema().names()[f] for f in used})

    def _needs_trees(self, name: str) -> None:
        """Raise InputError, with the name of the method, if the model has base learners other than trees."""
        check_is_fitted(self)
        if self.ensemble_.components:
            raise InputError(
                f"{name}: it is for models of trees; this one was fitted with base_learner={self.base_learner!r}. Of "
                "splines and other effects of one feature, gb.plot.partial_effect and gb.export.to_table tell more."
            )
