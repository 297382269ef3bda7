"""How a tree finds its shape."""

from gpuboost.growth.depthwise import DepthWise
from gpuboost.growth.leafwise import LeafWise
from gpuboost.growth.oblivious import Oblivious
from gpuboost.growth.protocol import Growth
from gpuboost.growth.sign_stump import SignStump

__all__ = ["DepthWise", "Growth", "LeafWise", "Oblivious", "SignStump"]
