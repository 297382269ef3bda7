"""The methods of conformal prediction: which one suits a model, and the scores of rows by each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from gpuboost.api.base import GradientBoosting
from gpuboost.api.posterior import PosteriorMixin
from gpuboost.api.ranker import GradientBoostingRanker
from gpuboost.arguments import is_one_of, true_classes
from gpuboost.data.targets import as_numbers
from gpuboost.errors import InputError, RecipeError, shown
from gpuboost.losses.base import estimates_spread
from gpuboost.losses.per_output import PerOutput
from gpuboost.losses.residual import Quantiles
from gpuboost.posterior.intervals import check_not_censored
from gpuboost.training.placement.device_arrays import on_host

Floats = NDArray[np.float64]

REGRESSION = ("absolute", "scaled", "cqr")
CLASSIFICATION = ("lac", "aps")

_LEAST_SPREAD = 1e-12  # of draws that all agree


def check_models(models: Sequence[Any]) -> None:
    """Raise InputError unless they are one estimator, or a pair, and NotFittedError unless each is fitted."""
    if len(models) not in (1, 2):
        raise InputError(f"model: one estimator, or a pair of regressors, is needed; got {len(models)} estimators.")
    for model in models:
        _check_model(model)


def _check_model(model: Any) -> None:
    if isinstance(model, type) or not hasattr(model, "predict"):
        raise InputError(f"model: a fitted estimator, or a pair of regressors, is needed; got {shown(model)[:200]}.")
    if isinstance(_core(model), GradientBoostingRanker):
        raise InputError("model: scores of a ranker are compared within queries only, and have no intervals.")
    if hasattr(model, "get_params"):
        check_is_fitted(model)
    loss = _loss(model)
    if isinstance(loss, PerOutput):
        raise InputError(f"model: conformal sets are of one target, and this model has {loss.n_outputs}. Fit one each.")


def method_of(models: Sequence[Any], method: Any, known: Sequence[str]) -> str:
    """The method, "auto" being the one that suits the models. known: all methods for such models.

    Raises:
        InputError: if there is no such method, or a pair is not of regressors.
        RecipeError: if the method does not fit the models.
    """
    if not is_one_of(method, ("auto", *known)):
        raise InputError(f"method: must be 'auto' or one of {', '.join(map(repr, known))}; got {method!r}.")
    if len(models) == 2 and any(hasattr(model, "classes_") for model in models):
        raise InputError("model: a pair must be of regressors, of a low and a high quantile; got a classifier.")
    if known is CLASSIFICATION:
        return "lac" if method == "auto" else str(method)
    quantiles = len(models) == 2 or isinstance(_loss(models[0]), Quantiles)
    spread = not quantiles and _has_spread(models[0])
    if method == "auto":
        return "cqr" if quantiles else "scaled" if spread else "absolute"
    if method == "cqr" and not quantiles:
        raise RecipeError(
            "method: 'cqr' needs quantiles: a model with loss=gb.losses.Quantile([0.05, 0.95]), or a pair of models."
        )
    if method == "scaled" and not spread:
        raise RecipeError(
            "method: 'scaled' needs a predicted spread: a loss such as 'gaussian_nll', or a model with langevin."
        )
    if method != "cqr" and len(models) == 2:
        raise RecipeError(f"method: a pair of models is for 'cqr'; got {method!r}.")
    return str(method)


def offset_of(models: Sequence[Any], init_score: Any) -> dict[str, Any]:
    """The offsets of rows as an argument of predictions; empty without offsets. InputError if a model has none."""
    if init_score is None:
        return {}
    for model in models:
        if _draws(model):
            raise InputError("init_score: a model with langevin is fitted without offsets; leave it out.")
        if not isinstance(model, GradientBoosting):
            raise InputError(f"init_score: a {type(model).__name__} takes no offsets; leave it out.")
    return {"init_score": init_score}


def _core(model: Any) -> Any:
    """The estimator that predicts: of a pipeline its last step, of a search over parameters the best one."""
    model = getattr(model, "best_estimator_", model)
    return model[-1] if isinstance(model, Pipeline) else model


def _given(model: Any, X: Any) -> Any:
    """The rows as ``_core`` of the model is given them."""
    model = getattr(model, "best_estimator_", model)
    return model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X


def _loss(model: Any) -> Any:
    return getattr(_core(model), "loss_", None)


def _draws(model: Any) -> bool:
    core = _core(model)
    return isinstance(core, PosteriorMixin) and core._has_chain()


def _has_spread(model: Any) -> bool:
    loss = _loss(model)
    return _draws(model) or (loss is not None and hasattr(loss, "n_outputs") and estimates_spread(loss))


# regression


def bounds(models: Sequence[Any], method: str, coverage: float, X: Any, **offset: Any) -> tuple[Floats, Floats, Floats]:
    """(low, high, unit), (n,) each: intervals before the calibration, and the unit of their distance to a target.
    offset: as ``offset_of`` gives it."""
    if method == "cqr":
        low, high = _quantiles(models, coverage, X, **offset)
        return low, high, np.ones(len(low))
    centre = centre_of(models[0], X, **offset)
    return centre, centre, _spread(models[0], X, **offset) if method == "scaled" else np.ones(len(centre))


def centre_of(model: Any, X: Any, **offset: Any) -> Floats:
    """(n,) predictions; of several quantiles the one nearest to the median."""
    predicted: Floats = np.asarray(on_host(model.predict(X, **offset)), dtype=np.float64)
    if predicted.ndim == 2 and isinstance(_loss(model), Quantiles):
        return predicted[:, int(np.argmin(np.abs(np.array(_loss(model).alpha) - 0.5)))]
    return _vector(predicted)


def _quantiles(models: Sequence[Any], coverage: float, X: Any, **offset: Any) -> tuple[Floats, Floats]:
    """Two predicted quantiles: of the levels nearest to those of the coverage, or of the two models."""
    if len(models) == 2:
        low, high = (centre_of(model, X, **offset) for model in models)
        return np.minimum(low, high), np.maximum(low, high)
    levels = np.array(_loss(models[0]).alpha)
    first = int(np.argmin(np.abs(levels - (0.5 - 0.5 * coverage))))
    last = int(np.argmin(np.abs(levels - (0.5 + 0.5 * coverage))))
    if first == last:
        raise RecipeError(
            f"method: 'cqr' needs two quantiles for a coverage of {coverage:g}; of {levels.tolist()}, {levels[first]} "
            "is nearest to both. Use method='absolute'."
        )
    predicted = np.asarray(on_host(models[0].predict(X, **offset)), dtype=np.float64)
    return predicted[:, first], predicted[:, last]


def _spread(model: Any, X: Any, **offset: Any) -> Floats:
    """(n,) standard deviation of a new target, or of the draws if the loss has no model of the noise."""
    core, X = _core(model), _given(model, X)
    if not _draws(core):
        return np.asarray(on_host(core.predict(X, output="std", **offset)), dtype=np.float64)
    uncertainty = core.predict_uncertainty(X)
    variance = np.where(np.isnan(uncertainty.total), uncertainty.knowledge, uncertainty.total)
    spread: Floats = np.maximum(np.sqrt(variance), _LEAST_SPREAD)
    return spread


def scores_of_numbers(
    models: Sequence[Any], method: str, coverage: float, X: Any, y: NDArray[Any], **offset: Any
) -> Floats:
    """(n,) distance of each target beyond its bounds, negative between them, in the row's unit."""
    target = as_numbers(y)
    if not np.isfinite(target).all():
        row = int(np.argmin(np.isfinite(target)))
        raise InputError(f"y_cal: must hold finite numbers; row {row} holds {float(target[row])!r}.")
    for model in models:
        check_not_censored(_core(model), target, "y_cal")
    low, high, unit = bounds(models, method, coverage, X, **offset)
    _same_rows(low, target)
    scores: Floats = np.maximum(low - target, target - high) / unit
    return scores


