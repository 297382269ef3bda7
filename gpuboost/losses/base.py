"""Base class of the losses in this package, with a record of facts whose defaults a loss overrides."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from numpy import float64, zeros
from numpy.typing import NDArray

from gpuboost.errors import RecipeError, shown
from gpuboost.losses.protocol import Derivatives, Loss, LossTraits, RowDerivatives, RowValue, Value, undefined
from gpuboost.records import dataclass, declared
from gpuboost.types import Array

Floats: TypeAlias = NDArray[float64]
F = TypeVar("F", bound=Callable[..., Any])

Link: TypeAlias = Literal["identity", "logistic", "softmax", "log", "other"]
"""The link function: the prediction is the score itself, expit, softmax or exp of it, or another function of it."""


LATER = {"left out of model files": "where it has its default, as in files of versions that do not know it"}
"""``metadata`` of a parameter that a loss got after its first release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossFacts:
    """The properties of a loss that hold for every value of its parameters.

    A property that depends on a parameter, as the smoothness of ``Logistic(ridge=1)`` does, is overridden by the loss.
    ``gpuboost.losses.Loss`` explains the fields without a comment.
    """

    task: str  # "regression", "binary", "multiclass", "ranking" or "any"
    n_outputs: int = 1
    smoothness: float | None = None
    strong_convexity: float = 0.0
    bounded_level_sets: bool = False
    convex: bool = True
    lipschitz: float | None = None  # sup |g|; None if unbounded
    has_curvature: bool = True
    leaf_quantile: float | None = None
    curvature_change: float | None = None  # M: the third derivative is at most M times the second; None if not known
    joint_curvature: float = 1.0  # times sum of h d^2: bounds the curvature along steps d of all outputs
    default_metric: str = "loss"  # metric if ``eval_metric`` is None; a name of ``gpuboost.metrics``
    link: Link = "identity"
    score_scale: float = 1.0  # the link function is applied to score_scale times the score
    normal_noise: bool = False  # True: negative log-likelihood of normal noise about the first score
    positive_target: bool = False  # True: negative targets are outside of its domain
    censored_target: bool = False  # True: the target is a time, negative if it is the end of an observation only
    predicts_spread: bool = False  # True: a likelihood whose scores give the standard deviation of the target too
    checks_parameters: bool = False  # True: its parameters need not be numbers, and its constructor checks them
    xgboost_objective: str = ""  # in files for XGBoost; empty for the usual one of the link function


class BaseLoss(ABC):
    """A loss whose members are its ``facts``. A subclass states ``name``, ``facts`` and the members that differ.

    It needs a pair of formulas (``value`` and ``derivatives``, or those of several outputs), ``check_target`` and
    ``start``, and ``inverse_link`` unless the link function is the identity; see ``gpuboost.losses.Loss``.
    """

    __slots__ = ()

    facts: ClassVar[LossFacts]

    @property
    def task(self) -> str:
        return self.facts.task

    @property
    def parameter(self) -> float:
        return 0.0

    @property
    def n_outputs(self) -> int:
        return self.facts.n_outputs

    @property
    def smoothness(self) -> float | None:
        return self.facts.smoothness

    @property
    def strong_convexity(self) -> float:
        return self.facts.strong_convexity

    @property
    def bounded_level_sets(self) -> bool:
        return self.facts.bounded_level_sets

    @property
    def convex(self) -> bool:
        return self.facts.convex

    @property
    def lipschitz(self) -> float | None:
        return self.facts.lipschitz

    @property
    def has_curvature(self) -> bool:
        return self.facts.has_curvature

    @property
    def leaf_quantile(self) -> float | None:
        return self.facts.leaf_quantile

    @property
    def curvature_change(self) -> float | None:
        return self.facts.curvature_change

    @property
    def default_metric(self) -> str:
        """The metric if ``eval_metric`` is None."""
        return self.facts.default_metric

    @property
    def link_scale(self) -> float:
        """The link function is applied to this number times the score."""
        return self.facts.score_scale

    @property
    def value(self) -> Value:
        return undefined

    @property
    def derivatives(self) -> Derivatives:
        return undefined

    @property
    def row_value(self) -> RowValue:
        return undefined

    @property
    def row_derivatives(self) -> RowDerivatives:
        return undefined

    @property
    def log_loss(self) -> Loss | None:
        """The loss whose mean, at the same scores, is the log loss of the predicted classes; None if there is none."""
        return None

    def start_beside(self, y: Array, weight: Array, offset: Array) -> Floats:
        """(k,) constant that minimises the loss if it is added to the (k, n) offsets; 0 if there is no formula for it.

        y, weight: (n,) float64.
        """
        return zeros(self.n_outputs)

    def inverse_link(self, scores: Array) -> Array:
        """(k, n) scores to (n,) predictions: here the first scores themselves."""
        return scores[0]

    def log_odds(self, score: Array) -> Array:
        """(n,) log-odds of class 1 from the (n,) scores of a loss of two classes."""
        return self.facts.score_scale * score

    def noise(self, members: Array, predictions: Array, temperature: float) -> Floats | None:
        """(n,) variance of the target about its mean under the loss's likelihood; None if the loss is no likelihood.

        Args:
            members: (draws, n_outputs, n) scores of the members of an ensemble, over which the variance is averaged.
            predictions: (draws, n) their means.
            temperature: T, at which the loss was sampled.
        """
        return None

    def target_quantile(self, scores: Array, p: float) -> Floats:
        """(n,) the p-quantile of the target under the (n_outputs, n) scores, for losses that ``predicts_spread``."""
        raise TypeError(f"the loss {type(self).__name__} predicts no distribution of the target.")


