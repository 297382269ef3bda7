"""A posterior whose temperature and prior are chosen by the likelihood of held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from gpuboost.api.base import GradientBoosting
from gpuboost.arguments import is_real
from gpuboost.data.dataset import Dataset
from gpuboost.errors import InputError, OutsideTheoryWarning, RecipeError
from gpuboost.langevin import Langevin
from gpuboost.losses.distribution import GaussianNLL
from gpuboost.losses.residual import SquaredError
from gpuboost.model_selection.cv import dataset_of
from gpuboost.model_selection.folds import for_fold
from gpuboost.model_selection.lock_step import fit_each
from gpuboost.model_selection.model_check import check_model
from gpuboost.training.parameters.seeds import seed_of
from gpuboost.watch.early_stopping import stops_early

TEMPERATURES = (1.0, 4.0, 16.0, 64.0, 256.0)
OF_CLASSES = (1.0, 4.0, 16.0)  # prior variances of scores
OF_NUMBERS = (0.0625, 0.25, 1.0)  # in units of the target's variance

LEAST = 1e-12  # probability of a label; its logarithm must be finite


@dataclass(frozen=True, slots=True)
class PosteriorFit:
    """The model of all rows, with the search results behind its temperature and prior."""

    model: GradientBoosting
    temperature: float
    prior_variance: float
    losses: dict[tuple[float, float], float]  # (temperature, prior variance) -> mean -log p(y) of held-out rows

    def __str__(self) -> str:
        best = self.temperature, self.prior_variance
        lines = ["temperature  prior variance  held-out -log p"]
        for (t, v), loss in sorted(self.losses.items()):
            lines.append(f"{t:11.4g}  {v:14.4g}  {loss:15.4f}{'  chosen' if (t, v) == best else ''}")
        return "\n".join(lines)


def fit_posterior(
    model: GradientBoosting,
    X: Any,
    y: Any = None,
    *,
    temperatures: Iterable[Any] | None = None,
    prior_variances: Iterable[Any] | None = None,
    held_out: float = 0.25,
    sample_weight: Any = None,
) -> PosteriorFit:
    """Fit the model at the temperature and the prior variance under which held-out rows are likeliest.

    T = 1 is the posterior of a loss that is the true likelihood. Real labels are often less noisy than the loss takes
    them to be, and for the squared error 1 / T *is* the noise: both are learned from known rows alone. The temperature
    is chosen at the middle prior variance, then the prior variance at that temperature, then half and twice the
    temperature are tried, unless temperatures were given. The likelihood is that of the mean of the draws (classes), or
    of a normal number with their mean and total variance.

    Parameters
    ----------
    model : classifier, or regressor of the squared error or ``gb.losses.GaussianNLL``
        Not changed. What its ``langevin`` says of temperature and shrinkage is replaced, the rest of it is kept; None
        stands for ``gb.Langevin()``. Chains must be long: burn-in is half of the rounds, so about ``6 / (learning_rate
        * shrinkage)`` or more. A warning says how many, if those of the chosen policy are fewer.
    X, y, sample_weight
        As for ``fit``; X may be a ``gb.Dataset``.
    temperatures : positive numbers, optional
        1, 4, 16, 64 and 256; for the squared error these divided by the target's variance. ``GaussianNLL`` learns the
        noise: 1 alone.
    prior_variances : positive numbers, optional
        1, 4 and 16 for classes; a 16th, a quarter, and all of the target's variance for numbers.
    held_out : float
        Share of the rows that the choice is made by, drawn by ``random_state``; for classes, the same share of each.

    Raises
    ------
    RecipeError
        If the loss is no likelihood, or a parameter is out of its range.
    InputError
        If the data cannot be learned from, or too few rows are there to hold some out.
    """
    policy, kind = _checked(model, held_out)
    data = dataset_of(model, X, y, sample_weight)
    learn, judge = _split(data, held_out, seed_of(model.random_state), kind == "classes")
    variance = 1.0 if kind == "classes" else _variance(data, learn)
    t_grid, v_grid = _grids(kind, variance, temperatures, prior_variances)
    on_learned = for_fold(model, learn, len(data))
    choice = _Choice(on_learned, policy, data.take(learn), data.take(judge), {})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_estimators: the chain", OutsideTheoryWarning)  # said below, once
        middle = v_grid[len(v_grid) // 2]
        t, _ = choice.best([(t, middle) for t in t_grid])
        t, v = choice.best([(t, v) for v in v_grid])
        if temperatures is None and kind != "nll":
            t, v = choice.best([(0.5 * t, v), (t, v), (2.0 * t, v)])
        chosen = _at(model, policy, t, v).fit(data)
    why = chosen._chain_too_short(0.5)
    if why:
        warnings.warn(why, OutsideTheoryWarning, stacklevel=2)
    return PosteriorFit(chosen, t, v, choice.losses)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The choice of a temperature and a prior variance by the loss of held-out rows."""

    model: GradientBoosting
    policy: Langevin
    learned: Dataset
    judged: Dataset
    losses: dict[tuple[float, float], float]  # of the pairs that were tried

    def best(self, pairs: list[tuple[float, float]]) -> tuple[float, float]:
        """The pair of the least loss; each is fitted once."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self.losses]
        models = [_at(self.model, self.policy, *pair) for pair in new]
        fitted = fit_each(models, [self._fit] * len(models), self.learned)
        self.losses.update({pair: _loss(model, self.judged) for pair, model in zip(new, fitted, strict=True)})
        return min(pairs, key=lambda pair: self.losses[pair])

    def _fit(self, model: GradientBoosting) -> GradientBoosting:
        return model.fit(self.learned)


def _grids(kind: str, variance: float, temperatures: Any, prior_variances: Any) -> tuple[list[float], list[float]]:
    """Temperatures and prior variances to try: those given, or the usual ones of that kind of model."""
    usual = [1.0] if kind == "nll" else [t / (variance if kind == "numbers" else 1.0) for t in TEMPERATURES]
    priors = OF_CLASSES if kind == "classes" else [v * variance for v in OF_NUMBERS]
    return _grid("temperatures", temperatures, usual), _grid("prior_variances", prior_variances, priors)


def _checked(model: Any, held_out: Any) -> tuple[Langevin, str]:
    """The policy, and the kind of the model: "classes", "numbers" or "nll"."""
    check_model(model)
    stops = model.early_stopping_rounds is not None or stops_early(model.callbacks)
    if stops or model.validation_fraction is not None:
        raise RecipeError(
            "early_stopping_rounds: a chain that stops at its best round is no posterior. Set it and "
            "validation_fraction to None, and leave EarlyStopping out of callbacks."
        )
    if not isinstance(held_out, float) or not 0.0 < held_out < 1.0:
        raise RecipeError(f"held_out: must be a share between 0 and 1; got {held_out!r}.")
    policy = Langevin() if model.langevin is None else model.langevin
    if not isinstance(policy, Langevin):
        raise RecipeError(f"langevin: must be None or gb.Langevin(...); got {policy!r}.")
    if is_classifier(model):
        return policy, "classes"
    loss = model.loss
    if isinstance(loss, SquaredError) or loss == SquaredError.name:
        return policy, "numbers"
    if isinstance(loss, GaussianNLL) or loss == GaussianNLL.name:
        return policy, "nll"
    raise RecipeError(
        f"loss: held-out rows need a likelihood, that of classes or of normal noise; {loss!r} has none. Use "
        "squared_error or gaussian_nll, or choose by gb.cv."
    )


def _split(data: Dataset, share: float, seed: int, classify: bool) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Increasing row numbers, to learn from and to judge by; a class of too few rows is learned from."""
    order = np.random.default_rng(seed % 2**32).permutation(len(data))
    assert data.y is not None
    if data.y.ndim == 2:
        raise InputError(f"y: a posterior is fitted to one target; got shape {data.y.shape}. Fit a model for each.")
    labels = data.y[order] if classify else np.zeros(len(data))
    parts = [order[labels == label] for label in np.unique(labels)]
    judge = np.concatenate([part[: int(share * len(part))] for part in parts])
    if len(judge) == 0:
        raise InputError(f"held_out: {share:g} of {len(data)} rows leaves none to judge by; raise it.")
    return np.setdiff1d(order, judge), np.sort(judge)


