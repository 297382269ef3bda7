"""Growth policies: the order in which the nodes of a tree are split.

A policy names an order in its ``Limits`` and calls ``Backend.grow``. The algorithms, written to be read, are in
``gpuboost.backends.reference.growth``.
"""

from gpuboost.growth.categorical import CategoricalSplits
from gpuboost.growth.depthwise import DepthWise
from gpuboost.growth.leafwise import LeafWise
from gpuboost.growth.oblivious import Oblivious
from gpuboost.growth.protocol import Growth
from gpuboost.growth.sign_stump import SignStump

__all__ = ["CategoricalSplits", "DepthWise", "Growth", "LeafWise", "Oblivious", "SignStump"]
