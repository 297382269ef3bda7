"""One tree for several outputs: the trees of the definition on every machine, and the best splits of exact numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, Case, model_bytes, random_case
from support.cpu_shards import place
from support.examples import crossed, examples
from support.training import MACHINES, assert_parity

from gpuboost import losses
from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, Growth, LeafWise
from gpuboost.keys import Key
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomByLevel, RandomByNode, RandomGroups, Selection
from gpuboost.losses import Loss
from gpuboost.losses.per_output import PerOutput
from gpuboost.multi_output import EveryOutput, OneTree, RandomOutputs, RandomProjection, Sketch, TopOutputs
from gpuboost.recipe import Recipe
from gpuboost.sampling import MVS, EveryRow, ImportanceSampling, Sampling, UniformSampling, smart_first_order
from gpuboost.steps import GradientStep, automatic
from gpuboost.types import Candidates, Drawn, Gradients, Limits, Progress, Target

K, REFERENCE = 4, Reference()
SKETCHES: list[Sketch] = [EveryOutput(), TopOutputs(2), RandomOutputs(2), RandomProjection(2)]
limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([2, 9, 40]),
    max_depth=st.sampled_from([1, 3, 6]),
    min_samples_leaf=st.sampled_from([1, 1, 4]),
    min_child_weight=st.sampled_from([0.0, 0.5]),
    reg_lambda=st.sampled_from([0.0, 1.0]),
    min_split_gain=st.sampled_from([0.0, 0.1]),
)


def with_columns(case: Case, k: int = K) -> Case:
    """The case with k targets a row: its own, and shuffled ones of other sizes."""
    random = np.random.default_rng(0)
    shuffled = [random.permutation(case.data.y) * (0.5 + i) for i in range(k - 1)]
    return replace(case, data=replace(case.data, y=np.column_stack([case.data.y, *shuffled])))


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 30, 200]), st.sampled_from([1, 5]), st.sampled_from([3, 40]),
    st.sampled_from([0.0, 0.4]), st.sampled_from(["none", "real", "whole"]),
    st.one_of(st.builds(DepthWise, limits), st.builds(LeafWise, limits)),
    st.sampled_from([EveryRow(), UniformSampling(0.5)]), st.sampled_from(SKETCHES), st.sampled_from(MACHINES),
)  # fmt: skip
def test_every_tree_is_that_of_the_definition(
    seed: int, n: int, d: int, most_cuts: int, categorical: float, weights: str, growth: Growth, sampling: Sampling,
    sketch: Sketch, machine: str,
) -> None:  # fmt: skip
    case = with_columns(random_case(seed, n, d, most_cuts=most_cuts, categorical=categorical, weights=weights))
    loss = PerOutput(losses.SquaredError(), K)
    assert_parity(Recipe(loss, 2, 0.5, growth, sampling, multi_output=OneTree(sketch)), case.data, machine, seed=seed)


@pytest.mark.parametrize(
    ("loss", "target", "learners", "growth", "sampling", "machine"),
    crossed(
        [
            (PerOutput(losses.Logistic(), K), "binary"),
            (PerOutput(losses.Quantile(0.3), K), "real"),
            (PerOutput(losses.Poisson(), K), "positive"),
            (losses.Softmax(3), "3"),
            (losses.Quantile([0.1, 0.5, 0.9]), "real"),
            (losses.GaussianNLL(), "real"),
        ],
        [AllLearners(), RandomByNode(2), RandomByLevel(2), RandomGroups(0.5)],
        [DepthWise(Limits(12, 4, 2)), LeafWise(Limits(9, 7))],
        [EveryRow(), ImportanceSampling(0.4)],
        MACHINES,
    ),
    ids=lambda value: getattr(value, "name", value if isinstance(value, str) else type(value).__name__),
)
def test_losses_learners_and_drawn_rows(
    loss: Loss, target: str, learners: Selection, growth: Growth, sampling: Sampling, machine: str
) -> None:
    case = random_case(5, 250, 5, target=target, weights="real")
    case = with_columns(case) if isinstance(loss, PerOutput) and target != "positive" else case
    if isinstance(loss, PerOutput) and target == "positive":
        case = replace(case, data=replace(case.data, y=np.column_stack([case.data.y + i for i in range(K)])))
    if isinstance(loss, PerOutput) and target == "binary":
        case = replace(case, data=replace(case.data, y=np.sign(case.data.y)))
    recipe = Recipe(loss, 3, 0.5, growth, sampling, learners, automatic(loss), multi_output=OneTree())
    found = assert_parity(recipe, case.data, machine)
    k = loss.n_outputs
    for first in range(0, len(found.trees), k):
        shapes = [tree.nodes.feature.tobytes() for tree in found.trees[first : first + k]]
        assert len(set(shapes)) == 1
        assert [tree.output for tree in found.trees[first : first + k]] == list(range(k))


@pytest.mark.parametrize("machine", MACHINES)
def test_noise_and_workers_leaves(machine: str) -> None:
    case = with_columns(random_case(1, 200, 4, weights="whole"))
    loss, growth = PerOutput(losses.SquaredError(), K), DepthWise(Limits(8, 3))
    langevin = Langevin(1.0, shrinkage=0.01)
    recipe = Recipe(loss, 4, 0.1, growth, step=GradientStep(), langevin=langevin, multi_output=OneTree(TopOutputs(2)))
    assert_parity(recipe, case.data, machine)


@pytest.mark.parametrize("growth", [DepthWise(Limits(20, 5)), LeafWise(Limits(12, 8, 3)), DepthWise(Limits(2, 1))])
def test_equal_columns_give_the_tree_of_one(growth: Growth) -> None:
    data = random_case(8, 300, 5, categorical=0.0, weights="whole").data
    alone = boost(Recipe(losses.SquaredError(), 4, 0.5, growth), data, TEAMS[1])
    both = replace(data, y=np.column_stack([data.y, data.y]))
    recipe = Recipe(PerOutput(losses.SquaredError(), 2), 4, 0.5, growth, multi_output=OneTree())
    found = boost(recipe, both, TEAMS[3])
    for output in (0, 1):
        own = found.trees[output::2]
        for ours, theirs in zip(own, alone.trees, strict=True):
            assert ours.value.tobytes() == theirs.value.tobytes()
            for name in ("feature", "bin", "missing_left", "left", "right", "cover", "count"):
                assert np.array_equal(getattr(ours.nodes, name), getattr(theirs.nodes, name)), name


@pytest.mark.parametrize("seed", range(4))
def test_a_split_is_the_best_one_of_exact_numbers(seed: int) -> None:
    """All cuts of all columns, with missing values on either side, in exact arithmetic."""
    case = random_case(seed, 60, 3, categorical=0.0, most_cuts=6)
    random = np.random.default_rng(seed)
    g, h = random.normal(size=(2, 60)).astype(np.float32), random.uniform(0.5, 2.0, (2, 60)).astype(np.float32)
    gradients = Gradients(g, h)
    growth = Limits(2, 1, min_child_weight=0.0, reg_lambda=1.0)
    target, candidates = Target(0, None, gradients), Candidates(np.arange(3, dtype=np.int32))
    found = REFERENCE.grow_together(case.data, target, gradients, candidates, growth)[0].nodes

    exact = [integers(gradients, output) for output in range(2)]

    def score(rows: np.ndarray) -> Fraction:
        total = Fraction(0)
        for of_g, of_h, (unit_g, unit_h) in exact:
            both = int(of_g[rows].sum()) * Fraction(unit_g), int(of_h[rows].sum()) * Fraction(unit_h)
            total += both[0] ** 2 / (both[1] + 1)
        return total

    every, best = np.ones(60, bool), Fraction(0)
    for f in range(3):
        codes, b = case.data.bins.columns[f], int(case.data.cuts.n_bins[f])
        for c in range(b):
            for left in (codes <= c, (codes <= c) | (codes == b)):
                if left.any() and not left.all():
                    best = max(best, score(left) + score(~left) - score(every))
    assert found.gain[0] == pytest.approx(float(best), rel=1e-9)


@pytest.mark.parametrize("sketch", [RandomOutputs(3), RandomProjection(3)], ids=repr)
def test_sketches_keep_the_sum_of_squares_in_expectation(sketch: Sketch) -> None:
    random = np.random.default_rng(0)
    g = (random.normal(size=(12, 40)) * np.linspace(0.1, 2.0, 12)[:, None]).astype(np.float32)
    gradients, rows = Gradients(g, np.ones_like(g)), random.random(40) < 0.5
    expected = float((g[:, rows].sum(axis=1, dtype=np.float64) ** 2).sum())
    draws = [sketch.of(REFERENCE, gradients, Key.root(0) / "sketch" / number) for number in range(4_000)]
    squares = [float((draw.g[:, rows].sum(axis=1, dtype=np.float64) ** 2).sum()) for draw in draws]
    error = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - expected) < 4.0 * error
    assert all(draw.g.shape == draw.h.shape == (3, 40) for draw in draws[:3])


def test_sketches_of_many_are_all_outputs_and_the_top_ones_are_the_largest() -> None:
    g = np.array([[1.0, 1.0], [3.0, 0.0], [0.0, 0.5], [2.0, 2.0]], np.float32)
    gradients, key = Gradients(g, 1.0 + g), Key.root(1) / "sketch" / 0
    for sketch in (TopOutputs(4), RandomOutputs(4), RandomProjection(9)):
        assert sketch.of(REFERENCE, gradients, key) is gradients
    found = TopOutputs(2).of(REFERENCE, gradients, key)
    assert found.g.tolist() == g[[1, 3]].tolist()
    assert found.h.tolist() == (1.0 + g)[[1, 3]].tolist()
    nothing = Gradients(np.zeros((3, 2), np.float32), np.ones((3, 2), np.float32))
    assert RandomOutputs(1).of(REFERENCE, nothing, key) is nothing
    halves = RandomProjection(1).of(REFERENCE, gradients, key)
    assert halves.h.tolist() == [[2.5, 1.875]]


def test_a_sketch_draws_anew_in_each_round_and_by_the_seed() -> None:
    case = with_columns(random_case(3, 150, 4), 6)
    loss, growth = PerOutput(losses.SquaredError(), 6), DepthWise(Limits(8, 3))
    recipe = Recipe(loss, 3, 0.5, growth, multi_output=OneTree(RandomProjection(1)))
    models = [model_bytes(boost(recipe, case.data, TEAMS[1], seed=seed)) for seed in (1, 1, 2)]
    assert models[0] == models[1] != models[2]


@pytest.mark.parametrize(
    ("sketch", "growth", "sampling"),
    crossed(
        SKETCHES,
        [DepthWise(Limits(12, 4, 2)), LeafWise(Limits(9, 7))],
        [EveryRow(), UniformSampling(0.5), ImportanceSampling(rate=0.5, variance_control="previous_leaf")],
    ),
    ids=repr,
)
def test_shards_have_the_model_of_one_machine(sketch: Sketch, growth: Growth, sampling: Sampling) -> None:
    case = with_columns(random_case(4, 5_000, 3, categorical=0.4, weights="whole"))
    recipe = Recipe(PerOutput(losses.SquaredError(), K), 2, 0.5, growth, sampling, multi_output=OneTree(sketch))
    expected = model_bytes(boost(recipe, case.data, TEAMS[3], seed=3))
    for ends in ([5_000], [1_700, 5_000], [100, 4_300, 5_000]):
        backend, data = place(case, ends, threads=2)
        assert model_bytes(boost(recipe, data, backend, seed=3)) == expected


@pytest.mark.parametrize("machine", [REFERENCE, TEAMS[3]], ids=["reference", "cpu"])
def test_rows_are_drawn_by_the_norm_of_their_gradients(machine: Backend) -> None:
    """SMART's p in proportion to |g|, and MVS's to sqrt(|g|^2 + kappa |h|^2), are of a row's vectors."""
    case = with_columns(random_case(9, 400, 4))
    loss, growth = PerOutput(losses.SquaredError(), K), DepthWise(Limits(8, 3))
    seen = []
    for sampling in (smart_first_order(0.3, paper=True), MVS(0.3)):
        recipe = Recipe(loss, 3, 0.5, growth, sampling, multi_output=OneTree(RandomProjection(2)))
        drawn: list[Drawn] = []

        def watch(progress: Progress, drawn: list[Drawn] = drawn) -> bool:
            assert progress.drawn is not None
            drawn.append(progress.drawn)
            return False

        boost(recipe, case.data, machine, watch=watch)
        for one in drawn:
            rows, by = one.sample.rows, one.sample.inverse_probability.astype(np.float64)
            g, h = (x[:, rows].astype(np.float64) for x in (one.gradients.g, one.gradients.h))
            norm = np.sqrt((g**2).sum(axis=0) + sampling.kappa * (h**2).sum(axis=0))
            below = by > 1.01  # where p is not clipped, neither to 1 nor to the floor
            below &= by < 0.99 * by.max()
            seen.append(below.sum())
            assert np.ptp(norm[below] * by[below]) < 1e-4 * norm.max()
    assert min(seen) > 20


