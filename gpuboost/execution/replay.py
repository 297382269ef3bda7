"""Replay of a run from its log, to the last bit: the log fixes which tree was built from which version."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import ClassVar

from gpuboost.backends.protocol import Backend
from gpuboost.backends.workers import WorkerSlot, slots_of
from gpuboost.errors import RecipeError
from gpuboost.execution.log import Log
from gpuboost.execution.messages import Answer, BuildTrees
from gpuboost.execution.protocol import Arrival, Past, Workers
from gpuboost.records import dataclass
from gpuboost.types import Built, Sample, Structure, Target


@dataclass(frozen=True, slots=True)
class Replay:
    """Do a logged run again, in one thread.

    With the same data and parameters the model is the same to the last bit, whatever the workers were. The seed is that
    of the log; ``random_state`` is None, or the same.

    Parameters
    ----------
    log : gb.Log or path
        ``fit_report_.log`` of the run, or a file that ``log.save`` wrote.

    Raises
    ------
    RecipeError
        If it is neither.
    InputError
        If the file is no log.
    """

    log: Log
    leaf_values: str = field(init=False)
    sample_at: str = field(init=False)
    allow_unproven: bool = field(init=False, default=True, repr=False)  # it was asked for when it was run
    in_process: ClassVar[bool] = True

    def __post_init__(self) -> None:
        log: object = self.log
        if isinstance(log, (str, os.PathLike)):
            object.__setattr__(self, "log", Log.load(log))
        elif not isinstance(log, Log):
            raise RecipeError(f"log: must be a gb.Log, or the path of one; got {log!r}.")
        object.__setattr__(self, "leaf_values", self.log.leaf_values)
        object.__setattr__(self, "sample_at", self.log.sample_at)

    @property
    def workers(self) -> int:
        return self.log.workers

    @contextmanager
    def open(self, fit: BuildTrees, backend: Backend, past: Past) -> Iterator[Workers]:
        by_round = {line.applied: line for line in self.log.applied}
        for line in by_round.values():
            if line.applied is not None and line.pulled < past.rounds <= line.applied:
                raise RecipeError(
                    f"execution: round {line.applied} of this log was built from version {line.pulled}, and the model "
                    f"to continue has {past.rounds} rounds. Replay it from the start."
                )
        slot = slots_of(backend, lambda: backend)()
        try:
            yield _Replayed(self, by_round, fit, slot)
        finally:
            with suppress(Exception):  # what ended the fit is the one to see
                slot.close()


class _Replayed:
    def __init__(self, rules: Replay, by_round: dict[int | None, Built], fit: BuildTrees, slot: WorkerSlot) -> None:
        self._rules, self._by_round, self._fit = rules, by_round, fit
        self._slot, self._idle = slot, [slot]
        self._taken: list[WorkerSlot] = []  # what the loop has in hand lies there
        self._pulled_at: dict[int, list[Built]] = defaultdict(list)
        for line in by_round.values():
            self._pulled_at[line.pulled].append(line)
        self._built: dict[int, tuple[WorkerSlot, tuple[Structure, ...], Target, Sample]] = {}  # by ticket
        self._version = 0

    def publish(self, version: int, answer: Answer) -> None:
        """Build all that was pulled at this version, and keep it until its round."""
        self._version = version
        if version not in self._by_round:
            rounds = len(self._by_round)
            raise RecipeError(f"n_estimators: the log to replay knows {rounds} rounds; round {version} is not there.")
        self._idle, self._taken = self._idle + self._taken, []
        for line in self._pulled_at[version]:
            slot = self._idle.pop() if self._idle else self._slot.sibling()
            target, sample = slot.copy_target(*answer(line.ticket if self._rules.sample_at == "pull" else version))
            self._built[line.ticket] = slot, self._build(slot, target, line.ticket), target, sample

    def receive(self) -> Arrival:
        line = self._by_round[self._version]
        slot, structures, target, sample = self._built.pop(line.ticket)
        self._taken = [slot]
        leaves_at = self._version if self._rules.leaf_values == "server" else line.pulled
        return Arrival(structures, target, sample, leaves_at, line.share, (line,))

    def _build(self, slot: WorkerSlot, target: Target, ticket: int) -> tuple[Structure, ...]:
        return slot.build(lambda machine: self._fit(machine, target, ticket))
