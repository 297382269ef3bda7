"""Uncertainty of predictions, from the scores of the members of an ensemble, split by its source.

    total = data + knowledge

``data`` is irreducible (aleatoric); ``knowledge`` (epistemic) is the members' disagreement, which more rows reduce.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import floats, is_one_of, is_real
from gpuboost.elementary import exp_array, log_array
from gpuboost.errors import InputError, shown
from gpuboost.losses.base import BaseLoss, checked_loss, facts_of
from gpuboost.losses.per_output import PerOutput
from gpuboost.losses.protocol import Loss
from gpuboost.losses.residual import Quantiles
from gpuboost.records import dataclass
from gpuboost.types import Array

Floats = NDArray[np.float64]

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Uncertainty of each row: entropies and mutual information in nats for classes, variances for numbers.

    Variances are those of the members as they are, divided by their number: ``total`` is then the variance of their
    mixture, as the entropies are those of its probabilities. Intervals estimate the variance of the posterior, of which
    the members are a sample, and divide by one less.

    ``data``, and with it ``total``, is NaN if the loss has no model of the noise. Of k targets or labels all are
    (n, k), and the mean of a label is its probability.
    """

    mean: Floats  # (n,) predictions, or (n, K) probabilities, averaged over the members
    total: Floats  # (n,)
    data: Floats  # (n,)
    knowledge: Floats  # (n,)


def uncertainty(loss: Loss, members: Array, temperature: float = 1.0) -> Uncertainty:
    """Uncertainty from members: (draws, k, n) scores. temperature: T of the chain; noise of 1 / T for squared error.

    Raises:
        RecipeError: if ``loss`` is no loss.
        InputError: if the members are not such scores, or the temperature is not above 0.
    """
    members = _checked(checked_loss(loss), members, temperature)
    if isinstance(loss, PerOutput):
        each = [uncertainty(loss.loss, members[:, [c]], temperature) for c in range(loss.n_outputs)]
        means = [output.mean if output.mean.ndim == 1 else output.mean[:, 1] for output in each]
        parts = [[getattr(output, part) for output in each] for part in ("total", "data", "knowledge")]
        return Uncertainty(*(np.stack(columns, axis=1) for columns in (means, *parts)))
    if loss.task in ("binary", "multiclass"):
        return _of_classes(np.stack([_probabilities(loss, scores) for scores in members]))
    values = _predictions(loss, members)
    knowledge, data = values.var(axis=0), _noise(loss, members, values, temperature)
    return Uncertainty(values.mean(axis=0), data + knowledge, data, knowledge)


def interval(loss: Loss, members: Array, coverage: float, kind: str, temperature: float = 1.0) -> Floats:
    """(n, 2) float64 bounds of a central credible interval, from a normal fitted to the members' scores.

    Of a loss of several scores it is fitted to their predictions, or to the logarithms of those of a positive target.
    Of a loss of k targets, or one that predicts k numbers for a row, (n, k, 2).

    kind: "mean", the quantity that the loss predicts; "observation", a new target, for losses of normal noise, and for
    one member of a loss of another distribution, whose quantiles are then the bounds.

    Raises:
        InputError: if coverage or kind is invalid, the loss is one of classes, or it has no normal noise.
    """
    from scipy.special import ndtri

    check_coverage(coverage)
    if not is_one_of(kind, ("mean", "observation")):
        raise InputError(f"kind: must be 'mean' or 'observation'; got {kind!r}.")
    members = _checked(checked_loss(loss), members, temperature)
    if isinstance(loss, PerOutput):
        each = [interval(loss.loss, members[:, [c]], coverage, kind, temperature) for c in range(loss.n_outputs)]
        return np.stack(each, axis=1)
    normal = facts_of(loss).normal_noise
    if kind == "observation" and not normal and len(members) == 1 and facts_of(loss).predicts_spread:
        return _central(cast(BaseLoss, loss), members[0], coverage)
    if loss.task == "multiclass" or (kind == "observation" and not normal):
        rule = "an interval of observations needs normal noise" if kind == "observation" else "it has several scores"
        raise InputError(f"kind: {rule}; loss {loss.name!r} is another. Use predict_uncertainty.")
    numbers, prediction = _near_normal(loss, members)
    # the members are a sample of the posterior: divided by their number, it would be too small on average
    variance = numbers.var(axis=0, ddof=1 if len(numbers) > 1 else 0)
    if kind == "observation":
        variance = variance + _noise(loss, members, numbers, temperature)
    half = float(ndtri(0.5 + 0.5 * coverage)) * np.sqrt(variance)
    centre = numbers.mean(axis=0)
    return np.stack([prediction(centre - half), prediction(centre + half)], axis=-1)


