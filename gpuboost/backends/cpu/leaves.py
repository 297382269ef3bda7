"""Leaf values on the CPU, from the sums of each leaf, and the leaves of rows in few bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.numerics.leaf_values import newton_values
from gpuboost.backends.numerics.monotone import of_features
from gpuboost.kernels.common import normal
from gpuboost.kernels.leaves import bounds
from gpuboost.kernels.leaves.leaf_noise import add_leaf_noise
from gpuboost.kernels.leaves.newton import along_paths, newton
from gpuboost.types import Array, Cuts, FittedTree, Gradients, Limits, Nodes, Noise, Structure

MANY = 1 << 16  # rows from which ``compact`` saves more memory than it is worth time


def compact(structure: Structure, gradients: Gradients) -> Structure:
    """The structure with the leaf of each row in 1 or 2 bytes, if it is one of several trees that wait for each other.

    gradients: of all trees of the round. Leaves that lie in their memory stay there.
    """
    leaf_of_row, nodes = structure.leaf_of_row, len(structure.nodes.feature)
    if len(gradients.g) == 1 or leaf_of_row is None or len(leaf_of_row) < MANY or nodes > 1 << 16:
        return structure
    if np.may_share_memory(leaf_of_row, gradients.g):
        return structure
    return replace(structure, leaf_of_row=leaf_of_row.astype(np.uint8 if nodes <= 1 << 8 else np.uint16))


def wide(leaf_of_row: Array) -> NDArray[np.int32]:
    """(n,) as kernels read it; the array itself unless it is compact."""
    return np.asarray(leaf_of_row, np.int32)


def with_values(
    structure: Structure, nodes: Nodes, sums: tuple[Array, Array], weight: int, limits: Limits, noise: Noise | None
) -> FittedTree:
    """The structure's tree with Newton leaf values, plus ``noise`` if not None.

    sums: (v,) G and H of every node; weight: sum of the multiplicities of the rows that they are of.
    """
    if limits.signed:
        value = newton_values(nodes, sums, limits)
    elif limits.path_smooth > 0.0:
        value, smoothing = np.empty(len(nodes.feature)), limits.smoothing(float(sums[1][0]), weight)
        held = float(limits.reg_lambda), float(limits.reg_alpha), limits.largest_value
        along_paths(nodes.feature, nodes.left, nodes.right, *sums, *held, smoothing, value)
    else:
        value = np.empty(len(nodes.feature))
        newton(nodes.feature, *sums, float(limits.reg_lambda), float(limits.reg_alpha), limits.largest_value, value)
    if noise is not None:
        words = (noise.key / structure.output).words
        of_leaves = nodes.feature, sums[1], float(limits.reg_lambda), noise.deviation
        add_leaf_noise(*of_leaves, normal.TABLE, *words, value)
    return FittedTree(nodes, value, structure.output, structure.version)


def bound_leaves(tree: FittedTree, cuts: Cuts, limits: Limits, *, refined: bool) -> FittedTree:
    """See the verb. Lambda does not apply to leaf values that took a step of their own."""
    nodes, value, ridge = tree.nodes, tree.value.copy(), 0.0 if refined else float(limits.reg_lambda)
    of_nodes = nodes.feature, nodes.left, nodes.right, nodes.cover
    bounds.bound_leaves(*of_nodes, of_features(limits.directions, cuts), ridge, refined, value)
    return replace(tree, value=value)
