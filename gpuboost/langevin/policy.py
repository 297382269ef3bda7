"""Langevin boosting (SGLB: Ustimenko and Prokhorenkova, ICML 2021): noise on the gradient, shrinkage of the model.

    F_{j+1} = (1 - gamma eps) F_j - eps mean over the leaf of (g + s zeta),    s = sqrt(2 N / (eps beta))

The shape of a tree is fitted to gradients with noise of their own, zeta', and its leaf values have another, independent
draw zeta. With both, and eps -> 0, the scores follow a Langevin diffusion: whatever the loss looks like, F has the
stationary distribution exp(-beta (mean loss + gamma / 2 |P^-1/2 F|^2)), which for large beta concentrates at the global
minimum, and for beta = N is the Bayes posterior of a loss that is a negative log-likelihood. More in
docs/theory/langevin.md.
"""

from __future__ import annotations

from dataclasses import fields
from math import sqrt
from numbers import Integral
from typing import Any, ClassVar, Protocol

import numpy as np

from gpuboost.arguments import is_real, misfit
from gpuboost.errors import RecipeError
from gpuboost.langevin.chain import Chain
from gpuboost.langevin.schedule import Schedule, TemperatureSchedule, deviation_factor, schedule_of
from gpuboost.losses.averages import exact_sum
from gpuboost.losses.protocol import Loss
from gpuboost.records import dataclass, restored
from gpuboost.types import Array, Limits, NoiseScale, TrainingSet


class Dynamics(Protocol):
    """Terms of the dynamics other than the gradient: noise and shrinkage."""

    @property
    def random_from(self) -> int | None: ...  # the first round whose shapes are drawn at random; None: there is none
    @property
    def allow_unproven(self) -> bool: ...  # True: allow compositions that no theorem covers
    @property
    def scale_function(self) -> NoiseScale | None: ...  # standard deviation of a row's noise; None: the usual one

    def check(self, rate: float, curvature: float | None, rounds: int) -> None: ...  # raises RecipeError

    def start(self, loss: Loss, data: TrainingSet) -> Array: ...  # F_0, (k,) float64; never shrunk

    def chain(self, data: TrainingSet, rate: float, curvature: float | None, limits: Limits) -> Chain: ...


@dataclass(frozen=True, slots=True)
class NoNoise:
    """Plain gradient descent: no noise, no shrinkage."""

    random_from: ClassVar[int | None] = None
    allow_unproven: ClassVar[bool] = False

    @property
    def scale_function(self) -> NoiseScale | None:
        return None

    def check(self, rate: float, curvature: float | None, rounds: int) -> None:
        """Accept every recipe."""

    def start(self, loss: Loss, data: TrainingSet) -> Array:
        return loss.start(data.y, data.row_weight())

    def chain(self, data: TrainingSet, rate: float, curvature: float | None, limits: Limits) -> Chain:
        return Chain()