def test_each_output_has_noise_of_its_own() -> None:
    """Equal targets share every shape, and their leaf values differ by independent noise of Langevin boosting."""
    y = np.random.default_rng(0).normal(size=(400, 1)) * np.ones(2)
    data = replace(random_case(3, 400, 3, categorical=0.0).data, y=y)
    langevin = Langevin(1.0, shrinkage=0.1, allow_unproven=True)
    recipe = Recipe(
        PerOutput(losses.SquaredError(), 2), 60, 0.1, DepthWise(Limits(4, 2)), step=GradientStep(), langevin=langevin,
        multi_output=OneTree(),
    )  # fmt: skip
    trees = boost(recipe, data, TEAMS[3]).trees
    first, second = (np.concatenate([t.value[t.nodes.is_leaf] for t in trees[output::2]]) for output in (0, 1))
    assert all(a.nodes is b.nodes for a, b in zip(trees[::2], trees[1::2], strict=True))
    assert (first != second).all()
    quiet = boost(replace(recipe, langevin=Langevin(1e12, shrinkage=0.1, allow_unproven=True)), data, TEAMS[3]).trees
    exact = np.concatenate([t.value[t.nodes.is_leaf] for t in quiet[::2]])
    assert np.std(first) > 3.0 * np.std(exact)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.3
