"""Share of the gradient explained by each round's trees (edge), and a certain fall of the loss (descent lemma).

Falls are those of the steps d that were taken: a sigma-smooth loss falls by at least <r, d> - (sigma / 2) |d|^2, with r
the negative gradient of all rows. Where the length of a step along v was searched, a share nu <= 1 of the best length
lowers a convex loss by at least nu <r, v>^2 / (2 sigma |v|^2), which may be more.
"""

from __future__ import annotations

from dataclasses import field
from math import sqrt
from typing import Any

import numpy as np

from gpuboost.langevin import Langevin
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass, declared
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import StepTraits, searches
from gpuboost.types import Progress, TrainingSet


@dataclass(frozen=True, slots=True)
class EdgeReport:
    """Edge |P r| / |r| of each round: r is the negative gradient of all rows, P r its part along the trees."""

    edges: tuple[float, ...]
    promised: tuple[float, ...]  # lower bound on the decrease of the mean loss, by the step that was taken
    factors: tuple[float, ...]  # upper bound on the factor of L - L*; 1 or more if the loss is not strongly convex

    def __str__(self) -> str:
        return f"edges from {min(self.edges):.3g} to {max(self.edges):.3g}, at least {sum(self.promised):.4g} down"


@dataclass(slots=True)
class EdgeRecord:
    """Recorder of the numbers of a report during a fit.

    Not measured are rounds on a device, rounds of a sample of rows, and fits whose steps are not those of the newest
    gradients alone: Langevin boosting, leaf values of workers, values held to an order.

    Leaf values of a constant step are -G / (c N + lambda), and c N is the cover: so sums follow from the tree after the
    fit, and a round costs one pass over the gradients. A line search scales the values, so there G is summed again.
    """

    recipe: Recipe
    measured: bool = field(init=False)
    even: bool = True  # all rows have weight 1
    total_weight: float = 1.0
    lengths: list[float] = field(default_factory=list)
    rounds: list[Any] = field(default_factory=list)  # trees, or their sums if a line search scales the leaf values
    rates: list[float] = field(default_factory=list)  # factor of the trees' values in each round
    before: Any = None  # scores after the last round, of base learners other than trees

    def __post_init__(self) -> None:
        recipe, loss, curvature = self.recipe, self.recipe.loss, self.recipe.step.curvature(self.recipe.loss)
        smooth = loss.smoothness is not None and loss.leaf_quantile is None
        held = recipe.growth.limits.bounded  # then sums do not follow from the values
        other = isinstance(recipe.langevin, Langevin) or recipe.averages or recipe.stale_leaves or held
        exact = declared(SamplingTraits, recipe.sampling).variance_control == "leaf_refit"
        self.measured = smooth and curvature is not None and exact and not other

    def start(self, data: TrainingSet) -> None:
        self.even, self.total_weight = data.weight is None and data.multiplicity is None, data.total_weight

    def see(self, progress: Progress) -> None:
        drawn = progress.drawn
        if not self.measured or drawn is None or not isinstance(drawn.gradients.g, np.ndarray):
            return
        if self.recipe.base_learner is not None:
            self._see_scores(progress, drawn.gradients)
            return
        if drawn.sample.rows is not None or len(drawn.leaves) != len(progress.trees):
            return
        self.lengths.append(self._length(drawn.gradients))
        self.rates.append(progress.factor * progress.scale)
        if searches(self.recipe.step):
            pairs = zip(progress.trees, drawn.leaves, strict=True)
            self.rounds.append([self._searched(drawn.gradients, tree, leaves) for tree, leaves in pairs])
        else:
            self.rounds.append(progress.trees)

    def _see_scores(self, progress: Progress, gradients: Any) -> None:
        """Measure the edge of any base learner from the change of the scores on all rows.

        The first round after a continued model is not measured.
        """
        before, self.before = self.before, np.array(progress.scores)
        if before is None and progress.n_rounds > 1:
            return
        moved = self.before - (progress.ensemble.bias[:, None] if before is None else before)
        times = 1.0 if gradients.multiplicity is None else gradients.multiplicity
        slope = -(gradients.g * times * moved).sum(axis=1)
        bend = (gradients.h * times * moved * moved).sum(axis=1)
        curvature = self.recipe.step.curvature(self.recipe.loss) or 1.0
        reach = curvature * np.divide(slope * slope, bend, out=np.zeros(len(bend)), where=bend > 0.0)
        down = slope - 0.5 * (self.recipe.loss.smoothness or 0.0) / curvature * bend
        self.lengths.append(self._length(gradients))
        self.rates.append(1.0)
        self.rounds.append(list(zip(reach.tolist(), down.tolist(), strict=True)))

    def report(self) -> EdgeReport | None:
        """The report; None if no round was measured."""
        if not self.rounds:
            return None
        sigma, mu = self.recipe.loss.smoothness or 0.0, self.recipe.loss.strong_convexity
        edges, promised, factors = [], [], []
        for length, rate, trees in zip(self.lengths, self.rates, self.rounds, strict=True):
            parts = [tree if isinstance(tree, tuple) else self._of(tree, rate) for tree in trees]
            reach, down = sum(part[0] for part in parts), sum(part[1] for part in parts)
            edges.append(sqrt(min(reach / length, 1.0)) if length > 0.0 else 0.0)
            promised.append(down / self.total_weight)
            # |r|^2 / (2 sigma) <= L - L* <= |r|^2 / (2 mu)
            gap = 2.0 * (mu if down > 0.0 else sigma) / length if length > 0.0 else 0.0
            factors.append(1.0 - gap * down)
        return EdgeReport(tuple(edges), tuple(promised), tuple(factors))

    def _of(self, tree: Any, rate: float) -> tuple[float, float]:
        """|P r|^2, and least decrease of the summed loss: sum of d G - (sigma / 2) N d^2, d the leaf's step."""
        limits, nodes = self.recipe.growth.limits, tree.nodes
        curvature, sigma = self.recipe.step.curvature(self.recipe.loss) or 1.0, self.recipe.loss.smoothness or 0.0
        every = zip(nodes.feature.tolist(), nodes.cover.tolist(), tree.value.tolist(), strict=True)
        # For few numbers, lists are quicker than arrays.
        leaves = [(h, abs(value)) for feature, h, value in every if feature < 0]
        if limits.signed and len(leaves) == 2:  # one value, so one "leaf"
            leaves = [(leaves[0][0] + leaves[1][0], leaves[0][1])]
        reach = down = 0.0
        for h, value in leaves:
            g, step = value * (h + limits.reg_lambda), rate * value
            reach += g * g / h if h > 0.0 else 0.0
            down += step * g - 0.5 * sigma / curvature * h * step * step
        return curvature * reach, down

    def _searched(self, gradients: Any, tree: Any, leaves: Any) -> tuple[float, float]:
        """``_of`` for a line search, from the sums of gradients in the leaves."""
        curvature, m = self.recipe.step.curvature(self.recipe.loss) or 1.0, gradients.multiplicity
        sigma, rate, value = self.recipe.loss.smoothness or 1.0, self.rates[-1], np.asarray(tree.value)
        times = 1.0 if m is None else m
        g = np.bincount(leaves, gradients.g[tree.output] * times, len(value))
        h = np.bincount(leaves, gradients.h[tree.output] * times, len(value))
        slopes, bends = -g * value, h * value * value / curvature  # <r, v> and |v|^2 of each leaf
        if declared(StepTraits, self.recipe.step).per == "tree":
            slopes, bends = slopes.sum(keepdims=True), bends.sum(keepdims=True)
        down = rate * slopes - 0.5 * sigma * rate * rate * bends
        if rate <= 1.0 and self.recipe.loss.convex and len(gradients.g) == 1:  # searches of outputs follow one another
            searched = np.divide(slopes * slopes, bends, out=np.zeros(len(bends)), where=bends > 0.0)
            down = np.maximum(down, 0.5 * rate / sigma * searched)
        if self.recipe.growth.limits.signed and len(g) == 3:
            g, h = g[1:2] - g[2:], h[1:2] + h[2:]
        reach = curvature * float(np.divide(g * g, h, out=np.zeros(len(h)), where=h > 0.0).sum())
        return reach, float(down.sum())

    def _length(self, gradients: Any) -> float:
        """|r|^2. At weight w, g is w times the row's own gradient and h is w times c: it is the sum of c g^2 / h."""
        if self.even:
            length = 0.0
            for g in gradients.g:
                length += float(np.dot(g, g))
            return length
        curvature, m = self.recipe.step.curvature(self.recipe.loss) or 1.0, gradients.multiplicity
        length = 0.0
        for g, h in zip(gradients.g, gradients.h, strict=True):
            squares = np.divide(g.astype(np.float64) ** 2, h, out=np.zeros(len(g)), where=h > 0.0)
            length += curvature * float((squares if m is None else squares * m).sum())
        return length
