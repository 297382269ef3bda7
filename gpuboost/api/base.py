"""The scikit-learn interface that the estimators share, over ``training.train`` and a finished ensemble.

Importing this module imports scikit-learn. The first fit imports the CPU backend, and with it numba and the kernels, or
predictions beyond the first few do: a loaded model predicts some rows without them.
"""

from __future__ import annotations

import copy
import os
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from gpuboost import losses
from gpuboost.api.constructor import ConstructorMixin, parameters_of
from gpuboost.api.html import summary
from gpuboost.api.inspection import InspectionMixin
from gpuboost.api.peer_names import PEER_NAMES
from gpuboost.api.policies import fields_of, replaced
from gpuboost.api.posterior import PosteriorMixin
from gpuboost.api.prediction import PredictionMixin
from gpuboost.api.refit import RefitMixin
from gpuboost.api.rounds import RoundsMixin
from gpuboost.api.saved_parameters import check_readable
from gpuboost.api.warm_start import check_resumed, check_warm_start, joined_history, own_model, rounds_left
from gpuboost.arguments import unknown_parameter
from gpuboost.data.columns import Columns
from gpuboost.data.dataset import Dataset
from gpuboost.data.frames import collected, for_scikit_learn
from gpuboost.data.query_column import without_group
from gpuboost.data.tables import Table, as_table
from gpuboost.data.targets import refuse_complex, refuse_lazy
from gpuboost.errors import RecipeError
from gpuboost.losses.base import facts_of
from gpuboost.losses.protocol import Loss
from gpuboost.reports.report import FitReport, Verdict, refused
from gpuboost.theory import Guarantee
from gpuboost.training import files
from gpuboost.training import job as preparation
from gpuboost.training.chosen_rounds import resolved
from gpuboost.training.fit_record import FitRecord
from gpuboost.training.init_model import checkpoint, starting_point
from gpuboost.training.parameter_json import held_to
from gpuboost.training.placement.device_arrays import as_device_array, on_host
from gpuboost.training.placement.sharding import on_its_machine
from gpuboost.training.rows import LabelledRows, labelled, labelled_dataset
from gpuboost.training.targets import TrainingTarget, takes_columns
from gpuboost.training.train import train
from gpuboost.training.trial import verdict_on
from gpuboost.types import Ensemble

FITTED = (
    "_offsets",
    "_record",
    "best_iteration_",
    "best_score_",
    "classes_",
    "columns_",
    "ensemble_",
    "evals_result_",
    "feature_names_in_",
    "fit_report_",
    "learning_rate_",
    "loss_",
    "n_features_in_",
    "n_iter_",
    "position_bias_",
)
"""Attributes that ``fit`` sets; everything else on an estimator is a parameter."""


