"""Workers of an asynchronous run as actors of a Ray cluster.

The data are put into the object store once and mapped by every worker of a node; a worker's machine sees them there
without a copy. A pull carries the target, a push brings the trees back and is answered by the next pull.
"""

from __future__ import annotations

import traceback
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuboost._version import __version__
from gpuboost.errors import DeviceError
from gpuboost.execution.machines import BackendFactory
from gpuboost.execution.messages import BuildTrees, Failure, Pull, Push
from gpuboost.execution.ray_connection import Connection, no_room, plain, shared_view
from gpuboost.execution.timeout import timeout_message
from gpuboost.types import Structure, Target

if TYPE_CHECKING:
    from gpuboost.execution.ray_cluster import Ray

TICK = 1.0  # seconds after which it is looked whether workers that are waited for have started at all
NO_ROOM = no_room("engine", "the data once a node, and a target for each worker")


class Builder:
    """The actor of a worker. It does not see the scores, the model or other workers."""

    def __init__(self, fit: Any, machine: BackendFactory) -> None:
        data = getattr(fit, "data", None)
        self._fit = fit if data is None else replace(fit, data=shared_view(data))
        self._backend = machine()

    def version(self) -> str:
        return __version__

    def build(self, target: Target, ticket: int) -> tuple[tuple[Structure, ...], float]:
        """The round's trees, and how long they took."""
        began = perf_counter()
        structures = self._fit(self._backend, shared_view(target), ticket)
        return structures, perf_counter() - began


class RayEngine:
    """See ``engine.Engine``."""

    def __init__(self, kind: Ray, fit: BuildTrees, machine: BackendFactory, workers: int) -> None:
        self._connection = Connection(kind, workers * kind.cpus_per_worker)
        self._ray = self._connection.ray
        self._start = perf_counter()
        self._tickets: dict[Any, tuple[int, int]] = {}  # tasks in progress: (worker, ticket)
        self._ordered: dict[int, float] = {}  # when each worker was last given something to do
        self._sent: tuple[Target, Any] | None = None
        self._actors: list[Any] = []
        try:
            self._about = self._ray.put(fit), machine
            self._actors = self._connection.start_actors(Builder, workers, *self._about)
            self._connection.greet(self._actors)
        except self._connection.full as error:
            self.stop()
            raise DeviceError(NO_ROOM) from error
        except BaseException:
            self.stop()
            raise
        self._started_at = [perf_counter()] * workers
        self._unseen: dict[int, Any] = {}  # replacements that have not reported yet

    def submit(self, worker: int, pull: Pull) -> Pull:
        if self._sent is None or self._sent[0] is not pull.target:
            try:
                self._sent = pull.target, self._ray.put(pull.target)
            except self._connection.full as error:
                raise DeviceError(NO_ROOM) from error
        under_way = self._actors[worker].build.remote(self._sent[1], pull.ticket)
        self._tickets[under_way] = worker, pull.ticket
        self._ordered[worker] = perf_counter()
        return pull

    def wait(self) -> Push | Failure:
        timeout = self._connection.kind.patience
        tick = TICK if timeout is None else min(TICK, timeout)
        while True:
            waiting = list(self._tickets)
            done = self._ray.wait(waiting, num_returns=len(waiting), timeout=0.0)[0]
            done = done or self._ray.wait(waiting, num_returns=1, timeout=tick)[0]
            for under_way, (worker, ticket) in self._tickets.items():
                if under_way not in done and self._silent(worker):
                    del self._tickets[under_way]
                    return Failure(worker, ticket, timeout_message(worker, timeout))
            if done:  # the oldest first: Ray prefers some, and a worker that is always passed over is none
                return self._report(next(ref for ref in waiting if ref in done))
            for under_way, (worker, ticket) in self._tickets.items():
                if self._homeless(worker):
                    del self._tickets[under_way]
                    allowed = self._connection.kind.timeout
                    return Failure(
                        worker, ticket, f"The cluster had no place for worker {worker} within {allowed:g} s."
                    )

    def replace(self, worker: int) -> bool:
        """Start a new actor without waiting for it: a cluster that lost a node may have no room for it."""
        if self._homeless(worker):
            return False
        self._connection.dismiss([self._actors[worker]])
        self._actors[worker] = self._connection.start_actors(Builder, 1, *self._about)[0]
        self._started_at[worker] = perf_counter()
        self._unseen[worker] = self._actors[worker].version.remote()
        return True

    def now(self) -> float:
        return perf_counter() - self._start

    def stop(self) -> None:
        self._connection.dismiss(self._actors)
        self._actors, self._tickets, self._sent = [], {}, None
        self._connection.close()

    def _homeless(self, worker: int) -> bool:
        """True if this replacement has waited longer than ``timeout`` for a place in the cluster."""
        unseen = self._unseen.get(worker)
        if unseen is None:
            return False
        if self._ray.wait([unseen], timeout=0.0)[0]:
            del self._unseen[worker]
            self._ordered[worker] = perf_counter()  # what it was given meanwhile it can only begin now
            return False
        return perf_counter() - self._started_at[worker] > self._connection.kind.timeout

    def _silent(self, worker: int) -> bool:
        """True if this worker has been busy for longer than ``patience``, and counts as lost."""
        self._homeless(worker)
        timeout = self._connection.kind.patience
        if timeout is None or worker in self._unseen:
            return False
        return perf_counter() - self._ordered[worker] > timeout

    def _report(self, under_way: Any) -> Push | Failure:
        worker, ticket = self._tickets.pop(under_way)
        errors = self._ray.exceptions
        try:
            structures, seconds = self._ray.get(under_way)
        except self._connection.full as error:  # here, or there with what it was to answer
            raise DeviceError(NO_ROOM) from error
        except errors.RayTaskError as error:
            return Failure(worker, ticket, plain(error), error.cause)
        except errors.RayError:  # a worker, a node, or an object that was on one, is no longer there
            return Failure(worker, ticket, f"Worker {worker} was lost.\n{traceback.format_exc()}")
        return Push(worker, ticket, tuple(map(_ours, structures)), seconds)


def _ours(structure: Structure) -> Structure:
    """Copy to this process's memory, so that the object store can free the original."""
    nodes = replace(structure.nodes, **{name: np.array(getattr(structure.nodes, name)) for name in _NODES})
    leaf, sums = structure.leaf_of_row, structure.sums
    return replace(
        structure,
        nodes=nodes,
        leaf_of_row=None if leaf is None else np.array(leaf),
        sums=None if sums is None else (np.array(sums[0]), np.array(sums[1])),
    )


_NODES = ("feature", "bin", "missing_left", "left", "right", "gain", "cover", "count", "left_set")
