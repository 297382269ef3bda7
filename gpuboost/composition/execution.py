"""Findings of theory about trees that are built on stale gradients, combined with the other pieces of a recipe.

With exact leaf values at the newest scores only the shape of a tree is stale, and theory allows any shape: results for
one worker then hold for any number of workers. They do not hold if the leaf values are stale too.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuboost.composition.findings import Finding
from gpuboost.execution import DataParallel, Execution, Serial
from gpuboost.execution.protocol import ExecutionTraits
from gpuboost.execution.stability import stability_limit
from gpuboost.langevin import Dynamics, Langevin
from gpuboost.learners import AllLearners, Selection
from gpuboost.learners.selection import SelectionTraits
from gpuboost.losses.protocol import Loss, has_fixed_objective
from gpuboost.records import declared
from gpuboost.sampling import EveryRow, Sampling
from gpuboost.steps import LineSearchStep, Step, searches


def execution_findings(
    execution: Execution, loss: Loss, step: Step, rate: float, sampling: Sampling, learners: Selection,
    langevin: Dynamics,
) -> tuple[Finding, ...]:  # fmt: skip
    """Findings; () if one worker builds every tree on the newest gradients."""
    if declared(SelectionTraits, learners).keeps_gains and not isinstance(execution, Serial):
        why = f"{learners!r} keeps a queue of gains, which one worker on one machine does. Use execution=None."
        return (Finding("refused", f"learners: {why}"),)
    if isinstance(execution, DataParallel):
        return () if execution.offers.line_search else tuple(_of_shards(step))
    how = declared(ExecutionTraits, execution)
    workers = int(how.workers)
    findings: list[Finding] = []
    if how.leaf_values == "worker":
        findings += _of_old_leaves(workers, loss, step, rate, sampling, langevin)
    elif workers > 1:
        why = "only the shapes of trees are stale, as their leaf values are found at the newest scores."
        findings.append(Finding("sound", f"execution: {why}"))
    if workers > 1:
        findings += _of_several(how.sample_at, workers, loss, sampling, learners, langevin)
    return tuple(findings)


def _of_shards(step: Step) -> Iterator[Finding]:
    if isinstance(step, LineSearchStep):
        yield Finding(
            "refused",
            "step: a line search passes over all rows many times, and shards of DataParallel do not; use 'newton', "
            "'gradient' or 'constant'.",
        )


def _of_old_leaves(
    workers: int, loss: Loss, step: Step, rate: float, sampling: Sampling, langevin: Dynamics
) -> Iterator[Finding]:
    if isinstance(langevin, Langevin):
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
    if not isinstance(sampling, EveryRow):
        yield Finding("heuristic", "leaf_values: those of a worker are made of the rows that it was given.")


def _of_several(
    sample_at: str, workers: int, loss: Loss, sampling: Sampling, learners: Selection, langevin: Dynamics
) -> Iterator[Finding]:
    same = sample_at == "version" or isinstance(sampling, EveryRow)
    if same and isinstance(learners, AllLearners) and not isinstance(langevin, Langevin):
        why = f"all {workers} workers begin with the same rows and features, so the first {workers} trees are alike."
        advice = "Draw rows or features, with sample_at='pull', to tell them apart."
        yield Finding("sound", f"execution: {why} {advice}", warns=sample_at == "version")
    if not has_fixed_objective(loss):
        why = "the pairs of a ranking, and their weights, are those of the scores that a worker pulled."
        yield Finding("heuristic", f"execution: {why}")
