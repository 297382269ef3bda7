"""One fit, from checked parts to a finished ensemble. Independent of estimators."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from functools import partial
from math import log
from typing import Any, Protocol, cast, runtime_checkable

from gpuboost import components
from gpuboost.backends.devices import Choice
from gpuboost.backends.numerics.forced_splits import cut_of, made
from gpuboost.backends.protocol import Backend
from gpuboost.backends.several_rounds import RoundScorer
from gpuboost.boosting import boost
from gpuboost.errors import OutsideTheoryWarning
from gpuboost.execution import Serial
from gpuboost.losses.protocol import is_list_loss
from gpuboost.metrics.registry import default_metric
from gpuboost.posterior.members import too_short
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass
from gpuboost.reports.edge import EdgeRecord
from gpuboost.reports.report import FitReport, asks_for_theory, verdict
from gpuboost.reports.sampling import SamplingRecord
from gpuboost.sampling import EveryRow
from gpuboost.state import RunningScores
from gpuboost.training.checkpoint import CheckpointRecorder, CheckpointState
from gpuboost.training.diverging import RiseCheck, may_diverge
from gpuboost.training.fit_record import FitRecord, FitRecorder, PastFits
from gpuboost.training.measures import measure
from gpuboost.training.monitoring import Monitoring, RawEvalSet, check_judged
from gpuboost.training.rows import bin_rows, weight_of, with_values
from gpuboost.types import Array, Component, Ensemble, Evaluate, FittedTree, Progress, TrainingSet
from gpuboost.watch.callbacks import Watchers
from gpuboost.watch.evaluation import AddRounds, EvalSet, Evaluation
from gpuboost.watch.follower import Follower
from gpuboost.watch.record import Plan

SHOWN_TOGETHER = 8  # rounds, where a device computes the metrics
DONE_TOGETHER = 64  # rounds, where a host repeats them and no callback may ask for a stop


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a fit needs, checked."""

    recipe: Recipe  # with the number of rounds that remain
    training_set: Callable[[Backend], TrainingSet]
    eval_sets: tuple[RawEvalSet, ...]
    monitoring: Monitoring
    backend: Backend
    choice: Choice
    threads: int
    run: CheckpointState
    resume: Ensemble | None
    write_model: Callable[[Ensemble, str, dict[str, Any], FitRecord], None]  # with the state for a continuation
    started: float  # perf_counter
    past: PastFits = field(default_factory=PastFits)
    draws: bool = False  # True: draws from the posterior are asked for


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of a fit."""

    ensemble: Ensemble
    report: FitReport
    evals_result: dict[str, dict[str, list[float]]]
    best_iteration: int | None  # 0 for the first round; None without early stopping
    best_score: float | None
    record: FitRecord


@runtime_checkable
class KeepsRounds(Protocol):
    """A backend whose recorded rounds refer to it, and keep the memory of a training."""

    def forget_rounds(self) -> None:
        """Drop what was recorded. Python would free it later, when it looks for cycles."""
        ...


def train(job: Job) -> Trained:
    """Bin the rows, run the recipe, keep the rounds up to the best one."""
    monitoring, run = job.monitoring, job.run
    checkpoints = CheckpointRecorder(run, job.recipe.execution, monitoring.history)

    def write_checkpoint(ensemble: Ensemble, path: str) -> None:
        state = checkpoints.state_after(ensemble.n_rounds).to_json()
        job.write_model(ensemble, path, state, records.fit.record(ensemble))

    plan = Plan(
        rounds=run.done + job.recipe.rounds,
        metrics={metric.name: metric.higher_is_better for metric in monitoring.metrics},
        eval_sets=tuple(eval_set.name for eval_set in job.eval_sets),
        write_model=write_checkpoint,
        done=run.done,
    )
    run.check_watched(plan)
    with _training(job.backend), Watchers(plan, monitoring.watchers) as watchers:
        data = job.training_set(job.backend)
        watch = _follower(job, data, watchers)
        records = _Records.of(job, data, checkpoints)
        _warn(job, data)

        def follow(progress: Progress) -> bool:
            records.see(progress)
            return watch(progress)

        over = watchers.catch_up(run.evals, run.first)
        recipe = replace(job.recipe, rounds=0) if over else job.recipe
        prepared = time.perf_counter()
        seen = partial(_boosting(job, watch, records), watch=follow)
        together, log = _together(job, watchers, watch, records), run.log.lines
        ensemble = seen(recipe, data, job.backend, seed=run.seed, resume=job.resume, log=log, together=together)
        ensemble = watch.shown(ensemble)
        seconds = {"prepare": prepared - job.started, "train": time.perf_counter() - prepared}
        if records.rise is not None:
            records.rise.warn(job.recipe)
    _warn_of_forced(job, ensemble)
    best = None if monitoring.stopping is None else monitoring.stopping.best_rounds
    kept = ensemble if best is None else ensemble.first(best)
    steps = records.fit.steps(kept)
    record = records.fit.record_with(kept, steps)
    return Trained(
        ensemble=kept,
        report=FitReport(
            **_facts(job, data, ensemble),
            **records.reports(ensemble),
            rounds_kept=kept.n_rounds,
            seconds=seconds,
            verdict=verdict(
                job.recipe, stops_early=monitoring.stopping is not None, foreign_start=records.fit.facts.foreign_start
            ),
            steps=steps,
            guarantee=record.guarantee,
        ),
        evals_result=monitoring.history.evals_result,
        best_iteration=None if best is None else best - 1,
        best_score=None if monitoring.stopping is None else monitoring.stopping.best_score,
        record=record,
    )


@contextmanager
def _training(backend: Backend) -> Iterator[None]:
    """Context of the rounds, whose memory is free after it, however it is left."""
    try:
        yield
    finally:
        if isinstance(backend, KeepsRounds):
            with suppress(Exception):  # of a device that has failed: its first error is the one to see
                backend.forget_rounds()


def _follower(job: Job, data: TrainingSet, watchers: Watchers) -> Follower:
    """The function that evaluates each round and shows it to the watchers.

    Rounds may be shown some time after they are done, so that a device computes metrics while the host goes on. Of the
    rounds after a stop nothing may then remain but their trees, which are dropped.
    """
    late = job.backend.offers.metrics and _seen_by_metrics_alone(job, watchers) and not _reports_more(job)
    return watchers.follow(_evaluation(job, data), partial(_training_loss, job, data), SHOWN_TOGETHER if late else 1)


def _seen_by_metrics_alone(job: Job, watchers: Watchers) -> bool:
    """True if watchers and execution need no more of a round than its trees and the metrics of eval sets."""
    return type(job.recipe.execution) is Serial and not watchers.need_every_round()


def _reports_more(job: Job) -> bool:
    """True if a GPU's rounds after a stop would be in the report, which has the rows of each draw."""
    return type(job.recipe.sampling) is not EveryRow and job.monitoring.stopping is not None


