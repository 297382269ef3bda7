"""Choice of the fits that NumPy makes, as the first ones on a machine, so that they wait for no compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost._imports.collection import no_collection
from gpuboost.backends.protocol import Backend
from gpuboost.data.dataset import Dataset
from gpuboost.execution import Serial
from gpuboost.langevin import Langevin, NoNoise
from gpuboost.learners import AllLearners, RandomByLevel, RandomByNode, RandomGroups, WeightedGroups, WeightedNodes
from gpuboost.losses.protocol import is_list_loss, is_on_host, is_smoothed, weighs_precision
from gpuboost.losses.registry import CLASSES
from gpuboost.multi_output import OneTreePerOutput
from gpuboost.recipe import Recipe
from gpuboost.sampling import GOSS, EveryRow, ImportanceSampling, UniformSampling
from gpuboost.steps import GradientStep, NewtonStep, QuantileStep
from gpuboost.types import Array, Cuts

OF_VALUE = 2e-6  # seconds to watch a row by a metric
OF_NODES = RandomByNode, RandomByLevel, WeightedNodes  # rules that draw features for each node

_PARTS: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((Serial, OneTreePerOutput, EveryRow, AllLearners, NoNoise), ()),
    **dict.fromkeys((NewtonStep, GradientStep, QuantileStep), ()),
    UniformSampling: ("sampling",),
    ImportanceSampling: ("sampling", "importance"),
    GOSS: ("sampling", "goss"),
    **dict.fromkeys((RandomGroups, WeightedGroups), ("features",)),
    **dict.fromkeys(OF_NODES, ()),
    Langevin: ("noise",),
}
"""The pieces that such a fit may have, and their names in ``first_fit.PARTS``"""


def by_numpy_first(
    threads: int, recipe: Recipe, rows: Any, cuts: Cuts, query_start: Array | None, watched: int
) -> Backend | None:
    """NumPy's backend if the fit is small, and its kernels are not on disk; a process compiles them meanwhile.

    rows: (n, d) numbers, or the Dataset that has them. query_start: where the queries of a ranking start. watched:
    number of values of metrics in a round.
    """
    parts = _parts_of(recipe, categorical=bool(cuts.is_categorical.any()))
    if parts is None or not (rows.is_array if isinstance(rows, Dataset) else isinstance(rows, np.ndarray)):
        return None
    with no_collection():
        from gpuboost.backends.cpu.compilation.first_fit import FIRST_FITS  # it imports numba
    if FIRST_FITS.are_over(parts):
        return None
    from gpuboost.backends.reference import levels, ranked_lists
    from gpuboost.backends.reference.backend import Reference

    limits, n = recipe.growth.limits, rows.shape[0]
    lists = np.array([0, n]) if query_start is None else query_start
    small = levels.are_small(n, cuts, limits) and (recipe.loss.task != "ranking" or ranked_lists.are_small(lists))
    if not (small and levels.are_plain(limits)):
        return None
    of_round = recipe.loss.n_outputs * levels.seconds(n, cuts.n_features, limits) + watched * OF_VALUE
    if is_list_loss(recipe.loss):
        of_round += ranked_lists.seconds(recipe.loss, lists)
    if not FIRST_FITS.take(recipe.rounds * of_round, parts, threads=threads):
        return None
    return Reference(levels.grow, ranked_lists.lambdas, ranked_lists.perturbed_gradients)


def _parts_of(recipe: Recipe, *, categorical: bool) -> list[str] | None:
    """The kernels that the fit needs, as keys of ``first_fit.PARTS``; None if NumPy is not the way to it.

    It is for trees of a built-in loss, one after the other.
    """
    loss = recipe.loss
    other_loss = type(loss) is not CLASSES.get(loss.name) or is_on_host(loss) or is_smoothed(loss)
    if other_loss or recipe.base_learner is not None:
        return None
    pieces = recipe.execution, recipe.step, recipe.multi_output, recipe.sampling, recipe.learners, recipe.langevin
    at_the_root = isinstance(recipe.learners, RandomGroups) and recipe.learners.groups == "root"
    if at_the_root or any(type(piece) not in _PARTS for piece in pieces):
        return None
    of_pieces = [part for piece in pieces for part in _PARTS[type(piece)]]
    of_trees = [f"{part}-categories" if categorical else part for part in _parts_of_trees(recipe)]
    of_lists = ["map" if weighs_precision(loss) else loss.name] if is_list_loss(loss) else []
    of_data = ["statistics"] if recipe.permutations > 0 else []
    return ["categories" if categorical else "plain", *of_data, *of_lists, *of_pieces, *of_trees]


def _parts_of_trees(recipe: Recipe) -> list[str]:
    """The keys of ``first_fit.OF_TREES`` that the fit needs."""
    limits = recipe.growth.limits
    draws = type(recipe.learners) in OF_NODES or limits.extra_trees or limits.random_strength > 0.0
    needed = {
        "oblivious": limits.symmetric,
        "min_samples_leaf": limits.min_samples_leaf > 1,
        "stumps": min(limits.max_leaves - 1, limits.max_depth) == 1,
        "bounds": limits.bounded,
        "node_rules": draws or limits.interactions is not None,
    }
    return [part for part, is_needed in needed.items() if is_needed]
