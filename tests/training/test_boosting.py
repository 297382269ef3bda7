"""The loop: what each piece is asked, in which order, and what is true of every run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, eager_threads, model_bytes, random_case, sparse, take
from support.examples import examples

from gpuboost import losses
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.execution import Arrival, BuildTrees, Past
from gpuboost.execution.messages import Answer
from gpuboost.growth import DepthWise, LeafWise
from gpuboost.keys import Key
from gpuboost.learners import AllLearners, RandomGroups
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, UniformSampling
from gpuboost.steps import GradientStep, automatic
from gpuboost.types import Candidates, Ensemble, Gradients, Limits, Progress, Sample, TrainingSet

Array = np.ndarray
CPU = TEAMS[2]
BACKENDS = [Reference(), CPU]
LOSSES = [
    (losses.SquaredError(), "real"),
    (losses.Quantile(0.3), "real"),
    (losses.Huber(0.5), "real"),
    (losses.Tweedie(), "positive"),
    (losses.Logistic(), "binary"),
    (losses.Softmax(3), "3"),
]
NOISY = {"sampling": UniformSampling(0.6), "learners": RandomGroups(2)}


def recipe_of(loss: Loss, rounds: int = 10, **pieces: object) -> Recipe:
    return Recipe(loss, rounds, 0.3, pieces.pop("growth", DepthWise(Limits(8, 3))), step=automatic(loss), **pieces)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("loss", "target"), LOSSES)
def test_no_rounds_give_the_start_scores(backend: Backend, loss: Loss, target: str) -> None:
    case = random_case(0, 50, 3, target=target, weights="real")
    ensemble = boost(recipe_of(loss, rounds=0), case.data, backend)
    assert ensemble.trees == ()
    assert ensemble.n_rounds == 0
    assert np.array_equal(ensemble.bias, loss.start(case.data.y, case.data.weight))
    assert np.array_equal(backend.predict(ensemble, case.x), np.repeat(ensemble.bias[:, None], 50, axis=1))


@pytest.mark.parametrize(("loss", "target"), LOSSES)
def test_the_watch_sees_every_round(loss: Loss, target: str) -> None:
    case = random_case(1, 80, 3, target=target)
    seen: list[Progress] = []
    scores: list[Array] = []

    def watch(progress: Progress) -> bool:
        seen.append(progress)
        scores.append(progress.scores.copy())
        return False

    ensemble = boost(recipe_of(loss, rounds=4), case.data, CPU, watch=watch)
    k = loss.n_outputs
    assert [progress.round for progress in seen] == [0, 1, 2, 3]
    assert [progress.ensemble.n_rounds for progress in seen] == [1, 2, 3, 4]
    assert model_bytes(seen[-1].ensemble) == model_bytes(ensemble)
    assert ensemble.factors == (0.3,) * 4 * k
    for step, progress in enumerate(seen):
        assert progress.factor == 0.3
        assert progress.trees == ensemble.trees[k * step : k * step + k]
        assert [tree.output for tree in progress.trees] == list(range(k))
        assert {tree.version for tree in progress.trees} == {step}
        assert scores[step].tobytes() == CPU.predict(ensemble.first(step + 1), case.x).tobytes()
    assert [found.tobytes() for found in CPU.staged_predict(ensemble, case.x)] == [one.tobytes() for one in scores]


def test_the_watch_can_stop() -> None:
    case = random_case(1, 80, 3, target="3")
    rounds = []
    whole = boost(recipe_of(losses.Softmax(3)), case.data, CPU, seed=5)
    stopped = boost(
        recipe_of(losses.Softmax(3)), case.data, CPU, seed=5, watch=lambda p: rounds.append(p.round) or p.round == 3
    )
    assert rounds == [0, 1, 2, 3]
    assert model_bytes(stopped) == model_bytes(whole.first(4))


def test_what_the_watch_raises_reaches_the_caller() -> None:
    def watch(_: Progress) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        boost(recipe_of(losses.SquaredError()), random_case(1, 30, 2).data, CPU, watch=watch)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("loss", "target"), LOSSES)
@pytest.mark.parametrize("pieces", [{}, NOISY], ids=["plain", "noisy"])
def test_five_rounds_and_five_more_are_ten(backend: Backend, loss: Loss, target: str, pieces: dict) -> None:
    data = random_case(2, 90, 4, target=target, weights="whole").data
    ten, five = recipe_of(loss, 10, **pieces), recipe_of(loss, 5, **pieces)
    whole = boost(ten, data, backend, seed=3)
    seen: list[int] = []
    first = boost(five, data, backend, seed=3)
    second = boost(five, data, backend, seed=3, watch=lambda p: seen.append(p.round) or False, resume=first)
    assert model_bytes(first) == model_bytes(whole.first(5))
    assert model_bytes(second) == model_bytes(whole)
    assert seen == [5, 6, 7, 8, 9]


def test_a_resumed_run_may_change_machine() -> None:
    data = random_case(2, 90, 4, target="binary").data
    recipe = recipe_of(losses.Logistic(), 3, **NOISY)
    first = boost(recipe, data, Reference(), seed=1)
    both = [boost(recipe, bins, backend, seed=1, resume=first) for backend in BACKENDS for bins in (data, sparse(data))]
    assert len({model_bytes(ensemble) for ensemble in both}) == 1


@pytest.mark.parametrize(
    "pieces", [{"sampling": UniformSampling(0.5)}, {"learners": RandomGroups(2)}], ids=["rows", "features"]
)
def test_a_seed_names_one_model_and_another_seed_another_one(pieces: dict) -> None:
    data = random_case(3, 200, 6, full=True, categorical=0.0).data
    recipe = recipe_of(losses.SquaredError(), 5, **pieces)
    models = [model_bytes(boost(recipe, data, CPU, seed=seed)) for seed in (0, 1, 2, 2**63, -1, 0, 2**64)]
    assert len(set(models)) == 5
    assert models[0] == models[5] == models[6]


def test_without_randomness_the_seed_does_not_matter() -> None:
    data = random_case(3, 100, 3).data
    assert len({model_bytes(boost(recipe_of(losses.SquaredError()), data, CPU, seed=seed)) for seed in (0, 1, 2)}) == 1


def test_every_round_draws_anew() -> None:
    data = random_case(3, 200, 9, full=True, categorical=0.0, missing=0.0).data
    drawn = boost(recipe_of(losses.SquaredError(), 12, learners=RandomGroups(1)), data, CPU)
    roots = [int(tree.nodes.feature[0]) for tree in drawn.trees]
    assert len(set(roots)) > 3
    sizes = [int(tree.nodes.count[0]) for tree in boost(recipe_of(losses.SquaredError(), 12, **NOISY), data, CPU).trees]
    assert len(set(sizes)) > 3
    assert all(70 < size < 170 for size in sizes)


@pytest.mark.parametrize(("loss", "target"), LOSSES)
@pytest.mark.parametrize("growth", [DepthWise(Limits(12, 4)), LeafWise(Limits(12, 6))])
def test_a_row_of_weight_three_is_three_rows(loss: Loss, target: str, growth: DepthWise) -> None:
    data = random_case(6, 120, 4, target=target, weights="whole").data
    repeated = take(replace(data, multiplicity=None), np.repeat(np.arange(120), data.multiplicity))
    one, other = (boost(recipe_of(loss, 6, growth=growth), rows, CPU) for rows in (data, repeated))
    assert model_bytes(one, counts=False) == model_bytes(other, counts=False)


@settings(max_examples=examples(20))
@given(st.integers(0, 2**32 - 1), st.sampled_from(LOSSES), st.sampled_from(["none", "whole"]))
def test_the_order_of_rows_does_not_matter(seed: int, loss: tuple[Loss, str], weights: str) -> None:
    data = random_case(seed, 150, 4, target=loss[1], weights=weights).data
    order = np.random.default_rng(seed).permutation(150)
    with eager_threads():
        one, other = (boost(recipe_of(loss[0], 4), rows, CPU) for rows in (data, take(data, order)))
    assert model_bytes(one) == model_bytes(other)


def test_weights_of_one_are_no_weights() -> None:
    data = random_case(6, 100, 4, target="binary").data
    recipe = recipe_of(losses.Logistic())
    plain = model_bytes(boost(recipe, data, CPU))
    assert model_bytes(boost(recipe, replace(data, weight=np.ones(100)), CPU)) == plain
    assert model_bytes(boost(recipe, replace(data, multiplicity=np.ones(100, np.int32)), CPU)) == plain


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_is_written_to_the_training_set(backend: Backend) -> None:
    data = random_case(7, 100, 4, target="3", weights="whole").data
    for rows in (data, sparse(data)):
        arrays = [rows.y, rows.multiplicity, *rows.cuts.thresholds]
        arrays += [getattr(rows.bins, one.name) for one in fields(rows.bins)]
        before = [array.copy() for array in arrays]
        with eager_threads():
            boost(recipe_of(losses.Softmax(3), 3, **NOISY), rows, backend)
        assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rate", [0.3, 1.0])
@pytest.mark.parametrize(("loss", "target"), [(losses.SquaredError(), "real"), (losses.Logistic(), "binary")])
def test_leaf_values_of_all_rows_never_make_the_loss_grow(
    backend: Backend, rate: float, loss: Loss, target: str
) -> None:
    """Although the tree's shape comes from a tenth of the rows: its values come from all of them."""
    data = random_case(8, 200, 4, target=target, weights="real").data
    means = [backend.loss_value(loss, backend.start(data, loss.start(data.y, data.weight)), data.y, data.weight)]

    def watch(progress: Progress) -> bool:
        means.append(backend.loss_value(loss, progress.scores, data.y, data.weight))
        return False

    recipe = Recipe(loss, 8, rate, DepthWise(Limits(8, 3)), UniformSampling(0.1), RandomGroups(1), GradientStep())
    boost(recipe, data, backend, watch=watch)
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(means))
    assert means[-1] < means[0]


