"""Registry of metrics, for early stopping and history. The same bits on every machine.

A metric takes scores, (k, n), not predictions: it gets the loss, hence the link, and computes with whichever of the two
loses no accuracy.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any

from gpuboost.errors import GpuBoostError, InputError
from gpuboost.losses.base import BaseLoss, LossFacts, checked_loss, facts_of
from gpuboost.losses.custom import Custom
from gpuboost.losses.per_output import PerOutput
from gpuboost.losses.positive import Tweedie
from gpuboost.losses.protocol import Loss, LossTraits
from gpuboost.losses.ranking import gain_table
from gpuboost.losses.residual import AbsoluteError, Expectile, Huber, Quantile, Quantiles, SquaredError
from gpuboost.metrics import classification as of_classes
from gpuboost.metrics import formulas as measures
from gpuboost.metrics import intervals as of_intervals
from gpuboost.metrics import on_device, scikit_learn
from gpuboost.metrics import ranking as query_measures
from gpuboost.metrics.checks import check_of
from gpuboost.metrics.concordance import concordance
from gpuboost.metrics.metric import Function, Metric, same
from gpuboost.metrics.outputs import over_outputs, refuse_of_several
from gpuboost.records import declared


def ndcg(k: int | None = None, *, empty: float | None = 1.0, gain: Sequence[float] | None = None) -> Metric:
    """Normalised discounted cumulative gain of the first k places, or of all places if k is None.

    Args:
        k: number of places that count.
        empty: value of a query without any gain: 1, as in XGBoost and LightGBM, 0, or None to leave it out.
        gain: gain of label 0, 1, 2, ...; None for the loss's own gains, or else 2^label - 1.
    """
    table = None if gain is None else gain_table("ndcg", gain)
    score_metric = partial(on_device.list_mean, gain=table)
    return _of_rankings("ndcg", k, empty, partial(query_measures.ndcg, gain=table), score_metric)


def mean_average_precision(k: int | None = None, *, empty: float | None = 1.0) -> Metric:
    """ "map": the mean precision at the relevant documents (label 1 or more) of the first k places. ``empty`` as in
    ``ndcg``, for a query without relevant documents."""
    return _of_rankings("map", k, empty, query_measures.average_precision)


def mean_reciprocal_rank(k: int | None = None, *, empty: float | None = 1.0) -> Metric:
    """ "mrr": 1 / the place of the first relevant document, 0 beyond place k. ``empty`` as in ``ndcg``, for a query
    without relevant documents."""
    return _of_rankings("mrr", k, empty, query_measures.reciprocal_rank)


def precision(k: int | None = None, *, empty: float | None = 1.0) -> Metric:
    """Share of the first k places (k even if the list is shorter; all places if k is None) with a relevant document,
    of label 1 or more. ``empty`` as in ``ndcg``, for a query without relevant documents."""
    return _of_rankings("precision", k, empty, query_measures.precision)


def recall(k: int | None = None, *, empty: float | None = 1.0) -> Metric:
    """Share of the relevant documents, of label 1 or more, that are among the first k places. ``empty`` as in
    ``ndcg``, for a query without relevant documents."""
    return _of_rankings("recall", k, empty, query_measures.recall)


def _of_rankings(
    name: str, k: Any, empty: Any, function: Function, score_metric: Callable[..., Any] = on_device.list_mean
) -> Metric:
    if k is not None and (isinstance(k, bool) or not isinstance(k, Integral) or k < 1):
        raise InputError(f"k: {name} needs a whole number of places, 1 or more, or None for all; got {k!r}.")
    if empty is not None and not (isinstance(empty, (int, float)) and 0.0 <= empty <= 1.0):
        raise InputError(f"empty: {name} needs a number from 0 to 1, or None to leave such queries out; got {empty!r}.")
    called = name if k is None else f"{name}@{k}"
    called += "" if empty == 1.0 else ":skip" if empty is None else f":{empty:g}"
    score_metric = partial(score_metric, rule=name, k=k, empty=empty)
    return Metric(called, True, partial(function, k=k, empty=empty), by_query=True, score_metric=score_metric)


def get(metric: str | Metric | Callable[..., float], loss: Loss) -> Metric:
    """The metric of that name, or a user's function ``f(y_true, prediction, sample_weight) -> float``.

    Names: see ``NAMES``; those of rankings with the number of places, and the value of a query without relevant
    documents (default 1), as in "ndcg@10", "map@5:0" and "mrr:skip". "quantile", "expectile", "huber" and
    "tweedie_deviance" take their parameter from the loss, or from the name, as in "quantile:0.9". With a loss of
    several quantiles, "quantile" is the mean over its levels, and "coverage" and "interval_width" are of the interval
    between the outermost two. With a loss of rankings, "auc" and
    "average_precision" are means over the queries that have relevant documents (label 1 or more), and others for
    "auc", as XGBoost's "auc" and "aucpr".

    A function is called with the result of ``predict`` or ``predict_proba`` (for two classes, the probability of class
    1); weights, or None, are passed by the name ``sample_weight`` if it has such an argument, as the third argument if
    it needs three, or not at all. Larger is better if its attribute ``higher_is_better`` is true or, by scikit-learn's
    convention, if its name ends in ``_score``.

    A function of ``sklearn.metrics`` (also a ``functools.partial`` of one) that judges labels is called with labels,
    the numbers of the classes; a scorer (``make_scorer``, ``get_scorer``) takes labels, probabilities or decisions by
    its needs, and larger is better.

    If y is (n, k), a named metric is the mean over the columns of y, "loss" is the sum over them, and a function is
    called with arrays (n, k).

    Raises:
        InputError: if there is no such metric, or it does not fit the loss.
    """
    checked_loss(loss)
    if isinstance(loss, PerOutput) and isinstance(metric, (str, Metric)) and metric != "loss":
        refuse_of_several(metric, loss)
        return over_outputs(get(metric, loss.loss))
    if isinstance(metric, Metric):
        if isinstance(metric.mean_of, Custom) and metric.mean_of.n_outputs != loss.n_outputs:
            raise InputError(
                f"eval_metric: the term of {metric.name!r} is for {metric.mean_of.n_outputs} scores a row, and loss "
                f"{loss.name!r} has {loss.n_outputs}. Pass n_outputs={loss.n_outputs} to gb.metrics.mean."
            )
        return metric
    if isinstance(metric, str):
        return _named(metric, loss)
    if isinstance(metric, type) or not callable(metric):
        raise InputError(f"eval_metric: a name or a function is needed; got {metric!r}. Names: {', '.join(NAMES)}.")
    if scikit_learn.is_scorer(metric) or scikit_learn.is_function(metric):
        judged = scikit_learn.function_of(metric, loss)
        return Metric(scikit_learn.name_of(metric), scikit_learn.higher_is_better(metric), judged)
    name = getattr(metric, "__name__", type(metric).__name__).strip("<>")
    higher = bool(getattr(metric, "higher_is_better", name.endswith("_score")))
    return Metric(name, higher, partial(measures.user_defined, metric, _weight_as(metric)))


def default_metric(loss: Loss) -> Metric:
    """Metric that is evaluated if ``eval_metric`` is None; "loss" itself for a custom loss."""
    known = checked_loss(loss)
    return get(known.default_metric if isinstance(known, BaseLoss) else facts_of(known).default_metric, loss)


def _weight_as(function: Any) -> str:
    """Way that a user's function takes the weights: "named" (sample_weight), "third" (argument), or "" (not at all)."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return ""
    if "sample_weight" in signature.parameters:
        return "named"
    for arguments, answer in ((2, ""), (3, "third")):
        try:
            signature.bind(*range(arguments))
        except TypeError:
            continue
        return answer
    raise InputError(f"eval_metric: a function of (y_true, prediction, sample_weight) is needed; got {function!r}.")


