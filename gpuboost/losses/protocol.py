"""Protocol of losses. Formulas are scalar Python, so that one text serves every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeAlias, TypeGuard

from gpuboost.records import dataclass, declared
from gpuboost.types import Array

Value: TypeAlias = Callable[[float, float, float], float]
"""(y, f, a) -> l"""

Derivatives: TypeAlias = Callable[[float, float, float], tuple[float, float]]
"""(y, f, a) -> g, h"""

RowValue: TypeAlias = Callable[[Any, Array, float], float]
"""(y, f, a) -> l, f being n_outputs numbers, and y one, or as many as the loss has targets: see ``n_targets``"""

RowDerivatives: TypeAlias = Callable[[Any, Array, Array, Array, float], None]
"""(y, f, g, h, a); writes g and h, n_outputs float64 numbers each"""

PairWeight: TypeAlias = Callable[[float, float], float]
"""(difference of gains, difference of discounts), neither negative -> w >= 0; 0 where the gains are equal"""


def undefined(*_: Any) -> NoReturn:
    """Placeholder for the pair of formulas that a loss does not have."""
    raise TypeError(
        "a loss of one output has value and derivatives, one of several row_value and row_derivatives, and one of "
        "lists pair_weight."
    )


class Loss(Protocol):
    """l(y, f): loss of the score f for the target y, for one row of weight 1.

    The three formulas use only arithmetic, comparisons, ``abs``, and the scalar functions of
    ``gpuboost.elementary``: the Reference backend calls them as they are, numba compiles the same text. ``a`` is
    ``parameter``, an argument so that one compiled kernel serves every value of it.

    Losses of one output define ``value`` and ``derivatives``; those of several (``n_outputs > 1``) define
    ``row_value`` and ``row_derivatives``. The other pair is ``undefined``; both are for a ``ListLoss``. For every
    finite f, g and h are finite and h is not negative.

    ``gpuboost.losses.BaseLoss`` has defaults for most members. A loss that derives from it also declares its link
    function and default metric to metrics, exports and ``predict_uncertainty``, which assume neither otherwise.
    """

    @property
    def name(self) -> str: ...  # name in a model file

    @property
    def task(self) -> str: ...  # kind of target: "regression", "binary", "multiclass", "ranking", or "any"

    @property
    def parameter(self) -> float: ...  # delta, alpha, power, ridge ...; 0.0 if the loss has none

    @property
    def n_outputs(self) -> int: ...

    @property
    def smoothness(self) -> float | None: ...  # sigma >= sup h; None if unbounded or not differentiable (RGBM, 4.1)

    @property
    def strong_convexity(self) -> float: ...  # mu >= 0

    @property
    def bounded_level_sets(self) -> bool: ...  # True if {f: l(y, f) <= c} is bounded for every y and c

    @property
    def convex(self) -> bool: ...

    @property
    def has_curvature(self) -> bool: ...  # False if h may be 0 over a whole leaf: no Newton steps

    @property
    def leaf_quantile(self) -> float | None: ...  # leaves are this quantile of the residuals, not -G / (H + lambda)

    @property
    def value(self) -> Value: ...

    @property
    def derivatives(self) -> Derivatives: ...

    @property
    def row_value(self) -> RowValue: ...

    @property
    def row_derivatives(self) -> RowDerivatives: ...

    def check_target(self, y: Array) -> None:
        """Raise InputError, naming the rule, the row and its value, if y is outside the loss's domain."""
        ...

    def start(self, y: Array, weight: Array) -> Array:
        """F_0, (n_outputs,) float64: the constant with the least loss, rounded to float32 precision."""
        ...

    def inverse_link(self, scores: Array) -> Array:
        """(k, n) scores to predictions: (n,) means or probabilities of class 1, or (n, classes) probabilities."""
        ...


@dataclass(frozen=True, slots=True)
class LossTraits:
    """Attributes that a loss may have, and the values that stand for those that it does not have."""

    bounded_level_sets: bool = False
    lipschitz: float | None = None
    curvature_change: float | None = None
    of_output: Callable[[int], Loss] | None = None  # the loss of one score, if the loss is a sum of such
    link: Any = None  # of a custom loss: what makes predictions of its scores; None if nothing was given
    scale_free: bool | None = None  # see ``SmoothedLoss``; None: the loss is not of that kind
    n_targets: int = 1  # numbers that the target of a row has; above 1 y is (n, n_targets)
    needs_pairs: bool = False  # the next five: see the functions that read them
    on_host: bool = False
    weighs_precision: bool = False
    debiases: bool = False
    perturbs_labels: bool = False


class DiscountedGain(Protocol):
    """The members that all losses of lists have: the weight of an exchange, and a list's ideal DCG."""

    @property
    def pair_weight(self) -> PairWeight: ...

    @property
    def truncation(self) -> int | None: ...  # number of first places that count; None for all

    @property
    def uses_ideal(self) -> bool: ...  # True if pair weights are relative to the DCG of the ideal order

    def gains(self) -> Array:
        """(labels,) float64 gain of each label; (0,) if a label is its own gain."""
        ...


