"""Uncertainty of an estimator that was trained with ``langevin``: posterior draws from its chain."""

from __future__ import annotations

import warnings
from abc import ABC
from collections.abc import Callable, Iterator
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpuboost.arguments import is_one_of
from gpuboost.errors import InputError, OutsideTheoryWarning, RecipeError
from gpuboost.langevin import Langevin
from gpuboost.losses.base import estimates_spread
from gpuboost.losses.protocol import Loss
from gpuboost.losses.residual import Quantiles
from gpuboost.model.answers import predictions_answer
from gpuboost.posterior import Uncertainty, interval, interval_outputs, member_rounds, uncertainty
from gpuboost.posterior.inference_data import inference_data
from gpuboost.posterior.members import too_short
from gpuboost.scoring.answers import Answer
from gpuboost.training.fit_record import FitRecord
from gpuboost.training.parameters.values import integer
from gpuboost.types import Ensemble

MEMBERS = 10
"""Default number of posterior draws."""


class PosteriorMixin(ABC):
    """Mixin of ``GradientBoosting``: predictions by draws from the posterior, the members of a virtual ensemble."""

    ensemble_: Ensemble
    loss_: Loss
    best_iteration_: int | None
    langevin: Langevin | None
    posterior_samples: int | None
    _answer: Callable[..., Any]
    _staged_answers: Callable[[Any, Callable[[], Answer]], Iterator[Any]]
    _fit_record: Callable[[], FitRecord]

    def posterior_members(self, X: Any, samples: int | None = None, burn_in: float = 0.5) -> NDArray[np.float64]:
        """The scores of ``samples`` draws from the posterior: iterates of the chain, evenly spaced after ``burn_in``.

        The chain is the one that the model ends with: of a continued model (``init_model``), rounds that are no part
        of it are never drawn. A warning says so if the burn-in is shorter than 3 / (learning_rate x shrinkage) rounds.

        Parameters
        ----------
        samples : int or None
            None: ``posterior_samples``, and 10 if that is None too.
        burn_in : float
            Share of the chain's rounds that are thrown away: the way from its start to where the draws come from.

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
        start = self._chain_start()
        drawn = member_rounds(self.ensemble_.n_rounds - start, count, burn_in)
        chosen = {start + number for number in drawn}
        why = self._chain_too_short(burn_in)
        if why:
            warnings.warn(why, OutsideTheoryWarning, stacklevel=3)
        staged = enumerate(self._staged_answers(X, _scores), start=1)
        return np.stack([scores for round_, scores in staged if round_ in chosen])

    def predict_uncertainty(self, X: Any, samples: int | None = None, burn_in: float = 0.5) -> Uncertainty:
        """Uncertainty of the prediction for each row, and its sources.

        Returns
        -------
        Uncertainty
            ``mean`` of the draws, and ``total = data + knowledge``. For classes entropies and mutual information in
            nats; for numbers variances: ``data`` is the noise that the loss assumes (``GaussianNLL`` learns it; 1 / T
            for the squared error; NaN if the loss has no noise model), ``knowledge`` the draws' disagreement, their
            variance divided by their number (``predict_interval`` divides by one less). Of k targets or labels each is
            (n, k).
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
        *,
        init_score: Any = None,
    ) -> NDArray[np.float64]:
        """(n, 2) float64 bounds of a central credible interval: normal, with the mean and variance of the draws.

        Of k targets, or of a custom loss that predicts k numbers for a row, (n, k, 2). Of a loss of several scores the
        normal is fitted to the predictions of the draws (of their logarithms, if the target is positive).

        A model with the loss ``gaussian_nll``, ``log_normal_nll``, ``gamma_nll`` or ``negative_binomial_nll`` has
        intervals of observations without ``langevin`` too, between two quantiles of the distribution that it predicts.
        A model of several quantiles has those between two of its levels, (1 - coverage) / 2 and (1 + coverage) / 2.
        Neither is adjusted to the rows; ``gb.conformal`` does that.

        Parameters
        ----------
        coverage : float
            Posterior probability of the interval.
        kind : "mean", "observation" or None
            Interval of the quantity that ``predict`` estimates, or of a new target (squared error and ``GaussianNLL``).
            None: "mean" with ``langevin``, "observation" without.
        init_score : (n,) or (n, K) numbers, or one number, optional
            Offsets, as for ``predict``; fits with ``langevin`` have none.

        Raises
        ------
        InputError
            If coverage or kind is invalid, the model has no such quantiles, or offsets are given for one with
            ``langevin``.
        RecipeError
            If the model has no intervals: train it with ``langevin``, a likelihood such as ``gaussian_nll``, or several
            quantiles.
        """
        check_is_fitted(self)
        if isinstance(self.loss_, Quantiles):
            low, high = interval_outputs(self.loss_, coverage, kind)
            predicted: NDArray[np.float64] = self._answer(
                X, lambda: predictions_answer(self.loss_), init_score=init_score
            )
            return predicted[:, [low, high]]
        if not is_one_of(kind, ("mean",)) and not self._has_chain() and estimates_spread(self.loss_):
            kind = "observation" if kind is None else kind
            scores = self._answer(X, _scores, init_score=init_score)
            return interval(self.loss_, scores[None], coverage, kind)
        kind = "mean" if kind is None else kind
        if init_score is not None and self._has_chain():
            raise InputError("init_score: intervals of draws have no offsets, as langevin is fitted without any.")
        members = self.posterior_members(X, samples, burn_in)
        return interval(self.loss_, members, coverage, kind, self._temperature())

    def trace(self, X: Any) -> NDArray[np.float64]:
        """(rounds, k, n) float64 scores after every round, for ``gb.posterior.diagnose`` and ``gb.plot.trace``."""
        check_is_fitted(self)
        return np.stack(list(self._staged_answers(X, _scores)))

    def to_inference_data(self, X: Any, burn_in: float = 0.5) -> Any:
        """The scores of these rows along the chain as an ``arviz.InferenceData`` of one chain.

        Its posterior has one variable, "score", of (chain, draw, output, row); a draw is numbered by its round, from 1.
        ``gb.chains`` fits several chains, which R-hat needs.

        Parameters
        ----------
        X : rows, as for ``predict``
        burn_in : float
            Share of the chain's rounds that are left out.

        Raises
        ------
        RecipeError
            If the model was trained without ``langevin``.
        InputError
            If ``burn_in`` is not a share of the rounds, or ArviZ (below version 1) is not installed.
        """
        check_is_fitted(self)
        self._must_be_a_chain()
        start = self._chain_start()
        return inference_data(self.trace(X)[None, start:], burn_in, start)

    def _has_chain(self) -> bool:
        """True if the model was fitted with noise; the record of older files and pickles does not say.

        Nor does that of a sum of models, whose rounds are no path of a chain; it has no shrinkage of its own.
        """
        unknown = self._may_be_older()
        return self._fit_record().chain is not None or (unknown and bool(self.ensemble_.scales))

    def _may_be_older(self) -> bool:
        return self._fit_record().guarantee.kind == "not known" and isinstance(self.langevin, Langevin)

    def _must_be_a_chain(self) -> None:
        if not self._has_chain() and self._may_be_older():
            raise RecipeError(
                "langevin: the rounds of a sum of models are no draws from a posterior. Take the draws of each of the "
                "models, or those of gb.chains."
            )
        if not self._has_chain():
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

    def _chain_start(self) -> int:
        """Rounds of the model before its chain; 0 if the model's file or pickle is of an older version."""
        chain = self._fit_record().chain
        return 0 if chain is None else chain.start

    def _chain_too_short(self, burn_in: float) -> str:
        """Warning about a burn-in that leaves too much of the chain's start; empty if it is long enough."""
        start, scales = self._chain_start(), (1.0, *self.ensemble_.scales)
        rounds = self.ensemble_.n_rounds - start
        if rounds < 1 or len(scales) <= start:  # no shrinkage
            return ""
        return too_short(rounds, log(scales[start] / scales[-1]) / rounds, burn_in)

    def _temperature(self) -> float:
        """T = beta / N of the fit.

        Models of older versions hold N as the first root's curvature, since gradient steps set h to the weight.
        """
        chain = self._fit_record().chain
        if chain is not None:
            return chain.temperature
        assert isinstance(self.langevin, Langevin)
        if self.langevin.inverse_temperature is None or not self.ensemble_.trees:
            return self.langevin.beta(1.0)
        return self.langevin.inverse_temperature / float(self.ensemble_.trees[0].nodes.cover[0])


def _scores() -> Answer:
    return Answer(np.array)
