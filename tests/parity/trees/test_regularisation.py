"""reg_alpha, max_delta_step, path_smooth: every machine grows the tree of the definition, the best in exact numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from emulator.nccl import World
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import (
    GRADIENT_KINDS,
    TEAMS,
    assert_same_tree,
    constrained,
    eager_threads,
    grow,
    model_bytes,
    random_case,
    random_gradients,
)
from support.cpu_shards import assert_shard_parity
from support.examples import crossed, examples
from support.gpu_shards import place as gpu_place
from support.gpu_shards import whole_stretches
from support.training import MACHINES, assert_parity, trained

from gpuboost import losses
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomByNode, RandomLearners, Selection
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, ImportanceSampling, Sampling, UniformSampling
from gpuboost.steps import GradientStep
from gpuboost.types import Array, Cuts, DenseBins, Gradients, Interactions, Limits, TrainingSet

seeds = st.integers(0, 2**32 - 1)
limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([2, 9, 40]),
    max_depth=st.sampled_from([1, 3, 6]),
    min_samples_leaf=st.sampled_from([1, 1, 3]),
    reg_lambda=st.sampled_from([0.0, 1.0]),
    random_strength=st.sampled_from([0.0, 0.0, 1.0]),
    reg_alpha=st.sampled_from([0.0, 0.5, 4.0]),
    max_delta_step=st.sampled_from([0.0, 0.05, 0.4]),
    path_smooth=st.sampled_from([0.0, 2.0, 50.0]),
)
growths = st.one_of(st.builds(DepthWise, limits), st.builds(LeafWise, limits), st.builds(Oblivious, limits))


@settings(max_examples=examples(60))
@given(
    seeds, st.sampled_from([2, 30, 150, 400]), st.sampled_from([1, 5]), st.sampled_from([3, 20, 254]),
    st.sampled_from([0.0, 0.3]), st.booleans(), st.sampled_from(GRADIENT_KINDS), growths, st.sampled_from([None, 0.5]),
    st.sampled_from([3, 40, 10**6]),
)  # fmt: skip
def test_every_backend_grows_the_same_tree(
    seed: int, n: int, d: int, most_cuts: int, categorical: float, whole: bool, kind: str, growth: Growth,
    drawn: float | None, narrow: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    weights = "whole" if whole else "none"
    data = random_case(seed, n, d, most_cuts=most_cuts, categorical=categorical, weights=weights).data
    gradients = random_gradients(rng, n, kind, data.multiplicity)
    rows = None if drawn is None else np.flatnonzero(rng.random(n) < drawn).astype(np.int32)
    with eager_threads(rows=8, narrow=narrow):
        assert_same_tree(data, growth, gradients, rows)


@pytest.mark.parametrize(
    ("learners", "growth", "sampling", "machine"),
    crossed(
        [
            (AllLearners(), LeafWise(Limits(20, 9, reg_alpha=2.0))),
            (RandomByNode(3), DepthWise(Limits(16, 4, random_strength=1.0, max_delta_step=0.1))),
            (AllLearners(), Oblivious(Limits(16, 4, 2, reg_alpha=1.0, max_delta_step=0.3))),
            (RandomLearners(20), DepthWise(Limits(2, 1, reg_alpha=1.0))),
            (AllLearners(), DepthWise(Limits(16, 5, 3, path_smooth=9.0))),
            (RandomByNode(3), LeafWise(Limits(9, 9, reg_alpha=0.5, path_smooth=3.0, random_strength=1.0))),
            (AllLearners(), Oblivious(Limits(16, 4, max_delta_step=0.3, path_smooth=9.0))),
        ],
        [EveryRow(), UniformSampling(0.4), ImportanceSampling(0.3), UniformSampling(0.5, variance_control="none")],
        [*MACHINES, "shards"],
        most=4,
    ),
)
def test_every_machine_makes_the_same_model(
    sampling: Sampling, learners: Selection, growth: Growth, machine: str
) -> None:
    categorical = 0.0 if isinstance(learners, RandomLearners) else 0.3
    weights = "whole" if growth.limits.path_smooth else "real"
    case = random_case(5, 400, 6, categorical=categorical, weights=weights)
    recipe = Recipe(losses.SquaredError(), 4, 0.4, growth, sampling, learners)
    if machine != "shards":
        model = assert_parity(recipe, case.data, machine, seed=3, order="random", threads=(1, 2, 4))
        most = growth.limits.largest_value
        assert max(float(np.abs(tree.value).max()) for tree in model.trees) <= most
        return
    assert_shard_parity(recipe, case)


@pytest.mark.slow
@settings(max_examples=examples(16), deadline=None, derandomize=True)
@given(
    seeds, st.sampled_from([2, 100, 500]), st.sampled_from([1, 5]), st.sampled_from([0.0, 0.3]),
    st.sampled_from(["none", "real", "whole"]), growths, st.sampled_from(["forward", "random"]),
)  # fmt: skip
def test_every_tree_and_value_on_a_device(
    seed: int, n: int, d: int, categorical: float, weights: str, growth: Growth, order: str
) -> None:
    data = random_case(seed, n, d, categorical=categorical, weights=weights).data
    assert_parity(Recipe(losses.SquaredError(), 2, 0.7, growth), data, "cuda", order=order)


@pytest.mark.slow
@pytest.mark.parametrize("path_smooth", [0.0, 6.0])
@pytest.mark.parametrize("machine", MACHINES)
def test_with_constraints_classes_and_noise(machine: str, path_smooth: float) -> None:
    case = random_case(3, 300, 6, categorical=0.0, target="3")
    both = Limits(16, 5, reg_alpha=0.5, max_delta_step=0.5, path_smooth=path_smooth)
    assert_parity(Recipe(losses.Softmax(3), 2, 0.6, DepthWise(both)), case.data, machine)
    data = random_case(3, 300, 6, categorical=0.0).data
    joined = replace(both, interactions=Interactions(((0, 1, 2), (2, 3, 4, 5))))
    assert_parity(Recipe(losses.SquaredError(), 3, 0.6, constrained(LeafWise(joined), data.cuts, 1)), data, machine)
    noisy = Langevin(allow_unproven=True)
    recipe = Recipe(losses.SquaredError(), 3, 0.3, DepthWise(both), step=GradientStep(), langevin=noisy)
    assert_parity(recipe, data, machine)
    assert_parity(replace(recipe, langevin=replace(noisy, random_from=1)), data, machine)


@pytest.mark.slow
@pytest.mark.parametrize("growth", [DepthWise, Oblivious])
def test_several_gpus(growth: type[Growth]) -> None:
    rows = 9_000
    case = random_case(2, rows, 4, categorical=0.0, missing=0.05)
    held = Limits(16, 4, reg_alpha=30.0, max_delta_step=0.2, path_smooth=200.0)
    recipe = Recipe(losses.SquaredError(), 2, 0.5, growth(held))  # type: ignore[call-arg]
    expected, scores = trained(recipe, case.data, TEAMS[1])
    backend, data = gpu_place(case, whole_stretches(rows, 3), World())
    found, running = trained(recipe, data, backend)
    assert model_bytes(found) == model_bytes(expected)
    assert running == scores


@pytest.mark.parametrize("machine", ["reference", "cpu"])
@pytest.mark.parametrize("growth", [DepthWise, Oblivious])
def test_the_values_of_a_path_by_hand(machine: str, growth: type[Growth]) -> None:
    """8 rows, h = 1, lambda 0 and s = 4. The root has -G / 8 = 2, and its sides of 4 rows 0 and 4, drawn half way to 2.

    The right one, of value 3, has sides of 2 rows and values 2 and 6: a third of these and two thirds of 3. The left
    one, of value 1, has no gain of its own; where it shares the split, its sides have two thirds of 1.
    """
    x = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 0.0, 1.0, 1.0)])
    y = np.array([0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 6.0, 6.0])
    backend = Reference() if machine == "reference" else TEAMS[1]
    data = small(x, y)
    gradients = Gradients(-y.astype(np.float32)[None], np.ones((1, 8), np.float32))
    limits = Limits(4, 2, reg_lambda=0.0, path_smooth=4.0)
    structure = grow(backend, growth(limits), data, gradients)  # type: ignore[call-arg]
    tree, leaf_of_row = backend.leaf_values(structure, gradients, data, limits, 0)
    assert structure.nodes.feature[:3].tolist() == [0, 1 if growth is Oblivious else -1, 1]
    # -(v (2 G + H v)): the root -(2 (-32 + 16)), its sides 1 with G = 0 and 3 with G = -16
    assert structure.nodes.gain[0] == pytest.approx(-4.0 + (96.0 - 36.0) - 32.0)
    values = tree.value[leaf_of_row]
    assert values[4:] == pytest.approx([(2 + 2 * 3) / 3] * 2 + [(6 + 2 * 3) / 3] * 2)
    assert values[:4] == pytest.approx([2 / 3 if growth is Oblivious else 1.0] * 4)


def test_a_row_of_weight_3_is_three_rows() -> None:
    rng = np.random.default_rng(0)
    x, y, times = rng.integers(0, 9, (60, 3)).astype(float), rng.normal(size=60), rng.integers(1, 4, 60)
    limits = Limits(9, 4, path_smooth=7.0)
    recipe = Recipe(losses.SquaredError(), 3, 0.5, DepthWise(limits))
    weighted = replace(small(x, y), multiplicity=times.astype(np.int32))
    repeated = small(np.repeat(x, times, axis=0), np.repeat(y, times))
    a, b = (boost(recipe, data, Reference(), seed=0) for data in (weighted, repeated))
    for one, other in zip(a.trees, b.trees, strict=True):
        assert one.value.tobytes() == other.value.tobytes()


def small(x: Array, y: Array) -> TrainingSet:
    """Rows of the numbers 0, 1, ... as their own bins."""
    codes, values = np.ascontiguousarray(x, np.uint8), np.arange(float(x.max()))
    cuts = Cuts((values + 0.5,) * x.shape[1], (None,) * x.shape[1])
    return TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, y)


def leaf(g: int, h: int, alpha: int, most: Fraction | None) -> tuple[Fraction, Fraction]:
    """Value of a leaf with reg_lambda 1, and what it takes off the loss with alpha |value| added, doubled."""
    pull = max(abs(g) - alpha, 0) * (1 if g > 0 else -1)
    value = Fraction(-pull, h + 1)
    value = value if most is None else min(max(value, -most), most)
    return value, -(2 * g * value + (h + 1) * value * value + 2 * alpha * abs(value))


@settings(max_examples=examples(60))
@given(seeds, st.integers(4, 60), st.sampled_from([0, 1, 3]), st.sampled_from([None, Fraction(1, 4), Fraction(1)]))
def test_a_split_is_the_best_one_and_values_minimise_the_penalised_loss(
    seed: int, n: int, alpha: int, most: Fraction | None
) -> None:
    data = random_case(seed, n, 2, categorical=0.0, missing=0.0, most_cuts=5).data
    rng, codes = np.random.default_rng(seed), dense_rows(data.bins).astype(int)
    g, h = rng.integers(-3, 4, n), rng.integers(1, 3, n)
    found = {(-1, 0): Fraction(0)}
    whole = leaf(int(g.sum()), int(h.sum()), alpha, most)[1]
    for f, b in enumerate(data.cuts.n_bins.tolist()):
        for cut in range(b - 1):
            left = codes[:, f] <= cut
            if left.any() and not left.all():
                sides = (leaf(int(g[some].sum()), int(h[some].sum()), alpha, most)[1] for some in (left, ~left))
                found[f, cut] = sum(sides, -whole)
    gradients = Gradients(g.astype(np.float32)[None], h.astype(np.float32)[None])
    given_limits = Limits(2, 1, 1, 0.0, 1.0, reg_alpha=float(alpha), max_delta_step=float(most or 0))
    for backend in (Reference(), TEAMS[1]):
        for growth in (DepthWise(given_limits), Oblivious(given_limits)):
            structure = grow(backend, growth, data, gradients)
            nodes = structure.nodes
            best = max(found.values())
            if best <= Fraction(1, 10**9):
                assert nodes.feature.tolist() == [-1]
            else:
                assert float(found[int(nodes.feature[0]), int(nodes.bin[0])]) == pytest.approx(float(best), rel=1e-9)
                assert nodes.gain[0] == pytest.approx(float(best), rel=1e-9)
            tree, leaf_of_row = backend.leaf_values(structure, gradients, data, given_limits, 0)
            for v in np.unique(leaf_of_row):
                rows = leaf_of_row == v
                value = leaf(int(g[rows].sum()), int(h[rows].sum()), alpha, most)[0]
                assert tree.value[v] == pytest.approx(float(value), rel=1e-9, abs=1e-12)
