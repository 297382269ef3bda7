"""The boosting loop: gradient descent in function space, one tree per output, or one for all of them, a round.

    F_{j+1} = (1 - gamma eps) F_j + eps h_j,     h_j fitted to the gradient at F_{k(j)},  k(j) <= j

Each idea is one piece of the recipe, called in one place below:

    sampling     the rows that a tree sees, and their weights
    learners     the weak learners that compete
    gain_noise   noise on the split gains (random_strength)
    cut_rule     the cuts that compete (extra_trees)
    langevin     noise on the gradient, for the shape of a tree and for its values, and shrinkage of the model
    growth       the search for a tree's shape
    multi_output the shapes of several outputs: one for each, or one for all, searched by a sketch of the gradients
    weak_learner the functions that are boosted: trees, splines, effects of categories, any regressor
    step         the length of the step along a tree
    execution    the workers that build trees, and how stale their gradients may be
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gpuboost.backends.optional_verbs import Shrinkage
from gpuboost.backends.protocol import Backend
from gpuboost.base_learners import BaseLearner, RoundState
from gpuboost.composition.repeated_rounds import may_repeat
from gpuboost.execution import Past
from gpuboost.keys import Key, Stream
from gpuboost.langevin import Chain
from gpuboost.learners import CutRule, GainNoise
from gpuboost.learners.selection import SelectionTraits
from gpuboost.losses.protocol import Loss, is_drawn
from gpuboost.recipe import Recipe
from gpuboost.records import dataclass, declared
from gpuboost.state import GrowingEnsemble, repeat, started
from gpuboost.types import (
    Array,
    Built,
    Drawn,
    Ensemble,
    Evaluate,
    Expect,
    Gradients,
    Progress,
    Sample,
    Structure,
    Target,
    TrainingSet,
    Watch,
)


@dataclass(frozen=True, slots=True)
class WorkerFit:
    """A worker's part of a round. It has no access to the scores, the model or other workers."""

    recipe: Recipe
    weak_learner: BaseLearner
    gain_noise: GainNoise
    cut_rule: CutRule
    data: TrainingSet
    chain: Chain
    root: Key
    observe: Callable[[Sequence[Structure]], None] | None = None

    def __call__(self, backend: Backend, target: Target, ticket: int) -> tuple[Structure, ...]:
        """One structure per output. Equal (target, ticket) give equal structures, on any machine."""
        recipe, weak_learner, data, chain, root = self.recipe, self.weak_learner, self.data, self.chain, self.root
        candidates = recipe.learners.draw(weak_learner.n_groups(data), root / Stream.LEARNERS / ticket)  # RGBM: J
        candidates = self.gain_noise.disturb(candidates, root / Stream.RANDOM_STRENGTH / ticket)
        candidates = self.cut_rule.restrict(candidates, root / Stream.EXTRA_TREES / ticket)
        noisy = chain.perturb(backend, target, root / Stream.STRUCTURE_NOISE / ticket)  # SGLB: g + s zeta'
        search = weak_learner.search(root / Stream.BASE_LEARNER / ticket)
        grow = chain.grow(search, recipe.growth.limits, root / Stream.RANDOM_STRUCTURE / ticket)
        rest = grow, recipe.growth.limits, root / Stream.SKETCH / ticket
        structures = recipe.multi_output.grow(backend, data, noisy, candidates, *rest)
        if self.observe is not None:
            self.observe(structures)  # a selection by the gains of past rounds
        return structures


