"""Step rules: the denominator of a tree's leaf values, and their refinement.

A leaf value is -G / (D + lambda), G being the sum of gradients in the leaf. The rules differ in D alone, so each is
"Newton, with another curvature": the constant step of RGBM is Newton's with every h set to sigma (docs/theory/rgbm.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

from gpuboost.arguments import is_one_of
from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError
from gpuboost.losses.base import of_output
from gpuboost.losses.custom.arrays import is_of_arrays
from gpuboost.losses.protocol import Loss, is_drawn, is_list_loss
from gpuboost.records import dataclass, declared
from gpuboost.types import Array, FittedTree, TrainingSet


@dataclass(frozen=True, slots=True)
class StepTraits:
    """Attributes that a step rule may have, and the values that stand for those that it does not have."""

    searches: bool = False  # True: leaf values are found by a line search on the loss
    per: str = "leaf"  # scope of one step length: "leaf" or "tree"


class Step(Protocol):
    """A step rule. ``curvature`` replaces h; ``refine`` may replace the leaf values of a finished tree.

    It may have any of the ``StepTraits`` as attributes.
    """

    def curvature(self, loss: Loss) -> float | None:
        """None for the loss's own second derivative, or the constant that takes its place."""
        ...

    def refine(
        self, backend: Backend, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree: ...


def searches(step: Step) -> bool:
    """True if the rule finds leaf values by a line search on the loss."""
    return declared(StepTraits, step).searches


class _AsItIs(ABC):
    """Leaf values that need no refinement."""

    __slots__ = ()

    @abstractmethod
    def curvature(self, loss: Loss) -> float | None: ...

    def refine(
        self, backend: Backend, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        return tree


@dataclass(frozen=True, slots=True)
class NewtonStep(_AsItIs):
    """D = sum of h: one Newton step per leaf."""

    def curvature(self, loss: Loss) -> float | None:
        if not loss.has_curvature and not loss.convex:
            raise RecipeError(
                f"step: a Newton step divides by the second derivative, which is negative for some scores of loss "
                f"{loss.name!r}, as it is not convex: the step would go uphill. Use step='gradient' or 'auto'."
            )
        if not loss.has_curvature:
            raise RecipeError(
                f"step: a Newton step divides by the second derivative, which may be 0 for loss {loss.name!r}; "
                "use step='gradient', or 'auto', which takes the step that suits the loss."
            )
        return None


@dataclass(frozen=True, slots=True)
class GradientStep(_AsItIs):
    """D = number of rows (sum of weights): the leaf value is the mean negative gradient."""

    def curvature(self, loss: Loss) -> float | None:
        return 1.0


@dataclass(frozen=True, slots=True)
class ConstantStep(_AsItIs):
    """D = sigma times the number of rows, sigma the loss's smoothness: the step 1 / sigma of RGBM, section 2.1."""

    def curvature(self, loss: Loss) -> float | None:
        if loss.smoothness is None:
            raise RecipeError(
                f"step: a constant step needs a finite smoothness constant; loss {loss.name!r} has none. "
                f"Use step={_others(loss)}."
            )
        return loss.smoothness


def _others(loss: Loss) -> str:
    """The steps that a loss without a smoothness constant can serve."""
    searched = ("line_search",) if loss.convex and not is_list_loss(loss) else ()
    return " or ".join(map(repr, (("newton",) if loss.has_curvature else ()) + searched or ("gradient",)))


@dataclass(frozen=True, slots=True)
class QuantileStep:
    """The structure of a gradient step; leaf values are the loss's quantile of the residuals y - F.

    Exact line search per leaf for the absolute and the quantile loss (Friedman 2001, algorithm 3).
    """

    searches: ClassVar[bool] = True

    def curvature(self, loss: Loss) -> float | None:
        if of_output(loss, 0).leaf_quantile is None:
            raise RecipeError(f"step: loss {loss.name!r} has no quantile; use step='newton' or 'gradient'.")
        return 1.0

    def refine(
        self, backend: Backend, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        return backend.leaf_quantiles(tree, leaf_of_row, of_output(loss, tree.output), scores, data)


@dataclass(frozen=True, slots=True)
class LineSearchStep:
    """Line search along the tree, or along each leaf separately, for the least loss on all rows.

    The direction is the constant step (the mean negative gradient if the loss is not smooth), so a length of 1 is
    that step. Newton's method with a bracket, to a relative 1e-6, at most 20 passes over the rows; for the absolute and
    the quantile loss, a weighted quantile. Never on a sample of the rows, where a search is biased.

    Parameters
    ----------
    per : "tree" or "leaf"
        One length for the tree (RGBM and Friedman's functional gradient descent), or one for each leaf.

    Raises
    ------
    RecipeError
        If ``per`` is neither; from ``Recipe``, if the loss is not convex or is defined on whole lists.
    """

    per: str = "tree"

    searches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not is_one_of(self.per, ("tree", "leaf")):
            raise RecipeError(f"per: a line search is per 'tree' or per 'leaf'; got {self.per!r}.")

    def curvature(self, loss: Loss) -> float | None:
        if is_drawn(loss):
            raise RecipeError(
                f"step: a line search needs values of the objective, and loss {loss.name!r} has estimates of its "
                "gradient only. Use step='gradient'."
            )
        if is_of_arrays(loss):
            raise RecipeError(
                f"step: a line search needs the loss of single rows; loss {loss.name!r} is one function of all "
                "of them. Use step='newton'."
            )
        if is_list_loss(loss):
            raise RecipeError(
                f"step: a line search needs a fixed objective; loss {loss.name!r} is of whole lists, whose weights "
                "change from round to round. Use step='newton'."
            )
        if not loss.convex:
            raise RecipeError(
                f"step: a line search looks for the one minimum of a convex loss; loss {loss.name!r} is not convex. "
                "Use step='gradient'."
            )
        return loss.smoothness or 1.0

    def refine(
        self, backend: Backend, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        alone = of_output(loss, tree.output)
        searched = loss if alone.leaf_quantile is None else alone  # quantiles look at one score, slopes at all
        return backend.line_search(tree, leaf_of_row, searched, scores, data, self.per == "leaf")


def automatic(loss: Loss) -> Step:
    """Default step: quantiles for a quantile loss, Newton if the loss has curvature, else the mean gradient."""
    if of_output(loss, 0).leaf_quantile is not None:
        return QuantileStep()
    return NewtonStep() if loss.has_curvature else GradientStep()
