"""The number of rounds that is chosen on held-out rows, for ``n_estimators="auto"``.

Rows are set aside as by ``validation_fraction``, several times over if there are few. The fits to the rest stop where
the mean of the held-out curves no longer improves; the number of rounds is where it is best. Then all rows are fitted
for so many.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import repeat
from typing import Any

from gpuboost.composition.repeated_rounds import may_repeat_on_cpu
from gpuboost.errors import GpuBoostError, InputError, RecipeError
from gpuboost.execution import Replay, Serial
from gpuboost.records import dataclass
from gpuboost.training import job as preparation
from gpuboost.training.init_model import Start
from gpuboost.training.monitoring import LEAST_SHARE, Monitoring
from gpuboost.training.parameters import automatic
from gpuboost.training.parameters.automatic import is_asked, is_auto
from gpuboost.training.parameters.policies import learning_rate
from gpuboost.training.parameters.seeds import seed_of
from gpuboost.training.parameters.threads import threads_of
from gpuboost.training.placement.at_once import LEAST_CELLS, MOST_ROWS, Share, each_with_a_share
from gpuboost.training.placement.sharding import on_its_machine
from gpuboost.training.rows import LabelledRows
from gpuboost.training.targets import TrainingTarget
from gpuboost.training.train import Job, Trained, train
from gpuboost.watch.early_stopping import EarlyStopping, stops_early

Curves = dict[str, list[float]]
"""Metric -> its values, round by round"""

FIRST = 50
"""Rounds of the first part of a fit in parts, at least"""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The parameters of a fit, with numbers for ``"auto"``, and what they were chosen by."""

    params: Mapping[str, Any]
    curves: Curves = field(default_factory=dict)  # means over the splits, up to the chosen round
    seconds: float = 0.0  # of the choice

    def completed(self, trained: Trained) -> Trained:
        """The result of the fit, with the held-out curves and the time of the choice."""
        if not self.curves:
            return trained
        seconds = trained.report.seconds
        seconds = {"choose": self.seconds, **seconds, "prepare": seconds["prepare"] - self.seconds}
        report = replace(trained.report, seconds=seconds)
        return replace(trained, evals_result={"validation_0": self.curves}, report=report)


def resolved(
    params: Mapping[str, Any], rows: LabelledRows, target: TrainingTarget, eval_set: Any, start: Start | None
) -> Resolved:
    """The parameters with numbers for ``"auto"``; with an eval set, the most rounds, and a rule to stop by it.

    A resumed fit has the numbers of its checkpoint.

    Raises
    ------
    InputError, RecipeError, DeviceError
        As of a fit; and if there are no rows to choose by.
    """
    if not is_asked(params):
        return Resolved(params)
    known = dict(automatic.provisional(params, target.rows.n_counted))
    if start is not None and start.run is not None:
        of_checkpoint = {
            name: start.params[name] for name in ("n_estimators", "learning_rate") if is_auto(params[name])
        }
        known = {**known, **of_checkpoint}
    if not is_auto(params["n_estimators"]):
        return Resolved(known)
    if eval_set is not None:
        return Resolved(_stopping(known))
    alone = {**known, "validation_fraction": None, "early_stopping_rounds": None, "callbacks": _others(params)}
    if start is not None and start.run is not None:
        return Resolved(alone)
    _check(params, start)
    begun, seed = time.perf_counter(), seed_of(params["random_state"])
    stopping = {**_stopping(known), "random_state": seed}
    if params["early_stopping_rounds"] is None:  # of the user's own rule not
        stopping[LEAST_SHARE] = automatic.LEAST_SHARE
    rounds, curves = _chosen(stopping, rows, target)
    seconds = time.perf_counter() - begun
    return Resolved({**alone, "n_estimators": rounds, "random_state": seed}, curves, seconds)


