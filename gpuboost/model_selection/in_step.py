"""Folds that are fitted in step: all stop where the mean of their curves is best."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from gpuboost.api.base import GradientBoosting
from gpuboost.data.dataset import Dataset
from gpuboost.errors import InputError
from gpuboost.metrics.metric import Metric
from gpuboost.model_selection.lock_step import fit_each
from gpuboost.training.monitoring import metrics_of
from gpuboost.training.parameters.automatic import provisional
from gpuboost.training.parameters.seeds import seed_of
from gpuboost.training.parameters.values import integer
from gpuboost.watch.early_stopping import EarlyStopping

SET, TRAIN = "validation", "train"
"""Names of the eval sets: held-out rows, and training rows if they are judged too."""

_FIRST = 50  # rounds of the first part of a fit in step, at least

Curves = dict[str, list[float]]


def fit_in_step(
    models: Sequence[GradientBoosting],
    training: Sequence[Dataset],
    watched: Sequence[dict[str, Dataset]],
    patience: int,
) -> list[GradientBoosting]:
    """Clones of each fold's model, fitted to its training rows, with the rounds up to the best mean of the metric.

    The mean is that of the held-out rows. Each part of the fits continues the part before, and is as long as all before
    it, so at most half of the rounds are made for nothing.

    Raises
    ------
    RecipeError, InputError
        If the patience is no number of rounds, or the metric no number.
    """
    integer("early_stopping_rounds", patience, 1)
    model = models[0]
    rule = stopping_rule(model, patience)
    numbers = provisional(model.get_params(deep=False), len(training[0]))
    max_rounds, rate = numbers["n_estimators"], numbers["learning_rate"]
    common = {
        "learning_rate": rate,
        "early_stopping_rounds": None,
        "callbacks": without_stopping(model),
        "random_state": seed_of(model.random_state),
    }
    fitted: list[GradientBoosting] = []
    histories: list[dict[str, Curves]] = [{name: {} for name in sets} for sets in watched]
    done = 0
    while done < max_rounds:
        rounds = min(max(done, 2 * rule.rounds, _FIRST), max_rounds - done)
        parts = [clone(of_fold).set_params(n_estimators=rounds, **common) for of_fold in models]
        before: list[Any] = [*fitted] or [None] * len(training)
        fits = [partial(_fit, *of_fold) for of_fold in zip(training, watched, before, strict=True)]
        fitted = fit_each(parts, fits, training[0])
        for history, fold_model in zip(histories, fitted, strict=True):
            _extend(history, fold_model.evals_result_)
        done += rounds
        in_turn = rule.with_rounds(rule.rounds * fitted[0].columns_.sequences)  # the patience is that of each sequence
        best, stop = _best_so_far(in_turn, model, fitted[0], _mean(histories))
        if stop:
            break
    for history, fold_model, of_fold in zip(histories, fitted, models, strict=True):
        fold_model.evals_result_ = history
        fold_model.set_params(**of_fold.get_params(deep=False))
    return [fold_model[: best + 1] for fold_model in fitted]


def _fit(rows: Dataset, sets: dict[str, Dataset], earlier: Any, part: GradientBoosting) -> GradientBoosting:
    return part.fit(rows, eval_set=sets, init_model=earlier)


def stopping_rule(model: GradientBoosting, patience: int) -> EarlyStopping:
    """The rule of the model's callbacks with this patience, or a new one."""
    rules = [callback for callback in model.callbacks if isinstance(callback, EarlyStopping)]
    if not rules:
        return EarlyStopping(patience)
    return EarlyStopping(patience, rules[0].min_delta, metric=rules[0].metric)


def _best_so_far(rule: EarlyStopping, model: GradientBoosting, fitted: Any, mean: Curves) -> tuple[int, bool]:
    """The best round of the mean curve, 0 for the first, and whether the rule has stopped."""
    metrics = {metric.name: metric.higher_is_better for metric in _metrics(model, fitted)}
    name = next(iter(metrics)) if rule.metric is None else rule.metric
    if name not in metrics:
        raise InputError(f"metric: early stopping by {name!r}, of which the fit has none; it has {[*metrics]}.")
    best, end = rule.followed(name, mean[name], greater_is_better=metrics[name])
    return best, end is not None


def curves(fitted: Sequence[GradientBoosting], data: str = SET) -> tuple[Curves, Curves]:
    """Mean and standard deviation over the folds, up to the round that all of them reached."""
    mean: Curves = {}
    std: Curves = {}
    for metric in fitted[0].evals_result_[data]:
        each = [fold_model.evals_result_[data][metric] for fold_model in fitted]
        shortest = min(map(len, each))
        values = np.array([curve[:shortest] for curve in each])
        mean[metric], std[metric] = values.mean(axis=0).tolist(), values.std(axis=0).tolist()
    return mean, std


def best_round(model: GradientBoosting, fitted: GradientBoosting, mean: Curves) -> int:
    """The round with the best mean of the metric that stops, or the first metric; the first round of a tie."""
    chosen = deciding_metric(model, fitted)
    values = np.array(mean[chosen.name])
    if np.isnan(values).all():
        raise InputError(f"eval_metric: the mean of {chosen.name} is nan in every round; choose another one.")
    return int(np.nanargmax(values) if chosen.higher_is_better else np.nanargmin(values))


def deciding_metric(model: GradientBoosting, fitted: GradientBoosting) -> Metric:
    """The metric that stops, or the first one."""
    metrics = {metric.name: metric for metric in _metrics(model, fitted)}
    return metrics.get(stopping_rule(model, 1).metric or "", next(iter(metrics.values())))


def _metrics(model: GradientBoosting, fitted: GradientBoosting) -> tuple[Metric, ...]:
    return metrics_of(model.eval_metric, fitted.loss_, getattr(model, "eval_at", None))


def _mean(histories: Sequence[dict[str, Curves]]) -> Curves:
    first = histories[0][SET]
    return {metric: np.mean([history[SET][metric] for history in histories], axis=0).tolist() for metric in first}


def _extend(history: dict[str, Curves], more: dict[str, Curves]) -> None:
    for name, of_metrics in more.items():
        for metric, values in of_metrics.items():
            history[name].setdefault(metric, []).extend(values)


def without_stopping(model: GradientBoosting) -> tuple[Any, ...]:
    """The model's callbacks but early stopping."""
    return tuple(callback for callback in model.callbacks if not isinstance(callback, EarlyStopping))
