"""Trees for several outputs: one for each, or one for all; and the sketches that such a tree is searched by."""

from gpuboost.multi_output.protocol import MultiOutput, Sketch
from gpuboost.multi_output.random_outputs import RandomOutputs
from gpuboost.multi_output.random_projection import RandomProjection
from gpuboost.multi_output.top_outputs import TopOutputs
from gpuboost.multi_output.trees import EveryOutput, OneTree, OneTreePerOutput

__all__ = [
    "EveryOutput",
    "MultiOutput",
    "OneTree",
    "OneTreePerOutput",
    "RandomOutputs",
    "RandomProjection",
    "Sketch",
    "TopOutputs",
]
