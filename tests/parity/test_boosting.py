"""One model, whatever the machine, the number of threads and the layout of the bins: byte for byte, scores included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from emulator import emulated_runtime
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, Case, eager_threads, model_bytes, random_case, sparse
from support.examples import crossed, examples
from support.training import MACHINES, allowed, assert_parity, device, parity, quartic, submitted, trained

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.trees import tree_ring
from gpuboost.backends.cuda.trees.tree_ring import DeviceTree
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomGroups
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, UniformSampling
from gpuboost.steps import GradientStep, NewtonStep, QuantileStep, Step, automatic
from gpuboost.types import Candidates, Ensemble, FittedTree, Limits, Progress, Target, TrainingSet

Array = np.ndarray


LOSSES: list[tuple[Loss, str]] = [
    (losses.SquaredError(), "real"),
    (losses.Huber(0.3), "real"),
    (losses.AbsoluteError(), "real"),
    (losses.Quantile(0.2), "real"),
    (losses.Quantile([0.1, 0.3, 0.8]), "real"),
    (losses.Expectile(0.8), "real"),
    (losses.Poisson(), "positive"),
    (losses.Gamma(), "positive"),
    (losses.Tweedie(), "positive"),
    (losses.CrossEntropy(), "shares"),
    *((losses.AFT(distribution, 0.5), "times") for distribution in ("normal", "logistic", "extreme")),
    (losses.Logistic(), "binary"),
    (losses.Logistic(0.1), "binary"),
    (losses.Exponential(), "binary"),
    (losses.LogitBoost(), "binary"),
    (losses.SmoothedZeroOne(0.4), "binary"),
    (losses.GaussianNLL(), "real"),
    (losses.GammaNLL(), "positive"),
    (losses.LogNormalNLL(), "positive"),
    (losses.NegativeBinomialNLL(), "positive"),
    (losses.Softmax(3), "3"),
    (losses.Softmax(2), "binary"),
    (quartic(1.0), "real"),
]


def assert_scored_alike(recipe: Recipe, case: Case, seed: int = 7, threads: tuple[int, ...] = (1, 2, 3, 4)) -> Ensemble:
    """Models, scores of every round, predictions and values of the loss are the reference's."""
    data, reference = case.data, Reference()
    expected, scores = parity(recipe, data, "cpu", seed=seed, threads=threads)
    last, weight = np.frombuffer(scores[-1]).reshape(-1, data.n_rows), data.row_weight()
    value = np.float64(reference.loss_value(recipe.loss, last, data.y, weight)).tobytes()
    for backend in (reference, *(TEAMS[count] for count in threads)):
        assert backend.predict(expected, case.x).tobytes() == last.tobytes()
        assert np.float64(backend.loss_value(recipe.loss, last, data.y, weight)).tobytes() == value
    return expected


@pytest.mark.parametrize(
    ("loss", "target", "step", "weights", "machine"),
    crossed(
        [(loss, target, step) for loss, target in LOSSES for step in allowed(loss)],
        ["none", "real", "whole"],
        MACHINES,
    ),
    ids=lambda value: getattr(value, "name", value if isinstance(value, str) else type(value).__name__),
)
def test_every_loss_with_every_step_it_allows(loss: Loss, target: str, step: Step, weights: str, machine: str) -> None:
    case = random_case(len(target), 200, 4, target=target, weights=weights)
    ensemble = assert_parity(Recipe(loss, 4, 0.5, DepthWise(Limits(12, 4)), step=step), case.data, machine)
    assert max(len(tree.value) for tree in ensemble.trees) > 1


def test_every_loss_of_rows_is_in_the_list_above() -> None:
    of_lists = {"lambdamart", "pairwise_logistic", "stochastic_rank", "xendcg"}  # in files of their own
    of_lists |= {"pair_logit", "unbiased_lambdamart"}
    found = {loss.name for loss, _ in LOSSES} - {"quartic"}
    assert found == set(losses.NAMES) - of_lists, "each loss of rows is in LOSSES, with a kind of target"