def _in_rounds(job: Job, watch: Follower) -> Evaluate:
    """The verb that evaluates within a round, on backends that record it; else a no-op, and ``watch`` evaluates."""
    plain = job.recipe.base_learner is None and type(job.recipe.execution) is Serial
    if job.backend.offers.recorded_metrics and plain and watch.evaluation.recordable:
        return watch.evaluation.record
    return lambda trees, factor, scale: None


def _boosting(job: Job, watch: Follower, records: _Records) -> Callable[..., Ensemble]:
    """``boost``, with the evaluation in its rounds, and with drawn gradients for records that need them."""
    evaluate, expect = _in_rounds(job, watch), watch.evaluation.expect
    return partial(boost, evaluate=evaluate, expect=expect, show_drawn=records.read_drawn)


def _together(job: Job, watchers: Watchers, watch: Follower, records: _Records) -> int:
    """Number of rounds that a backend may do in one call, before the first of them is shown to the watchers.

    As many as are shown together where a device evaluates, or watchers or records need every round. Else as many as
    possible, but fewer with early stopping, since the rounds after the stop are dropped.
    """
    if job.backend.offers.metrics or not _seen_by_metrics_alone(job, watchers) or records.edges.measured:
        return watch.together
    return DONE_TOGETHER if job.monitoring.stopping is None else SHOWN_TOGETHER


@dataclass(frozen=True, slots=True)
class _Records:
    """Everything that a fit records round by round."""

    checkpoints: CheckpointRecorder
    fit: FitRecorder
    sampling: SamplingRecord
    edges: EdgeRecord
    rise: RiseCheck | None
    seeing: tuple[Callable[[Progress], None], ...]  # the records of every round, if they have anything to record

    @classmethod
    def of(cls, job: Job, data: TrainingSet, checkpoints: CheckpointRecorder) -> _Records:
        """Records of a fit that begins."""
        fit = FitRecorder.of(job.recipe, job.past, job.run, data, stops=job.monitoring.stopping is not None)
        edges = EdgeRecord(job.recipe)
        edges.start(data)
        sampling, rise = SamplingRecord(job.recipe.sampling, job.backend), _rise_check(job, data)
        seeing = [] if isinstance(job.recipe.sampling, EveryRow) else [sampling.see]
        seeing += [edges.see] if edges.measured else []
        seeing += [] if rise is None else [rise.see]
        return cls(checkpoints, fit, sampling, edges, rise, tuple(seeing))

    @property
    def read_drawn(self) -> bool:
        """True if a record is made from the gradients or the rows that trees were fitted to."""
        return self.edges.measured or not isinstance(self.sampling.sampling, EveryRow)

    def see(self, progress: Progress) -> None:
        """Record a round."""
        self.checkpoints.lines.extend(progress.log)
        for see in self.seeing:
            see(progress)

    def reports(self, ensemble: Ensemble) -> dict[str, Any]:
        """Fields of the report that come from here."""
        log = self.checkpoints.state_after(ensemble.n_rounds).log
        return {"sampling": self.sampling.report(), "edges": self.edges.report(), "log": log}