_CLASSIFY, _REGRESS = ("binary", "multiclass"), ("regression",)
_SIMPLE: dict[str, tuple[Function, bool, tuple[str, ...]]] = {  # function, higher is better, tasks
    "loss": (measures.loss, False, (*_CLASSIFY, *_REGRESS)),
    "logloss": (measures.logloss, False, ("binary",)),
    "mlogloss": (measures.mlogloss, False, ("multiclass",)),
    "error": (measures.error, False, _CLASSIFY),
    "accuracy": (measures.accuracy, True, _CLASSIFY),
    "auc": (measures.auc, True, ("binary", "regression")),
    "average_precision": (of_classes.average_precision, True, ("binary", "regression")),
    "f1": (of_classes.f1, True, ("binary",)),
    "f1_macro": (of_classes.f1_macro, True, _CLASSIFY),
    "balanced_accuracy": (of_classes.balanced_accuracy, True, _CLASSIFY),
    "mcc": (of_classes.mcc, True, _CLASSIFY),
    "brier": (of_classes.brier, False, _CLASSIFY),
    "auc_ovr": (partial(of_classes.auc_ovr, by_prevalence=False), True, ("multiclass",)),
    "auc_ovr_weighted": (partial(of_classes.auc_ovr, by_prevalence=True), True, ("multiclass",)),
    "rmse": (measures.rmse, False, _REGRESS),
    "mse": (measures.mse, False, _REGRESS),
    "mae": (measures.mae, False, _REGRESS),
    "r2": (measures.r2, True, _REGRESS),
    "mape": (measures.mape, False, _REGRESS),
    "smape": (measures.smape, False, _REGRESS),
    "rmsle": (measures.rmsle, False, _REGRESS),
    "poisson_deviance": (measures.poisson_deviance, False, _REGRESS),
    "gamma_deviance": (measures.gamma_deviance, False, _REGRESS),
    "concordance": (concordance, True, _REGRESS),
    **{name: (function, name == "coverage", _REGRESS) for name, function in of_intervals.INTERVALS.items()},
}
_WITH_PARAMETER: dict[str, tuple[Callable[..., float], Callable[[float], Loss]]] = {
    "quantile": (measures.quantile, Quantile),
    "expectile": (measures.expectile, Expectile),
    "huber": (measures.huber, Huber),
    "tweedie_deviance": (measures.tweedie_deviance, Tweedie),
}