def _stopping(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with early stopping, by the user's rule if there is one."""
    patience = params["early_stopping_rounds"]
    if patience is None and not stops_early(params["callbacks"]):
        patience = automatic.patience(params["learning_rate"])
    return {**params, "early_stopping_rounds": patience}


def _others(params: Mapping[str, Any]) -> Any:
    """The callbacks that do not stop early, as they were given if none does."""
    callbacks = params["callbacks"]
    return (
        [callback for callback in callbacks if not isinstance(callback, EarlyStopping)]
        if stops_early(callbacks)
        else callbacks
    )


def _check(params: Mapping[str, Any], start: Start | None) -> None:
    """Raise RecipeError if no rows can be held out, or the number of rounds is known."""
    if start is not None:
        raise RecipeError(
            "n_estimators: 'auto' needs rows that the model has not seen, and those of the model to continue are not "
            "known. Pass eval_set=(X, y) to fit, or give a number of rounds."
        )
    if isinstance(params.get("execution"), Replay):
        raise RecipeError("n_estimators: a log to replay has its own number of rounds; give that in place of 'auto'.")


def _chosen(params: dict[str, Any], rows: LabelledRows, target: TrainingTarget) -> tuple[int, Curves]:
    """The number of rounds of each sequence of trees, and the mean held-out curves up to the last of them."""
    user_share = params["validation_fraction"] is not None
    stoppers = (
        [callback for callback in params["callbacks"] if isinstance(callback, EarlyStopping)]
        if params["callbacks"]
        else ()
    )
    params |= {
        "validation_fraction": params["validation_fraction"] if user_share else automatic.SHARE,
        "callbacks": stoppers,
        "verbose": 0,
    }
    learning_rate(
        params["learning_rate"], params["n_estimators"]
    )  # refused now, and not in a part that has no rate left
    splits = [{**params, "random_state": params["random_state"] + i} for i in range(automatic.n_splits(target.rows))]
    stopping = Monitoring.of(params, target.loss).stopping
    assert stopping is not None  # see ``_stopping``
    held_out = _HeldOut(rows, target, user_share)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all rows says it again
        if len(splits) == 1:  # its own rule stops it at the very round
            fit = held_out.fit(splits[0], None)
            curves, job = fit.curves, fit.job
        else:
            curves, job = _in_parts(splits, stopping, held_out)
    k = job.recipe.sequences
    _, values, higher = _in_turn(curves, job, stopping)
    best = k * (values.index(max(values) if higher else min(values)) + 1)
    return best // k, {name: values[:best] for name, values in curves.items()}


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the fit to the rows of a split that are not set aside."""

    job: Job
    curves: Curves
    end: Start  # from which the next part goes on


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """Fits to parts of the rows."""

    rows: LabelledRows
    target: TrainingTarget
    user_share: bool  # True: the share that is set aside is the user's, and errors may name its parameter

    def fit(self, params: Mapping[str, Any], start: Start | None) -> _Part:
        """A fit that sets rows aside, from the end of the part before."""
        try:
            job, untrained = preparation.job(params, self.rows, self.target, None, start, time.perf_counter())
        except (InputError, RecipeError) as error:
            name, _, why = str(error).partition(": ")
            if self.user_share or name != "validation_fraction":
                raise
            kind: type[GpuBoostError] = type(error)
            raise kind(
                f"n_estimators: 'auto' sets rows aside to choose by, and cannot: {why.rstrip('.')}. Or pass "
                "eval_set=(X, y) to fit, or give a number of rounds."
            ) from None
        with on_its_machine(job) as ready:
            trained = train(ready)
        end = Start(untrained.columns, trained.ensemble, params, None, trained.record, untrained.offsets)
        return _Part(job, trained.evals_result["validation_0"], end)

    def go_on(self, params: Mapping[str, Any], rounds: int, before: _Part | None, share: Share) -> _Part:
        """So many rounds more, with a share of the processors."""
        of_part = {"n_estimators": rounds, "early_stopping_rounds": None, "callbacks": share.callbacks}
        return self.fit({**params, **of_part, "n_jobs": share.n_jobs}, None if before is None else before.end)

    def workers(self, part: _Part | None, threads: int) -> int:
        """Number of fits like this one that are best done at the same time; one until its recipe is known."""
        if part is None or part.job.choice.name != "cpu" or not isinstance(part.job.recipe.execution, Serial):
            return 1
        rows, columns = self.rows.x.shape
        in_kernels = rows * columns >= LEAST_CELLS or may_repeat_on_cpu(part.job.recipe)
        return threads if rows <= MOST_ROWS and in_kernels else 1


def _in_parts(splits: Sequence[Mapping[str, Any]], stopping: EarlyStopping, held_out: _HeldOut) -> tuple[Curves, Job]:
    """The mean held-out curves up to where the rule stops, and a job of the splits.

    The fits of all splits go on together, part after part: each part is half as long as all before it, so at most a
    third of the rounds are made for nothing. A fit that stopped by its own curve would end the mean of all at its end.
    """
    most, threads = splits[0]["n_estimators"], threads_of(splits[0]["n_jobs"])
    done, means, parts = 0, Curves(), list[_Part | None]([None] * len(splits))
    while True:
        rounds = min(max(done // 2, 2 * stopping.rounds, FIRST), most - done)
        works = [partial(held_out.go_on, *of_split) for of_split in zip(splits, repeat(rounds), parts)]
        made = each_with_a_share(works, threads, held_out.workers(parts[0], threads))
        done, parts, job = done + rounds, [*made], made[0].job
        more = _means([part.curves for part in made])
        means = {name: means.get(name, []) + values for name, values in more.items()}
        metric, in_turn, higher = _in_turn(means, job, stopping)
        _, end = stopping.followed(metric, in_turn, greater_is_better=higher)
        if end is not None or done >= most:
            end = (end or most) * job.recipe.sequences
            return {name: values[:end] for name, values in means.items()}, job


def _means(curves: Sequence[Curves]) -> Curves:
    """Means over fits of as many rounds."""
    return {
        name: [sum(values) / len(values) for values in zip(*(of_fit[name] for of_fit in curves), strict=True)]
        for name in curves[0]
    }


def _in_turn(curves: Curves, job: Job, rule: EarlyStopping) -> tuple[str, list[float], bool]:
    """The metric that decides, its value after each round of all sequences of trees, and whether it grows with quality.

    Raises
    ------
    RecipeError
        If the rule names what the fit does not have.
    """
    metrics = {metric.name: metric.higher_is_better for metric in job.monitoring.metrics}
    name, _ = rule.watched(metrics, [one.name for one in job.eval_sets])
    k = job.recipe.sequences
    return name, curves[name][k - 1 :: k], metrics[name]