@settings(max_examples=examples(60))
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(LOSSES),
    st.sampled_from([1, 2, 7, 40, 200]),
    st.integers(1, 7),
    st.sampled_from(["none", "real", "whole"]),
    st.sampled_from([DepthWise, LeafWise, Oblivious]),
    st.builds(
        Limits,
        max_leaves=st.sampled_from([2, 7, 40]),
        max_depth=st.sampled_from([1, 3, 6]),
        min_samples_leaf=st.sampled_from([1, 1, 4]),
        min_child_weight=st.sampled_from([0.0, 1e-3, 0.5]),
        reg_lambda=st.sampled_from([0.0, 1.0]),
        min_split_gain=st.sampled_from([0.0, 0.1]),
    ),
    st.sampled_from([EveryRow(), UniformSampling(0.02), UniformSampling(0.5), UniformSampling(1.0)]),
    st.sampled_from([AllLearners(), RandomGroups(1), RandomGroups(0.4)]),
    st.sampled_from([0.05, 0.5, 1.0]),
)
def test_every_composition(
    seed: int, loss: tuple[Loss, str], n: int, d: int, weights: str, growth: Callable[[Limits], DepthWise],
    limits: Limits, sampling: UniformSampling, learners: RandomGroups, rate: float,
) -> None:  # fmt: skip
    case = random_case(seed, n, d, target=loss[1], weights=weights, most_cuts=40)
    recipe = Recipe(loss[0], 3, rate, growth(limits), sampling, learners, automatic(loss[0]))
    assert_scored_alike(recipe, case, seed)


def test_two_custom_losses_of_one_text_are_two_losses() -> None:
    """They differ in a number that their functions remember: a kernel of the one must not serve the other."""
    case = random_case(2, 80, 3)
    models = []
    for by in (1.0, 3.0):
        recipe = Recipe(quartic(by), 3, 0.3, DepthWise(Limits(8, 3)), step=GradientStep())
        models.append(model_bytes(assert_scored_alike(recipe, case, threads=(2,))))
    assert models[0] != models[1]


@pytest.mark.parametrize(
    ("kind", "growth"),
    crossed(
        ["huge", "tiny", "heavy", "equal", "one differs"],
        [DepthWise(Limits(16, 4)), LeafWise(Limits(16, 8)), Oblivious(Limits(16, 4))],
    ),
)
def test_extreme_targets(kind: str, growth: DepthWise) -> None:
    case, rng = random_case(1, 300, 4, full=True), np.random.default_rng(1)
    y = {
        "huge": case.data.y * 1e30,
        "tiny": case.data.y * 1e-30,
        "heavy": rng.standard_cauchy(300) * 1e6,
        "equal": np.full(300, 0.1),
        "one differs": np.where(np.arange(300) == 7, 1e20, 1.0),
    }[kind]
    for loss in (losses.SquaredError(), losses.Huber(1.0), losses.AbsoluteError()):
        recipe = Recipe(loss, 4, 0.7, growth, step=automatic(loss))
        ensemble = assert_scored_alike(recipe, Case(case.x, replace(case.data, y=y)), threads=(1, 3))
        assert all(np.isfinite(tree.value).all() for tree in ensemble.trees)
        if kind == "equal":
            assert all(len(tree.value) == 1 and abs(tree.value[0]) < 1e-8 for tree in ensemble.trees)


@pytest.mark.parametrize("backend", [Reference(), TEAMS[2]], ids=["reference", "cpu"])
def test_a_target_beyond_float32_is_refused_and_not_learned_wrongly(backend: Backend) -> None:
    case = random_case(1, 50, 2)
    data = replace(case.data, y=np.where(np.arange(50) == 3, 1e39, 0.0))
    with np.errstate(over="ignore"), pytest.raises(InputError, match="finite"):
        boost(Recipe(losses.SquaredError(), 1), data, backend)


