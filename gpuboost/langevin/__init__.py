"""Langevin boosting: the policy that a user names, and the noise and shrinkage of one run that it makes."""

from gpuboost.langevin.chain import Chain
from gpuboost.langevin.policy import Dynamics, Langevin, NoNoise

__all__ = ["Chain", "Dynamics", "Langevin", "NoNoise"]
