"""Langevin boosting: the user's policy, and the noise and shrinkage that it gives one run."""

from gpuboost.langevin.chain import Chain
from gpuboost.langevin.origin import ChainOrigin
from gpuboost.langevin.policy import Dynamics, Langevin, NoNoise, total_weight
from gpuboost.langevin.schedule import CyclicalTemperature, GeometricAnnealing, TemperatureSchedule

__all__ = [
    "Chain",
    "ChainOrigin",
    "CyclicalTemperature",
    "Dynamics",
    "GeometricAnnealing",
    "Langevin",
    "NoNoise",
    "TemperatureSchedule",
    "total_weight",
]