FOREIGN = LossFacts(task="any", link="other")
"""Facts of a loss object that does not derive from ``BaseLoss``."""


def facts_of(loss: Loss) -> LossFacts:
    """The facts of a loss; ``FOREIGN`` if it does not derive from ``BaseLoss``."""
    return loss.facts if isinstance(loss, BaseLoss) else FOREIGN


def stated_link(loss: BaseLoss) -> Link:
    """The link of the loss's facts; "other" if a class that derives from theirs has an ``inverse_link`` of its own."""
    place = {name: _place(type(loss), name) for name in ("facts", "inverse_link")}
    return loss.facts.link if place["facts"] <= place["inverse_link"] else "other"


def _place(kind: type, name: str) -> int:
    """Number of classes, ``kind`` and those that it derives from, before the first that defines the attribute."""
    return next(number for number, base in enumerate(kind.__mro__) if name in vars(base))


def link_of(loss: Loss) -> tuple[Link, float]:
    """The link function that makes predictions of scores, and the factor of the scores in front of it.

    That of every score by itself; "identity" may be of the first score alone. "other" where ``inverse_link`` is another
    function, or the factor depends on a parameter: its product with a score then need not have the same bits.
    """
    if not isinstance(loss, BaseLoss):
        return "other", 1.0
    inverse_link: Any = type(loss).inverse_link
    if inverse_link is BaseLoss.inverse_link:
        return "identity", 1.0
    scale = loss.facts.score_scale
    return (stated_link(loss), scale) if loss.link_scale == scale else ("other", 1.0)


def checked_loss(loss: Any) -> Loss:
    """The loss. Raises RecipeError if it is none, such as the name of one."""
    if isinstance(loss, type) or not hasattr(loss, "task"):
        raise RecipeError(f"loss: must be a loss, such as gpuboost.losses.SquaredError(); got {shown(loss)}.")
    checked: Loss = loss
    return checked


def of_output(loss: Loss, output: int) -> Loss:
    """The loss by which a step rule refines the leaves of one output's tree.

    It is the loss itself, or what its method ``of_output`` gives: a loss that is a sum of losses of one score has it.
    """
    separate = declared(LossTraits, loss).of_output
    return loss if separate is None else separate(output)


def named(function: F, content: str) -> F:
    """The function, which others of the same text are made beside, under a name of its own.

    Machine code that several processes kept is linked by names: of two functions of one name, one would be called in
    place of both. content: text that distinguishes it from the others.
    """
    name = re.sub(r"\W+", "_", f"{function.__name__}_of_{content}")
    function.__name__ = function.__qualname__ = name
    return function


def estimates_spread(loss: Loss) -> bool:
    """True if the loss has a score for the spread of the target beside that for its mean."""
    return facts_of(loss).predicts_spread
