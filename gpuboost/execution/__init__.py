"""Execution of a round: serial, asynchronous, data-parallel, or simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuboost._imports.lazy import lazy_names
from gpuboost.execution.data_parallel import DataParallel
from gpuboost.execution.protocol import Arrival, Execution, ExecutionTraits, Past, Workers
from gpuboost.execution.serial import Serial
from gpuboost.records import declared

if TYPE_CHECKING:
    from gpuboost.execution.asynchronous import Asynchronous
    from gpuboost.execution.log import Log, log_of
    from gpuboost.execution.messages import BuildTrees
    from gpuboost.execution.ray_cluster import Ray
    from gpuboost.execution.replay import Replay
    from gpuboost.execution.simulated import SimulatedWorkers

_MODULES = {
    "Asynchronous": "gpuboost.execution.asynchronous",
    "BuildTrees": "gpuboost.execution.messages",
    "Log": "gpuboost.execution.log",
    "Ray": "gpuboost.execution.ray_cluster",
    "Replay": "gpuboost.execution.replay",
    "SimulatedWorkers": "gpuboost.execution.simulated",
    "log_of": "gpuboost.execution.log",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)

SEQUENTIAL = Serial, DataParallel
"""Executions without workers: every tree is fitted to the newest gradients"""


def is_sequential(execution: object) -> bool:
    """True if every tree is fitted to the newest gradients: there are no workers, or there is one."""
    traits = declared(ExecutionTraits, execution)
    return isinstance(execution, SEQUENTIAL) or (traits.has_workers and int(traits.workers) == 1)


__all__ = [
    "SEQUENTIAL",
    "Arrival",
    "Asynchronous",
    "BuildTrees",
    "DataParallel",
    "Execution",
    "Log",
    "Past",
    "Ray",
    "Replay",
    "Serial",
    "SimulatedWorkers",
    "Workers",
    "is_sequential",
    "log_of",
]