def _variance(data: Dataset, rows: NDArray[np.intp]) -> float:
    """Weighted variance of the target."""
    assert data.y is not None
    y, weight = data.y[rows].astype(np.float64), None if data.weight is None else data.weight[rows]
    variance = float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))
    if not variance > 0.0:
        raise InputError("y: all targets that are learned from are equal, so there is no posterior to choose.")
    return variance


def _grid(name: str, asked: Iterable[Any] | None, usual: Iterable[Any]) -> list[float]:
    listed = usual if asked is None else asked
    try:
        values: list[Any] = list(listed)
    except TypeError:
        raise RecipeError(f"{name}: must be None, or a list of finite numbers above 0; got {listed!r}.") from None
    for value in values:
        if not is_real(value) or value <= 0.0:
            raise RecipeError(f"{name}: must be finite numbers above 0; got {value!r}.")
    if not values:
        raise RecipeError(f"{name}: must hold at least one number; got none.")
    return sorted({float(value) for value in values})


def _at(model: GradientBoosting, policy: Langevin, temperature: float, prior_variance: float) -> GradientBoosting:
    chosen = replace(
        policy, temperature=temperature, inverse_temperature=None, shrinkage=None, prior_variance=prior_variance
    )
    candidate: GradientBoosting = clone(model).set_params(langevin=chosen)
    return candidate


def _loss(model: GradientBoosting, asked: Dataset) -> float:
    """Mean of -log p(y) over held-out rows, by their weights."""
    uncertainty, y = model.predict_uncertainty(asked), asked.y
    assert y is not None
    if is_classifier(model):
        classes = np.asarray(model.classes_)
        p = uncertainty.mean[np.arange(len(y)), np.searchsorted(classes, y)]
        each = -np.log(np.maximum(p, LEAST))
    else:
        each = 0.5 * (np.log(2.0 * np.pi * uncertainty.total) + (y - uncertainty.mean) ** 2 / uncertainty.total)
    return float(np.average(each, weights=asked.weight))
