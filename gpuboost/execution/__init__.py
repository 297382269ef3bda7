"""Where trees are built, and how stale the gradients they are fitted to may be."""

from gpuboost.execution.asynchronous import Asynchronous
from gpuboost.execution.data_parallel import DataParallel
from gpuboost.execution.log import Log, log_of
from gpuboost.execution.messages import Fit
from gpuboost.execution.protocol import Arrival, Execution, Past, Workers
from gpuboost.execution.ray_cluster import Ray
from gpuboost.execution.replay import Replay
from gpuboost.execution.serial import Serial
from gpuboost.execution.simulated import SimulatedWorkers

SEQUENTIAL = Serial, DataParallel
"""Executions without workers: every tree is fitted to the newest gradients"""

__all__ = [
    "SEQUENTIAL",
    "Arrival",
    "Asynchronous",
    "DataParallel",
    "Execution",
    "Fit",
    "Log",
    "Past",
    "Ray",
    "Replay",
    "Serial",
    "SimulatedWorkers",
    "Workers",
    "log_of",
]
