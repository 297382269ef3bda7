"""Records passed to callbacks, and the protocol of a callback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

from gpuboost.records import dataclass
from gpuboost.types import Ensemble

Evals: TypeAlias = Mapping[str, Mapping[str, float]]
"""Set -> metric -> value, in the order in which they were given."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Facts of a fit before its first round."""

    rounds: int  # at most this many
    metrics: Mapping[str, bool]  # metric -> True if greater is better, in the order of ``eval_metric``
    eval_sets: tuple[str, ...]  # their names, in the order of ``eval_set``
    write_model: Callable[[Ensemble, str], None]  # its model file to a path, whole or not at all
    done: int = 0  # rounds of ``rounds`` that were done before the fit was interrupted


@dataclass(frozen=True, slots=True)
class Round:
    """One round, after it is done: the only argument of a callback."""

    round: int  # 0 for the first of this fit
    rounds: int  # at most this many in this fit
    evals: Evals
    n_rounds: int  # of the ensemble so far, those of ``init_model`` included
    seconds: float  # since the fit began
    training_loss: Callable[[], float]  # computed when called: one pass over the training rows
    collect: Callable[[], Ensemble]  # called by ``ensemble``

    @property
    def ensemble(self) -> Ensemble:
        """All trees so far, those of ``init_model`` included; a view that cannot be written to."""
        return self.collect()


Callback: TypeAlias = Callable[[Round], bool | None]
"""Called after each round; True asks for a stop after it."""


@runtime_checkable
class Watcher(Protocol):
    """A callback that also learns when a fit begins and ends."""

    def begin(self, plan: Plan) -> None:
        """Forget any earlier fit."""
        ...

    def __call__(self, record: Round) -> bool | None: ...

    def end(self) -> None:
        """The fit is over, well or not; called once for each ``begin``."""
        ...