def test_a_backend_that_has_served_other_data_gives_the_same_model() -> None:
    """And a second run gives what the first gave: nothing that a backend keeps may be seen."""
    recipe = Recipe(losses.Logistic(), 4, growth=LeafWise(Limits(15, 6)), sampling=UniformSampling(0.6))
    cases = [random_case(seed, 250, 5, target="binary") for seed in range(3)]
    backend = Cpu(3)
    with eager_threads():
        fresh = [model_bytes(boost(recipe, case.data, Cpu(3), seed=1)) for case in cases]
        for _ in range(2):
            for bins in (lambda data: data, sparse):
                assert [model_bytes(boost(recipe, bins(case.data), backend, seed=1)) for case in cases] == fresh


@pytest.mark.parametrize("sampling", [EveryRow(), UniformSampling(0.5)])
def test_enough_rows_to_share_out_without_any_tuning(sampling: UniformSampling) -> None:
    """40,000 rows: more than the sizes below which one thread works alone, and too many for the definition."""
    case = random_case(4, 40_000, 6, target="3", weights="whole", most_cuts=200)
    recipe = Recipe(losses.Softmax(3), 2, 0.3, DepthWise(Limits(64, 6)), sampling, RandomGroups(5))
    models = {model_bytes(boost(recipe, bins, TEAMS[t])) for t in (1, 2, 4) for bins in (case.data, sparse(case.data))}
    assert len(models) == 1


# on a device


@settings(max_examples=examples(15), deadline=None, derandomize=True)
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
def test_every_composition_on_a_device(
    seed: int, n: int, d: int, sampling: Any, learners: Any, growth: Any, weights: str, target: str, order: str
) -> None:
    loss: Loss = {"real": losses.Quantile(0.7), "binary": losses.Logistic(), "3": losses.Softmax(3)}[target]
    data = random_case(seed, n, d, target=target, weights=weights).data
    recipe = Recipe(loss, 4, 0.3, growth, sampling, learners, automatic(loss))
    assert_parity(recipe, data, "cuda", seed=seed, order=order)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("target", "sampling", "weights"),
    crossed(list(product(["binary", "3"], [EveryRow(), UniformSampling(0.6)])), ["none", "whole"]),
    ids=str,
)
def test_langevin_boosting(weights: str, target: str, sampling: Any, machine: str) -> None:
    data = random_case(8, 400, 4, target=target, weights=weights).data
    loss: Loss = losses.Logistic() if target == "binary" else losses.Softmax(3)
    langevin = Langevin(inverse_temperature=3e3, shrinkage=0.1, allow_unproven=True)
    recipe = Recipe(loss, 5, 0.3, DepthWise(Limits(8, 3)), sampling, step=NewtonStep(), langevin=langevin)
    ensemble = assert_parity(recipe, data, machine)
    assert ensemble.scale < 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("growth", "weights", "target"),
    crossed(
        [DepthWise(Limits(8, 3)), LeafWise(Limits(5, 6)), Oblivious(Limits(16, 4)), DepthWise(Limits(900, 10))],
        ["none", "real", "whole"],
        ["binary", "3"],
    ),
)
def test_shapes_that_are_drawn_at_random(target: str, growth: Any, weights: str) -> None:
    data = random_case(3, 400, 6, target=target, weights=weights).data
    loss: Loss = losses.Logistic() if target == "binary" else losses.Softmax(3)
    langevin = Langevin(inverse_temperature=3e3, shrinkage=0.1, random_from=2)
    learners = RandomGroups(0.5) if weights == "none" else AllLearners()
    sampling = UniformSampling(0.6) if weights == "real" else EveryRow()
    recipe = Recipe(loss, 6, 0.3, growth, sampling, learners, step=GradientStep(), langevin=langevin)
    ensemble = assert_parity(recipe, data, "cuda", order="random")
    assert not any(tree.nodes.gain.any() for tree in ensemble.trees[2 * loss.n_outputs :])