class ListLoss(Loss, DiscountedGain, Protocol):
    """Loss of the order of a list: its rows are documents of one query; a single row has no loss.

    A pair of documents costs ``w log(1 + e^(-a d))``, d being the better document's score less the worse one's and
    ``a`` the ``parameter``. ``pair_weight`` is scalar Python, as other formulas are, of the differences of gains and of
    discounts, proportional to the first if the loss ``uses_ideal``; pairs of equal gain have weight 0 in any case.
    ``losses.ranking.pair_derivatives`` has the derivatives. ``TrainingSet.query_start`` holds the lists.
    """

    @property
    def weighs_precision(self) -> bool: ...  # True if differences are of precisions instead of discounts: MAP

    @property
    def prefers_close(self) -> bool: ...  # True if w is divided by 0.01 + |d|

    @property
    def evens_lists(self) -> bool: ...  # True if g and h of a list are multiplied by log2(1 + S) / S, S = 2 sum w p


class SmoothedLoss(Loss, DiscountedGain, Protocol):
    """Loss of lists whose gradient is a random estimate: that of 1 - NDCG, smoothed by noise on the scores.

    ``backends.reference.smoothed_ranking`` has the estimate, ``losses.stochastic_rank`` an example. Every round draws
    its own noise, so the gradient is the verb ``drawn_gradients``, which takes a key.
    """

    @property
    def sigma(self) -> float: ...  # standard deviation of the noise on scores

    @property
    def mu(self) -> float: ...  # scores are lowered by sigma mu times the label before the noise

    @property
    def samples(self) -> int: ...  # draws that an estimate averages

    @property
    def scale_free(self) -> bool: ...  # True if the estimate is made orthogonal to the list's scores


class LabelPerturbingLoss(Loss, DiscountedGain, Protocol):
    """Loss of lists whose labels are perturbed at random in every round: ``backends.reference.cross_entropy``."""

    @property
    def perturbs_labels(self) -> bool: ...  # True


DrawnLoss: TypeAlias = SmoothedLoss | LabelPerturbingLoss
"""Loss of lists whose gradients are random estimates of those of a fixed objective."""


def weighs_precision(loss: DiscountedGain) -> bool:
    """True if the weight of an exchange is the change of precisions, and a list's ideal the sum of its gains."""
    return bool(declared(LossTraits, loss).weighs_precision)


def n_targets(loss: Loss) -> int:
    """Numbers that the target of a row has: 1 for y of shape (n,)."""
    return int(declared(LossTraits, loss).n_targets)


def needs_pairs(loss: Loss) -> bool:
    """True if the loss learns from pairs that are given beside the rows: ``TrainingSet.pairs``."""
    return bool(declared(LossTraits, loss).needs_pairs)


def is_on_host(loss: Loss) -> bool:
    """True if the host computes the derivatives of a loss of rankings, also for a training on a GPU."""
    return bool(declared(LossTraits, loss).on_host)


class DebiasingLoss(ListLoss, Protocol):
    """Loss of lists of clicks that estimates the bias of positions: ``backends.reference.unbiased_ranking``."""

    @property
    def sigma(self) -> float: ...  # steepness of the logistic function

    @property
    def bias_norm(self) -> float: ...  # 0 or more; estimates are powers 1 / (1 + bias_norm)

    @property
    def debiases(self) -> bool: ...  # True


def debiases(loss: Loss) -> TypeGuard[DebiasingLoss]:
    """True if the loss estimates the bias of positions: ``TrainingSet.position``, or the order of rows."""
    return loss.task == "ranking" and declared(LossTraits, loss).debiases


def is_smoothed(loss: Loss) -> TypeGuard[SmoothedLoss]:
    """True if the loss is a smoothed metric of lists, whose gradients are drawn."""
    return loss.task == "ranking" and declared(LossTraits, loss).scale_free is not None


def perturbs_labels(loss: Loss) -> TypeGuard[LabelPerturbingLoss]:
    """True if the loss is of lists whose labels are perturbed, so that its gradients are drawn."""
    return loss.task == "ranking" and declared(LossTraits, loss).perturbs_labels


def is_drawn(loss: Loss) -> TypeGuard[DrawnLoss]:
    """True if gradients are random estimates of those of a fixed objective: the verb ``drawn_gradients`` has them."""
    return is_smoothed(loss) or perturbs_labels(loss)


def has_fixed_objective(loss: Loss) -> bool:
    """True unless the loss is of lists and has weights that follow the scores."""
    return loss.task != "ranking" or is_drawn(loss) or needs_pairs(loss)


def is_list_loss(loss: Loss) -> TypeGuard[ListLoss]:
    """True if the loss is defined on whole lists (queries), not on single rows."""
    return loss.task == "ranking"
