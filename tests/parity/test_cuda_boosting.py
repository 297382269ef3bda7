"""Training on the emulated device gives Reference's model and scores, byte for byte, launched or replayed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from emulator import emulated_runtime
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import model_bytes, random_case, sparse

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda import store
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.cuda.store import DeviceTree
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import InputError, RecipeError
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomGroups
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, UniformSampling
from gpuboost.steps import ConstantStep, GradientStep, NewtonStep, QuantileStep, Step, automatic
from gpuboost.types import Array, Candidates, Ensemble, Limits, Progress, Target, TrainingSet, Tree


@cache
def device(order: str = "forward") -> CupyRuntime:
    return emulated_runtime(order)


def run(recipe: Recipe, data: TrainingSet, backend: Backend, seed: int = 7) -> tuple[Ensemble, list[bytes]]:
    """The ensemble, and the bytes of the scores after each round."""
    scores: list[bytes] = []

    def watch(progress: Progress) -> bool:
        scores.append(backend.to_host(progress.scores).tobytes())
        return False

    return boost(recipe, data, backend, seed=seed, watch=watch), scores


def assert_parity(recipe: Recipe, data: TrainingSet, seed: int = 7, order: str = "forward") -> Ensemble:
    expected, scores = run(recipe, data, Reference(), seed)
    found, running = run(recipe, data, Cuda(device(order)), seed)
    assert model_bytes(found) == model_bytes(expected)
    assert running == scores
    return expected


def quartic(by: float) -> Loss:
    """by * (f - y)^4: a loss made of functions that remember a number."""
    return losses.custom(
        lambda y, f: by * (f - y) * (f - y) * (f - y) * (f - y),
        lambda y, f: 4.0 * by * (f - y) * (f - y) * (f - y),
        lambda y, f: 12.0 * by * (f - y) * (f - y),
        name="quartic",
        smoothness=50.0,
    )


TARGETS = {"poisson": "positive", "gamma": "positive", "tweedie": "positive", "softmax": "3"}
LOSSES: list[tuple[Loss, str]] = [
    (loss, TARGETS.get(loss.name, "binary" if loss.task == "binary" else "real"))
    for loss in (losses.get(name, 3) for name in losses.NAMES)
    if loss.task != "ranking"
] + [(quartic(1.0), "real")]
STEPS: list[Step] = [NewtonStep(), GradientStep(), ConstantStep(), QuantileStep()]


def allowed(loss: Loss) -> list[Step]:
    steps = []
    for step in STEPS:
        try:
            step.curvature(loss)
        except RecipeError:
            continue
        steps.append(step)
    return steps


@pytest.mark.parametrize(
    ("loss", "target", "step"),
    [(loss, target, step) for loss, target in LOSSES for step in allowed(loss)],
    ids=lambda value: value.name if hasattr(value, "name") else type(value).__name__ * (not isinstance(value, str)),
)
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
def test_every_loss_with_every_step_it_allows(loss: Loss, target: str, step: Step, weights: str) -> None:
    case = random_case(len(target), 300, 4, target=target, weights=weights)
    ensemble = assert_parity(Recipe(loss, 4, 0.5, DepthWise(Limits(12, 4)), step=step), case.data)
    assert max(len(tree.value) for tree in ensemble.trees) > 1


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 100, 700, 5_000]),
    st.sampled_from([1, 4, 9, 33]),
    st.sampled_from([EveryRow(), UniformSampling(0.5), UniformSampling(0.04)]),
    st.sampled_from([AllLearners(), RandomGroups(1), RandomGroups(0.5)]),
    st.sampled_from(
        [
            DepthWise(Limits(8, 3)),
            DepthWise(Limits(64, 6, 3)),
            DepthWise(Limits(4, 0)),
            LeafWise(Limits(9, 6)),
            Oblivious(Limits(16, 4)),
        ]
    ),
    st.sampled_from(["none", "real", "whole"]),
    st.sampled_from(["real", "binary", "3"]),
    st.sampled_from(["forward", "reverse", "random"]),
)
def test_every_combination(
    seed: int, n: int, d: int, sampling: Any, learners: Any, growth: Any, weights: str, target: str, order: str
) -> None:
    loss: Loss = {"real": losses.Quantile(0.7), "binary": losses.Logistic(), "3": losses.Softmax(3)}[target]
    data = random_case(seed, n, d, target=target, weights=weights).data
    recipe = Recipe(loss, 4, 0.3, growth, sampling, learners, automatic(loss))
    assert_parity(recipe, data, seed, order)


@pytest.mark.parametrize("weights", ["none", "whole"])
@pytest.mark.parametrize("target", ["binary", "3"])
@pytest.mark.parametrize("sampling", [EveryRow(), UniformSampling(0.6)], ids=["every row", "drawn rows"])
def test_langevin_boosting(weights: str, target: str, sampling: Any) -> None:
    data = random_case(8, 400, 4, target=target, weights=weights).data
    loss: Loss = losses.Logistic() if target == "binary" else losses.Softmax(3)
    langevin = Langevin(inverse_temperature=3e3, shrinkage=0.1, allow_unproven=True)
    recipe = Recipe(loss, 5, 0.3, DepthWise(Limits(8, 3)), sampling, step=NewtonStep(), langevin=langevin)
    ensemble = assert_parity(recipe, data)
    assert ensemble.scale < 1.0


@pytest.mark.parametrize("target", ["binary", "3"])
@pytest.mark.parametrize(
    "growth", [DepthWise(Limits(8, 3)), LeafWise(Limits(5, 6)), Oblivious(Limits(16, 4)), DepthWise(Limits(900, 10))]
)
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
def test_shapes_that_are_drawn_at_random(target: str, growth: Any, weights: str) -> None:
    data = random_case(3, 400, 6, target=target, weights=weights).data
    loss: Loss = losses.Logistic() if target == "binary" else losses.Softmax(3)
    langevin = Langevin(inverse_temperature=3e3, shrinkage=0.1, random_from=2)
    learners = RandomGroups(0.5) if weights == "none" else AllLearners()
    sampling = UniformSampling(0.6) if weights == "real" else EveryRow()
    recipe = Recipe(loss, 6, 0.3, growth, sampling, learners, step=GradientStep(), langevin=langevin)
    ensemble = assert_parity(recipe, data, order="random")
    assert not any(tree.nodes.gain.any() for tree in ensemble.trees[2 * loss.n_outputs :])


def test_a_round_of_random_shapes_is_one_graph_and_a_small_one() -> None:
    data = random_case(1, 800, 6, target="binary").data
    langevin = Langevin(inverse_temperature=3e3, shrinkage=0.1, random_from=4)
    recipe = Recipe(losses.Logistic(), 1, 0.3, DepthWise(Limits(8, 3)), step=GradientStep(), langevin=langevin)
    rounds = counted(recipe, data, 10)
    assert rounds[3]["graph"] == 1
    for one in rounds[7:]:
        assert one == {"graph": 1, "graph nodes": rounds[-1]["graph nodes"], "H2D": 1}
    assert rounds[-1]["graph nodes"] < rounds[3]["graph nodes"]


@pytest.mark.parametrize("target", ["real", "3"])
@pytest.mark.parametrize("growth", [DepthWise, LeafWise, Oblivious])
@pytest.mark.parametrize("d", [1, 7, 40])
def test_gains_that_are_compared_with_noise(target: str, growth: Any, d: int) -> None:
    data = random_case(d, 500, d, target=target).data
    loss: Loss = losses.SquaredError() if target == "real" else losses.Softmax(3)
    plain = assert_parity(Recipe(loss, 4, 0.3, growth(Limits(8, 4))), data)
    noisy = assert_parity(Recipe(loss, 4, 0.3, growth(Limits(8, 4, random_strength=1.5))), data, order="random")
    assert (model_bytes(plain) == model_bytes(noisy)) == (d == 1)


def test_a_langevin_round_is_one_graph_too() -> None:
    data = random_case(1, 800, 6, target="binary").data
    langevin = Langevin(inverse_temperature=3e3, shrinkage=0.1, allow_unproven=True)
    recipe = Recipe(losses.Logistic(), 1, 0.3, DepthWise(Limits(8, 3)), langevin=langevin)
    for one in counted(recipe, data, 6)[3:]:
        assert one == {"graph": 1, "graph nodes": 16, "H2D": 1}


def test_sparse_bins_give_the_model_of_dense_ones() -> None:
    data = random_case(5, 500, 6).data
    recipe = Recipe(losses.SquaredError(), 3, 0.5, DepthWise(Limits(8, 3)))
    expected = boost(recipe, data, Reference())
    assert model_bytes(boost(recipe, sparse(data), Cuda(device()))) == model_bytes(expected)


def test_bins_made_on_the_device_and_a_continued_ensemble() -> None:
    case = random_case(6, 600, 5, target="binary")
    backend = Cuda(device())
    data = replace(case.data, bins=backend.quantise(case.x, case.data.cuts))
    recipe = Recipe(losses.Logistic(), 4, 0.5, DepthWise(Limits(8, 3)), UniformSampling(0.6))
    half = boost(recipe, case.data, Reference())
    expected = boost(recipe, case.data, Reference(), resume=half)
    assert model_bytes(boost(recipe, data, backend, resume=half)) == model_bytes(expected)


def test_the_cpu_gives_the_same_model_too() -> None:
    data = random_case(9, 3_000, 8, target="3", weights="real").data
    recipe = Recipe(losses.Softmax(3), 3, 0.3, DepthWise(Limits(16, 4)), UniformSampling(0.5))
    assert model_bytes(boost(recipe, data, Cuda(device()))) == model_bytes(boost(recipe, data, Cpu(2)))


# the round


def counted(recipe: Recipe, data: TrainingSet, rounds: int) -> list[Counter[str]]:
    """What each round submitted."""
    runtime = emulated_runtime()
    counts: list[Counter[str]] = []
    before = Counter[str]()

    def watch(_: Progress) -> bool:
        nonlocal before
        counts.append(runtime.cp.counts - before)
        before = runtime.cp.counts.copy()
        return False

    boost(replace(recipe, rounds=rounds), data, Cuda(runtime), watch=watch)
    return counts


@pytest.mark.parametrize("depth", [3, 6, 8])
def test_a_round_is_one_graph_that_waits_for_nothing(depth: int) -> None:
    data = random_case(1, 800, 6, target="binary").data
    rounds = counted(Recipe(losses.Logistic(), 1, 0.3, DepthWise(Limits(2**depth, depth))), data, 8)
    for one in rounds[2:]:
        assert one == {"graph": 1, "graph nodes": 3 * depth + 1, "H2D": 1}
    assert rounds[1]["sync"] == 0


@pytest.mark.parametrize(
    ("recipe", "target", "most"),
    [
        (Recipe(losses.SquaredError(), 1, 0.3, DepthWise(Limits(8, 3)), UniformSampling(0.5)), "real", 20),
        (Recipe(losses.SquaredError(), 1, 0.3, DepthWise(Limits(8, 3)), learners=RandomGroups(2)), "real", 12),
        (Recipe(losses.Softmax(3), 1, 0.3, DepthWise(Limits(8, 3)), UniformSampling(0.5)), "3", 51),
        (Recipe(losses.AbsoluteError(), 1, 0.3, DepthWise(Limits(8, 3)), step=QuantileStep()), "real", 29),
    ],
    ids=["sample", "candidates", "classes", "quantiles"],
)
def test_so_is_one_with_samples_candidates_classes_or_quantiles(recipe: Recipe, target: str, most: int) -> None:
    data = random_case(1, 800, 6, target=target).data
    for one in counted(recipe, data, 6)[2:]:
        assert one["graph"] == 1
        assert one["sync"] == 0
        assert set(one) <= {"graph", "graph nodes", "H2D"}
        assert one["graph nodes"] <= most


@dataclass(frozen=True)
class Moody:
    """A step that is another one in some rounds: no round is like the one before for long."""

    at: tuple[int, ...]

    def curvature(self, loss: Loss) -> float | None:
        return 1.0

    def refine(
        self, backend: Backend, tree: Tree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> Tree:
        if tree.version in self.at:
            return backend.leaf_quantiles(tree, leaf_of_row, loss, scores, data)
        return tree


@pytest.mark.parametrize("at", [(4,), (0, 1, 2, 5), (3, 4, 5, 6)])
def test_a_round_that_goes_another_way_than_the_recorded_one_is_done_from_its_start(at: tuple[int, ...]) -> None:
    data = random_case(2, 500, 4).data
    assert_parity(Recipe(losses.AbsoluteError(), 9, 0.5, DepthWise(Limits(8, 3)), step=Moody(at)), data)


def test_one_backend_serves_one_training_after_the_other() -> None:
    backend = Cuda(device())
    for seed, loss in enumerate([losses.SquaredError(), losses.SquaredError(), losses.Huber(0.5)]):
        data = random_case(seed, 300 + seed, 4).data
        recipe = Recipe(loss, 4, 0.5, DepthWise(Limits(8, 3)), step=automatic(loss))
        assert model_bytes(boost(recipe, data, backend)) == model_bytes(boost(recipe, data, Reference()))


def test_memory_is_allocated_in_the_first_round_only() -> None:
    runtime, used = emulated_runtime(), []
    data = random_case(1, 800, 6).data
    recipe = Recipe(losses.SquaredError(), 6, 0.3, DepthWise(Limits(8, 3)), UniformSampling(0.5))
    boost(recipe, data, Cuda(runtime), watch=lambda _: used.append(runtime.cp.used()))  # type: ignore[func-returns-value]
    assert set(used[1:]) == {min(used)}


# trees on the device


def test_many_trees_go_round_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PLACES", 6)
    monkeypatch.setattr("gpuboost.backends.cuda.backend.PLACES", 6)
    for target, loss in (("real", losses.SquaredError()), ("3", losses.Softmax(3))):
        data = random_case(3, 200, 3, target=target).data
        assert_parity(Recipe(loss, 23, 0.1, DepthWise(Limits(4, 2))), data)


def test_the_ensemble_can_be_looked_at_after_any_round() -> None:
    data, reference = random_case(3, 200, 3).data, Reference()
    recipe = Recipe(losses.SquaredError(), 7, 0.3, DepthWise(Limits(4, 2)))
    expected, found = [], []
    boost(recipe, data, reference, watch=lambda p: expected.append(model_bytes(p.ensemble)))  # type: ignore[func-returns-value]

    def watch(progress: Progress) -> bool:
        assert all(isinstance(tree, DeviceTree) for tree in progress.trees)
        if progress.round in (0, 3, 4):
            found.append(model_bytes(progress.ensemble))
        return False

    boost(recipe, data, Cuda(device()), watch=watch)
    assert found == [expected[0], expected[3], expected[4]]


def follow(backend: Backend, stop: int) -> tuple[bytes, list[float]]:
    """Held-out loss after every round, and the model of a fit that stops when it has not fallen for ``stop`` rounds."""
    case = random_case(4, 900, 5, target="binary")
    data, held = case.data, random_case(4, 900, 5, target="binary").data
    held = replace(held, y=np.roll(held.y, 1))
    loss, values = losses.Logistic(), list[float]()
    scores = backend.start(held, loss.start(data.y, data.row_weight()))

    def watch(progress: Progress) -> bool:
        for tree in progress.trees:
            backend.add_tree(scores, tree, progress.factor, held.bins, held.cuts)
        values.append(backend.loss_value(loss, scores, held.y, None))
        return values.index(min(values)) < len(values) - stop

    model = boost(Recipe(loss, 30, 0.5, DepthWise(Limits(8, 3))), data, backend, watch=watch)
    return model_bytes(model), values


def test_early_stopping_sees_the_same_numbers_and_stops_in_the_same_round() -> None:
    expected, values = follow(Reference(), 3)
    assert 3 < len(values) < 30
    assert follow(Cuda(device()), 3) == (expected, values)


@pytest.mark.parametrize("rounds", [1, 9])
def test_gradients_that_are_not_finite_are_reported_when_the_host_looks(rounds: int) -> None:
    data = random_case(3, 200, 3).data
    broken: Callable[[float, float], float] = lambda y, f: (f - y) * 1e300 * 1e300  # noqa: E731
    loss = losses.custom(lambda y, f: 0.0, broken, None, name="broken")
    with pytest.raises(InputError, match="gradients must be finite"):
        boost(Recipe(loss, rounds, 0.3, step=GradientStep()), data, Cuda(device()))


# the end of a tree, in one launch or in three


@pytest.mark.parametrize(
    "growth", [DepthWise(Limits(32, 5)), Oblivious(Limits(16, 4)), DepthWise(Limits(2, 1))], ids=repr
)
@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_the_last_level_takes_values_and_scores_in(growth: Any, order: str) -> None:
    data = random_case(21, 2_500, 5, weights="whole").data
    runtime = emulated_runtime(order)
    recipe = Recipe(losses.SquaredError(), 4, 0.5, growth)
    expected, scores = run(recipe, data, Reference())
    found, running = run(recipe, data, Cuda(runtime))
    assert model_bytes(found) == model_bytes(expected)
    assert running == scores
    assert found.trees[0].nodes.count[0] == 2_500
    assert "kernel leaf_values" not in runtime.cp.counts
    assert "kernel add_leaves" not in runtime.cp.counts


def test_large_trees_and_several_outputs_end_in_steps() -> None:
    for loss, limits in ((losses.SquaredError(), Limits(600, 10)), (losses.Softmax(3), Limits(4, 2))):
        data = random_case(4, 1_500, 6, target="3" if loss.n_outputs > 1 else "real", categorical=0.0, missing=0.0).data
        runtime = emulated_runtime()
        recipe = Recipe(loss, 4, 0.5, DepthWise(limits))
        assert model_bytes(boost(recipe, data, Cuda(runtime))) == model_bytes(boost(recipe, data, Cpu(2)))
        assert runtime.cp.counts["kernel route_and_add"] == 0
        assert runtime.cp.counts["kernel add_leaves"] > 0


def test_what_no_verb_takes_is_done_at_the_end_of_the_round() -> None:
    """Verbs called by hand: a tree that is never added to the scores is whole nevertheless."""
    data, backend, loss = random_case(5, 400, 4).data, Cuda(device()), losses.SquaredError()
    reference, limits = Reference(), Limits(8, 3)
    trees = []
    for machine in (reference, backend):
        scores = machine.start(data, np.zeros(1))
        for step in range(4):  # the fourth is a replay
            with machine.recorded(step):
                gradients = machine.gradients(loss, scores, data, None)
                target = Target(step, None, gradients)
                every = Candidates(np.arange(4, dtype=np.int32))
                structure = DepthWise(limits).structure(machine, data, target, 0, every)
                tree, leaf_of_row = machine.leaf_values(structure, gradients, data, limits, step)
        ensemble = machine.collect(Ensemble(np.zeros(1), data.cuts, (tree,), (1.0,)))
        trees.append((model_bytes(ensemble), machine.to_host(leaf_of_row).tobytes()))
    assert trees[0] == trees[1]
