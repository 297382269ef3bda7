"""Calibration of uncertainties on held-out rows, and their separation of out-of-domain rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import floats, true_classes
from gpuboost.errors import InputError, shown
from gpuboost.posterior.uncertainty import Uncertainty
from gpuboost.records import dataclass

Floats = NDArray[np.float64]

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Predicted and observed shares, and the number of rows (or of predictions) of each."""

    promised: Floats
    found: Floats
    counts: NDArray[np.int64]

    @property
    def error(self) -> float:
        """Mean absolute difference of the two, weighted by counts; for classes the ECE (Naeini et al. 2015)."""
        return float(np.average(np.abs(self.promised - self.found), weights=self.counts))

    def __str__(self) -> str:
        pairs = ", ".join(f"{a:.0%}: {b:.0%}" for a, b in zip(self.promised, self.found, strict=True))
        return f"off by {self.error:.1%} in the mean (promised: found) {pairs}"


def calibration(found: Uncertainty, y: Any, classes: Any = None, coverages: Sequence[float] = COVERAGES) -> Calibration:
    """Compare predictions with targets of rows that the model was not trained on.

    Numbers: the share of targets inside the central interval of each coverage, of a normal number with the mean and
    the total variance of ``found``. Classes: probabilities of all classes, in ten bins of equal width, against the
    frequency of the class (empty bins are left out).

    Parameters
    ----------
    found : Uncertainty
        ``model.predict_uncertainty(X)``.
    y : (n,) numbers or labels
    classes : (K,) labels, for classes
        ``model.classes_``.
    coverages : numbers between 0 and 1, for numbers

    Raises
    ------
    InputError
        If y does not fit, a label is none of the classes, or the loss has no noise model.
    """
    if not isinstance(found, Uncertainty):
        raise InputError(f"found: must be what predict_uncertainty returns; got {shown(found)}.")
    target = np.asarray(y) if found.mean.ndim == 2 else floats("y", y)
    if target.shape != (len(found.mean),):
        raise InputError(f"y: must hold one target for each of {len(found.mean)} rows; the shape is {target.shape}.")
    if found.mean.ndim == 2:
        return _of_classes(found.mean, target, classes)
    if np.isnan(found.total).any():
        raise InputError(
            "found: its total is NaN, as the loss has no model of noise in targets. Use squared_error or gaussian_nll."
        )
    if not np.isfinite(target).all():
        raise InputError("y: must be finite numbers; NaN or infinity was seen.")
    asked = floats("coverages", coverages)
    if asked.ndim != 1 or not len(asked) or not ((asked > 0.0) & (asked < 1.0)).all():
        raise InputError(f"coverages: must be numbers between 0 and 1; got {coverages!r}.")
    from scipy.special import ndtri

    distance = np.abs(target - found.mean) / np.sqrt(found.total)
    inside = np.array([np.mean(distance < half) for half in ndtri(0.5 + 0.5 * asked)])
    return Calibration(asked, inside, np.full(len(asked), len(target), np.int64))


def separation(inside: Any, outside: Any) -> float:
    """Out-of-domain check: the probability that an outside row is more uncertain than an inside one (ROC AUC).

    inside, outside: (n,) and (m,) uncertainties, such as ``knowledge``, of held-out rows of the training data's kind,
    and of rows of another kind. 0.5: no separation; 1: every outside row is more uncertain than every inside row.

    Raises:
        InputError: if one of them is empty or holds NaN.
    """
    known, strange = floats("inside", inside), floats("outside", outside)
    for name, values in (("inside", known), ("outside", strange)):
        if values.ndim != 1 or not len(values) or np.isnan(values).any():
            raise InputError(f"{name}: must be a list of numbers, one of them at least; the shape is {values.shape}.")
    ordered = np.sort(known)
    below, up_to = np.searchsorted(ordered, strange, "left"), np.searchsorted(ordered, strange, "right")
    return float((below + up_to).mean() / (2.0 * len(known)))


def _of_classes(p: Floats, target: NDArray[Any], classes: Any) -> Calibration:
    if classes is None or len(classes) != p.shape[1]:
        raise InputError(f"classes: must be the {p.shape[1]} labels of the columns, model.classes_; got {classes!r}.")
    true = true_classes(target, classes)
    if not true.any(axis=1).all():
        row = int(np.argmin(true.any(axis=1)))
        raise InputError(f"y: must be labels of the training data; row {row} is {target.tolist()[row]!r}.")
    step = np.minimum((10.0 * p).astype(np.int64), 9).ravel()
    counts = np.bincount(step, minlength=10)
    kept = counts > 0
    promised, observed = np.bincount(step, p.ravel(), 10), np.bincount(step, true.ravel(), 10)
    return Calibration(promised[kept] / counts[kept], observed[kept] / counts[kept], counts[kept].astype(np.int64))