def _near_normal(loss: Loss, members: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """(draws, n) or (draws, n, k) numbers whose law is near normal, and the function from them to predictions."""
    if loss.n_outputs == 1:
        return members[:, 0], lambda scores: np.asarray(loss.inverse_link(scores[None]))
    values = _predictions(loss, members)
    return (log_array(np.maximum(values, _TINY)), exp_array) if facts_of(loss).positive_target else (values, np.asarray)


def _predictions(loss: Loss, members: Floats) -> Floats:
    """(draws, n) predictions, or (draws, n, k) of a loss that predicts k numbers for a row."""
    return np.stack([np.asarray(loss.inverse_link(scores)) for scores in members])


def _central(loss: BaseLoss, scores: Floats, coverage: float) -> Floats:
    """(n, 2) the quantiles of the target that bound its central interval. scores: (n_outputs, n)."""
    return np.column_stack([loss.target_quantile(scores, 0.5 + 0.5 * side * coverage) for side in (-1.0, 1.0)])


def interval_outputs(loss: Quantiles, coverage: float, kind: str | None) -> tuple[int, int]:
    """The two outputs whose quantiles bound the central interval of new targets.

    Raises:
        InputError: if coverage or kind is invalid, or the loss does not have these levels.
    """
    if not isinstance(loss, Quantiles):
        raise InputError(f"loss: must be one of several quantiles; got {shown(loss)}.")
    check_coverage(coverage)
    if kind is not None and not is_one_of(kind, ("observation",)):
        raise InputError(f"kind: quantiles are of new targets, 'observation'; got {kind!r}.")
    places = [_place(loss.alpha, level) for level in (0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage)]
    if None in places:
        known = [f"{known:g}" for known in interval_coverages(loss)]
        raise InputError(
            f"coverage: an interval of {coverage:g} is between the quantiles {0.5 - 0.5 * coverage:g} and "
            f"{0.5 + 0.5 * coverage:g}, and the model has {', '.join(f'{a:g}' for a in loss.alpha)}. "
            + (f"Coverages of this model: {', '.join(known)}." if known else "Train it with these levels.")
        )
    return cast("tuple[int, int]", tuple(places))


def interval_coverages(loss: Quantiles) -> list[float]:
    """Coverages of the central intervals between two levels of the loss, largest first."""
    return [1.0 - 2.0 * a for a in loss.alpha if a < 0.5 and _place(loss.alpha, 1.0 - a) is not None]


def _place(levels: Sequence[float], level: float) -> int | None:
    near = [i for i, known in enumerate(levels) if abs(known - level) < 1e-9]
    return near[0] if near else None


def check_coverage(coverage: float) -> None:
    """Raise InputError unless it is a number between 0 and 1."""
    if not is_real(coverage) or not 0.0 < coverage < 1.0:
        raise InputError(f"coverage: must be a number between 0 and 1; got {coverage!r}.")


def _checked(loss: Loss, members: Any, temperature: Any) -> Floats:
    """(draws, k, n) scores as an array; raises InputError if they are none, or the temperature is not above 0."""
    scores = floats("members", members)
    if scores.ndim != 3 or not len(scores) or scores.shape[1] != loss.n_outputs:
        rule = f"must be scores of shape (draws, {loss.n_outputs}, rows), one draw or more"
        raise InputError(f"members: {rule}; the shape is {scores.shape}.")
    if not is_real(temperature) or not temperature > 0.0:
        raise InputError(f"temperature: must be a finite number above 0; got {shown(temperature)}.")
    return scores


def _probabilities(loss: Loss, scores: Array) -> Floats:
    p = np.asarray(loss.inverse_link(scores))
    return p if p.ndim == 2 else np.column_stack([1.0 - p, p])


def _of_classes(p: Floats) -> Uncertainty:
    """Uncertainty of classes from (draws, n, K) probabilities."""
    mean = p.mean(axis=0)
    total, data = _entropy(mean), _entropy(p).mean(axis=0)
    return Uncertainty(mean, total, data, np.maximum(total - data, 0.0))  # not negative, but for rounding


def _entropy(p: Floats) -> Floats:
    return np.asarray(-np.sum(p * log_array(np.where(p > 0.0, p, 1.0)), axis=-1))


def _noise(loss: Loss, members: Array, values: Floats, temperature: float) -> Floats:
    """Noise variance that the loss assumes for each prediction, averaged over the members; NaN if unknown."""
    noise = loss.noise(members, values, temperature) if isinstance(loss, BaseLoss) else None
    return np.full(values.shape[1:], np.nan) if noise is None else noise