class GradientBoosting(PredictionMixin, InspectionMixin, PosteriorMixin, RefitMixin, RoundsMixin, ConstructorMixin):
    """Abstract: ``GradientBoostingRegressor``, ``...Classifier`` and ``...Ranker`` are final."""

    _record: FitRecord
    _offsets: bool
    ensemble_: Ensemble
    columns_: Columns
    loss_: Loss
    fit_report_: FitReport
    evals_result_: dict[str, dict[str, list[float]]]
    best_iteration_: int | None
    best_score_: float | None
    learning_rate_: Any
    n_iter_: int
    n_features_in_: int

    @abstractmethod
    def _target(self, rows: LabelledRows) -> TrainingTarget:
        """The target as this kind of estimator reads it."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        with suppress(RecipeError):  # of a loss that fit will refuse
            loss = losses.get(self.loss, 2)
            tags.target_tags.positive_only = positive = facts_of(loss).positive_target
            tags.target_tags.multi_output = takes_columns(loss, self.start) and not positive  # the check has both
        return tags

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Parameters that the version which pickled the estimator did not have get their defaults."""
        known = parameters_of(type(self)).values()
        super().__setstate__({parameter.name: parameter.default for parameter in known} | state)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters; with ``deep`` those of policies and base learners too: ``sampling__rate``."""
        params: dict[str, Any] = super().get_params(deep=False)
        return params | fields_of(params) if deep else params

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name, those of policies and base learners as ``sampling__rate``."""
        nested = {name: value for name, value in params.items() if "__" in name}
        for name in params:
            if name in PEER_NAMES:
                raise ValueError(f"{type(self).__name__}: {unknown_parameter(name, (), PEER_NAMES)}")
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        if nested:
            super().set_params(**replaced(self.get_params(deep=False), nested))
        return self

    def _settings(self) -> dict[str, Any]:
        """The parameters of the final class: a subclass whose constructor takes fewer has set all of them."""
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    # fitting

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        init_model: Any = None,
        *,
        init_score: Any = None,
        resume_from: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : (n, d) array, list of rows, pandas frame, scipy sparse matrix, frame, or a ``gb.Dataset``
            Frames of pandas, polars, pyarrow, modin and DuckDB are read by narwhals. NaN and null are missing; entries
            that a sparse matrix does not store are 0. A Dataset provides its bins, and its target and weights if it
            holds them. An array on a GPU (CuPy, torch, DLPack, ``__cuda_array_interface__``) is read in place;
            predictions for such an array are CuPy arrays on the same GPU.
        y : (n,) numbers, or labels of any kind for a classifier
            Also (n, k) numbers, of k targets, or 0 and 1, for k labels; each has its own tree in each round.
        sample_weight : (n,) not negative, optional
            A row of weight 3 is three equal rows, to the last bit; a row of weight 0 is ignored. Where rows are drawn
            (``sampling``, ``langevin``, ``validation_fraction``) this holds in law only, and ``min_samples_leaf`` and
            ``gb.WeightTrimming`` look at rows and not at their weight.
        eval_set : (X, y), (X, y, weight), a ``gb.Dataset``, a list of these, or a mapping from names to them, optional
            Also (X, y, weight, init_score). Evaluated by ``eval_metric`` after each round, see
            ``evals_result_``. Entries of a list are named ``validation_0``, ``validation_1`` ... Early
            stopping uses the last one.
        init_model : fitted estimator of the same kind, or path of a saved one, optional
            A model to continue with ``n_estimators`` more rounds, in its own bins.
        init_score : (n,) or (n, K) numbers, or one number, optional
            Offsets: the score of a row is that of the model plus this, on the scale of the scores (LightGBM:
            ``init_score``; XGBoost: ``base_margin``; CatBoost: ``baseline``). For losses with a logarithmic link
            (Poisson, Gamma, Tweedie) the logarithm of the exposure; K columns for K scores. Predictions need them too.
            The start of the model is the best constant beside them, or ``start``.
        resume_from : path of a checkpoint, optional
            Continue an interrupted fit: with the same data and parameters the model is byte-identical to that of an
            uninterrupted fit, rounds before the interruption included. Written by ``gb.callbacks.Checkpoint``.

        Returns
        -------
        self
            Unchanged if the fit fails.

        Raises
        ------
        InputError
            If the data cannot be learned from.
        RecipeError
            If a parameter is out of its range, or two contradict each other.
        DeviceError
            If the device is not available.
        """
        return self._fit(X, y, sample_weight, eval_set, init_model, resume_from, init_score=init_score)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        init_model: Any,
        resume_from: Any,
        group: Any = None,
        init_score: Any = None,
        add_facts: Callable[[LabelledRows], LabelledRows] = lambda rows: rows,
    ) -> Self:
        """``fit``. add_facts: adds to the rows the pairs and positions that rankings learn from."""
        started = time.perf_counter()
        fresh, settings = self._unfitted(), self._settings()
        goes_on = check_warm_start(
            self.warm_start, fitted="ensemble_" in vars(self), init_model=init_model, resume_from=resume_from
        )
        X, group = without_group(X, group)
        rows = add_facts(fresh._rows(X, y, sample_weight, group, init_score))
        target = fresh._target(rows)
        start = None if init_model is None else starting_point(_saved_model(init_model), target)
        if resume_from is not None:
            start = check_resumed(checkpoint(resume_from, init_model, target), warm_start=self.warm_start)
        if goes_on:
            start = own_model(self._saved(), target)
            settings["n_estimators"] = rounds_left(self.n_estimators, start)
        known = resolved(settings, rows, target, eval_set, start)
        job, untrained = preparation.job(known.params, rows, target, eval_set, start, started)
        if goes_on and not settings["n_estimators"]:
            return self  # checked, and complete
        with on_its_machine(job) as ready:
            trained = known.completed(train(ready))
        best_iteration, best_score = trained.best_iteration, trained.best_score
        fresh._restore(
            replace(
                untrained,
                params=self._settings(),
                ensemble=trained.ensemble,
                best_iteration=best_iteration,
                best_score=best_score,
                record=replace(trained.record, params=held_to(self._settings())),
                learning_rate=known.params["learning_rate"],
            )
        )
        fresh.fit_report_ = trained.report
        fresh.evals_result_ = trained.evals_result
        if goes_on:
            fresh.evals_result_ = joined_history(self.evals_result_, self.n_iter_, trained.evals_result)
        self.__dict__ = fresh.__dict__  # in one step: an interrupt finds the old attributes or the new ones
        return self

    def check(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verdict:
        """The verdict of theory on this composition and these data, before any training.

        With a ``base_learner`` the data are binned, as bases and groups depend on them.

        Returns
        -------
        Verdict
            "sound", "heuristic", "unproven" or "refused", with reasons; ``alternative`` has the parameters to change
            for it to be sound, where some are found: ``model.set_params(**verdict.alternative)``.

        Raises
        ------
        InputError
            If the data cannot be learned from.
        """
        return self._check(X, y, sample_weight)

    def _check(self, X: Any, y: Any, sample_weight: Any, group: Any = None) -> Verdict:
        X, group = without_group(X, group)
        fresh = self._unfitted()
        rows = fresh._rows(X, y, sample_weight, group)
        try:
            target = fresh._target(rows)
        except RecipeError as error:
            return refused(error)
        return verdict_on(self._settings(), rows, target)

    def _unfitted(self) -> Self:
        fresh = copy.copy(self)
        for name in FITTED:
            fresh.__dict__.pop(name, None)
        return fresh

    def _rows(self, X: Any, y: Any, sample_weight: Any, group: Any = None, init_score: Any = None) -> LabelledRows:
        """The training rows, checked; notes number and names of the features."""
        if isinstance(X, Dataset):
            rows = labelled_dataset(X, y, sample_weight, group, on_host(init_score))
            self.n_features_in_ = X.columns.n_features
            if X.columns.names is not None:
                self.feature_names_in_ = np.array(X.columns.names, dtype=object)
            return rows
        X, y, sample_weight = collected(as_device_array(X, self.device)), on_host(y), on_host(sample_weight)
        table = as_table(X)
        refuse_lazy(y)
        refuse_complex(y)
        if not isinstance(X, Table):
            validate_data(self, for_scikit_learn(X, table.names), y, skip_check_array=True)
        return labelled(table, y, sample_weight, table.shape[0], group, on_host(init_score))

    @property
    def guarantee_(self) -> Guarantee:
        """The strongest statement of theory whose assumptions the fit met; see ``gpuboost.theory``.

        It is made by ``fit``, of the rounds that it names, and is saved with the model: parameters that are set later
        do not change it. A continued model has a part for each fit. It is "not known" of files of older versions.
        """
        check_is_fitted(self)
        return self._fit_record().guarantee

    def _fit_record(self) -> FitRecord:
        record: FitRecord = vars(self).get("_record", FitRecord())  # pickles of older versions lack it
        return record

    def _has_offsets(self) -> bool:
        """True if the model was fitted with ``init_score``."""
        return bool(vars(self).get("_offsets", False))

    # model files

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Write the model file: documented JSON, no pickle; ``gb.load_model`` reads it.

        Raises
        ------
        InputError
            If a class label or the loss cannot be written, or parameters that were changed after the fit contradict
            each other, so that no file with them could be read.
        OSError
            If the folder does not exist, or cannot be written to.
        """
        check_is_fitted(self)
        saved = self._saved()
        check_readable(saved, type(self))
        files.write(saved, path)

    def _saved(self) -> files.Saved:
        return files.Saved(
            params=self._settings(),
            ensemble=self.ensemble_,
            loss=self.loss_,
            columns=self.columns_,
            classes=getattr(self, "classes_", None),
            best_iteration=self.best_iteration_,
            best_score=self.best_score_,
            record=self._fit_record(),
            offsets=self._has_offsets(),
            learning_rate=vars(self).get("learning_rate_"),
        )

    def _restore(self, saved: files.Saved) -> None:
        """Set the fitted attributes from this model."""
        self.ensemble_ = saved.ensemble
        self.columns_ = saved.columns
        self.loss_ = saved.loss
        self.best_iteration_ = saved.best_iteration
        self.best_score_ = saved.best_score
        self.learning_rate_ = saved.learning_rate
        self._record = saved.record
        self._offsets = saved.offsets
        self.evals_result_ = {}
        self.n_iter_ = saved.ensemble.n_rounds
        self.n_features_in_ = saved.columns.n_features
        if saved.columns.names is not None:
            self.feature_names_in_ = np.array(saved.columns.names, dtype=object)
        if saved.classes is not None:
            self.classes_ = saved.classes

    # in Jupyter

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._summary()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return {kind: text + self._summary() if kind == "text/html" else text for kind, text in bundle.items()}

    def _summary(self) -> str:
        """HTML summary of a fitted estimator; empty for a loaded one, which has no report."""
        if "fit_report_" not in vars(self):
            return ""
        return summary(self.fit_report_, self.evals_result_, self.best_iteration_)


def _saved_model(init_model: Any) -> files.Saved:
    """The saved form of a fitted estimator, or of the model file at a path."""
    if isinstance(init_model, (str, os.PathLike)):
        return files.read(init_model)
    if not isinstance(init_model, GradientBoosting):
        raise RecipeError(f"init_model: must be a fitted estimator or the path of a model file; got {init_model!r}.")
    try:
        check_is_fitted(init_model)
    except NotFittedError:
        raise RecipeError(f"init_model: must be fitted; got {init_model!r}, which is not.") from None
    return init_model._saved()
