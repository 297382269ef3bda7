"""Trees under monotonic constraints: every backend grows the tree of the definition, and that is the right one."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    node_bytes,
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
from gpuboost.growth import DepthWise, Growth, LeafWise
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomByNode, RandomGroups, RandomLearners, Selection
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, ImportanceSampling, Sampling, UniformSampling
from gpuboost.steps import GradientStep, LineSearchStep, NewtonStep, QuantileStep, Step, automatic
from gpuboost.types import Gradients, Limits, Nodes

seeds = st.integers(0, 2**32 - 1)
ROWS = 13_000  # four stretches, the last of which is not whole
limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([2, 5, 31, 500]),
    max_depth=st.sampled_from([1, 2, 4, 9]),
    min_samples_leaf=st.sampled_from([1, 1, 3]),
    min_child_weight=st.sampled_from([0.0, 1e-3, 1.0]),
    reg_lambda=st.sampled_from([0.0, 1.0, 10.0]),
    min_split_gain=st.sampled_from([0.0, 0.01]),
)
few_limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([2, 9, 40]),
    max_depth=st.sampled_from([1, 2, 4, 7]),
    min_samples_leaf=st.sampled_from([1, 1, 3]),
    reg_lambda=st.sampled_from([0.0, 1.0, 10.0]),
    min_split_gain=st.sampled_from([0.0, 0.01]),
)
growths = st.one_of(st.builds(DepthWise, limits), st.builds(LeafWise, limits))


@settings(max_examples=examples(150))
@given(
    seeds, st.sampled_from([2, 30, 150, 400]), st.sampled_from([1, 3, 9]), st.sampled_from([3, 20, 254]),
    st.sampled_from([0.0, 0.3]), st.booleans(), st.sampled_from(GRADIENT_KINDS), growths,
    st.sampled_from([None, 0.0, 0.5]), st.booleans(), st.sampled_from([3, 40, 10**6]),
)  # fmt: skip
def test_every_backend_grows_the_same_tree(
    seed: int, n: int, d: int, most_cuts: int, categorical: float, whole: bool, kind: str, growth: Growth,
    drawn: float | None, subset: bool, narrow: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    data = random_case(
        seed, n, d, most_cuts=most_cuts, categorical=categorical, weights="whole" if whole else "none"
    ).data
    gradients = random_gradients(rng, n, kind, data.multiplicity)
    rows = None if drawn is None else np.flatnonzero(rng.random(n) < drawn).astype(np.int32)
    features = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False)).astype(np.int32) if subset else None
    with eager_threads(rows=8, narrow=narrow):
        assert_same_tree(data, constrained(growth, data.cuts, seed), gradients, rows, features)


@pytest.mark.parametrize(
    ("learners", "growth", "sampling", "machine"),
    crossed(
        [
            (AllLearners(), LeafWise(Limits(20, 9))),
            (RandomGroups(2), DepthWise(Limits(16, 4, random_strength=1.0))),
            (RandomByNode(3), LeafWise(Limits(9, 6, random_strength=0.5))),
            (RandomLearners(6), DepthWise(Limits(2, 1))),
        ],
        [EveryRow(), UniformSampling(0.4), ImportanceSampling(0.3)],
        [*MACHINES, "shards"],
    ),
)
def test_every_machine_makes_the_same_model(
    sampling: Sampling, learners: Selection, growth: Growth, machine: str
) -> None:
    case = random_case(5, 400, 6, categorical=0.0, weights="real")
    growth = constrained(growth, case.data.cuts, 5)
    loss = losses.Quantile(0.3) if isinstance(growth, LeafWise) else losses.SquaredError()
    recipe = Recipe(loss, 5, 0.4, growth, sampling, learners, automatic(loss))
    if machine != "shards":
        assert_parity(recipe, case.data, machine, seed=3, order="random", threads=(1, 2, 3, 4))
        return
    assert_shard_parity(recipe, case)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(
    seeds, st.sampled_from([2, 100, 700]), st.sampled_from([1, 4, 9]), st.sampled_from([0.0, 0.3]),
    st.sampled_from(["none", "real", "whole"]),
    st.one_of(st.builds(DepthWise, few_limits), st.builds(LeafWise, few_limits)),
    st.sampled_from([EveryRow(), UniformSampling(0.5), ImportanceSampling(0.3)]),
    st.sampled_from(["forward", "random"]),
)  # fmt: skip
def test_every_tree_and_value_on_a_device(
    seed: int, n: int, d: int, categorical: float, weights: str, growth: Growth, sampling: Sampling, order: str
) -> None:
    data = random_case(seed, n, d, categorical=categorical, weights=weights).data
    recipe = Recipe(losses.SquaredError(), 3, 0.7, constrained(growth, data.cuts, seed), sampling)
    assert_parity(recipe, data, "cuda", order=order)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "step"),
    [
        (losses.Quantile(0.3), QuantileStep()),
        (losses.Huber(), LineSearchStep("leaf")),
        (losses.Huber(), LineSearchStep("tree")),
        (losses.Quantile(0.3), LineSearchStep("leaf")),
        (losses.Poisson(), NewtonStep()),
    ],
)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("growth", [DepthWise(Limits(16, 5)), LeafWise(Limits(9, 6, 3))])
def test_values_that_take_steps_of_their_own(loss: losses.Loss, step: Step, growth: Growth, machine: str) -> None:
    data = random_case(3, 400, 5, categorical=0.0, target="positive").data
    assert_parity(Recipe(loss, 4, 0.6, constrained(growth, data.cuts, 1), step=step), data, machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_noise_is_held_to_the_order(machine: str) -> None:
    data = random_case(5, 300, 4, categorical=0.0).data
    growth = constrained(DepthWise(Limits(16, 4, reg_lambda=0.0)), data.cuts, 3)
    noisy = Langevin(allow_unproven=True)
    assert_parity(Recipe(losses.SquaredError(), 4, 0.3, growth, step=GradientStep(), langevin=noisy), data, machine)


@pytest.mark.slow
@pytest.mark.parametrize("growth", [DepthWise(Limits(16, 5)), LeafWise(Limits(9, 6, 40))])
def test_several_gpus(growth: Growth) -> None:
    case = random_case(2, ROWS, 5, categorical=0.0, missing=0.05)
    loss = losses.Quantile(0.3) if isinstance(growth, LeafWise) else losses.SquaredError()
    step = QuantileStep() if isinstance(growth, LeafWise) else NewtonStep()
    recipe = Recipe(loss, 3, 0.5, constrained(growth, case.data.cuts, 4), step=step)
    expected, scores = trained(recipe, case.data, TEAMS[1])
    for size in (1, 4):
        backend, data = gpu_place(case, whole_stretches(ROWS, size), World())
        found, running = trained(recipe, data, backend)
        assert model_bytes(found) == model_bytes(expected)
        assert running == scores


@pytest.mark.parametrize("growth", [DepthWise(Limits(32, 5)), LeafWise(Limits(20, 8, min_samples_leaf=3))])
@pytest.mark.parametrize("backend", [Reference(), TEAMS[2]])
def test_constraints_that_bind_nowhere_change_no_bit(growth: Growth, backend: Reference) -> None:
    """Values of a column that rises with the target keep their order by themselves."""
    rng = np.random.default_rng(0)
    codes = np.sort(rng.integers(0, 30, 300))
    case = random_case(1, 300, 3, categorical=0.0, missing=0.0, full=True, most_cuts=30)
    steep = Gradients((-codes.astype(np.float32))[None], np.ones((1, 300), np.float32))
    columns = case.data.bins.columns.copy()
    columns[0] = np.minimum(codes, case.data.cuts.n_bins[0] - 1)
    bins = replace(case.data.bins, rows=np.ascontiguousarray(columns.T), columns=columns)
    data, only = replace(case.data, bins=bins), np.zeros(1, np.int32)
    free = grow(backend, growth, data, steep, features=only)
    rising = type(growth)(replace(growth.limits, directions=(1, 0, 0)))
    assert node_bytes(grow(backend, rising, data, steep, features=only).nodes) == node_bytes(free.nodes)
    falling = type(growth)(replace(growth.limits, directions=(-1, 0, 0)))
    assert grow(backend, falling, data, steep, features=only).nodes.feature.tolist() == [-1]


def leaf(g: int, h: int, low: Fraction | None, high: Fraction | None) -> tuple[Fraction, Fraction]:
    """Value of a leaf with reg_lambda 1, and what it takes off the loss, doubled."""
    value = Fraction(-g, h + 1)
    value = value if low is None or value > low else low
    value = value if high is None or value < high else high
    return value, -(2 * g * value + (h + 1) * value * value)


Bound = Fraction | None


@dataclass(frozen=True)
class Exact:
    """A node in exact arithmetic: two features, the first of which has the direction."""

    codes: np.ndarray
    g: np.ndarray
    h: np.ndarray
    n_bins: list[int]
    direction: int

    def splits(self, rows: np.ndarray, low: Bound, high: Bound) -> dict[tuple[int, int], tuple[Fraction, ...]]:
        """Gain and the values of both sides, of every split that keeps the order."""
        total, found = self.sums(rows), {}
        for f, b in enumerate(self.n_bins):
            for cut in range(b - 1):
                left = rows & (self.codes[:, f] <= cut)
                if not left.any() or (left == rows).all() or (low is not None and low == high):
                    continue
                g, h = self.sums(left)
                a, c = leaf(g, h, low, high), leaf(total[0] - g, total[1] - h, low, high)
                if f == 1 or self.direction * (a[0] - c[0]) <= 0:
                    found[f, cut] = a[1] + c[1] - leaf(*total, low, high)[1], a[0], c[0]
        return found

    def sums(self, rows: np.ndarray) -> tuple[int, int]:
        return int(self.g[rows].sum()), int(self.h[rows].sum())

    def check(self, nodes: Nodes, v: int, rows: np.ndarray, low: Bound = None, high: Bound = None) -> None:
        """Of node v, and of its children if it is the root."""
        found = self.splits(rows, low, high)
        best = max((gain for gain, _, _ in found.values()), default=Fraction(0))
        if best <= Fraction(1, 10**9):
            assert nodes.feature[v] == -1
            return
        f, cut = int(nodes.feature[v]), int(nodes.bin[v])
        gain, a, c = found[f, cut]
        assert float(gain) == pytest.approx(float(best), rel=1e-9, abs=1e-12)
        assert nodes.gain[v] == pytest.approx(float(best), rel=1e-9, abs=1e-12)
        if v == 0:
            left, below = self.codes[:, f] <= cut, (None, (a + c) / 2)
            sides = (below, below[::-1])[:: self.direction] if f == 0 else ((None, None), (None, None))
            self.check(nodes, int(nodes.left[0]), left, *sides[0])
            self.check(nodes, int(nodes.right[0]), ~left, *sides[1])


@settings(max_examples=examples(60))
@given(seeds, st.integers(4, 60), st.sampled_from([1, -1]))
def test_a_split_within_bounds_is_the_best_of_all_that_keep_the_order(seed: int, n: int, direction: int) -> None:
    data = random_case(seed, n, 2, categorical=0.0, missing=0.0, most_cuts=5).data
    rng, codes = np.random.default_rng(seed), dense_rows(data.bins).astype(int)
    g, h = rng.integers(-3, 4, n), rng.integers(1, 3, n)
    exact = Exact(codes, g, h, data.cuts.n_bins.tolist(), direction)
    gradients = Gradients(g.astype(np.float32)[None], h.astype(np.float32)[None])
    growth = DepthWise(Limits(4, 2, 1, 0.0, 1.0, directions=(direction, 0)))
    for backend in (Reference(), TEAMS[1]):
        exact.check(grow(backend, growth, data, gradients).nodes, 0, np.ones(n, bool))
