"""Callbacks for ``callbacks=[...]``, and the one function the loop calls with them all.

A callback is any function of one ``Round`` that returns True to stop; or a ``Watcher``, which is also
called when the fit begins and ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from gpuboost.errors import RecipeError
from gpuboost.types import Progress
from gpuboost.watch.cancellation import Cancellation
from gpuboost.watch.checkpoint import Checkpoint
from gpuboost.watch.early_stopping import EarlyStopping
from gpuboost.watch.evaluation import Evaluation
from gpuboost.watch.follower import Follower
from gpuboost.watch.history import History
from gpuboost.watch.progress import ProgressBar
from gpuboost.watch.record import Callback, Evals, Plan, Round, Watcher

__all__ = ["Checkpoint", "EarlyStopping", "History", "Plan", "ProgressBar", "Round", "Watcher", "Watchers"]


class FunctionWatcher:
    """A plain function as a watcher."""

    def __init__(self, function: Callback) -> None:
        self.function = function

    def begin(self, plan: Plan) -> None:
        """Do nothing: a function has no state."""

    def __call__(self, record: Round) -> bool | None:
        return self.function(record)

    def end(self) -> None:
        """Do nothing: a function holds no resource."""


def as_watcher(callback: Any) -> Watcher:
    """The callback itself if it is a watcher, else wrapped. Raises RecipeError if it cannot be called."""
    if isinstance(callback, type) or not callable(callback):
        raise RecipeError(f"callbacks: each must be callable with one Round; got {callback!r}.")
    return callback if isinstance(callback, Watcher) else FunctionWatcher(callback)


class Watchers:
    """The callbacks of one fit.

    Used as a context: ``begin`` of each on the way in, ``end`` of each that has begun on the way out, whatever happens.
    """

    def __init__(self, plan: Plan, watchers: Iterable[Watcher]) -> None:
        self.plan = plan
        self.watchers = tuple(watchers)
        self._open = ExitStack()

    def __enter__(self) -> Watchers:
        self._start = time.perf_counter()
        with ExitStack() as opening:
            for watcher in self.watchers:
                watcher.begin(self.plan)
                opening.callback(watcher.end)
            self._open = opening.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def catch_up(self, evals: Iterable[Evals], before: int) -> bool:
        """Show the rounds before an interruption to the callbacks that keep a history.

        ``before``: number of rounds of the initial model. Returns True if one of the callbacks asks for a stop.
        """
        stops = False
        for round, seen in enumerate(evals):
            record = Round(round, self.plan.rounds, seen, before + round + 1, 0.0, _gone, _gone)
            stops = any(
                [bool(watcher(record)) for watcher in self.watchers if isinstance(watcher, (History, EarlyStopping))]
            )
        return stops

    def follow(self, evaluation: Evaluation, training_loss: Callable[[Progress], float], together: int = 1) -> Follower:
        """The function that the loop calls after each round. together: rounds that the watchers see at a time."""
        return Follower(self.watchers, self.plan, evaluation, training_loss, self._start, together)

    def need_every_round(self) -> bool:
        """True if one of them may look at more than the metrics, or must be called when a round is done."""
        return any(type(watcher) not in (History, EarlyStopping, Cancellation) for watcher in self.watchers)


def _gone() -> Any:
    raise RuntimeError("of a round before the interruption, only the metrics are known")
