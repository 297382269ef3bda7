"""The verbs of a round on a CPU: what they were given, if each was given what the ones before it returned."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.repeated_draws import DrawVerbs
from gpuboost.types import Candidates, FittedTree, Gradients, Limits, Noise, Target, TrainingSet

Noted: TypeAlias = list[tuple[Any, ...]]
"""Verbs in their order: the name of each, what it returned, and what it was given"""


class GrowthArguments(NamedTuple):
    """Arguments of ``grow`` that the trees of a round share."""

    data: TrainingSet
    target: Target
    candidates: Candidates
    limits: Limits


class RoundVerbs(NamedTuple):
    """The verbs that a round does again, as far as they differ from fit to fit."""

    gradients: Gradients  # the arrays are written to
    run: Any  # the loss's kernel, and its arguments
    of_run: tuple[Any, ...]
    of_growth: GrowthArguments
    draw: DrawVerbs | None  # of rows
    noise: tuple[Noise | None, Noise | None]  # on the gradients that trees are grown from, and on leaf values
    scores: NDArray[np.float64]  # to which trees are added
    shrunk: tuple[NDArray[np.float64], NDArray[np.float64]] | None  # bias and scores, if those are sums

    @property
    def limits(self) -> Limits:
        return self.of_growth.limits

    @property
    def draws(self) -> bool:
        """True if rows or features are drawn."""
        return self.draw is not None or self.of_growth.candidates.by_tree is not None

    @property
    def is_noisy(self) -> bool:
        """True if gradients or leaf values have noise."""
        return self.noise != (None, None)

    @property
    def may_warn(self) -> bool:
        """True if the report needs the draw of every round, for a warning of rows that are never drawn."""
        draw, own_leaves = self.draw, self.of_growth.target.own_leaves
        return draw is not None and draw.rule is not None and draw.kappa == 0.0 and own_leaves

    @property
    def version(self) -> int:
        """The number of the round."""
        return self.of_growth.target.version

    @classmethod
    def of(cls, verbs: Noted, trees: tuple[FittedTree, ...]) -> RoundVerbs | None:
        """The verbs of a round of these trees; None if it cannot be repeated by what it was given."""
        if not verbs or verbs[0][0] != "gradients":
            return None
        (_, gradients, values, run, of_run), *verbs = verbs
        scores, shrunk = values, None
        if verbs and verbs[-1][0] == "scores":
            *verbs, (_, _, scores, bias, _, out) = verbs
            if out is not values:
                return None
            shrunk = bias, values
        disturbed = _disturbed(verbs, gradients)
        of_trees = disturbed and _of_trees(disturbed.others, trees, gradients, disturbed.gradients, scores)
        if not disturbed or not of_trees:
            return None
        of_growth, leaf_noise = of_trees
        noise = disturbed.noise, leaf_noise
        return cls(gradients, run, of_run, of_growth, disturbed.draw, noise, scores, shrunk)


class _Disturbed(NamedTuple):
    """The gradients that trees are grown from: of drawn rows, with noise, or both."""

    gradients: Gradients
    draw: DrawVerbs | None
    noise: Noise | None
    others: Noted  # the verbs after these


def _disturbed(verbs: Noted, gradients: Gradients) -> _Disturbed | None:
    """The gradients of trees after draw and noise; None if a verb was given other gradients or rows than these."""
    draw = noise = rows = None
    if [verb[0] for verb in verbs[:2]] in (["sample", "weigh"], ["draw", "weigh"]):
        draw, rows = DrawVerbs.of(verbs[:2], gradients), verbs[0][1].rows
        if draw is None:
            return None
        gradients, verbs = draw.weighed, verbs[2:]
    if verbs and verbs[0][0] == "noise":
        (_, noisy, given, of_rows, noise), *verbs = verbs
        if given is not gradients or of_rows is not rows or noise.scale is not None:
            return None
        gradients = noisy
    return _Disturbed(gradients, draw, noise, verbs)


def _of_trees(
    verbs: Noted, trees: tuple[FittedTree, ...], gradients: Gradients, of_tree: Gradients,
    scores: NDArray[np.float64],
) -> tuple[GrowthArguments, Noise | None] | None:  # fmt: skip
    """The arguments of the growth of a round's trees, and the noise on their leaf values.

    None if a verb was given anything but what the ones before it returned. of_tree: what trees are grown from.
    """
    k, names = len(trees), [verb[0] for verb in verbs]
    each = ["leaf_values", "bound_leaves", "bound_leaves", "add_leaves"]
    if "bound_leaves" not in names:
        each = [each[0], each[-1]]
    if names != ["grow"] * k + each * k:
        return None
    (_, _, data, target, _, candidates, limits), noise, factor = verbs[0], verbs[k][2], verbs[-1][-1]
    same = target.gradients is of_tree
    for output, tree in enumerate(trees):
        _, structure, *of_growth = verbs[output]
        (_, fitted, *of_values), *bounded, (_, _, *of_step) = verbs[k:][len(each) * output :][: len(each)]
        for refined, (_, result, *of_bounds) in enumerate(bounded):
            same = same and of_bounds[0] is fitted and of_bounds[1] is limits and of_bounds[2] == refined
            fitted = result
        same = same and (structure.sums is None) != target.gives_leaf_sums and fitted is tree and of_step[2] == factor
        for argument, wanted in zip(of_growth, (data, target, output, candidates, limits), strict=True):
            same = same and argument is wanted
        for argument, wanted in zip(
            (*of_values, *of_step[:2]), (noise, structure, gradients, limits, scores, tree), strict=True
        ):
            same = same and argument is wanted
    return (GrowthArguments(data, target, candidates, limits), noise) if same else None
