"""Findings of theory about a row-sampling rule combined with the other pieces of a recipe.

A tree's shape may come from any sample: with exact leaf values the training loss then behaves as without sampling, so
there is no finding. There are findings if leaf values come from the sample too, if rows are left out without
compensation by weights, or if all rows may have the same score.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.execution import DataParallel, Execution, is_sequential
from gpuboost.langevin import Dynamics, Langevin
from gpuboost.losses.protocol import Loss, is_drawn, is_list_loss
from gpuboost.records import declared
from gpuboost.sampling import ImportanceSampling, WeightTrimming
from gpuboost.sampling.protocol import SamplingTraits
from gpuboost.steps import Step, searches
from gpuboost.types import Limits

FEW_ROWS = 5  # fewer sampled rows than this in a leaf are a finding, if leaf values come from the sample


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings; none if the rule does not change the verdict on the recipe."""
    sampling, step, execution = recipe.sampling, recipe.step, recipe.execution
    yield from _of_rows(sampling, execution)
    yield from _of_score(sampling, recipe.loss, step)
    yield from _of_lists(sampling, recipe.loss, execution)
    yield from _of_leaves(sampling, step, recipe.growth.limits)
    yield from _of_control(sampling, step, execution)
    yield from _of_langevin(sampling, recipe.langevin)


def _of_rows(sampling: Any, execution: Execution) -> Iterator[Finding]:
    if declared(SamplingTraits, sampling).n_rows is not None and isinstance(execution, DataParallel):
        yield Finding(
            "refused",
            f"sampling: {sampling!r} has a number for each row, and shards of DataParallel hold the rows. Use a rate "
            "such as sampling=0.5, or execution=None.",
        )
    if declared(SamplingTraits, sampling).by_query and isinstance(execution, DataParallel):
        yield Finding(
            "refused",
            f"sampling: {sampling!r} draws among all queries, and shards of DataParallel hold parts of them. Use "
            f"sampling={sampling.rate:g}, or execution=None.",
        )
    if declared(SamplingTraits, sampling).frozen_from is None:
        return
    if isinstance(execution, DataParallel):
        why = "frozen_from: shards of DataParallel keep no scores of rows. Use frozen_from=None, or execution=None."
        yield Finding("refused", f"sampling: {why}")
    elif not is_sequential(execution):
        why = f"frozen_from: with execution={execution!r} the round whose scores are kept depends on the workers' pace."
        yield Finding("refused", f"sampling: {why} Use frozen_from=None.")


def _of_score(sampling: Any, loss: Loss, step: Step) -> Iterator[Finding]:
    score = declared(SamplingTraits, sampling).score
    alike = "leaves no row out" if isinstance(sampling, WeightTrimming) else "is uniform sampling"
    if score == "hessian" and not loss.has_curvature:
        yield Finding(
            "refused",
            f"sampling: score='hessian' is undefined for loss {loss.name!r}, whose second derivative is 0, or says "
            f"nothing. Use {_by_gradient(loss)}.",
        )
    constant = step.curvature(loss) is not None or loss.smoothness == loss.strong_convexity
    if score == "hessian" and loss.has_curvature and constant:
        why = f"sampling: every row has the same second derivative with loss {loss.name!r} and {step!r}, so "
        yield Finding("sound", f"{why}score='hessian' {alike}.", warns=True)
    if score == "gradient" and loss.leaf_quantile == 0.5:
        why = f"sampling: the gradient of loss {loss.name!r} has the same size in every row, so "
        yield Finding("sound", f"{why}score='gradient' {alike}.", warns=True)
    if declared(SamplingTraits, sampling).by_query and not is_list_loss(loss):
        why = f"sampling: {sampling!r} draws whole queries, and loss {loss.name!r} is of single rows. "
        yield Finding("refused", f"{why}Use sampling={sampling.rate:g}.")
    yield from _of_drawn(declared(SamplingTraits, sampling), loss) if is_drawn(loss) else ()


def _of_lists(sampling: Any, loss: Loss, execution: Execution) -> Iterator[Finding]:
    if not (declared(SamplingTraits, sampling).weighs_losses and is_list_loss(loss)):
        return
    if isinstance(execution, DataParallel):
        why = "sampling: losses of lists are computed on one CPU. "
        yield Finding("refused", f"{why}Use score='mvs' or 'gradient', or execution=None.")


