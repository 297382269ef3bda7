"""Execution of a round: serial, asynchronous, data-parallel, or simulated."""

from gpuboost.execution.asynchronous import Asynchronous
from gpuboost.execution.data_parallel import DataParallel
from gpuboost.execution.log import Log, log_of
from gpuboost.execution.messages import BuildTrees
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
    "log_of",
]