def boost(
    recipe: Recipe,
    data: TrainingSet,
    backend: Backend,
    *,
    seed: int = 0,
    watch: Watch = lambda _: False,
    evaluate: Evaluate = lambda trees, factor, scale: None,
    expect: Expect = lambda rounds, factor: None,
    resume: Ensemble | None = None,
    log: tuple[Built, ...] = (),
    together: int = 1,
    show_drawn: bool = True,
) -> Ensemble:
    """Run the recipe. ``resume`` continues an ensemble of the same cuts; its rounds count, the watch sees new ones.

    ``evaluate`` is called with the trees of each round, their factor and the scale of the ensemble, among the verbs of
    the round: what it asks of the backend is repeated with them. ``log`` lists the workers that built earlier rounds,
    if there was more than one. ``together``: rounds that may be done before the watch sees the first of them, with the
    scores of the last; ``expect`` is called with their trees first. ``show_drawn``: the watch reads ``Progress.drawn``;
    without it a machine may use the memory of gradients again as soon as the trees are grown.
    """
    root = Key.root(seed)
    ensemble = resume or recipe.start(data)
    recipe = recipe.prepared(backend, data)
    ensemble = recipe.continued(ensemble)
    recipe = recipe.scaled(ensemble, data)
    loss, weak_learner = recipe.loss, recipe.weak_learner
    curvature, kept = recipe.step.curvature(loss), show_drawn or recipe.rereads_gradients
    chain, past = recipe.chain(data, ensemble), Past(ensemble.n_rounds, log)
    sequences = started(backend, data, ensemble, chain.shrink, recipe.sequences, averages=chain.averages)
    scores = sequences[0]  # F_0
    sampler = recipe.sampler(backend, data, ensemble, chain.shrink)
    model = GrowingEnsemble(ensemble)

    def losses() -> Array:
        """(n,) float64 loss of each row, for sampling rules that draw by loss."""
        return backend.losses(loss, scores.base, data)

    def answer(version: int, gradients: Gradients, number: int) -> tuple[Target, Sample]:
        """Target for a worker that pulls this version, and the sample that it is restricted to."""
        if chain.draws_shapes(number):
            sample = Sample()
        else:
            sample = sampler.draw(backend, gradients, losses, root / Stream.ROWS / number)  # SMART: q, 1 / p
        return sampler.target(backend, version, gradients, sample), sample

    observe = declared(SelectionTraits, recipe.learners).observe
    fit = WorkerFit(recipe, weak_learner, recipe.gain_noise, recipe.cut_rule, data, chain, root, observe)
    with recipe.execution.open(fit, backend, past) as workers:
        together = together if may_repeat(recipe, backend.offers) and not past.has_gaps else 1
        steps = iter(range(ensemble.n_rounds, ensemble.n_rounds + recipe.rounds))
        for step in steps:
            trees: tuple[Any, ...] = ()  # FittedTree, or Component
            leaves: tuple[Array, ...] = ()
            scores = sequences[step % recipe.sequences]  # one, but for permutations of target statistics
            model.shrink(chain.kept(step))  # F <- (1 - gamma eps) F
            with backend.recorded(step, step % recipe.sequences):
                key = root / Stream.SCORE_NOISE / step
                gradients = derivatives(backend, loss, scores.base, data, curvature, key, kept)  # at F_j, on every row
                workers.publish(step, partial(answer, step, gradients))
                arrived = workers.receive()  # fitted to the gradients of this version, or of an earlier one
                length = recipe.rate(step) * arrived.share / recipe.sequences
                leaf_noise = chain.leaf_noise(root / Stream.LEAF_NOISE / step)
                state = RoundState(
                    loss=loss,
                    data=data,
                    gradients=gradients,
                    scores=scores,
                    factor=length * recipe.sequences / model.scale,
                    version=arrived.leaves_at,
                )
                for structure in arrived.structures:
                    tree, leaf_of_row = weak_learner.values(backend, structure, state, leaf_noise)  # SGLB: g + s zeta
                    tree = weak_learner.update(backend, tree, leaf_of_row, state, recipe.step)  # F <- F + eps h
                    trees, leaves = (*trees, tree), (*leaves, leaf_of_row)
                sampler.remember(gradients, trees, leaves)
                scores.refresh(backend, ensemble.bias, model.scale)
                evaluate(trees, length / model.scale, model.scale)
            model.add(trees, length)
            progress = Progress(
                round=step,
                trees=trees,
                factor=length / model.scale,
                scores=scores.values,
                n_rounds=model.n_rounds,
                collect=partial(_collected, backend, model, model.n_rounds),
                scale=model.scale,
                drawn=Drawn(gradients, arrived.sample, arrived.target, leaves) if show_drawn else None,
                log=arrived.log,
            )
            if watch(progress) or repeat(
                backend, progress, steps, together, model, Shrinkage(chain.shrink, length, model.scale),
                partial(partial, _collected, backend, model), expect, watch,
            ):  # fmt: skip
                break
            # or their rows are held while the next tree grows
            del gradients, arrived, state, progress, structure, leaf_of_row, leaves
    return backend.collect(model.ensemble())


def derivatives(
    backend: Backend, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None, key: Key, kept: bool = True
) -> Gradients:
    """Gradients of every row; for some losses of lists an estimate, with the noise of ``key``.

    kept: False where nothing reads them again once the trees are grown.
    """
    if is_drawn(loss):
        return backend.drawn_gradients(loss, scores, data, curvature, key)
    gradients = backend.gradients(loss, scores, data, curvature)
    return replace(gradients, disposable=False) if kept and gradients.disposable else gradients


def _collected(backend: Backend, model: GrowingEnsemble, rounds: int) -> Ensemble:
    """The ensemble after this many rounds, as callbacks see it; what they write to it would change the model."""
    return model.sealed(backend.collect(model.ensemble(rounds)))
