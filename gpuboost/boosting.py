"""The boosting loop: gradient descent in function space, one tree per output a round.

    F_{j+1} = (1 - gamma eps) F_j + eps h_j,     h_j fitted to the gradient at F_{k(j)},  k(j) <= j

Each idea is one piece of the recipe, called in one place below:

    sampling     which rows a tree sees, with what weight
    learners     which weak learners compete
    langevin     noise on the gradient, for the shape of a tree and for its values, and shrinkage of the model
    growth       how a tree finds its shape
    step         how far to go: what its leaf values are
    execution    where trees are built, and how stale their gradient may be
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gpuboost.backends.protocol import Backend
from gpuboost.keys import Key
from gpuboost.langevin import Chain, Running
from gpuboost.recipe import Recipe
from gpuboost.sampling import targets_of
from gpuboost.types import Array, Drawn, Ensemble, Progress, Structure, Target, TrainingSet, Tree, Watch


@dataclass(frozen=True, slots=True)
class Fit:
    """A worker's half of a round: blind to the scores, to the model and to other workers."""

    recipe: Recipe
    data: TrainingSet
    chain: Chain
    root: Key
    first: int  # rounds of the ensemble that is carried on

    def __call__(self, backend: Backend, target: Target, ticket: int) -> tuple[Structure, ...]:
        """One structure per output. Equal (target, ticket) give equal structures, on any machine."""
        number = self.first + ticket
        candidates = self.recipe.learners.draw(self.data.cuts.n_features, self.root / "learners" / number)
        noisy = self.chain.perturb(backend, target, self.root / "structure noise" / number)
        grow, outputs = self.recipe.growth.structure, range(self.recipe.loss.n_outputs)
        return tuple(grow(backend, self.data, noisy, output, candidates) for output in outputs)


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
    ensemble = resume or recipe.start(data)
    chain, bias, first = recipe.chain(data, ensemble), ensemble.bias, ensemble.n_rounds
    running = Running.of(backend, data, ensemble, chain)  # F_0
    targets = targets_of(recipe.sampling)

    def losses() -> Array:
        """Of each row, for a rule that draws by them."""
        return backend.losses(loss, running.scores, data)

    with recipe.execution.open(Fit(recipe, data, chain, root, first), backend) as workers:
        for step in range(first, first + recipe.rounds):
            trees: tuple[Tree, ...] = ()
            leaves: tuple[Array, ...] = ()
            ensemble = ensemble.scaled(chain.shrink)  # F <- (1 - gamma eps) F
            factor, noise = rate / ensemble.scale, root / "leaf noise" / step
            with backend.recorded(step):
                gradients = backend.gradients(loss, running.scores, data, curvature)  # at F_j, on every row
                sample = targets.sample(backend, gradients, losses, root / "rows" / step)
                target = targets.target(backend, step, gradients, sample)
                workers.publish(target)
                for structure in workers.receive():
                    at = structure, gradients, data, recipe.growth.limits, step
                    tree, leaf_of_row = chain.leaf_values(backend, *at, noise)
                    tree = recipe.step.refine(backend, tree, leaf_of_row, loss, running.scores, data)
                    backend.add_leaves(running.sums, tree, factor, leaf_of_row)  # F <- F + eps h
                    trees, leaves = (*trees, tree), (*leaves, leaf_of_row)
                targets.remember(gradients, trees, leaves)
                running.show(backend, bias, ensemble.scale)
            ensemble = ensemble.plus(trees, rate)
            so_far, drawn = partial(backend.collect, ensemble), Drawn(gradients, sample, target, leaves)
            if watch(Progress(step, trees, factor, running.scores, ensemble.n_rounds, so_far, ensemble.scale, drawn)):
                break
    return backend.collect(ensemble)
