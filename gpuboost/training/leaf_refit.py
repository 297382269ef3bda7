"""New leaf values for the trees of a model, from other rows."""

from __future__ import annotations

from dataclasses import replace

from gpuboost.backends.protocol import Backend
from gpuboost.base_learners import RoundState, Trees
from gpuboost.boosting import derivatives
from gpuboost.keys import Key, Stream
from gpuboost.recipe import Recipe
from gpuboost.state import started
from gpuboost.types import Ensemble, FittedTree, Structure, TrainingSet


def refitted(
    ensemble: Ensemble,
    recipe: Recipe,
    data: TrainingSet,
    backend: Backend,
    *,
    decay: float,
    sequences: int,
    seed: int,
) -> Ensemble:
    """The ensemble with leaf values decay * old + (1 - decay) * new, tree by tree.

    The new value of a leaf is what the step rule and the regularisation of ``recipe`` compute from the gradients of
    these rows, at the scores of the trees before, which are refitted already; 0 for a leaf without rows. The bias is
    decay * old + (1 - decay) * new too, the new one being the start of a fit to these rows. Splits, gains, covers and
    counts stay. With a decay of 0 and the rows that the model was trained on, leaf values of all rows come out as they
    were.

    data: rows in the ensemble's bins. sequences: number of sequences of trees whose mean is the model. Models that
    shrink (``Ensemble.scale``) are not for this.
    """
    start = recipe.start(data)
    recipe = recipe.scaled(start, data)
    bias = decay * ensemble.bias + (1.0 - decay) * start.bias
    tracks = started(backend, data, Ensemble(bias, ensemble.cuts), 1.0, sequences)
    loss, learner, k = recipe.loss, Trees(recipe.growth), ensemble.n_outputs
    curvature, root = recipe.step.curvature(loss), Key.root(seed)
    trees: list[FittedTree] = []
    for number in range(ensemble.n_rounds):
        scores = tracks[number % sequences]
        gradients = derivatives(backend, loss, scores.values, data, curvature, root / Stream.SCORE_NOISE / number)
        for i in range(number * k, (number + 1) * k):
            old, factor = ensemble.trees[i], ensemble.factors[i] * sequences
            state = RoundState(loss, data, gradients, scores, factor, number)
            structure = Structure(old.nodes, old.output, old.version, None, None)
            new, leaf_of_row = learner.values(backend, structure, state, None)
            new = learner.refined(backend, new, leaf_of_row, state, recipe.step)
            tree = replace(old, value=decay * old.value + (1.0 - decay) * new.value)
            backend.add_leaves(scores.sums, tree, factor, leaf_of_row)
            trees.append(tree)
    return replace(ensemble, bias=bias, trees=tuple(trees))
