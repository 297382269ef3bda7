"""Plots of Langevin chains and of posterior summaries; public in ``gpuboost.plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import floats, is_integer, is_real
from gpuboost.errors import InputError, shown
from gpuboost.losses.base import facts_of
from gpuboost.losses.per_output import MULTILABEL
from gpuboost.plot.axes import axes, check_estimator, literal, names_of
from gpuboost.plot.explained import feature_values, kept
from gpuboost.posterior import Calibration, autocorrelation_time, autocorrelations, diagnose

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def uncertainty(
    model: Any, X: Any, feature: int = 0, *, coverage: float = 0.9, samples: int | None = None, ax: Axes | None = None
) -> Axes:
    """A regressor's posterior mean along one feature, with the interval of the mean and, around it, of observations.

    Every row of X is drawn where it stands; give rows that differ in this feature only to see one section. There is no
    outer band without a known noise (``Uncertainty.data`` is NaN), nor if it is not normal, as that of counts. For a
    classifier, the probability of its second class and the knowledge uncertainty are drawn. Of a categorical feature,
    rows are points above their category, and intervals are vertical lines; missing and unknown categories are left out.

    Raises:
        InputError: if there is no such feature, or the model predicts several numbers or labels of a row.
    """
    check_estimator(model, "predict_uncertainty")
    if not is_integer(feature, 0, model.n_features_in_ - 1):
        raise InputError(f"feature: must be a number from 0 to {model.n_features_in_ - 1}; got {feature!r}.")
    X = kept(X)
    posterior = model.predict_uncertainty(X, samples)
    if posterior.mean.ndim == 2 and (model.loss_.task == MULTILABEL or not hasattr(model, "classes_")):
        several = f"{posterior.mean.shape[1]} numbers or labels of a row"
        raise InputError(
            f"model: one number or class is drawn, and this one predicts {several}. Fit one to a column of y."
        )
    column, labels = feature_values(model, X)[:, feature], model.columns_.categories[feature]
    order = np.argsort(column, kind="stable")
    order = order if labels is None else order[~np.isnan(column[order])]
    ax = axes(ax)
    first: dict[str, Any] = {} if labels is None else {"linestyle": "", "marker": "o"}
    second: dict[str, Any] = {"linestyle": "--"} if labels is None else {"linestyle": "", "marker": "x"}
    if posterior.mean.ndim == 2:
        (line,) = ax.plot(column[order], posterior.mean[order, 1], label=literal(f"P({model.classes_[1]})"), **first)
        ax.plot(column[order], posterior.knowledge[order], label="knowledge uncertainty (nats)", **second)
    else:
        (line,) = ax.plot(column[order], posterior.mean[order], label="mean", **first)
        outer = facts_of(model.loss_).normal_noise and not np.isnan(posterior.data).any()
        bands = {"observation": 0.15, "mean": 0.3} if outer else {"mean": 0.3}
        for kind, alpha in bands.items():
            low, high = model.predict_interval(X, coverage, kind, samples)[order].T
            name = f"{coverage:.0%} interval of the {kind}"
            if labels is None:
                ax.fill_between(column[order], low, high, color=line.get_color(), alpha=alpha, linewidth=0, label=name)
            else:
                ax.vlines(column[order], low, high, color=line.get_color(), alpha=alpha, linewidth=6, label=name)
    if labels is not None:
        ax.set_xticks(range(len(labels)), [literal(label) for label in labels])
    ax.set_xlabel(literal(names_of(model)[feature]))
    ax.legend()
    return ax


def trace(traces: Any, *, burn_in: float = 0.5, ax: Axes | None = None) -> Axes:
    """Scores of the first row by round, one line per chain, from ``gb.chains(...).traces(X)`` or ``model.trace(X)``.

    Chains that have mixed are hard to tell apart to the right of the line, where the burn-in ends; the title says what
    R-hat and the effective sample size make of it.
    """
    x = _of_first_row(traces)
    first = _burn_in(burn_in, x.shape[1])
    diagnostics = diagnose(x[:, first:])
    ax = axes(ax)
    for number, chain in enumerate(x):
        ax.plot(np.arange(1, len(chain) + 1), chain, linewidth=0.7, label=f"chain {number + 1}")
    ax.axvline(first, linestyle=":", color="grey", label="end of burn-in")
    size = float(diagnostics.effective_sample_size)
    ax.set_title(f"R-hat {float(diagnostics.r_hat):.3f}, effective sample size {size:.0f}", fontsize="medium")
    ax.set_xlabel("round")
    ax.set_ylabel("score")
    ax.legend(fontsize="small")
    return ax


def autocorrelation(traces: Any, *, burn_in: float = 0.5, lags: int | None = None, ax: Axes | None = None) -> Axes:
    """Autocorrelation of the first row's score by lag in rounds, from the same traces.

    The line marks the autocorrelation time: draws that far apart are worth about as much as independent ones.
    """
    x = _of_first_row(traces)
    x = x[:, _burn_in(burn_in, x.shape[1]) :]
    if lags is not None and not is_integer(lags, 1):
        raise InputError(f"lags: must be None, or an integer of at least 1; got {lags!r}.")
    time = float(autocorrelation_time(x))
    by_lag = autocorrelations(x)[: min(int(10.0 * time) + 2, x.shape[1]) if lags is None else lags + 1]
    ax = axes(ax)
    ax.plot(np.arange(len(by_lag)), by_lag)
    ax.axhline(0.0, color="grey", linewidth=0.7)
    ax.axvline(time, linestyle=":", color="grey", label=f"autocorrelation time {time:.1f}")
    ax.set_xlabel("rounds between the two")
    ax.set_ylabel("autocorrelation of the score")
    ax.legend(fontsize="small")
    return ax


def calibration(found: Calibration, *, ax: Axes | None = None) -> Axes:
    """Calibration curve of ``gb.posterior.calibration(...)``: promised against observed, equal on the diagonal."""
    if not isinstance(found, Calibration):
        raise InputError(f"found: must be what gb.posterior.calibration returns; got {shown(found)}.")
    ax = axes(ax)
    ax.plot([0.0, 1.0], [0.0, 1.0], linestyle=":", color="grey")
    ax.plot(found.promised, found.found, marker="o", label=f"off by {found.error:.1%} in the mean")
    ax.set_xlabel("promised")
    ax.set_ylabel("found")
    ax.legend(fontsize="small")
    return ax


def _burn_in(share: Any, rounds: int) -> int:
    """The number of rounds before the burn-in ends."""
    if not is_real(share) or not 0.0 <= share < 1.0:
        raise InputError(f"burn_in: must be a share of the rounds, 0 or more and below 1; got {share!r}.")
    return int(share * rounds)


def _of_first_row(traces: Any) -> NDArray[np.float64]:
    """(chains, rounds)"""
    x = floats("traces", traces)
    if x.ndim not in (3, 4):
        raise InputError(f"traces: must be (rounds, k, n) or (chains, rounds, k, n); the shape is {x.shape}.")
    return x[:, :, 0, 0] if x.ndim == 4 else x[None, :, 0, 0]