def _facts(job: Job, data: TrainingSet, ensemble: Ensemble) -> dict[str, Any]:
    """Fields of the report that the job and its ensemble decide."""
    return {
        "device": job.choice.name,
        "device_reason": job.choice.why,
        "threads": job.threads,
        "rows": data.n_rows,
        "features": data.cuts.n_columns,
        "rounds": ensemble.n_rounds - job.run.first,
        "rounds_before": job.run.first,
        "rounds_without_split": _without_split(ensemble, job.run.first),
        "seed": job.run.seed,
        "shows_verdict": asks_for_theory(job.recipe),
    }


def _without_split(ensemble: Ensemble, first: int) -> int:
    """Number of rounds from ``first`` on that added constants only."""
    k = ensemble.n_outputs
    parts: tuple[FittedTree | Component, ...] = ensemble.trees or ensemble.components
    single = [components.is_constant(part) for part in parts[first * k :]]
    return sum(all(single[i : i + k]) for i in range(0, len(single), k))


def _rise_check(job: Job, data: TrainingSet) -> RiseCheck | None:
    """The comparison of the training loss before and after the fit; None if the steps are known to be short enough."""
    if job.monitoring.stopping is not None or not may_diverge(job.recipe):
        return None
    loss, backend = job.recipe.loss, job.backend

    def mean_loss(scores: Array) -> float:
        return backend.loss_value(loss, scores, data.y, weight_of(data))

    begin = job.resume or job.recipe.start(data)
    start = RunningScores.of(backend, data, begin, job.recipe.chain(data, begin).shrink)
    return RiseCheck(mean_loss, mean_loss(start.values))


def _warn(job: Job, data: TrainingSet) -> None:
    """Issue the warnings of the recipe's findings, and of a chain too short to draw from, before the work begins."""
    for finding in job.recipe.findings:
        if finding.warns:
            warnings.warn(finding.why, OutsideTheoryWarning, stacklevel=2)
    if job.draws:
        begin = job.resume or job.recipe.start(data)
        rounds = begin.n_rounds + job.recipe.rounds - job.past.chain_start
        why = too_short(rounds, -log(job.recipe.chain(data, begin).shrink))
        if why:
            warnings.warn(why, OutsideTheoryWarning, stacklevel=2)


def _warn_of_forced(job: Job, ensemble: Ensemble) -> None:
    """Warn once if trees of this fit lack forced splits."""
    asked, trees = job.recipe.growth.limits.forced, ensemble.trees[job.run.first * ensemble.n_outputs :]
    if asked is None:
        return
    cut = cut_of(asked, ensemble.cuts)
    lacking = sum(made(cut, tree.nodes) < asked.size for tree in trees)
    if lacking:
        warnings.warn(
            f"forced_splits: {lacking} of {len(trees)} trees lack some of the {asked.size} splits, which gain nothing, "
            "leave a side with too few rows, or have a threshold above all cuts of their column.",
            UserWarning,
            stacklevel=2,
        )


def _evaluation(job: Job, data: TrainingSet) -> Evaluation:
    """The eval sets in the bins of the training data, scored by the ensemble that the fit begins with."""
    add = partial(components.add, job.backend)
    if not job.eval_sets:
        return Evaluation((), (), add)
    begin = job.resume or job.recipe.start(data)
    chain = job.recipe.chain(data, begin)
    sets = []
    for raw in job.eval_sets:
        check_judged(job.monitoring.metrics, raw)
        rows = bin_rows(job.backend, raw.x, data.cuts, raw.y, raw.rows)
        rows = rows if data.x is None else with_values(rows, raw.x, raw.rows)
        scores = RunningScores.of(job.backend, rows, begin, chain.shrink, averages=chain.averages)
        sets.append(EvalSet(raw.name, rows, scores.values, scores.sums))
    measures = [measure(metric, job.recipe.loss, job.backend) for metric in job.monitoring.metrics]

    def refresh(sums: Array, scale: float, values: Array) -> None:
        RunningScores(sums, values).refresh(job.backend, begin.bias, scale)

    return Evaluation(sets, measures, add, refresh, _add_rounds(job.backend))


def _add_rounds(backend: Backend) -> AddRounds:
    """The verb for several rounds, if the machine has it."""
    if not backend.offers.scores_of_rounds:
        return lambda scores, rounds, factor, data: None
    machine = cast(RoundScorer, backend)
    return lambda scores, rounds, factor, data: machine.scores_after(scores, rounds, factor, data.bins, data.cuts)


def _training_loss(job: Job, data: TrainingSet, progress: Progress) -> float:
    if is_list_loss(job.recipe.loss):  # not a mean over rows: it minimises 1 - NDCG
        return 1.0 - default_metric(job.recipe.loss)(
            data.y, job.backend.to_host(progress.scores), weight_of(data), job.recipe.loss, data.query_start
        )
    return job.backend.loss_value(job.recipe.loss, progress.scores, data.y, weight_of(data))
