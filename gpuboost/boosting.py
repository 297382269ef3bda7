"""The boosting loop: gradient descent in function space, one tree per output a round.

    F_{j+1} = (1 - gamma eps) F_j + eps h_j,     h_j fitted to the gradient at F_{k(j)},  k(j) <= j

Each idea is one piece of the recipe, called in one place below:

    sampling     which rows a tree sees, with what weight
    learners     which weak learners compete
    langevin     noise on the gradient, for the shape of a tree and for its values, and shrinkage of the model
    growth       how a tree finds its shape
    base_learner what is boosted in place of trees: splines, effects of categories, anybody's estimator
    step         how far to go: what its leaf values are
    execution    where trees are built, and how stale their gradient may be
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from gpuboost.backends.protocol import Backend
from gpuboost.base_learners import Now
from gpuboost.execution import Past
from gpuboost.growing import Growing
from gpuboost.keys import Key, Stream
from gpuboost.langevin import Chain, Running
from gpuboost.recall import recall
from gpuboost.recipe import Recipe
from gpuboost.sampling import targets_of
from gpuboost.types import (
    Array,
    Built,
    Drawn,
    Ensemble,
    Gradients,
    Progress,
    Sample,
    Structure,
    Target,
    TrainingSet,
    Watch,
)


@dataclass(frozen=True, slots=True)
class Fit:
    """A worker's half of a round: blind to the scores, to the model and to other workers."""

    recipe: Recipe
    data: TrainingSet
    chain: Chain
    root: Key

    def __call__(self, backend: Backend, target: Target, ticket: int) -> tuple[Structure, ...]:
        """One structure per output. Equal (target, ticket) give equal structures, on any machine."""
        weak, limits, k = self.recipe.weak, self.recipe.growth.limits, self.recipe.loss.n_outputs
        candidates = self.recipe.learners.draw(weak.n_groups(self.data), self.root / Stream.LEARNERS / ticket)
        if limits.random_strength > 0.0:
            candidates = candidates.disturbed(limits.random_strength, self.root / Stream.RANDOM_STRENGTH / ticket)
        noisy = self.chain.perturb(backend, target, self.root / Stream.STRUCTURE_NOISE / ticket)
        search = weak.search(self.root / Stream.BASE_LEARNER / ticket)
        grow = self.chain.grow(search, limits, self.root / Stream.RANDOM_STRUCTURE / ticket)
        return tuple(grow(backend, self.data, noisy, output, candidates) for output in range(k))


def boost(
    recipe: Recipe,
    data: TrainingSet,
    backend: Backend,
    *,
    seed: int = 0,
    watch: Watch = lambda _: False,
    resume: Ensemble | None = None,
    log: tuple[Built, ...] = (),
) -> Ensemble:
    """Run the recipe. ``resume`` continues an ensemble of the same cuts; its rounds count, the watch sees new ones.

    ``log`` says who built those rounds, if it was not one worker alone.
    """
    loss, rate, root = recipe.loss, recipe.learning_rate, Key.root(seed)
    curvature = recipe.step.curvature(loss)
    ensemble, recipe = resume or recipe.start(data), recipe.prepared(backend, data)
    chain, model, first = recipe.chain(data, ensemble), Growing(ensemble), ensemble.n_rounds
    running = Running.of(backend, data, ensemble, chain)  # F_0
    targets = targets_of(recipe.sampling, own_leaves=recipe.stale_leaves)
    recall(targets, recipe, backend, data, ensemble, chain)

    def losses() -> Array:
        """Of each row, for a rule that draws by them."""
        return backend.losses(loss, running.scores, data)

    def answer(version: int, gradients: Gradients, number: int) -> tuple[Target, Sample]:
        """What a worker that pulls now is to fit to: rows drawn by that number."""
        sample = targets.sample(backend, gradients, losses, root / Stream.ROWS / number)
        return targets.target(backend, version, gradients, sample), sample

    with recipe.execution.open(Fit(recipe, data, chain, root), backend, Past(first, log)) as workers:
        for step in range(first, first + recipe.rounds):
            trees: tuple[Any, ...] = ()  # Tree, or Component
            leaves: tuple[Array, ...] = ()
            model.shrink(chain.shrink)  # F <- (1 - gamma eps) F
            noise = root / Stream.LEAF_NOISE / step
            with backend.recorded(step):
                gradients = backend.gradients(loss, running.scores, data, curvature)  # at F_j, on every row
                workers.publish(step, partial(answer, step, gradients))
                arrived = workers.receive()  # fitted to the gradients of this version, or of an earlier one
                length = rate * arrived.share
                factor = length / model.scale
                now = Now(loss, data, gradients, running, factor, recipe.step, chain, arrived.leaves_at, noise)
                for structure in arrived.structures:
                    tree, leaf_of_row = recipe.weak.join(backend, structure, now)  # F <- F + eps h
                    trees, leaves = (*trees, tree), (*leaves, leaf_of_row)
                targets.remember(gradients, trees, leaves)
                running.show(backend, ensemble.bias, model.scale)
            model.add(trees, length)
            drawn = Drawn(gradients, arrived.sample, arrived.target, leaves)
            so_far = partial(_collected, backend, model, model.n_rounds)
            seen = step, trees, factor, running.scores, model.n_rounds, so_far, model.scale, drawn, arrived.log
            if watch(Progress(*seen)):
                break
    return backend.collect(model.ensemble())


def _collected(backend: Backend, model: Growing, rounds: int) -> Ensemble:
    return backend.collect(model.ensemble(rounds))