# What the pieces are asked.


@dataclass(frozen=True)
class Recorder:
    """Every piece that draws or executes, noting what it was given."""

    notes: list[tuple[str, object]] = field(default_factory=list)

    def draw(self, *args: object) -> Sample | Candidates:
        self.notes.append(("draw", args[-1]))
        if len(args) == 3:
            return EveryRow().draw(*args)
        return AllLearners().draw(*args)

    @contextmanager
    def open(self, fit: BuildTrees, backend: Backend, past: Past) -> Iterator[Recorder]:
        self.notes.append(("open", partial(fit, backend)))
        yield self
        self.notes.append(("close", None))

    def publish(self, version: int, answer: Answer) -> None:
        self.notes.extend([("publish", version), ("answer", answer)])

    def receive(self) -> Arrival:
        version, answer = (value for _, value in self.notes[-2:])
        self.notes.append(("receive", version))
        target, sample = answer(version)
        assert target.version == version
        fit = self.notes[0][1]
        return Arrival(fit(target, version), target, sample, version, 1.0, ())


def test_pieces_are_called_in_order_with_the_keys_of_their_round() -> None:
    data = random_case(1, 40, 3, target="3").data
    recorder = Recorder()
    recipe = recipe_of(losses.Softmax(3), 2, sampling=recorder, learners=recorder, execution=recorder)
    first = boost(recipe, data, CPU, seed=9)
    assert [name for name, _ in recorder.notes] == ["open"] + ["publish", "answer", "receive", "draw", "draw"] * 2 + [
        "close"
    ]
    root = Key.root(9)
    keys = [value for name, value in recorder.notes if name == "draw"]
    assert keys == [root / "rows" / 0, root / "learners" / 0, root / "rows" / 1, root / "learners" / 1]
    assert [value for name, value in recorder.notes if name == "publish"] == [0, 1]
    assert model_bytes(first) == model_bytes(boost(recipe_of(losses.Softmax(3), 2), data, CPU, seed=9))

    recorder.notes.clear()
    boost(recipe, data, CPU, seed=9, resume=first)
    keys = [value for name, value in recorder.notes if name == "draw"]
    assert keys == [root / "rows" / 2, root / "learners" / 2, root / "rows" / 3, root / "learners" / 3]


