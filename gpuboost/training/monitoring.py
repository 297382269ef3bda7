"""Monitoring of a fit: eval sets, metrics, callbacks, early stopping and the progress bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost import metrics
from gpuboost.data.row_metadata import RowMetadata
from gpuboost.errors import InputError, RecipeError
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.records import dataclass
from gpuboost.training.parameters.values import integer
from gpuboost.watch.callbacks import as_watcher
from gpuboost.watch.checkpoint import Checkpoint
from gpuboost.watch.early_stopping import EarlyStopping
from gpuboost.watch.history import History
from gpuboost.watch.progress import ProgressBar
from gpuboost.watch.record import Watcher

LEAST_SHARE = "least_share"
"""Entry of the parameters of a fit that only finds out the number of rounds; see ``EarlyStopping.with_least_share``"""


@dataclass(frozen=True, slots=True)
class RawEvalSet:
    """An eval set before it is binned."""

    name: str
    x: Any  # numbers (n, d)
    y: NDArray[Any]  # (n,) float64, as the loss expects it
    rows: RowMetadata


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The metrics and watchers of a fit; created for each fit."""

    metrics: tuple[metrics.Metric, ...]
    history: History
    stopping: EarlyStopping | None
    watchers: tuple[Watcher, ...]  # history and stopping among them
    given_stopping: bool = False  # True: ``stopping`` is a callback of the user

    @classmethod
    def of(cls, params: Mapping[str, Any], loss: Loss) -> Monitoring:
        """The watchers that the parameters name.

        Raises
        ------
        RecipeError, InputError
            If a parameter is out of its range; the message names it.
        """
        history = History()
        watchers = [history, *_callbacks(params["callbacks"])]
        if params["early_stopping_rounds"] is not None:
            rule = EarlyStopping(integer("early_stopping_rounds", params["early_stopping_rounds"], 1))
            watchers.append(rule.with_least_share(params.get(LEAST_SHARE, 0.0)))
        stoppers = [watcher for watcher in watchers if isinstance(watcher, EarlyStopping)]
        if len(stoppers) > 1:
            raise RecipeError("early_stopping_rounds: one rule decides when to stop; callbacks hold another one.")
        verbose = params["verbose"]
        every = int(verbose) if isinstance(verbose, bool) else integer("verbose", verbose, 0)
        if every:
            watchers.append(ProgressBar(every))
        fit_metrics = metrics_of(params["eval_metric"], loss, params.get("eval_at"))
        return cls(fit_metrics, history, stoppers[0] if stoppers else None, tuple(watchers))

    @property
    def writes_checkpoints(self) -> bool:
        """True if one of the watchers saves the state of the fit."""
        return any(isinstance(watcher, Checkpoint) for watcher in self.watchers)

    @property
    def means(self) -> tuple[Loss, ...]:
        """Losses whose means are metrics, which a backend computes."""
        listed = [metric if metric.each is None else metric.each for metric in self.metrics]
        return tuple(metric.mean_of for metric in listed if metric.mean_of is not None)

    def in_turn(self, sequences: int) -> Monitoring:
        """The same for rounds of this many sequences in turn: ``early_stopping_rounds`` counts rounds of each."""
        if sequences == 1 or self.stopping is None or self.given_stopping:
            return self
        stopping = self.stopping.with_rounds(self.stopping.rounds * sequences)
        watchers = tuple(stopping if watcher is self.stopping else watcher for watcher in self.watchers)
        return replace(self, stopping=stopping, watchers=watchers)


def metrics_of(asked: Any, loss: Loss, eval_at: Any = None) -> tuple[metrics.Metric, ...]:
    """The metrics that ``eval_metric`` names; a ranking metric without a place is evaluated at each of ``eval_at``."""
    listed: Sequence[Any] = asked if isinstance(asked, (list, tuple)) else [asked]
    if is_list_loss(loss):
        listed = [name for metric in listed for name in _at_places("ndcg" if metric is None else metric, eval_at)]
    resolved = tuple(metrics.default_metric(loss) if metric is None else metrics.get(metric, loss) for metric in listed)
    if not resolved or len({metric.name for metric in resolved}) < len(resolved):
        raise RecipeError(f"eval_metric: needs one or more metrics of different names; got {asked!r}.")
    return resolved


def check_judged(fit_metrics: Sequence[metrics.Metric], eval_set: RawEvalSet) -> None:
    """Raise InputError if a metric has no value for the rows of the eval set, whatever their scores."""
    for metric in fit_metrics:
        check = (metric.each or metric).check
        if check is None:
            continue
        try:
            for target in np.atleast_2d(eval_set.y.T):
                check(target, eval_set.rows.weight)
        except InputError as error:
            raise InputError(f"eval_set: {eval_set.name}: {error}") from None


def _at_places(metric: Any, eval_at: Any) -> list[Any]:
    """The metric at each place: "ndcg@5" and "ndcg@10" for "ndcg" and the places 5 and 10. Raises RecipeError."""
    eval_at = eval_at.tolist() if isinstance(eval_at, np.ndarray) else eval_at
    places = () if eval_at is None else eval_at if isinstance(eval_at, (list, tuple)) else (eval_at,)
    if eval_at is not None and not len(places):
        raise RecipeError("eval_at: needs one place or more, or None for whole lists; got none.")
    for k in places:
        integer("eval_at", k, 1)
    if len({int(k) for k in places}) < len(places):
        raise RecipeError(f"eval_at: places must differ; got {eval_at!r}.")
    name, colon, empty = metric.partition(":") if isinstance(metric, str) else ("", "", "")
    if name not in metrics.RANKINGS or not places:
        return [metric]
    return [f"{name}@{int(k)}{colon}{empty}" for k in places]


def _callbacks(callbacks: Any) -> list[Watcher]:
    if not isinstance(callbacks, (list, tuple)):
        raise RecipeError(f"callbacks: must be a list of callables; got {callbacks!r}.")
    return [as_watcher(callback) for callback in callbacks]
