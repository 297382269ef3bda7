"""The protocol between the server, which holds the scores, and its workers, which grow trees.

The server publishes targets and receives structures. A worker pulls the newest target, grows the trees of one round,
pushes them, and never looks at anything else. The ticket numbers the pulls, so that two rounds fitted to one target
still draw their own randomness (Asynch-SGBDT, Cheng, Xia, Li and Zhang, algorithm 3).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from gpuboost.backends.protocol import Backend
from gpuboost.types import Structure, Target

Fit: TypeAlias = Callable[[Backend, Target, int], tuple[Structure, ...]]
"""(the worker's machine, target, ticket) -> one structure per output."""


class Workers(Protocol):
    """The server's side of the conversation."""

    def publish(self, target: Target, /) -> None: ...
    def receive(self) -> tuple[Structure, ...]: ...


class Execution(Protocol):
    """A way to run ``fit``."""

    def open(self, fit: Fit, backend: Backend, /) -> AbstractContextManager[Workers]:
        """``backend`` is the server's machine; a worker that runs beside it needs one of its own."""
        ...
