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
from gpuboost.sampling import Sampler
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

    @classmethod
    def of(cls, recipe: Recipe, weak_learner: BaseLearner, data: TrainingSet, chain: Chain, root: Key) -> WorkerFit:
        observe = declared(SelectionTraits, recipe.learners).observe
        return cls(recipe, weak_learner, recipe.gain_noise, recipe.cut_rule, data, chain, root, observe)

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


@dataclass(frozen=True, slots=True)
class ServerFit:
    """The server's part of a round: the targets of workers, and the values of the structures that come back."""

    recipe: Recipe
    weak_learner: BaseLearner
    sampler: Sampler
    backend: Backend
    data: TrainingSet
    chain: Chain
    root: Key

    def answer(self, version: int, gradients: Gradients, scores: Array, number: int) -> tuple[Target, Sample]:
        """Target for a worker that pulls this version, and the sample that it is restricted to."""
        backend, sampler, root = self.backend, self.sampler, self.root

        def losses() -> Array:
            """(n,) float64 loss of each row, for sampling rules that draw by loss."""
            return backend.losses(self.recipe.loss, scores, self.data)

        if self.chain.draws_shapes(number):
            sample = Sample()
        else:
            sample = sampler.draw(backend, gradients, losses, root / Stream.ROWS / number)  # SMART: q, 1 / p
        return sampler.target(backend, version, gradients, sample), sample

    def add(
        self, structures: Sequence[Structure], state: RoundState, step: int
    ) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
        """Add the structures to the scores, in place. Returns their trees, or components, and the leaf of every row."""
        backend, weak_learner, recipe = self.backend, self.weak_learner, self.recipe
        leaf_noise = self.chain.leaf_noise(self.root / Stream.LEAF_NOISE / step)
        trees: tuple[Any, ...] = ()  # FittedTree, or Component
        leaves: tuple[Any, ...] = ()
        for structure in structures:
            tree, leaf_of_row = weak_learner.values(backend, structure, state, leaf_noise)  # SGLB: g + s zeta
            tree = weak_learner.update(backend, tree, leaf_of_row, state, recipe.step)  # F <- F + eps h
            trees, leaves = (*trees, tree), (*leaves, leaf_of_row)
        return trees, leaves


def boost(
    recipe: Recipe, data: TrainingSet, backend: Backend, *, seed: int = 0, watch: Watch = lambda _: False,
    evaluate: Evaluate = lambda trees, factor, scale: None, expect: Expect = lambda rounds, factor: None,
    resume: Ensemble | None = None, log: tuple[Built, ...] = (), together: int = 1, show_drawn: bool = True,
) -> Ensemble:  # fmt: skip
    """Run the recipe. ``resume`` continues an ensemble of the same cuts; its rounds count, the watch sees new ones.

    ``evaluate`` is called with the trees of each round, their factor and the scale of the ensemble, among the verbs of
    the round: what it asks of the backend is repeated with them. ``log`` lists the workers that built earlier rounds,
    if there was more than one. ``together``: rounds that may be done before the watch sees the first of them, with the
    scores of the last; ``expect`` is called with their trees first. ``show_drawn``: the watch reads ``Progress.drawn``;
    without it a machine may use the memory of gradients again as soon as the trees are grown.
    """
    root = Key.root(seed)
    recipe, ensemble = begun(recipe, data, backend, resume)  # F_0
    loss, weak_learner, past = recipe.loss, recipe.weak_learner, Past(ensemble.n_rounds, log)
    curvature, kept = recipe.step.curvature(loss), show_drawn or recipe.rereads_gradients
    chain, model = recipe.chain(data, ensemble), GrowingEnsemble(ensemble)
    sequences = started(backend, data, ensemble, chain.shrink, recipe.sequences, averages=chain.averages)
    sampler = recipe.sampler(backend, data, ensemble, chain.shrink)
    server = ServerFit(recipe, weak_learner, sampler, backend, data, chain, root)
    worker = WorkerFit.of(recipe, weak_learner, data, chain, root)
    collect = partial(partial, _collected, backend, model)
    with recipe.execution.open(worker, backend, past) as workers:
        together = together if may_repeat(recipe, backend.offers) and not past.has_gaps else 1
        steps = iter(range(ensemble.n_rounds, ensemble.n_rounds + recipe.rounds))
        for step in steps:
            scores = sequences[step % recipe.sequences]  # one, but for permutations of target statistics
            model.shrink(chain.kept(step))  # F <- (1 - gamma eps) F
            with backend.recorded(step, step % recipe.sequences):
                key = root / Stream.SCORE_NOISE / step
                gradients = derivatives(backend, loss, scores.base, data, curvature, key, kept)  # at F_j, on every row
                workers.publish(step, partial(server.answer, step, gradients, scores.base))
                arrived = workers.receive()  # fitted to the gradients of this version, or of an earlier one
                length = recipe.rate(step) * arrived.share / recipe.sequences
                factor = length * recipe.sequences / model.scale
                state = RoundState(loss, data, gradients, scores, factor, arrived.leaves_at)
                trees, leaves = server.add(arrived.structures, state, step)  # F <- F + eps h, on the rows
                sampler.remember(gradients, trees, leaves)
                scores.refresh(backend, ensemble.bias, model.scale)
                evaluate(trees, length / model.scale, model.scale)
            model.add(trees, length)
            drawn = Drawn(gradients, arrived.sample, arrived.target, leaves) if show_drawn else None
            progress = Progress(
                step, trees, length / model.scale, scores.values, model.n_rounds, collect(model.n_rounds), model.scale,
                drawn, arrived.log,
            )  # fmt: skip
            if watch(progress) or repeat(
                backend, progress, steps, together, model, Shrinkage(chain.shrink, length, model.scale), collect,
                expect, watch,
            ):  # fmt: skip
                break
            del gradients, arrived, state, progress, drawn, leaves  # or their rows are held while the next tree grows
    return backend.collect(model.ensemble())


def begun(
    recipe: Recipe, data: TrainingSet, backend: Backend, resume: Ensemble | None = None
) -> tuple[Recipe, Ensemble]:
    """The recipe for these data, and the model before its first round, each in the units and spaces of the other."""
    ensemble = resume or recipe.start(data)
    recipe = recipe.prepared(backend, data)
    ensemble = recipe.continued(ensemble)
    return recipe.scaled(ensemble, data), ensemble


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
