"""Limits of a tree's growth, and the regularisation of its splits and leaf values."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from gpuboost.errors import RecipeError, shown
from gpuboost.growth import CategoricalSplits
from gpuboost.langevin import Langevin
from gpuboost.losses.protocol import Loss, is_list_loss
from gpuboost.multi_output import OneTree
from gpuboost.training.constraints.by_column import NOTHING, ByColumn
from gpuboost.training.parameters.policies import multi_output
from gpuboost.training.parameters.values import flag, integer, real
from gpuboost.types import Limits

LEAVES = 31  # of leaf-wise trees, unless max_leaves is given; LightGBM's default
RIDGE, RIDGE_OF_LISTS, RIDGE_OF_ONE_TREE = 3.0, 1.0, 1.0  # reg_lambda, unless it is given


def limits(
    params: Mapping[str, Any], loss: Loss, n_rows: int, by_column: ByColumn = NOTHING, counted: int | None = None
) -> Limits:
    """Limits of a tree's growth. ``max_depth`` or ``max_leaves`` alone decides if the other one is None.

    Without ``max_leaves``, leaf-wise growth would give the trees of depth-wise growth, so it has LEAVES leaves.
    counted: rows as their weights count them, if that is another number, for the limits of categories.
    """
    depth = None if params["max_depth"] is None else integer("max_depth", params["max_depth"], 1)
    leaves = None if params["max_leaves"] is None else integer("max_leaves", params["max_leaves"], 2)
    if params["growth"] == "leafwise" and leaves is None:
        leaves = LEAVES if depth is None else min(LEAVES, 2 ** min(depth, LEAVES))
    if depth is None and leaves is None:
        raise RecipeError("max_depth: a tree needs a limit, and max_leaves is None too; give one of the two.")
    if params["growth"] == "leafwise" and depth is not None and leaves is not None and leaves > 2**depth:
        warnings.warn(
            f"max_leaves: {leaves} leaves cannot be reached, since max_depth={depth} allows {2**depth}; "
            "pass max_depth=None to let max_leaves alone decide.",
            stacklevel=2,
        )
    leaf_bound = max(2, n_rows)  # a leaf holds a row
    depth = leaf_bound if depth is None else min(depth, leaf_bound)
    if params["growth"] == "oblivious":
        leaf_bound *= depth  # a leaf may be empty, but of every level no more nodes are split than there are rows
    if depth < leaf_bound.bit_length():
        leaf_bound = min(leaf_bound, 2**depth)
    return Limits(
        max_leaves=leaf_bound if leaves is None else min(leaves, leaf_bound),
        max_depth=depth,
        min_samples_leaf=integer("min_samples_leaf", params["min_samples_leaf"], 1),
        min_child_weight=real("min_child_weight", params["min_child_weight"]),
        reg_lambda=_reg_lambda(params, loss),
        min_split_gain=real("min_split_gain", params["min_split_gain"]),
        random_strength=real("random_strength", params.get("random_strength", 0.0)),
        extra_trees=flag("extra_trees", params.get("extra_trees", False)),
        reg_alpha=real("reg_alpha", params.get("reg_alpha", 0.0)),
        max_delta_step=real("max_delta_step", params.get("max_delta_step", 0.0)),
        path_smooth=real("path_smooth", params.get("path_smooth", 0.0)),
        categories=categorical_splits(params.get("categorical_splits")).limits(counted or n_rows),
        **by_column.of_limits,
    )


def categorical_splits(value: Any) -> CategoricalSplits:
    """Regularisation of categorical splits; None is the default one."""
    if value is None or isinstance(value, CategoricalSplits):
        return value or CategoricalSplits()
    raise RecipeError(f"categorical_splits: must be None or a gb.CategoricalSplits; got {shown(value)}.")


def _reg_lambda(params: Mapping[str, Any], loss: Loss) -> float:
    """``reg_lambda``; None: see docs/decisions/0010, and 0 with Langevin, whose leaves are plain averages."""
    if params["reg_lambda"] is not None:
        return real("reg_lambda", params["reg_lambda"])
    if isinstance(params.get("langevin"), Langevin):
        return 0.0
    if multi_output(params, loss) == OneTree():  # without a sketch
        return RIDGE_OF_ONE_TREE
    return RIDGE_OF_LISTS if is_list_loss(loss) else RIDGE
