"""What a run has to know of the rounds before, to continue an ensemble: with it, five rounds and five more are ten."""

from __future__ import annotations

from gpuboost.backends.protocol import Backend
from gpuboost.langevin import Chain, Running
from gpuboost.recipe import Recipe
from gpuboost.sampling.target import Targets
from gpuboost.types import Ensemble, Structure, TrainingSet


def recall(
    targets: Targets, recipe: Recipe, backend: Backend, data: TrainingSet, ensemble: Ensemble, chain: Chain
) -> None:
    """Gradients and leaves of the last rounds, for targets that are made of those: found again from the trees."""
    k, curvature = ensemble.n_outputs, recipe.step.curvature(recipe.loss)
    for version in range(max(0, ensemble.n_rounds - targets.lag), ensemble.n_rounds):
        scores = Running.of(backend, data, ensemble.first(version), chain).scores
        gradients = backend.gradients(recipe.loss, scores, data, curvature)
        trees = ensemble.trees[k * version : k * version + k]
        shapes = (Structure(tree.nodes, tree.output, version, None, None) for tree in trees)
        leaves = tuple(backend.leaf_values(one, gradients, data, recipe.growth.limits, version)[1] for one in shapes)
        targets.remember(gradients, trees, leaves)
