"""Several Langevin chains of one model, and their convergence diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gpuboost.api.base import GradientBoosting
from gpuboost.data.dataset import Dataset
from gpuboost.errors import RecipeError
from gpuboost.langevin import Langevin
from gpuboost.model_selection.lock_step import fit_each
from gpuboost.posterior import Diagnostics, Uncertainty, diagnose, interval, uncertainty
from gpuboost.posterior.inference_data import after_burn_in, inference_data
from gpuboost.training.parameters.seeds import seed_of
from gpuboost.training.parameters.values import integer
from gpuboost.watch.early_stopping import stops_early


@dataclass(frozen=True, slots=True)
class Chains:
    """Estimators of one recipe and different seeds. They predict together, from the draws of all of them."""

    models: tuple[GradientBoosting, ...]

    def posterior_members(self, X: Any, samples: int | None = None, burn_in: float = 0.5) -> NDArray[np.float64]:
        """(chains * samples, k, n) scores, ``samples`` draws from each chain."""
        return np.concatenate([model.posterior_members(X, samples, burn_in) for model in self.models])

    def predict_uncertainty(self, X: Any, samples: int | None = None, burn_in: float = 0.5) -> Uncertainty:
        """``predict_uncertainty`` of an estimator, by ``samples`` draws from each chain."""
        first = self.models[0]
        return uncertainty(first.loss_, self.posterior_members(X, samples, burn_in), first._temperature())

    def predict_interval(
        self, X: Any, coverage: float = 0.9, kind: str = "mean", samples: int | None = None, burn_in: float = 0.5
    ) -> NDArray[np.float64]:
        """(n, 2) ``predict_interval`` of an estimator, by ``samples`` draws from each chain."""
        members = self.posterior_members(X, samples, burn_in)
        return interval(self.models[0].loss_, members, coverage, kind, self.models[0]._temperature())

    def traces(self, X: Any) -> NDArray[np.float64]:
        """(chains, rounds, k, n) the scores of some rows after every round."""
        return np.stack([model.trace(X) for model in self.models])

    def diagnose(self, X: Any, burn_in: float = 0.5) -> Diagnostics:
        """Convergence diagnostics of the chains, from the scores (k, n) of these rows after the burn-in.

        Raises
        ------
        InputError
            If fewer than 8 rounds come after it.
        """
        return diagnose(after_burn_in(self.traces(X), burn_in)[0])

    def to_inference_data(self, X: Any, burn_in: float = 0.5) -> Any:
        """The scores of these rows after the burn-in as an ``arviz.InferenceData``, for ArviZ's summaries and plots.

        Its posterior has one variable, "score", of (chain, draw, output, row); a draw is numbered by its round, from 1.

        Parameters
        ----------
        X : rows, as for ``predict``
        burn_in : float
            Share of the rounds that are left out.

        Raises
        ------
        InputError
            If ``burn_in`` is not a share of the rounds, or ArviZ (below version 1) is not installed.
        """
        return inference_data(self.traces(X), burn_in)


def chains(model: GradientBoosting, X: Any, y: Any = None, *, n_chains: int = 4, sample_weight: Any = None) -> Chains:
    """Fit ``n_chains`` clones of the model, each with a seed of its own; rows are binned once.

    On a GPU the chains of small data go in lock-step: a launch does the work of all of them. On the CPU they share the
    threads.

    Parameters
    ----------
    model : estimator with ``langevin``
        Not changed. Seeds count up from its ``random_state``.
    X, y, sample_weight
        As for ``fit``; X may be a ``gb.Dataset``.

    Raises
    ------
    RecipeError
        If there is no noise to tell the chains apart, or early stopping would cut them at different places.
    """
    if not isinstance(getattr(model, "langevin", None), Langevin):
        raise RecipeError(f"model: chains need an estimator with langevin=gb.Langevin(...); got {model!r}.")
    if model.early_stopping_rounds is not None or stops_early(model.callbacks):
        raise RecipeError("early_stopping_rounds: chains are compared round by round; set it to None.")
    count, seed = integer("n_chains", n_chains, 1), seed_of(model.random_state)
    data = X if isinstance(X, Dataset) else None
    if data is None:
        shared = {
            name: getattr(model, name) for name in ("max_bins", "binning", "categorical_features", "missing", "n_jobs")
        }
        data = Dataset(X, y, weight=sample_weight, **shared)
        y = sample_weight = None
    models = [clone(model).set_params(random_state=seed + i) for i in range(count)]

    def fit(chain: GradientBoosting) -> GradientBoosting:
        return chain.fit(data, y, sample_weight=sample_weight)

    return Chains(tuple(fit_each(models, [fit] * count, data)))