_IN_QUERIES: dict[str, Function] = {
    "auc": query_measures.auc,
    "average_precision": query_measures.average_precision_of_classes,
}
"""Metrics of two classes that are means over queries, if the loss is one of rankings."""

RANKINGS: dict[str, Callable[..., Metric]] = {
    "ndcg": ndcg,
    "map": mean_average_precision,
    "mrr": mean_reciprocal_rank,
    "precision": precision,
    "recall": recall,
}

_EXAMPLES = {"quantile": "0.9", "expectile": "0.9", "huber": "1.0", "tweedie_deviance": "1.5"}

_TOP_K = "top_k_accuracy"

NAMES: tuple[str, ...] = (*_SIMPLE, _TOP_K, *_WITH_PARAMETER, *RANKINGS)

_LOG_LINK = ("poisson_deviance", "gamma_deviance", "tweedie_deviance")
_NEED_LINK = ("logloss", "error", "accuracy", "f1", "f1_macro", "balanced_accuracy", "mcc", "brier")
_OF_SEVERAL = ("mlogloss", "auc_ovr", "auc_ovr_weighted", "top_k_accuracy")

_ELSEWHERE = {
    "ap": "average_precision",
    "auc_mu": "auc_ovr",
    "aucpr": "average_precision",
    "binary_logloss": "logloss",
    "aft-nloglik": "loss",
    "brier_score": "brier",
    "c_index": "concordance",
    "cindex": "concordance",
    "cross_entropy": "logloss",
    "f1_score": "f1",
    "l1": "mae",
    "l2": "mse",
    "log_loss": "logloss",
    "matthews_corrcoef": "mcc",
    "mean_absolute_percentage_error": "mape",
    "mean_average_precision": "map",
    "mean_reciprocal_rank": "mrr",
    "merror": "error",
    "multi_error": "error",
    "multi_logloss": "mlogloss",
    "pinball": "quantile",
    "pr_auc": "average_precision",
    "pre": "precision",
    "roc_auc": "auc",
    "roc_auc_ovr": "auc_ovr",
    "roc_auc_ovr_weighted": "auc_ovr_weighted",
    "root_mean_squared_log_error": "rmsle",
}
"""Names in other libraries, for the error message."""


