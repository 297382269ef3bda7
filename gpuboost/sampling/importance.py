"""Importance sampling (SMART): rows are drawn by a score, and weighted so that sums keep their expectation."""

from __future__ import annotations

from dataclasses import field, replace
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.arguments import is_integer, is_real
from gpuboost.backends.numerics.probabilities import ThresholdRule
from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError, shown
from gpuboost.keys import Key
from gpuboost.records import dataclass, restored
from gpuboost.sampling.by_row import checked, numbers_of_rows
from gpuboost.sampling.protocol import LEAVES_FROM, Losses, explaining_leaf_values, leaves_from, share
from gpuboost.types import Array, Gradients, Sample, TrainingSet

KAPPAS = {"gradient": 0.0, "mvs": 0.1, "hessian": inf, "loss": 0.0}
VARIANCE_CONTROLS = (*LEAVES_FROM, "node", "previous_leaf")
LEAST = 0.1  # default floor, as a share of the rate
LAST_ROUND = 2**62


@explaining_leaf_values
@dataclass(frozen=True, slots=True)
class ImportanceSampling:
    """p_i = min(1, max(floor, rho s_i)),  s_i = sqrt(g_i^2 + kappa h_i^2): Poisson sampling, weights 1 / p_i.

    Among all p of the same sum this one makes sum (g^2 + kappa h^2) / p, the variance of sampled sums, smallest. With
    several outputs s_i takes the sum of squares, so that a row is drawn once for all of them; for a row of weight w,
    s_i is that of w rows. Gradients are those of complete data, so documents of a ranking may be sampled as well.

    Parameters
    ----------
    rate : float in (0, 1]
        Share of the rows that is drawn, on average: rho is solved for in each round.
    rho : float
        Fixed rho, as in the SMART paper: the sample then shrinks with the gradients. Give either rate or rho.
    score : "mvs", "gradient", "hessian", "loss" or a number
        kappa: "gradient" is 0 (SMART's first order), "hessian" is infinity (its second order), "mvs" is 0.1, between
        them, or a number. "loss" takes the row's loss in place of s_i, and 0 for a loss below 0; for a ranking loss
        it is 1 - NDCG of the document's list, on the CPU.
    floor : float or None
        Least probability. Without one, rows of score 0 are never drawn, and the others' weights have no bound, as they
        are at most 1 / floor. None: a tenth of ``rate``, and 0 with ``rho``. It is the probability that is bounded and
        not the weight, so sums stay unbiased.
    variance_control : "leaf_refit", "none", "horvitz_thompson", "node" or "previous_leaf"
        Source of the leaf values. "leaf_refit": from all rows, exactly; only a tree's shape comes from the sample.
        The training loss then falls whatever was drawn, and it costs one pass. "none": from the sample (SMART,
        algorithm 2). "horvitz_thompson": as of ``gb.UniformSampling``. "node": the sample is used for what changed
        since an earlier gradient g', and all rows for g' itself, ``q / p (g - g') + eta g'``, in every node of the tree
        being grown: SMART's improved diagonal
        approximation in its one consistent reading. Its variance is small, but **a tree costs as much as one fitted
        to all rows**. "previous_leaf": the same with the mean of g' over a leaf of the *previous* tree in place of
        g'_i. It removes the differences between rows of a leaf, and training stalls; it is offered to reproduce that
        result.
    lag : 1 or 2
        Age of g', in trees.
    eta : float in (0, 1]
        Share of g' that is added back. Sums are unbiased for 1 only.
    factor : (n,) numbers of at least 0, or None
        One for each row of X, by which its s_i is multiplied: rows of factor 5 are five times as likely to be drawn,
        and their weights a fifth. Not written to model files, as it belongs to the training rows.
    frozen_from : int or None
        The round, counted from 0, whose scores all later rounds keep. The probabilities are then the same for every F.
        A Langevin chain with ``gb.Langevin(noise_scale="weight")`` then has its stationary law. None: never.

    Raises
    ------
    RecipeError
        If a number is out of its range, or not exactly one of rate and rho is given.
    """

    rate: float | None = None
    rho: float | None = None
    score: str | float = "mvs"
    floor: float | None = None
    variance_control: str = "leaf_refit"
    lag: int = 1
    eta: float = 1.0
    factor: Any = field(default=None, repr=False)
    frozen_from: int | None = None

    __setstate__ = restored

    def __post_init__(self) -> None:
        self._check_amount()
        if not (isinstance(self.score, str) and self.score in KAPPAS) and not _positive(self.score, or_zero=True):
            names = ", ".join(map(repr, KAPPAS))
            raise RecipeError(f"sampling: the score must be {names}, or a number of at least 0; got {self.score!r}.")
        if self.floor is not None:
            share("floor", self.floor, with_least=True)
            if self.rate is not None and self.floor > self.rate:
                raise RecipeError(f"sampling: a floor above the rate {self.rate!r} draws more; got {self.floor!r}.")
        leaves_from(self.variance_control, VARIANCE_CONTROLS)
        if not is_integer(self.lag, 1, 2):
            raise RecipeError(f"sampling: the lag must be 1 or 2 trees; got {self.lag!r}.")
        share("eta", self.eta)
        if self.factor is not None:
            object.__setattr__(self, "factor", _factors(self.factor))
        if self.frozen_from is not None and not is_integer(self.frozen_from, 0, LAST_ROUND):
            rule = "None or a round, an integer of 0 or more"
            raise RecipeError(f"sampling: frozen_from must be {rule}; got {shown(self.frozen_from)}.")

    def _check_amount(self) -> None:
        if (self.rate is None) == (self.rho is None):
            raise RecipeError(
                f"sampling: a target rate, or a fixed rho, decides how many rows are drawn; got rate={self.rate!r} and "
                f"rho={self.rho!r}. Give one of the two."
            )
        if self.rate is not None:
            share("rate", self.rate)
        elif not _positive(self.rho):
            raise RecipeError(f"sampling: rho must be a finite number above 0; got {self.rho!r}.")

    @property
    def kappa(self) -> float:
        return KAPPAS[self.score] if isinstance(self.score, str) else float(self.score)

    @property
    def least(self) -> float:
        """Least probability of a row: ``floor``, or its default."""
        if self.floor is not None:
            return float(self.floor)
        return 0.0 if self.rate is None else LEAST * self.rate

    @property
    def weighs_losses(self) -> bool:
        return self.score == "loss"

    @property
    def draws_every_row(self) -> bool:
        """True if it equals no sampling: the rate is 1, and leaf values are of all rows."""
        return self.rate == 1.0 and self.variance_control == "leaf_refit"

    @property
    def unbiased(self) -> bool:
        """True if sums of gradients are unbiased. A row of loss 0, or without curvature, may have a gradient."""
        controlled = self.variance_control == "node" and self.eta < 1.0
        follows = self.score not in ("loss", "hessian") and self.follows_gradients and not self._some_factor_is_0
        blind = self.least == 0.0 and not follows
        return not (controlled or blind or self.variance_control == "previous_leaf")

    @property
    def repeatable(self) -> bool:
        """True if no round's scores are kept, and no factor has a row for each."""
        return self.frozen_from is None and self.factor is None

    @property
    def bounded(self) -> bool:
        """True if g / p is bounded; it is at most 1 / rho if p is in proportion to |g|."""
        by_gradient = self.kappa == 0.0 and not self.weighs_losses and not self._some_factor_is_0
        return self.least > 0.0 or (by_gradient and self.follows_gradients)

    @property
    def follows_gradients(self) -> bool:
        """True if the probabilities change with the model."""
        return self.frozen_from is None

    @property
    def _some_factor_is_0(self) -> bool:
        return self.factor is not None and min(self.factor) == 0.0

    @property
    def n_rows(self) -> int | None:
        """Number of rows that it is for; None for any number."""
        return None if self.factor is None else len(self.factor)

    def of_rows(self, rows: NDArray[np.int64]) -> Self:
        """The rule for some of the rows."""
        return self if self.factor is None else replace(self, factor=np.asarray(self.factor)[rows])

    def prepared(self, data: TrainingSet) -> ImportanceSampling | ScoredDraws:
        """The rule of one run: with the factors as an array, checked against the training rows, and scores to keep."""
        if self.factor is None and self.frozen_from is None:
            return self
        return ScoredDraws(self, None if self.factor is None else checked(self.factor, data.n_rows))

    def draw(self, backend: Backend, gradients: Gradients, key: Key, losses: Losses | None = None) -> Sample:
        if self.factor is not None:
            rule = ScoredDraws(self, checked(self.factor, gradients.g.shape[1]))
            return rule.draw(backend, gradients, key, losses)
        if self.rate == 1.0:
            return Sample()
        values = losses() if self.weighs_losses and losses is not None else None
        return backend.draw(gradients, self.kappa, self.rule, key, values)

    @property
    def rule(self) -> ThresholdRule:
        """The rule from scores to probabilities."""
        rate, rho = (None if number is None else float(number) for number in (self.rate, self.rho))
        return ThresholdRule(rate, rho, self.least)


