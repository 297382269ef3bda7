"""The number of rounds that is chosen on held-out rows, for ``n_estimators="auto"``.

Rows are set aside as by ``validation_fraction``, several times over if there are few. Each split has a fit that stops
early; the number of rounds is where the mean of the held-out curves is best. Then all rows are fitted for so many.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from gpuboost.errors import GpuBoostError, InputError, RecipeError
from gpuboost.execution import Replay
from gpuboost.records import dataclass
from gpuboost.training import job as preparation
from gpuboost.training.init_model import Start
from gpuboost.training.monitoring import LEAST_SHARE
from gpuboost.training.parameters import automatic
from gpuboost.training.parameters.automatic import is_asked, is_auto
from gpuboost.training.parameters.seeds import seed_of
from gpuboost.training.placement.sharding import on_its_machine
from gpuboost.training.rows import LabelledRows
from gpuboost.training.targets import TrainingTarget
from gpuboost.training.train import Job, Trained, train
from gpuboost.watch.early_stopping import EarlyStopping, stops_early

Curves = dict[str, list[float]]
"""Metric -> its values, round by round"""


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
    fits: list[Trained] = []
    for i in range(automatic.n_splits(target.rows)):
        of_split = {**params, "random_state": params["random_state"] + i}
        job = _job(of_split, rows, target, user_share=user_share)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows says it again
            with on_its_machine(job) as ready:
                fits.append(train(ready))
    means = _means([fit.evals_result["validation_0"] for fit in fits])
    best = _best(job, means)
    return best // job.recipe.sequences, {name: values[:best] for name, values in means.items()}


def _job(params: Mapping[str, Any], rows: LabelledRows, target: TrainingTarget, *, user_share: bool) -> Job:
    """A fit that sets rows aside. user_share: the share is the user's, and errors may name its parameter."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return preparation.job(params, rows, target, None, None, time.perf_counter())[0]
    except (InputError, RecipeError) as error:
        name, _, why = str(error).partition(": ")
        if user_share or name != "validation_fraction":
            raise
        kind: type[GpuBoostError] = type(error)
        raise kind(
            f"n_estimators: 'auto' sets rows aside to choose by, and cannot: {why.rstrip('.')}. Or pass "
            "eval_set=(X, y) to fit, or give a number of rounds."
        ) from None


def _means(curves: Sequence[Curves]) -> Curves:
    """Means over the fits, up to the last round of the shortest."""
    means = {}
    for name in curves[0]:
        each = [of_fit[name] for of_fit in curves]
        means[name] = [sum(values) / len(values) for values in zip(*each, strict=False)]
    return means


def _best(job: Job, means: Curves) -> int:
    """The number of rounds up to the best mean, counted over all sequences of trees, of which each has as many."""
    metrics = {metric.name: metric.higher_is_better for metric in job.monitoring.metrics}
    rule = job.monitoring.stopping
    name = next(iter(metrics)) if rule is None or rule.metric is None else rule.metric
    k = job.recipe.sequences
    values = means[name][k - 1 :: k]
    best = max(values) if metrics[name] else min(values)
    return k * (values.index(best) + 1)
