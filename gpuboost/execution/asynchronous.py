"""Asynchronous boosting (Asynch-SGBDT): workers build trees on gradients that may be a little old."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from gpuboost.backends.protocol import Backend
from gpuboost.errors import RecipeError
from gpuboost.execution.engine import EngineKind, engine_kind
from gpuboost.execution.machines import in_process
from gpuboost.execution.messages import BuildTrees
from gpuboost.execution.protocol import Past, Workers
from gpuboost.execution.ray_cluster import Ray
from gpuboost.execution.rules import Rules
from gpuboost.execution.server import serve
from gpuboost.execution.timeout import ENGINES_OWN, check, limited


@dataclass(frozen=True, slots=True)
class Asynchronous(Rules):
    """Trees built by several workers at once, each on the gradients that were newest when it began.

    A worker uses one core, so one tree takes longer than with all of them, but several are under way. That pays where
    data are wide and trees deep: the server's part, which is serial, is small then. One worker gives the bytes of
    ``execution=None``. With several, the order in which trees come in decides about the model;
    ``fit_report_.log`` keeps it, and ``gb.Replay(log)`` gives the same bytes again.

    With ``device="cuda"`` a worker is a stream of that GPU, with memory of its own to grow trees in, and the data are
    there once. The log of a run on either machine gives the same bytes on the other. It is not faster: on an H100, 1 to
    4 workers made 0.24 to 0.70 of the trees a second that one tree at a time makes.

    Parameters
    ----------
    workers : int
        How many trees are being built at the same time.
    engine : "threads", "ray" or Ray
        Runtime of the workers: threads of this process, actors of a Ray cluster, or ``gb.Ray(...)`` with options of its
        own. On a GPU threads, each with a stream; a Ray worker would get its gradients through the memory of two hosts.
    address : str or None
        For "ray": see ``gb.Ray``. None starts Ray on this machine if there is none.
    leaf_values : "server" or "worker"
        Where leaf values are computed. "server": from the newest gradients of all rows, so that only the shape of a
        tree is stale. The training loss then behaves as with one worker. "worker": from the gradients that the worker
        pulled, on its own rows, as published; it overshoots with many workers and long steps.
    sample_at : "pull" or "version"
        Time at which rows are drawn. With "version", as published, all workers begin with the same tree.
    staleness : "apply", "damp", "drop" or "block"
        Treatment of trees that are more than ``max_staleness`` rounds late. "damp": their learning rate is divided
        by ``1 + damping * (lateness above the limit)``. "drop": they are thrown away; a worker much slower than the
        others never gets a tree in. "block": there are none, since other workers wait (bounded staleness).
    max_staleness : int or None
        The limit. None: none, which for "damp" stands for 0.
    damping : float
        For "damp".
    timeout : float, None or "auto"
        Seconds that a worker may take for a tree without any answer. One that takes longer counts as lost: its tree is
        dropped, it is reported, and a fresh one takes its place, as for any failure. None: never. "auto": 600 s for
        "ray", where a worker that hangs is ended; never for "threads", where a thread cannot be ended: it is left to
        itself, with its memory, and goes with the process.
    max_failures : int
        Number of failed workers that are replaced. The next failure ends the fit.
    allow_unproven : bool
        Allow compositions that are known to be fragile, such as Newton steps with leaf values of the workers.

    Raises
    ------
    RecipeError
        If a parameter is out of its range, or two contradict each other.
    DeviceError
        By the fit: on a GPU with workers of other processes, or if there is not enough memory for a worker.
    """

    engine: Any = "threads"
    address: str | None = None
    timeout: Any = field(default=ENGINES_OWN, kw_only=True)

    def __post_init__(self) -> None:
        Rules.__post_init__(self)
        if self.address is not None and self.engine != "ray":
            raise RecipeError(f"address: it is for engine='ray'; got {self.address!r} with engine={self.engine!r}.")
        check(self.timeout)
        self._kind()

    def _kind(self) -> EngineKind:
        kind = engine_kind(self.engine) if self.address is None else Ray(self.address)
        return limited(kind, self.timeout)

    @property
    def in_process(self) -> bool:
        """True if the workers are threads of this process."""
        return in_process(self._kind())

    def open(self, fit: BuildTrees, backend: Backend, past: Past) -> AbstractContextManager[Workers]:
        return serve(self, self._kind(), fit, backend, past)