class OneRoundLate:
    """Trees are fitted to the target of the round before."""

    @contextmanager
    def open(self, fit: BuildTrees, backend: Backend, past: Past) -> Iterator[OneRoundLate]:
        self.fit, self.targets = partial(fit, backend), []
        yield self

    def publish(self, version: int, answer: Answer) -> None:
        self.targets.append(answer(version))

    def receive(self) -> Arrival:
        newest = len(self.targets) - 1
        target, sample = self.targets[max(newest - 1, 0)]
        return Arrival(self.fit(target, newest), target, sample, newest, 1.0, ())


@pytest.mark.parametrize(("loss", "target"), [(losses.SquaredError(), "real"), (losses.Softmax(3), "3")])
@pytest.mark.parametrize("sampling", [EveryRow(), UniformSampling(0.5)])
def test_stale_structures_get_the_leaf_values_of_the_newest_gradient(
    loss: Loss, target: str, sampling: UniformSampling
) -> None:
    data = random_case(4, 120, 4, target=target, weights="whole").data
    recipe = replace(recipe_of(loss, 4, sampling=sampling), execution=OneRoundLate())
    with eager_threads():
        ensembles = [boost(recipe, rows, backend) for backend in BACKENDS for rows in (data, sparse(data))]
    assert len({model_bytes(ensemble) for ensemble in ensembles}) == 1

    ensemble, k = ensembles[0], loss.n_outputs
    assert [tree.version for tree in ensemble.trees] == [max(step - 1, 0) for step in range(4) for _ in range(k)]
    scores = CPU.start(data, ensemble.bias)
    for step in range(4):
        gradients: Gradients = CPU.gradients(loss, scores, data, None)
        for tree in ensemble.trees[k * step : k * step + k]:
            g, h = gradients.g[tree.output] * data.multiplicity, gradients.h[tree.output] * data.multiplicity
            leaf = CPU.leaves(Ensemble(np.zeros(k), data.cuts, (tree,), (1.0,)), _raw(data))[:, 0]
            for v in np.unique(leaf):
                rows = leaf == v
                expected = -g[rows].sum(dtype=float) / (h[rows].sum(dtype=float) + 1.0)
                assert tree.value[v] == pytest.approx(expected, rel=1e-4, abs=1e-6)
        for tree in ensemble.trees[k * step : k * step + k]:
            CPU.add_tree(scores, tree, 0.3, data.bins, data.cuts)


def _raw(data: TrainingSet) -> Array:
    """Values that fall into the bins of the set."""
    codes = data.bins.columns.astype(np.int64)
    x = np.full(codes.shape, np.nan)
    for f, (thresholds, categories) in enumerate(zip(data.cuts.thresholds, data.cuts.categories, strict=True)):
        values = np.append(thresholds, np.inf) if categories is None else categories.astype(float)
        x[f] = np.append(values, np.nan)[codes[f]]
    return x.T