@dataclass(slots=True, eq=False)
class ScoredDraws:
    """An ``ImportanceSampling`` in one run, whose scores have factors, (n,) float64, or stay those of a round."""

    of: ImportanceSampling
    factors: Array | None
    frozen: Array | None = None  # (n,) scores that are kept, on the backend

    @property
    def variance_control(self) -> str:
        return self.of.variance_control

    @property
    def lag(self) -> int:
        return self.of.lag

    @property
    def eta(self) -> float:
        return self.of.eta

    @property
    def weighs_losses(self) -> bool:
        return self.of.weighs_losses

    def draw(self, backend: Backend, gradients: Gradients, key: Key, losses: Losses | None = None) -> Sample:
        if self.of.rate == 1.0:
            return Sample()
        if self.frozen is not None:
            return backend.draw(gradients, self.of.kappa, self.of.rule, key, self.frozen)
        scores = self._scores(backend, gradients, losses)
        if self.of.frozen_from is not None and key.iteration >= self.of.frozen_from:
            self.frozen = scores
        return backend.draw(gradients, self.of.kappa, self.of.rule, key, scores)

    def recall(self, backend: Backend, gradients: Gradients, losses: Losses) -> None:
        """Restore the scores that are kept, from the gradients of their round."""
        if self.of.rate != 1.0:
            self.frozen = self._scores(backend, gradients, losses)

    def _scores(self, backend: Backend, gradients: Gradients, losses: Losses | None) -> Array:
        values = losses() if self.weighs_losses and losses is not None else None
        return backend.score_rows(gradients, self.of.kappa, values, self.factors)


def _positive(value: Any, *, or_zero: bool = False) -> bool:
    return is_real(value) and bool(value > 0.0 or (or_zero and value == 0.0))


def _factors(value: Any) -> tuple[float, ...]:
    factor = numbers_of_rows("factor", value)
    if not factor.any():
        raise RecipeError("sampling: factor must not be 0 in every row.")
    return tuple(factor.tolist())
