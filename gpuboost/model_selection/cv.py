"""Cross-validation that keeps curves, out-of-fold predictions and models."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from gpuboost.api.base import GradientBoosting
from gpuboost.data.dataset import Dataset
from gpuboost.data.query_column import without_group
from gpuboost.data.tables import as_table
from gpuboost.errors import InputError, RecipeError
from gpuboost.model_selection.folds import Rows, for_fold, splits_of
from gpuboost.model_selection.in_step import SET, TRAIN, best_round, curves, fit_in_step
from gpuboost.model_selection.lock_step import fit_each
from gpuboost.model_selection.model_check import check_model
from gpuboost.training.parameters.automatic import is_auto
from gpuboost.training.parameters.values import integer
from gpuboost.training.rows import labelled
from gpuboost.watch.early_stopping import EarlyStopping


@dataclass(frozen=True, slots=True)
class CvResult:
    """Each row judged by the model that had not seen it."""

    predictions: NDArray[np.float64]  # (n,) numbers, or (n, K) probabilities; NaN where no fold held the row out
    fold: NDArray[np.int32]  # (n,) the last fold that held the row out, -1 for none
    mean: dict[str, list[float]]  # metric -> mean over the folds, round by round
    std: dict[str, list[float]]  # metric -> standard deviation over the folds
    best_iteration_: int  # the round with the best mean of the first metric, 0 for the first; of all sequences of trees
    models: tuple[GradientBoosting, ...]  # one per fold
    model: GradientBoosting | None  # fitted to all rows for the best number of rounds, if asked for
    train_mean: dict[str, list[float]] = field(default_factory=dict)  # of the training rows, if asked for
    train_std: dict[str, list[float]] = field(default_factory=dict)

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        """The means, in the shape of an estimator's."""
        return {SET: self.mean}

    def __repr__(self) -> str:
        best = self.best_iteration_
        scores = ", ".join(f"{name} {self.mean[name][best]:.5g} +- {self.std[name][best]:.2g}" for name in self.mean)
        return f"CvResult({len(self.models)} folds, best round {best + 1}: {scores})"


def cv(
    model: GradientBoosting,
    data: Any,
    y: Any = None,
    *,
    folds: Any = 5,
    sample_weight: Any = None,
    group: Any = None,
    init_score: Any = None,
    refit: bool = False,
    random_state: int = 0,
    early_stopping_rounds: int | None = None,
    train_curve: bool = False,
) -> CvResult:
    """Fit a clone of the model to each fold's training rows and judge it on the others.

    Parameters
    ----------
    model : estimator
        Not changed. With early stopping of its own, or ``n_estimators="auto"``, each fold stops by its own held-out
        rows, and the curves end with the shortest.
    data, y, sample_weight, group, init_score
        A ``gb.Dataset``, or X, target, weights, queries and offsets. They are binned once: the cuts are those of all
        rows, which tells a fold nothing about the targets it is judged by.
    folds : int, splitter of scikit-learn, or iterable of (training rows, held-out rows)
        An int shuffles; classes are spread evenly. Rows of one query stay together, and are not shuffled. A sampling
        rule of one number for each row, such as ``gb.RowProbabilities``, has those of a fold's rows.
    refit : bool
        Also fit to all rows, for the best number of rounds. (Curves count those of all sequences, as ``n_iter_``.)
    random_state : int
        Seed of the shuffling.
    early_stopping_rounds : int, optional
        Stop all folds after this many rounds in a row in which the mean over the folds was no new best (the argument of
        ``xgboost.cv``; ``lightgbm.cv`` does so too). The models have the rounds up to the best one. An
        ``EarlyStopping`` among the model's callbacks may name the metric and ``min_delta``.
    train_curve : bool
        Judge the training rows too, see ``train_mean`` (LightGBM: ``eval_train_metric``).

    Raises
    ------
    RecipeError
        If a parameter is out of its range, or the model sets rows aside itself.
    InputError
        If the data cannot be learned from.
    """
    _check(model, random_state)
    rows = dataset_of(model, data, y, sample_weight, group, init_score)
    classify = bool(is_classifier(model))
    splits = splits_of(folds, len(rows), rows.y, rows.group, random_state, classify=classify)
    fitted = _fitted(model, rows, splits, early_stopping_rounds, train_curve=train_curve)
    answers = [
        (judge, fold_model.predict_proba(rows.take(judge)) if classify else fold_model.predict(rows.take(judge)))
        for (_, judge), fold_model in zip(splits, fitted, strict=True)
    ]
    mean, std = curves(fitted)
    best = best_round(model, fitted[0], mean)
    final = _refitted(model, rows, best + 1, fitted[0].columns_.sequences) if refit else None
    on_training = curves(fitted, TRAIN) if train_curve else ({}, {})
    return CvResult(*_out_of_fold(len(rows), answers), mean, std, best, tuple(fitted), final, *on_training)


