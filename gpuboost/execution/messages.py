"""Messages between the server and its workers (Asynch-SGBDT, Cheng, Xia, Li and Zhang, algorithm 3).

    PULL(worker)                -> Pull(ticket, version, target)
    PUSH(worker, structures)    -> the answer to the next PULL: pushing and pulling are one exchange, so that a worker's
                                   own tree is in the model before it sees the next target, and one worker is serial

Both records can be pickled. A worker needs ``pull.target`` and ``pull.ticket`` only: ``fit(backend, target, ticket)``
gives the structures, equal ones for equal (target, ticket) on any machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from gpuboost.backends.protocol import Backend
from gpuboost.records import dataclass
from gpuboost.types import Sample, Structure, Target


@dataclass(frozen=True, slots=True)
class Pull:
    """An order to build one round's trees.

    The ticket numbers the pulls and keys the random numbers of the tree. If the worker of a pull fails, its ticket is
    used again: its random numbers have not been used.
    """

    ticket: int
    version: int  # of the scores whose gradients are the target
    target: Target  # on the server's machine; arrays of it are not written to while the pull is under way
    sample: Sample  # for the server's own report; not to be sent


@dataclass(frozen=True, slots=True)
class Push:
    """One round's trees, built."""

    worker: int
    ticket: int
    structures: tuple[Structure, ...]
    seconds: float = 0.0  # that it took to build them


@dataclass(frozen=True, slots=True)
class Failure:
    """A worker that raised or died. At most the pull of that ticket is lost."""

    worker: int
    ticket: int
    trace: str  # a traceback, or a text on how the loss was noticed
    error: BaseException | None = None  # its exception, if it could be transferred
    expected: bool = False  # it belongs to a simulation: neither counted nor warned of


class BuildTrees(Protocol):
    """The worker's part of a round: a function that does not see the scores, the model or other workers.

    It can be pickled if its data are in the host's memory and its recipe's parts can be.
    """

    def __call__(self, backend: Backend, target: Target, ticket: int, /) -> tuple[Structure, ...]: ...


Answer: TypeAlias = Callable[[int], tuple[Target, Sample]]
"""(number of the draw) -> the target at the newest version, its rows drawn by that number, and the draw."""
