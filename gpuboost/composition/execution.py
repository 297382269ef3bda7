"""Findings of theory about trees that are built on stale gradients, combined with the other pieces of a recipe.

With exact leaf values at the newest scores only the shape of a tree is stale, and theory allows any shape: results for
one worker then hold for any number of workers. They do not hold if the leaf values are stale too.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuboost.composition.findings import Finding
from gpuboost.composition.pieces import Pieces
from gpuboost.execution import DataParallel, Serial
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.execution.stability import stability_limit
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners
from gpuboost.learners.selection import SelectionTraits
from gpuboost.losses.protocol import has_fixed_objective
from gpuboost.records import declared
from gpuboost.sampling import EveryRow
from gpuboost.steps import LineSearchStep, Step, searches


def findings(recipe: Pieces) -> Iterator[Finding]:
    """Findings; none if one worker builds every tree on the newest gradients."""
    execution, learners = recipe.execution, recipe.learners
    if declared(SelectionTraits, learners).keeps_gains and not isinstance(execution, Serial):
        why = f"{learners!r} keeps a queue of gains, which one worker on one machine does. Use execution=None."
        yield Finding("refused", f"learners: {why}")
    elif isinstance(execution, DataParallel):
        yield from _of_shards(execution, recipe.step)
    else:
        yield from _of_workers(recipe, declared(ExecutionTraits, execution))


def _of_shards(execution: DataParallel, step: Step) -> Iterator[Finding]:
    if isinstance(step, LineSearchStep) and not execution.offers.line_search:
        yield Finding(
            "refused",
            "step: a line search passes over all rows many times, and shards of DataParallel do not; use 'newton', "
            "'gradient' or 'constant'.",
        )


def _of_workers(recipe: Pieces, how: ExecutionTraits) -> Iterator[Finding]:
    workers = int(how.workers)
    if how.leaf_values == "worker":
        yield from _of_old_leaves(recipe, workers)
    elif workers > 1:
        why = "only the shapes of trees are stale, as their leaf values are found at the newest scores."
        yield Finding("sound", f"execution: {why}")
    if workers > 1:
        yield from _of_several(recipe, workers, how.sample_at)


def _of_old_leaves(recipe: Pieces, workers: int) -> Iterator[Finding]:
    loss, step, rate = recipe.loss, recipe.step, recipe.learning_rate
    if isinstance(recipe.langevin, Langevin):
        why = "the noise of leaf values is drawn where they are found, at the server, and so are their sums."
        yield Finding("refused", f"leaf_values: {why} With langevin use leaf_values='server'.")
        return
    if searches(step):
        why = f"a line search at scores that are old, as with {step!r}, finds the best step from another place."
        yield Finding("refused", f"leaf_values: {why} Use leaf_values='server'.")
        return
    curvature = step.curvature(loss)
    newton = curvature is None and loss.smoothness != loss.strong_convexity
    if newton and workers > 1:
        yield Finding(
            "unproven",
            "leaf_values: a Newton step of old gradients and curvatures is known to diverge where workers are several. "
            "Use leaf_values='server', or step='gradient'.",
            warns=True,
        )
        return
    of_step = 1.0 if curvature is None or loss.smoothness is None else loss.smoothness / curvature
    limit = stability_limit(workers - 1)
    if rate * of_step > limit:
        longest = limit / of_step
        yield Finding(
            "unproven",
            f"learning_rate: {rate:g} with {workers} workers exceeds the stability limit {longest:.3g} of delayed "
            f"gradients; use leaf_values='server', or a learning_rate of at most {longest:.3g}.",
            warns=True,
        )
    else:
        why = f"leaf values are late by {workers - 1} rounds on average, so the training loss could rise."
        yield Finding("heuristic", f"leaf_values: {why}")
    if not isinstance(recipe.sampling, EveryRow):
        yield Finding("heuristic", "leaf_values: those of a worker are made of the rows that it was given.")


def _of_several(recipe: Pieces, workers: int, sample_at: str) -> Iterator[Finding]:
    same = sample_at == "version" or isinstance(recipe.sampling, EveryRow)
    if same and isinstance(recipe.learners, AllLearners) and not isinstance(recipe.langevin, Langevin):
        why = f"all {workers} workers begin with the same rows and features, so the first {workers} trees are alike."
        advice = "Draw rows or features, with sample_at='pull', to tell them apart."
        yield Finding("sound", f"execution: {why} {advice}", warns=sample_at == "version")
    if not has_fixed_objective(recipe.loss):
        why = "the pairs of a ranking, and their weights, are those of the scores that a worker pulled."
        yield Finding("heuristic", f"execution: {why}")