# classes


def class_scores(p: Floats, method: str) -> Floats:
    """(n, K) score of each class: the larger, the less it conforms."""
    if method == "lac":
        return 1.0 - p
    order = np.argsort(-p, axis=1, kind="stable")
    scores = np.empty_like(p)
    np.put_along_axis(scores, order, np.cumsum(np.take_along_axis(p, order, axis=1), axis=1), axis=1)
    return scores


def scores_of_classes(model: Any, method: str, X: Any, y: NDArray[Any], **offset: Any) -> Floats:
    """(n,) score of the true class of each row."""
    if not hasattr(model, "predict_proba"):
        raise InputError(f"model: sets of classes are made of probabilities, and {type(model).__name__} has none.")
    true = true_classes(y, model.classes_)
    known = true.any(axis=1)
    if not known.all():
        row = int(np.argmin(known))
        raise InputError(f"y_cal: must be labels of the training data; row {row} holds {y[row]}.")
    p = np.asarray(on_host(model.predict_proba(X, **offset)), dtype=np.float64)
    _same_rows(p, y)
    of_true: Floats = class_scores(p, method)[true]
    return of_true


def _vector(predicted: Floats) -> Floats:
    if predicted.ndim != 1:
        raise InputError(f"model: predictions of one number a row are needed; they have the shape {predicted.shape}.")
    return predicted


def _same_rows(predicted: Floats, y: NDArray[Any]) -> None:
    if len(predicted) != len(y):
        raise InputError(f"y_cal: X_cal has {len(predicted)} rows, and y_cal {len(y)}.")