@dataclass(frozen=True, slots=True)
class Langevin:
    """Noise and shrinkage of a Langevin diffusion.

    N below is the total weight of the training rows (their number, if they have none), and eps the learning rate.

    Parameters
    ----------
    inverse_temperature : float or None
        beta, of the mean loss: noise on each row's gradient has standard deviation ``sqrt(2 N / (eps beta))``. Larger
        is colder. None: N, at which scores are draws from the Bayes posterior if the loss is a negative log-likelihood.
    shrinkage : float or None
        gamma: each round first shrinks the model, except for its start value, to ``1 - gamma eps`` of itself. None:
        L / (beta v) for trees of at most L leaves, v being ``prior_variance`` (and no more than 1 / (2 eps)).
    temperature : float or None
        T = beta / N, an alternative to ``inverse_temperature``: the number that CatBoost calls
        ``diffusion_temperature`` (the inverse temperature, in fact, of the *summed* loss; larger is colder there too).
        T = 1 is the Bayes posterior. CatBoost's ``posterior_sampling`` takes T = N, N times as cold; the paper's
        formula is in beta.
    random_from : int or None
        The round, counted from 0, from which on the shapes of trees are drawn at random and not searched: features
        evenly, and their cuts evenly. At the posterior's temperature noise decides the shapes anyway, so once the chain
        has reached its stationary distribution, rounds may be made at a fraction of the cost. Trees are then full to
        ``max_depth`` or ``max_leaves``, their splits gain 0, and ``min_samples_leaf`` does not hold. None: never.
    structure_noise, leaf_noise : bool
        Add noise to the gradients of the split search, and to those of the leaf values. The theorem needs both.
    paper : bool
        Start from 0, as in the paper, and not from the loss's best constant.
    allow_unproven : bool
        Allow compositions that no theorem covers, such as Newton steps.
    prior_variance : float or None
        v, about the prior variance of the scores, an alternative to ``shrinkage`` that does not depend on N, depth and
        temperature. None: 1. ``gb.fit_posterior`` chooses it by held-out data.
    schedule : None, "constant", gb.GeometricAnnealing, gb.CyclicalTemperature, or function
        Factor on the temperature of each round: the noise of round t has ``sqrt(schedule(t))`` times the standard
        deviation that beta gives it. A function takes the number of the round, 0 for the model's first, and returns a
        number of at least 0; a model with one is saved without its ``langevin``. Shrinkage stays as it is.
    noise_scale : None, "weight" or function
        Scale of the noise in the split search. For a row of weight w that was drawn with probability p, None is a
        standard deviation of ``sqrt(w / p)``, in units of ``sqrt(2 N / (eps beta))``, and "weight" is ``w / p``: a row
        is weighted after its noise was added, and the noise hides its gradient equally well whatever p is. Use
        "weight" with importance sampling whose scores are kept (``frozen_from=``); see docs/theory/langevin.md. A
        function gives the scale by the weighted g and h, ``noise_scale(g, h)``, in the Python that numba compiles; it
        runs on the CPU and on a GPU, and a model with one is saved without its ``langevin``. Leaf values keep their
        noise.

    Raises
    ------
    RecipeError
        If a number is out of its range, or two alternatives are both given: inverse_temperature and temperature,
        shrinkage and prior_variance.
    """

    inverse_temperature: float | None = None
    shrinkage: float | None = None
    temperature: float | None = None
    random_from: int | None = None
    structure_noise: bool = True
    leaf_noise: bool = True
    paper: bool = False
    allow_unproven: bool = False
    prior_variance: float | None = None
    schedule: Schedule | str | None = None
    noise_scale: NoiseScale | str | None = None

    __setstate__ = restored

    def __post_init__(self) -> None:
        for name, least in (
            ("inverse_temperature", "above 0"),
            ("shrinkage", "of at least 0"),
            ("temperature", "above 0"),
            ("prior_variance", "above 0"),
        ):
            value = getattr(self, name)
            if value is not None and not _is_number(value, positive=least == "above 0"):
                raise RecipeError(f"{name}: Langevin needs None or a finite number {least}; got {value!r}.")
            object.__setattr__(self, name, _of_python(value))
        rounds = self.random_from
        if rounds is not None and (isinstance(rounds, bool) or not isinstance(rounds, Integral) or rounds < 0):
            raise RecipeError(f"random_from: Langevin needs None or a round, an integer of 0 or more; got {rounds!r}.")
        for field in fields(self):
            if field.type == "bool" and not isinstance(getattr(self, field.name), bool):
                raise RecipeError(f"{field.name}: Langevin needs True or False; got {getattr(self, field.name)!r}.")
        object.__setattr__(self, "schedule", schedule_of(self.schedule))
        _check_noise_scale(self.noise_scale)
        if self.inverse_temperature is not None and self.temperature is not None:
            raise RecipeError(
                "temperature: it is inverse_temperature / N, so one of the two says it all; got "
                f"temperature={self.temperature!r} and inverse_temperature={self.inverse_temperature!r}."
            )
        if self.shrinkage is not None and self.prior_variance is not None:
            raise RecipeError(
                "prior_variance: it is leaves / (beta shrinkage), so one of the two says it all; got "
                f"prior_variance={self.prior_variance!r} and shrinkage={self.shrinkage!r}."
            )

    def check(self, rate: float, curvature: float | None, rounds: int) -> None:
        if self.shrinkage is not None:
            Chain(1.0 - self.shrinkage * rate / (curvature or 1.0)).check(rounds)
        if self.schedule is not None and not isinstance(self.schedule, TemperatureSchedule):
            for number in range(rounds):
                deviation_factor(schedule_of(self.schedule), number)  # raises RecipeError for a wrong answer

    def start(self, loss: Loss, data: TrainingSet) -> Array:
        return np.zeros(loss.n_outputs) if self.paper else loss.start(data.y, data.row_weight())

    def chain(self, data: TrainingSet, rate: float, curvature: float | None, limits: Limits) -> Chain:
        """A constant curvature c in place of h makes steps of eps / c, hence noise by sqrt(h) and gamma eps / c."""
        total = total_weight(data)
        beta = self.beta(total)
        deviation, eps = sqrt(2.0 * total / (rate * beta)), rate / (curvature or 1.0)
        leaves = min(limits.max_leaves, 2 ** min(limits.max_depth, 30), data.n_rows)
        variance = 1.0 if self.prior_variance is None else float(self.prior_variance)
        gamma = min(leaves / (beta * variance), 0.5 / eps) if self.shrinkage is None else self.shrinkage
        scale = self.scale_function
        unit = sqrt(curvature or 1.0) if scale is _weight else 1.0  # h is c w / p, and the scale sqrt(c) w / p
        return Chain(
            shrink=1.0 - gamma * eps,
            structure=deviation / unit if self.structure_noise else 0.0,
            leaves=deviation if self.leaf_noise else 0.0,
            random_from=self.random_from,
            schedule=schedule_of(self.schedule),
            scale=scale,
        )

    @property
    def scale_function(self) -> NoiseScale | None:
        """The function that ``noise_scale`` is or stands for."""
        return _weight if isinstance(self.noise_scale, str) else self.noise_scale

    @property
    def is_constant(self) -> bool:
        """True if every round has the same temperature and searches the shapes of its trees."""
        return self.schedule is None and self.random_from is None

    def beta(self, weight: float) -> float:
        """The inverse temperature of the mean loss for data of that total weight."""
        if self.inverse_temperature is not None:
            return float(self.inverse_temperature)
        return weight * (1.0 if self.temperature is None else float(self.temperature))


def _check_noise_scale(scale: Any) -> None:
    if scale is None or (isinstance(scale, str) and scale == "weight"):
        return
    if isinstance(scale, type) or not callable(scale):
        raise RecipeError(
            f"noise_scale: Langevin needs None, 'weight' or a function of a row's g and h; got {scale!r}."
        )
    if problem := misfit(scale, 2):
        raise RecipeError(f"noise_scale: must be a function of a row's g and h; {scale!r}: {problem}.")


def _weight(g: float, h: float) -> float:
    """The scale "weight": curvature is constant over rows, and h in proportion to w / p."""
    return h


def _is_number(value: Any, *, positive: bool) -> bool:
    if not is_real(value):
        return False
    return float(value) > 0.0 if positive else float(value) >= 0.0


def _of_python(value: Any) -> Any:
    """NumPy number as a Python number: a NumPy float32 would turn results to float32."""
    return value.item() if isinstance(value, np.generic) else value


def total_weight(data: TrainingSet) -> float:
    """N, the same on every machine."""
    return data.total_weight if data.weight is None else exact_sum(data.weight)