def _of_drawn(traits: SamplingTraits, loss: Loss) -> Iterator[Finding]:
    """Findings about rules that use gradients of an earlier round."""
    if traits.frozen_from is not None:
        why = f"frozen_from: gradients of loss {loss.name!r} are drawn anew in each round, so those of one round say "
        yield Finding("refused", f"sampling: {why}little of a row. Use frozen_from=None.")
    if traits.variance_control in ("node", "previous_leaf"):
        why = f"variance_control: gradients of loss {loss.name!r} are drawn anew in each round, so those of an earlier "
        yield Finding("refused", f"{why}round control no variance. Use variance_control='leaf_refit'.")


def _by_gradient(loss: Loss) -> str:
    equals = " (which is uniform here)" if loss.leaf_quantile == 0.5 else ""
    return f"score='gradient'{equals}, or another loss"


def _of_leaves(sampling: Any, step: Step, limits: Limits) -> Iterator[Finding]:
    control = declared(SamplingTraits, sampling).variance_control
    if control == "node":
        why = "sums of a given node are unbiased, but the tree's shape is chosen by the same sample."
        yield Finding("heuristic", f"variance_control: {why}")
    if control not in ("none", "horvitz_thompson"):
        return
    if searches(step):
        why = "a line search on a sample is biased, so leaf values are searched on all rows."
        yield Finding("heuristic", f"variance_control: {why}")
        return
    if control == "horvitz_thompson":
        why = "sums over the drawn rows are divided by all rows of a leaf, so a leaf value follows the number of them."
        yield Finding("heuristic", f"variance_control: {why} The training loss may rise.")
        return
    yield _of_sampled_leaves(sampling)
    if limits.min_samples_leaf < FEW_ROWS:
        least = limits.min_samples_leaf
        why = f"a leaf of fewer than {FEW_ROWS} sampled rows says little, and min_samples_leaf is {least}."
        yield Finding("heuristic", f"variance_control: {why}")


def _of_sampled_leaves(sampling: Any) -> Finding:
    if isinstance(sampling, WeightTrimming):
        why = f"{sampling!r} drops rows without reweighting the others, so sums are biased."
        return Finding("heuristic", f"sampling: {why}")
    if _explodes(sampling):
        return Finding(
            "unproven",
            "sampling: p in proportion to h, without a floor, gives a badly predicted row a gradient g / p without "
            "bound, and its leaf has nothing against it. Use variance_control='leaf_refit' or 'node', or give a floor.",
            warns=True,
        )
    why = "leaf values are those of the sample, so the training loss may rise; a fit ends near a minimum, not at it."
    return Finding("heuristic", f"variance_control: {why}")


def _explodes(sampling: Any) -> bool:
    return isinstance(sampling, ImportanceSampling) and sampling.score == "hessian" and sampling.least == 0.0


def _of_control(sampling: Any, step: Step, execution: Execution) -> Iterator[Finding]:
    control = declared(SamplingTraits, sampling).variance_control
    if control not in ("node", "previous_leaf"):
        return
    if not is_sequential(execution):
        yield Finding(
            "refused",
            f"variance_control: {control!r} needs a sequential anchor; with execution={execution!r} the previous "
            "hypothesis is not defined. Use variance_control='leaf_refit'.",
        )
    if control == "previous_leaf" and searches(step):
        why = f"variance_control: 'previous_leaf' is made of gradients, and {step!r} searches the value of each leaf. "
        yield Finding("refused", f"{why}Use variance_control='leaf_refit'.")
    elif control == "previous_leaf":
        yield Finding(
            "unproven",
            "variance_control: 'previous_leaf' removes the gradient within a leaf; training stalls on the previous "
            "partition (exactly so for squared error). It is kept for reproduction only.",
            warns=True,
        )
    if declared(SamplingTraits, sampling).eta < 1.0:
        why = f"sums are unbiased for eta = 1 only; {sampling.eta:g} gives back that share of the earlier gradients."
        yield Finding("heuristic", f"eta: {why}")


def _of_langevin(sampling: Any, langevin: Dynamics) -> Iterator[Finding]:
    control = declared(SamplingTraits, sampling).variance_control
    if isinstance(langevin, Langevin) and control != "leaf_refit":
        yield Finding(
            "refused",
            "variance_control: Langevin boosting needs leaf values that average over all rows of a leaf; those of "
            f"{control!r} do not. Use variance_control='leaf_refit'.",
        )