def _check(model: GradientBoosting, seed: Any) -> None:
    check_model(model)
    if model.validation_fraction is not None:
        raise RecipeError("validation_fraction: cross-validation watches the held-out rows; set it to None.")
    if not is_auto(model.n_estimators):
        integer("n_estimators", model.n_estimators, 1)
    if seed is not None and not isinstance(seed, np.random.RandomState):
        integer("random_state", seed, 0, 2**32 - 1)


def _fitted(
    model: GradientBoosting, rows: Dataset, splits: list[tuple[Rows, Rows]], early_stopping_rounds: int | None, *,
    train_curve: bool,
) -> list[GradientBoosting]:  # fmt: skip
    """The models of the folds. They stop together after that many rounds without a new best; None: each by itself."""

    def watched(learn: Rows, judge: Rows) -> dict[str, Dataset]:
        return {TRAIN: rows.take(learn), SET: rows.take(judge)} if train_curve else {SET: rows.take(judge)}

    models = [for_fold(model, learn, len(rows)) for learn, _ in splits]
    if early_stopping_rounds is not None:
        training, judged = [rows.take(learn) for learn, _ in splits], [watched(*split) for split in splits]
        return fit_in_step(models, training, judged, early_stopping_rounds)

    def fit(learn: Rows, judge: Rows, fold_model: GradientBoosting) -> GradientBoosting:
        return fold_model.fit(rows.take(learn), eval_set=watched(learn, judge))

    return fit_each(models, [partial(fit, *split) for split in splits], rows)


def dataset_of(
    model: GradientBoosting, data: Any, y: Any, sample_weight: Any = None, group: Any = None, init_score: Any = None
) -> Dataset:
    """A Dataset as it is, or one of X, target, weights, queries and offsets with the cuts of the model's parameters."""
    if isinstance(data, Dataset):
        if data.y is None or any(argument is not None for argument in (y, sample_weight, group, init_score)):
            raise InputError(
                "data: a Dataset brings target, weights and queries itself; make it with Dataset(X, y, weight=, "
                "group=)."
            )
        return data
    if y is None:
        raise InputError("y: a target is needed; pass cv(model, X, y), or a Dataset that holds one.")
    data, group = without_group(data, group)
    features = as_table(data)
    rows = labelled(features, y, sample_weight, features.shape[0], group)
    return Dataset(
        features,
        rows.y,
        weight=rows.metadata.weight,
        group=rows.metadata.group,
        init_score=init_score,
        max_bins=model.max_bins,
        binning=model.binning,
        categorical_features=model.categorical_features,
        missing=model.missing,
        n_jobs=model.n_jobs,
    )


def _out_of_fold(
    n: int, answers: list[tuple[NDArray[np.intp], NDArray[np.float64]]]
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    predictions = np.full((n, *answers[0][1].shape[1:]), np.nan)
    fold = np.full(n, -1, np.int32)
    for number, (rows, answer) in enumerate(answers):
        predictions[rows], fold[rows] = answer, number
    return predictions, fold


def _refitted(model: GradientBoosting, rows: Dataset, rounds: int, sequences: int) -> GradientBoosting:
    """The model fitted to all rows, without early stopping, as no held-out rows are left.

    rounds: those of all sequences of trees together, which ``n_estimators`` counts for each
    """
    final: GradientBoosting = clone(model)
    callbacks = tuple(callback for callback in final.callbacks if not isinstance(callback, EarlyStopping))
    final.set_params(n_estimators=-(-rounds // sequences), early_stopping_rounds=None, callbacks=callbacks)
    return final.fit(rows)
