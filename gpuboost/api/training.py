"""One fit, from checked parts to a finished ensemble. Knows nothing of estimators."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from gpuboost.api.following import Following, Watched, measure
from gpuboost.api.report import FitReport, verdict
from gpuboost.api.rows import bin_rows, weight_of
from gpuboost.api.sampled import SamplingRecord
from gpuboost.backends.devices import Choice
from gpuboost.backends.protocol import Backend
from gpuboost.boosting import boost
from gpuboost.errors import OutsideTheoryWarning
from gpuboost.langevin import Running
from gpuboost.losses.protocol import is_list_loss
from gpuboost.metrics import default_metric
from gpuboost.recipe import Recipe
from gpuboost.types import Array, Ensemble, Progress, TrainingSet
from gpuboost.watch.callbacks import Watchers
from gpuboost.watch.evaluation import EvalSet, Evaluation
from gpuboost.watch.record import Plan


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a fit needs, checked."""

    recipe: Recipe
    training_set: Callable[[Backend], TrainingSet]
    eval_sets: tuple[Watched, ...]
    following: Following
    backend: Backend
    choice: Choice
    threads: int
    seed: int
    resume: Ensemble | None
    write_model: Callable[[Ensemble, str], None]
    started: float  # perf_counter


@dataclass(frozen=True, slots=True)
class Trained:
    """What a fit leaves behind."""

    ensemble: Ensemble
    report: FitReport
    evals_result: dict[str, dict[str, list[float]]]
    best_iteration: int | None  # 0 for the first round; None without early stopping
    best_score: float | None


def train(job: Job) -> Trained:
    """Bin the rows, run the recipe, keep the rounds up to the best one."""
    following = job.following
    plan = Plan(
        rounds=job.recipe.rounds,
        metrics={one.name: one.higher_is_better for one in following.metrics},
        eval_sets=tuple(one.name for one in job.eval_sets),
        write_model=job.write_model,
    )
    with Watchers(plan, following.watchers) as watchers:
        data = job.training_set(job.backend)
        watch = watchers.follow(_evaluation(job, data), lambda progress: _training_loss(job, data, progress))
        record = SamplingRecord(job.recipe.sampling)
        _warn(job.recipe)

        def follow(progress: Progress) -> bool:
            record.see(progress)
            return watch(progress)

        prepared = time.perf_counter()
        ensemble = boost(job.recipe, data, job.backend, seed=job.seed, watch=follow, resume=job.resume)
        done = time.perf_counter()
    best = None if following.stopping is None else following.stopping.best_rounds
    kept = ensemble if best is None else ensemble.first(best)
    report = FitReport(
        device=job.choice.name,
        device_reason=job.choice.why,
        threads=job.threads,
        rows=data.n_rows,
        features=data.cuts.n_columns,
        rounds=ensemble.n_rounds - (0 if job.resume is None else job.resume.n_rounds),
        rounds_kept=kept.n_rounds,
        seconds={"prepare": prepared - job.started, "train": done - prepared},
        seed=job.seed,
        verdict=verdict(job.recipe, stops_early=following.stopping is not None),
        sampling=record.report(),
    )
    return Trained(
        ensemble=kept,
        report=report,
        evals_result=following.history.evals_result,
        best_iteration=None if best is None else best - 1,
        best_score=None if following.stopping is None else following.stopping.best_score,
    )


def _warn(recipe: Recipe) -> None:
    """Say what the user should know before the work begins."""
    for finding in recipe.findings:
        if finding.warns:
            warnings.warn(finding.why, OutsideTheoryWarning, stacklevel=2)


def _evaluation(job: Job, data: TrainingSet) -> Evaluation:
    """The eval sets in the bins of the training data, scored by the ensemble that the fit begins with."""
    if not job.eval_sets:
        return Evaluation((), (), job.backend.add_tree)
    begin = job.resume or job.recipe.start(data)
    chain = job.recipe.chain(data, begin)
    sets = []
    for one in job.eval_sets:
        rows = bin_rows(job.backend, one.x, data.cuts, one.y, one.weight, one.group)
        running = Running.of(job.backend, rows, begin, chain)
        sets.append(EvalSet(one.name, rows, running.scores, running.sums))
    measures = [measure(one, job.recipe.loss, job.backend) for one in job.following.metrics]

    def show(sums: Array, scale: float, scores: Array) -> None:
        Running(sums, scores).show(job.backend, begin.bias, scale)

    return Evaluation(sets, measures, job.backend.add_tree, show)


def _training_loss(job: Job, data: TrainingSet, progress: Progress) -> float:
    if is_list_loss(job.recipe.loss):  # it is no mean over rows: what it makes small is what NDCG lacks
        return 1.0 - default_metric(job.recipe.loss)(
            data.y, job.backend.to_host(progress.scores), weight_of(data), job.recipe.loss, data.query_start
        )
    return job.backend.loss_value(job.recipe.loss, progress.scores, data.y, weight_of(data))
