"""Rounds that a CPU repeats, counted, and what the watch of a training sees of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.builders import model_bytes

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.repeated_rounds import RepeatedRounds
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.recipe import Recipe
from gpuboost.testing.cases import Case
from gpuboost.types import Progress


class Counted:
    """A CPU, and the rounds of each call that repeated some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[int] = []
        plain = RepeatedRounds.repeat

        def repeat(*given: Any) -> Any:
            made = plain(*given)
            self.calls.append(len(made))
            return made

        monkeypatch.setattr(RepeatedRounds, "repeat", repeat)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    monkeypatch.setattr(RepeatedRounds, "waits", False)
    return Counted(monkeypatch)


def assert_rounds_are_the_references(recipe: Recipe, case: Case, counted: Counted) -> None:
    """Twelve rounds, of which a CPU repeats all but the first, on one thread and on three."""
    for threads in (1, 3):
        counted.calls.clear()
        assert watched(recipe, case, Cpu(threads), together=5) == watched(recipe, case, Reference())
        assert counted.calls == [5, 5, 1]


def watched(recipe: Recipe, case: Case, backend: Any, stop: int | None = None, **given: Any) -> tuple[Any, ...]:
    """The model, and of each round that the watch saw: its number, trees so far, ticket, shrinkage and versions."""
    seen: list[tuple[float, ...]] = []

    def watch(progress: Progress) -> bool:
        line = progress.log[-1]
        versions = {tree.version for tree in progress.trees}
        place = progress.round, progress.n_rounds, line.ticket, line.pulled
        seen.append((*place, progress.factor, progress.scale, *versions))
        return progress.n_rounds == stop

    return model_bytes(boost(recipe, case.data, backend, watch=watch, **given)), seen
