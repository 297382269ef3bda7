"""The boosting loop: gradient descent in function space, one tree per output a round.

    F_{j+1} = F_j + eps h_j,     h_j fitted to the gradient at F_{k(j)},  k(j) <= j

Each idea is one piece of the recipe, called in one place below:

    sampling     which rows a tree sees, with what weight
    learners     which weak learners compete
    growth       how a tree finds its shape
    step         how far to go: what its leaf values are
    execution    where trees are built, and how stale their gradient may be
"""

from __future__ import annotations

from functools import partial

from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.recipe import Recipe
from gpuboost.types import Ensemble, Progress, Structure, Target, TrainingSet, Tree, Watch


def boost(
    recipe: Recipe,
    data: TrainingSet,
    backend: Backend,
    *,
    seed: int = 0,
    watch: Watch = lambda _: False,
    resume: Ensemble | None = None,
) -> Ensemble:
    """Run the recipe. ``resume`` continues an ensemble of the same cuts; its rounds count, the watch sees new ones."""
    loss, rate, root = recipe.loss, recipe.learning_rate, Key.root(seed)
    curvature = recipe.step.curvature(loss)
    ensemble = resume or Ensemble(loss.start(data.y, data.row_weight()), data.cuts)
    scores = backend.start(data, ensemble.bias)  # F_0
    for tree, factor in zip(ensemble.trees, ensemble.factors, strict=True):
        backend.add_tree(scores, tree, factor * ensemble.scale, data.bins, data.cuts)

    first = ensemble.n_rounds

    def fit(target: Target, ticket: int) -> tuple[Structure, ...]:
        """A worker's half of a round: blind to the scores, to the model and to other workers."""
        candidates = recipe.learners.draw(data.cuts.n_features, root / "learners" / (first + ticket))
        outputs = range(ensemble.n_outputs)
        return tuple(recipe.growth.structure(backend, data, target, output, candidates) for output in outputs)

    with recipe.execution.open(fit) as workers:
        for step in range(first, first + recipe.rounds):
            trees: tuple[Tree, ...] = ()
            with backend.recorded(step):
                gradients = backend.gradients(loss, scores, data, curvature)  # at F_j, on every row
                sample = recipe.sampling.draw(backend, gradients, root / "rows" / step)
                workers.publish(Target(step, sample.rows, backend.weigh(gradients, sample)))
                for structure in workers.receive():
                    tree, leaf_of_row = backend.leaf_values(structure, gradients, data, recipe.growth.limits, step)
                    tree = recipe.step.refine(backend, tree, leaf_of_row, loss, scores, data)
                    backend.add_leaves(scores, tree, rate, leaf_of_row)  # F <- F + eps h
                    trees += (tree,)
            ensemble = ensemble.plus(trees, rate)
            if watch(Progress(step, trees, rate, scores, ensemble.n_rounds, partial(backend.collect, ensemble))):
                break
    return backend.collect(ensemble)
