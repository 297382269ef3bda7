"""The sum of fitted models, as one model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuboost.api.base import GradientBoosting
from gpuboost.arguments import is_real
from gpuboost.errors import InputError, shown
from gpuboost.training.files import Saved
from gpuboost.training.fit_record import FitRecord
from gpuboost.types import Cuts, Ensemble

Model = TypeVar("Model", bound=GradientBoosting)


def sum_models(models: Sequence[Model], weights: Sequence[float] | None = None) -> Model:
    """The fitted estimator whose scores are the weighted sum of those of others (CatBoost: ``sum_models``).

    With weights of 1 / n it is the average of n models, such as those of ``gb.cv``. Scores are added, not
    probabilities. Its rounds are those of the first model, then those of the second and so on; its ``guarantee_`` is
    not known, and of models with ``langevin`` it has no draws: ``gb.chains`` joins those of several chains.

    Parameters
    ----------
    models : list of fitted estimators
        Of one class, with equal losses, labels, columns and bins, as models of one ``gb.Dataset`` have.
    weights : list of float, optional
        Finite; None: 1 for each model.

    Raises
    ------
    TypeError
        If they are not a list of estimators of this library.
    InputError
        If they cannot be added, or there is not one finite weight for each.
    """
    several = isinstance(models, (list, tuple)) and len(models) and isinstance(models[0], GradientBoosting)
    if not several or any(type(model) is not type(models[0]) for model in models):
        raise TypeError(f"models: a list of fitted estimators of one class is needed; got {shown(models)[:80]}.")
    for model in models:
        check_is_fitted(model)
    factors = _weights(weights, len(models))
    parts = [model._saved() for model in models]
    for number, part in enumerate(parts):
        _check(parts[0], part, number)
    total: Model = copy.copy(models[0])
    total.__dict__.pop("fit_report_", None)
    offsets = any(part.offsets for part in parts)
    ensemble = _sum([part.ensemble for part in parts], factors)
    record = FitRecord()
    total._restore(
        replace(parts[0], ensemble=ensemble, best_iteration=None, best_score=None, record=record, offsets=offsets)
    )
    return total


def _sum(ensembles: list[Ensemble], weights: list[float]) -> Ensemble:
    bias = np.zeros(ensembles[0].n_outputs)
    factors: list[float] = []
    for ensemble, weight in zip(ensembles, weights, strict=True):
        bias = bias + weight * ensemble.bias
        factors += [weight * (ensemble.scale * factor) for factor in ensemble.factors]
    trees = tuple(tree for ensemble in ensembles for tree in ensemble.trees)
    components = tuple(part for ensemble in ensembles for part in ensemble.components)
    return Ensemble(bias, ensembles[0].cuts, trees, tuple(factors), components=components)


def _weights(weights: Any, n: int) -> list[float]:
    if weights is None:
        return [1.0] * n
    is_array = isinstance(weights, np.ndarray) and weights.ndim == 1
    listed = list(weights) if is_array or isinstance(weights, (list, tuple)) else []
    if len(listed) != n or not all(is_real(weight) for weight in listed):
        raise InputError(f"weights: one finite number for each of {n} models is needed; got {shown(weights)[:80]}.")
    return [float(weight) for weight in listed]


def _check(first: Saved, other: Saved, number: int) -> None:
    """Raise InputError if the two models cannot be added."""
    same_labels = first.classes is None or (other.classes is not None and np.array_equal(first.classes, other.classes))
    differing = {
        "loss": first.loss != other.loss,
        "classes": not same_labels,
        "columns": _features_of(first) != _features_of(other),
        "bins": not _same_cuts(first.ensemble.cuts, other.ensemble.cuts),
        "kind of base learner": bool(first.ensemble.components) != bool(other.ensemble.components)
        and bool(first.ensemble.n_rounds and other.ensemble.n_rounds),
    }
    for name, differs in differing.items():
        if differs:
            raise InputError(
                f"models: they must have the same {name}; models[{number}] has another one than models[0]. Fit them to "
                "one gb.Dataset, with the same loss."
            )


def _features_of(saved: Saved) -> dict[str, Any]:
    """The columns of the model, whether their queries had a name or not."""
    return replace(saved.columns, query=None).to_json()


def _same_cuts(cuts: Cuts, other: Cuts) -> bool:
    if cuts is other:
        return True
    pairs = zip(cuts.thresholds, other.thresholds, strict=False)
    sets = zip(cuts.categories, other.categories, strict=False)
    return (
        cuts.n_features == other.n_features
        and np.array_equal(cuts.columns, other.columns)
        and all(np.array_equal(a, b) for a, b in pairs)
        and all(a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in sets)
    )
