"""Uncertainty of an estimator that was trained with ``langevin``: posterior draws from its chain."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpuboost.errors import OutsideTheoryWarning, RecipeError
from gpuboost.langevin import Langevin
from gpuboost.losses.base import estimates_spread
from gpuboost.losses.protocol import Loss
from gpuboost.posterior import Uncertainty, interval, member_rounds, uncertainty
from gpuboost.training.parameters import integer
from gpuboost.types import Array, Ensemble

MEMBERS = 10
"""Default number of posterior draws."""


class PosteriorMixin:
    """Mixin of ``GradientBoosting``: predictions by draws from the posterior, the members of a virtual ensemble."""

    ensemble_: Ensemble
    loss_: Loss
    best_iteration_: int | None
    langevin: Langevin | None
    posterior_samples: int | None
    _answer: Callable[[Any, Callable[[Array], Any]], Any]
    _staged_answers: Callable[[Any, Callable[[Array], Any]], Iterator[Any]]

    def posterior_members(self, X: Any, samples: int | None = None, burn_in: float = 0.5) -> NDArray[np.float64]:
        """The scores of ``samples`` draws from the posterior: iterates of the chain, evenly spaced after ``burn_in``.

        Parameters
        ----------
        samples : int or None
            None: ``posterior_samples``, and 10 if that is None too.
        burn_in : float
            Share of the rounds that are thrown away: the way from the start to where the draws come from.

        Returns
        -------
        (samples, k, n) float64

        Raises
        ------
        RecipeError
            If the model was trained without ``langevin``.
        InputError
            If there are too few rounds.
        """
        check_is_fitted(self)
        self._must_be_a_chain()
        asked = getattr(self, "posterior_samples", None) if samples is None else samples
        count = integer("samples", MEMBERS if asked is None else asked, 1)
        chosen = set(member_rounds(self.ensemble_.n_rounds, count, burn_in))
        staged = enumerate(self._staged_answers(X, np.array), start=1)
        return np.stack([scores for round_, scores in staged if round_ in chosen])

    def predict_uncertainty(self, X: Any, samples: int | None = None, burn_in: float = 0.5) -> Uncertainty:
        """Uncertainty of the prediction for each row, and its sources.

        Returns
        -------
        Uncertainty
            ``mean`` of the draws, and ``total = data + knowledge``. For classes entropies and mutual information in
            nats; for numbers variances: ``data`` is the noise that the loss assumes (``GaussianNLL`` learns it; 1 / T
            for the squared error; NaN if the loss has no noise model), ``knowledge`` the draws' disagreement.
        """
        members = self.posterior_members(X, samples, burn_in)
        return uncertainty(self.loss_, members, self._temperature())

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.9,
        kind: str | None = None,
        samples: int | None = None,
        burn_in: float = 0.5,
    ) -> NDArray[np.float64]:
        """(n, 2) float64 bounds of a central credible interval: normal, with the mean and variance of the draws.

        A model with the loss ``gaussian_nll`` has intervals of observations without ``langevin`` too, from its mean
        and spread.

        Parameters
        ----------
        coverage : float
            Posterior probability of the interval.
        kind : "mean", "observation" or None
            Interval of the quantity that ``predict`` estimates, or of a new target (squared error and ``GaussianNLL``).
            None: "mean" with ``langevin``, "observation" without.
        """
        check_is_fitted(self)
        if kind != "mean" and not isinstance(self.langevin, Langevin) and estimates_spread(self.loss_):
            return interval(self.loss_, self._answer(X, np.array)[None], coverage, kind or "observation")
        kind = kind or "mean"
        members = self.posterior_members(X, samples, burn_in)
        return interval(self.loss_, members, coverage, kind, self._temperature())

    def trace(self, X: Any) -> NDArray[np.float64]:
        """(rounds, k, n) float64 scores after every round, for ``gb.posterior.diagnose`` and ``gb.plot.trace``."""
        check_is_fitted(self)
        return np.stack(list(self._staged_answers(X, np.array)))

    def _must_be_a_chain(self) -> None:
        if not isinstance(self.langevin, Langevin):
            raise RecipeError(
                "langevin: uncertainty is that of draws from a posterior, and this model was trained without noise. "
                "Train it with langevin=gb.Langevin()."
            )
        if self.best_iteration_ is not None:
            warnings.warn(
                "early_stopping_rounds: the model ends with its best round, so what comes before it may still be on "
                "the way to the posterior. Train without early stopping to draw from it.",
                OutsideTheoryWarning,
                stacklevel=3,
            )

    def _temperature(self) -> float:
        """T = beta / N. A fitted model holds N as the root's curvature, since gradient steps set h to the weight."""
        assert isinstance(self.langevin, Langevin)
        if self.langevin.inverse_temperature is None or not self.ensemble_.trees:
            return self.langevin.beta(1.0)
        return self.langevin.inverse_temperature / float(self.ensemble_.trees[0].nodes.cover[0])