def _root_of_twice(mean: float) -> float:
    return math.sqrt(2.0 * mean)


def _twice(mean: float) -> float:
    return 2.0 * mean


def _named(text: str, loss: Loss) -> Metric:
    name, colon, parameter = text.partition(":")
    name, at_sign, places = name.partition("@")
    if name in RANKINGS:
        _must_fit(name, loss)
        return _ranking(text, name, places if at_sign else None, parameter if colon else None)
    if name not in NAMES or (at_sign and name != _TOP_K):
        close = [_ELSEWHERE[name]] if name in _ELSEWHERE else difflib.get_close_matches(name, NAMES, n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        raise InputError(f"eval_metric: unknown name {text!r}. {hint}Names: {', '.join(NAMES)}.")
    if name in _IN_QUERIES and loss.task == "ranking" and not colon:
        return Metric(name, True, partial(_IN_QUERIES[name], k=None, empty=None), by_query=True)
    _must_fit(name, loss)
    if isinstance(loss, Quantiles) and name == "quantile":
        return _of_quantiles(text, parameter, loss)
    if name == _TOP_K:
        return _top_k_accuracy(text, places)
    if name in _WITH_PARAMETER:
        function, family = _WITH_PARAMETER[name]
        judge = _judge(name, family, parameter, loss)
        bound = partial(function, a=judge.parameter)
        same = name != "tweedie_deviance" and _predicts_scores(loss)
        score_metric = None if same else partial(on_device.term_mean, metric=name, a=judge.parameter)
        return Metric(text, False, bound, judge if same else None, score_metric=score_metric)
    return _simple(text, name, loss)


def _simple(text: str, name: str, loss: Loss) -> Metric:
    """Metric that a name without a parameter stands for."""
    if text != name:
        raise InputError(f"eval_metric: {name!r} takes no parameter; got {text!r}. Use {name!r}.")
    function, higher, _ = _SIMPLE[name]
    (mean_of, finish), score_metric = _as_loss(name, loss), None
    if mean_of is None and name in on_device.DEVICE_METRICS:
        score_metric, finish = on_device.DEVICE_METRICS[name]
    return Metric(name, higher, function, mean_of, finish, score_metric=score_metric, check=check_of(name, loss))


def _top_k_accuracy(text: str, places: str) -> Metric:
    """Metric that a text such as "top_k_accuracy@5" stands for."""
    if not places.isdecimal() or not 1 <= int(places) < 2**31:
        raise InputError(f"eval_metric: {_TOP_K} needs a number of classes, as in '{_TOP_K}@5'; got {text!r}.")
    score_metric = partial(on_device.hit_share, places=int(places), later_leads=True)
    return Metric(text, True, partial(of_classes.top_k_accuracy, k=int(places)), score_metric=score_metric)


def _ranking(text: str, name: str, places: str | None, empty: str | None) -> Metric:
    """Metric that a text such as "ndcg@10:skip" stands for."""
    try:
        k = None if places is None else int(places)
        value = 1.0 if empty is None else None if empty == "skip" else float(empty)
        return RANKINGS[name](k, empty=value)
    except ValueError as error:
        raise InputError(
            f"eval_metric: {text!r} must read {name}, {name}@10, {name}@10:0 or {name}@10:skip: {error}"
        ) from None


def _must_fit(name: str, loss: Loss) -> None:
    """Raise InputError if the metric does not fit the loss's task."""
    tasks = _SIMPLE[name][2] if name in _SIMPLE else ("ranking",) if name in RANKINGS else _REGRESS
    tasks = ("multiclass",) if name == _TOP_K else tasks
    why = ""
    if loss.task == "any":
        if name in _OF_SEVERAL:
            why = "a custom loss has one output"
        elif name in RANKINGS:
            why = "it judges rankings; use GradientBoostingRanker"
        elif name in _NEED_LINK and declared(LossTraits, loss).link is None:
            why = "it needs probabilities; give custom(..., inverse_link=) a function that makes them"
    elif loss.task not in tasks:
        instead = "'loss'" if loss.name == "cross_entropy" else "'mlogloss'" if loss.task == "multiclass" else ""
        other = f"; use {instead}" if name == "logloss" and instead else ""
        why = f"it judges {' and '.join(tasks)} targets, and this loss is for {loss.task} ones{other}"
    elif name in _LOG_LINK and facts_of(loss).link != "log":
        why = "it needs positive predictions; use a loss with a logarithmic link (poisson, gamma, tweedie)"
    why = why or _why_not_of_times(name, facts_of(loss))
    why = why or _why_not_of_quantiles(name, isinstance(loss, Quantiles))
    if why:
        raise InputError(f"eval_metric: {name!r} does not fit loss {loss.name!r}: {why}.")


def _of_quantiles(text: str, parameter: str, loss: Quantiles) -> Metric:
    """Metric that "quantile" or, of one of the loss's levels, "quantile:0.5" stands for."""
    if not parameter:
        return Metric(text, False, of_intervals.mean_pinball)
    judge = _judge("quantile", Quantile, parameter, loss)
    if judge.parameter not in loss.alpha:
        levels = ", ".join(f"{level:g}" for level in loss.alpha)
        raise InputError(f"eval_metric: {text!r} is none of the levels of the loss, {levels}.")
    return Metric(text, False, partial(of_intervals.pinball, level=judge.parameter))


def _why_not_of_quantiles(name: str, several: bool) -> str:
    """Reason against a metric; empty if there is none. several: True for a loss of several quantiles."""
    if name in ("quantile", "loss") or several == (name in of_intervals.INTERVALS):
        return ""
    return f"it judges {'one prediction' if several else 'quantiles of several levels for'} a row; use 'quantile'"


def _why_not_of_times(name: str, facts: LossFacts) -> str:
    """Reason against a metric; empty if there is none."""
    if facts.censored_target:
        return "" if name in ("loss", "concordance") else "its y has the signs of censored times; use 'concordance'"
    if name != "concordance" or facts.task == "any" or facts.positive_target:
        return ""
    return "it judges censored times; use loss 'aft'"


def _judge(name: str, family: Callable[[float], Loss], parameter: str, loss: Loss) -> Loss:
    """The loss whose parameter the metric takes: from its name, or from the training loss if that is its family."""
    if parameter:
        try:
            return family(float(parameter))
        except (ValueError, GpuBoostError) as error:
            raise InputError(
                f"eval_metric: in {name}:{parameter}, {parameter!r} must be its parameter: {error}"
            ) from None
    if type(loss) is family:
        return loss
    example = f"{name}:{_EXAMPLES[name]}"
    raise InputError(f"eval_metric: {name!r} has no parameter with loss {loss.name!r}; write it, as in {example!r}.")


def _as_loss(name: str, loss: Loss) -> tuple[Loss | None, Callable[[float], float]]:
    """The loss whose weighted mean the metric is a function of (or None), and that function."""
    if name == "loss":
        return loss, same
    if name in ("logloss", "mlogloss"):
        return (loss.log_loss if isinstance(loss, BaseLoss) else None), same
    if not _predicts_scores(loss):
        return None, same
    plain: dict[str, tuple[Loss, Callable[[float], float]]] = {
        "rmse": (SquaredError(), _root_of_twice),
        "mse": (SquaredError(), _twice),
        "mae": (AbsoluteError(), same),
    }
    return plain.get(name, (None, same))


def _predicts_scores(loss: Loss) -> bool:
    """True if the prediction of a regression is the untransformed score."""
    return facts_of(loss).link == "identity" and loss.task == "regression"