def test_a_round_of_random_shapes_is_one_graph_and_a_small_one() -> None:
    data = random_case(1, 800, 6, target="binary").data
    langevin = Langevin(inverse_temperature=3e3, shrinkage=0.1, random_from=4)
    recipe = Recipe(losses.Logistic(), 1, 0.3, DepthWise(Limits(8, 3)), step=GradientStep(), langevin=langevin)
    rounds = submitted(recipe, data, 10)
    assert rounds[3]["graph"] == 1
    for one in rounds[7:]:
        assert one == {"graph": 1, "graph nodes": rounds[-1]["graph nodes"], "H2D": 1}
    assert rounds[-1]["graph nodes"] < rounds[3]["graph nodes"]


@pytest.mark.parametrize(
    ("growth", "d", "target"), crossed([DepthWise, LeafWise, Oblivious], [7, 40, 1], ["real", "3"], most=1)
)
def test_gains_that_are_compared_with_noise(target: str, growth: Any, d: int) -> None:
    data = random_case(d, 150, d, target=target).data
    loss: Loss = losses.SquaredError() if target == "real" else losses.Softmax(3)
    plain = assert_parity(Recipe(loss, 4, 0.3, growth(Limits(8, 4))), data, "cuda")
    disturbed = Recipe(loss, 4, 0.3, growth(Limits(8, 4, random_strength=1.5)))
    noisy = assert_parity(disturbed, data, "cuda", order="random")
    assert (model_bytes(plain) == model_bytes(noisy)) == (d == 1)


def test_a_langevin_round_is_one_graph_too() -> None:
    data = random_case(1, 800, 6, target="binary").data
    langevin = Langevin(inverse_temperature=3e3, shrinkage=0.1, allow_unproven=True)
    recipe = Recipe(losses.Logistic(), 1, 0.3, DepthWise(Limits(8, 3)), langevin=langevin)
    for one in submitted(recipe, data, 6)[3:]:
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


# the round


@pytest.mark.parametrize("depth", [3, 6, 8])
def test_a_round_is_one_graph_that_waits_for_nothing(depth: int) -> None:
    data = random_case(1, 800, 6, target="binary").data
    rounds = submitted(Recipe(losses.Logistic(), 1, 0.3, DepthWise(Limits(2**depth, depth))), data, 8)
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
    for one in submitted(recipe, data, 6)[2:]:
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
        self, backend: Backend, tree: FittedTree, leaf_of_row: Array, loss: Loss, scores: Array, data: TrainingSet
    ) -> FittedTree:
        if tree.version in self.at:
            return backend.leaf_quantiles(tree, leaf_of_row, loss, scores, data)
        return tree


@pytest.mark.parametrize("at", [(4,), (0, 1, 2, 5), (3, 4, 5, 6)])
def test_a_round_that_goes_another_way_than_the_recorded_one_is_done_from_its_start(at: tuple[int, ...]) -> None:
    data = random_case(2, 500, 4).data
    assert_parity(Recipe(losses.AbsoluteError(), 9, 0.5, DepthWise(Limits(8, 3)), step=Moody(at)), data, "cuda")


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
    monkeypatch.setattr(tree_ring, "SLOTS", 6)
    monkeypatch.setattr("gpuboost.backends.cuda.backend.SLOTS", 6)
    for target, loss in (("real", losses.SquaredError()), ("3", losses.Softmax(3))):
        data = random_case(3, 200, 3, target=target).data
        assert_parity(Recipe(loss, 23, 0.1, DepthWise(Limits(4, 2))), data, "cuda")


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
    ("growth", "order"),
    crossed(
        [DepthWise(Limits(32, 5)), Oblivious(Limits(16, 4)), DepthWise(Limits(2, 1))], ["forward", "reverse", "random"]
    ),
    ids=str,
)
def test_the_last_level_takes_values_and_scores_in(growth: Any, order: str) -> None:
    data = random_case(21, 2_500, 5, weights="whole").data
    runtime = emulated_runtime(order)
    recipe = Recipe(losses.SquaredError(), 4, 0.5, growth)
    expected, scores = trained(recipe, data, Reference())
    found, running = trained(recipe, data, Cuda(runtime))
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
