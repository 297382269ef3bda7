"""The function that the loop calls after each round: it evaluates, and shows the round to the watchers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from gpuboost.errors import RecipeError
from gpuboost.types import Ensemble, Progress
from gpuboost.watch.evaluation import Evaluation
from gpuboost.watch.history import History
from gpuboost.watch.record import Evals, Plan, Round, Watcher

_Waiting = tuple[int, Callable[[], Evals], float, Progress]
"""Number of a round, its metrics, seconds since the fit began, and the ensemble as it was"""


class Follower:
    """Evaluates every round, and calls every watcher for it, also when an earlier one has asked for a stop.

    A history of no eval set need not be called.

    Args:
        watchers: callbacks of the fit.
        plan: facts of the fit.
        evaluation: of the eval sets.
        training_loss: of a round that is shown when it is done.
        start: ``perf_counter`` when the fit began.
        together: rounds that are shown at a time, so that a device computes on meanwhile. The watchers get the same
            records in the same order as one by one, up to the round in which one asks for a stop. The loop may then
            have done more, which no watcher sees.
    """

    def __init__(
        self, watchers: Sequence[Watcher], plan: Plan, evaluation: Evaluation,
        training_loss: Callable[[Progress], float], start: float, together: int = 1,
    ) -> None:  # fmt: skip
        self._kept: int | None = None
        self._watchers = [watcher for watcher in watchers if evaluation.sets or type(watcher) is not History]
        self._plan, self.evaluation, self._start = plan, evaluation, start
        self._training_loss, self.together = training_loss, together
        self._nothing_to_do = not (self._watchers or evaluation.sets)
        self._numbers = count(plan.done)
        self._waiting: list[_Waiting] = []

    def __call__(self, progress: Progress) -> bool:
        if self._nothing_to_do:
            return False
        evals = self.evaluation.begin(progress)
        self._waiting.append((next(self._numbers), evals, time.perf_counter() - self._start, progress))
        return len(self._waiting) >= self.together and self._show_waiting()

    def shown(self, ensemble: Ensemble) -> Ensemble:
        """Show the last rounds; the finished ensemble up to the round in which a watcher asked for a stop."""
        self._show_waiting()
        return ensemble if self._kept in (None, ensemble.n_rounds) else ensemble.first(self._kept)

    def _show_waiting(self) -> bool:
        """Show rounds, up to one after which a watcher asks for a stop. True if one does."""
        waiting, self._waiting = self._waiting, []
        return any(self._show(*waiting_round) for waiting_round in waiting)

    def _show(self, number: int, evals: Callable[[], Evals], seconds: float, progress: Progress) -> bool:
        record = Round(
            round=number,
            rounds=self._plan.rounds,
            evals=evals(),
            n_rounds=progress.n_rounds,
            seconds=seconds if self.together > 1 else time.perf_counter() - self._start,
            training_loss=lambda: self._training_loss(progress),
            collect=progress.collect,
        )
        stops = any([_asks_to_stop(watcher, record) for watcher in self._watchers])
        if stops:
            self._kept = progress.n_rounds
        return stops


def _asks_to_stop(watcher: Watcher, record: Round) -> bool:
    what: Any = getattr(watcher, "function", watcher)
    try:
        answer: object = watcher(record)
    except StopIteration as error:  # a generator that it passes through would hide it
        raise RecipeError(
            f"callbacks: a callback returns True to stop, else False or None; {what!r} raised {error!r}."
        ) from error
    if not isinstance(answer, (bool, np.bool_, type(None))):
        raise RecipeError(
            f"callbacks: a callback returns True to stop, else False or None; {what!r} returned {answer!r}."
        )
    return bool(answer)
