"""Feature costs and feature weights: every machine that offers them makes the model of the definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulator import emulated_runtime
from emulator.nccl import World
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import GRADIENT_KINDS, TEAMS, assert_same_tree, eager_threads, model_bytes, random_case
from support.builders import random_gradients as gradients_of
from support.cpu_shards import assert_shard_parity
from support.examples import crossed, examples
from support.gpu_shards import place as gpu_place
from support.gpu_shards import whole_stretches
from support.training import MACHINES, assert_parity

from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.boosting import boost
from gpuboost.errors import RecipeError
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious, SignStump
from gpuboost.learners import AllLearners, RandomByLevel, RandomByNode, RandomGroups, Selection, weighted
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, ImportanceSampling, Sampling
from gpuboost.types import ColumnCosts, Limits, SplitCosts

COSTS = ColumnCosts((0.0, 30.0, 5.0, 15.0, 20.0, 10.0), 0.01)
WEIGHTS = (1.0, 0.0, 3.0, 0.5, 8.0, 1.0)
seeds = st.integers(0, 2**32 - 1)
limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([2, 4, 9, 40]),
    max_depth=st.sampled_from([1, 2, 4]),
    min_samples_leaf=st.sampled_from([1, 1, 3]),
    min_split_gain=st.sampled_from([0.0, 0.5]),
    random_strength=st.sampled_from([0.0, 0.0, 1.0]),
    path_smooth=st.sampled_from([0.0, 0.0, 5.0]),
)
growths = st.one_of(st.builds(DepthWise, limits), st.builds(LeafWise, limits), st.builds(Oblivious, limits))


@settings(max_examples=examples(60))
@given(
    seeds, st.sampled_from([2, 30, 150, 400]), st.sampled_from([3, 20, 254]), st.sampled_from([0.0, 0.3]),
    st.booleans(), st.sampled_from(GRADIENT_KINDS), growths, st.sampled_from([None, 0.5]), st.sampled_from([3, 10**6]),
    st.sampled_from([0.0, 0.01, 1.0]), st.sampled_from([0.0, 0.1, 5.0]),
)  # fmt: skip
def test_every_cpu_grows_the_same_tree(
    seed: int, n: int, most_cuts: int, categorical: float, whole: bool, kind: str, growth: Growth, drawn: float | None,
    narrow: int, by_row: float, by_feature: float,
) -> None:  # fmt: skip
    rng, weights = np.random.default_rng(seed), "whole" if whole else "none"
    data = random_case(seed, n, 5, most_cuts=most_cuts, categorical=categorical, weights=weights).data
    gradients = gradients_of(rng, n, kind, data.multiplicity)
    rows = None if drawn is None else np.flatnonzero(rng.random(n) < drawn).astype(np.int32)
    costs = SplitCosts(by_feature * rng.exponential(size=data.cuts.n_features), by_row)
    with eager_threads(rows=8, narrow=narrow):
        assert_same_tree(data, growth, gradients, rows, costs=costs)


@pytest.mark.parametrize("machine", ["cpu", "shards"])
@pytest.mark.parametrize(
    ("learners", "growth", "sampling"),
    crossed(
        [
            (AllLearners(), LeafWise(Limits(12, 9))),
            (RandomGroups(4), DepthWise(Limits(16, 4, random_strength=1.0))),
            (RandomByNode(3), LeafWise(Limits(9, 6))),
            (AllLearners(), Oblivious(Limits(16, 4))),
            (AllLearners(), DepthWise(Limits(2, 1))),
            (AllLearners(), SignStump(Limits(2, 1))),
        ],
        [EveryRow(), ImportanceSampling(0.3)],
    ),
)
def test_every_machine_on_the_cpu_makes_the_same_model(
    sampling: Sampling, learners: Selection, growth: Growth, machine: str
) -> None:
    case = random_case(5, 400, 6, categorical=0.3, weights="real")
    charged = type(growth)(replace(growth.limits, costs=COSTS))
    recipe = Recipe(losses.SquaredError(), 5, 0.4, charged, sampling, learners)
    if machine == "cpu":
        assert_parity(recipe, case.data, machine, seed=3, threads=(1, 2, 4))
        return
    expected = assert_shard_parity(recipe, case)
    assert expected != model_bytes(boost(replace(recipe, growth=growth), case.data, TEAMS[1], seed=3))


def test_a_gpu_refuses_costs() -> None:
    data = random_case(5, 40, 6, categorical=0.0).data
    recipe = Recipe(losses.SquaredError(), 1, growth=DepthWise(Limits(4, 2, costs=COSTS)))
    with pytest.raises(RecipeError, match="feature_costs: trees with feature costs are grown on the CPU"):
        boost(recipe, data, Cuda(emulated_runtime()))


@pytest.mark.parametrize(
    ("learners", "growth", "sampling", "machine"),
    crossed(
        [
            (RandomByNode(3), LeafWise(Limits(20, 9))),
            (RandomByNode(0.5), DepthWise(Limits(16, 4, random_strength=1.0))),
            (RandomByLevel(3), Oblivious(Limits(32, 5, 2))),
            (RandomByLevel(2), DepthWise(Limits(16, 4))),
        ],
        [EveryRow(), ImportanceSampling(0.3)],
        [*MACHINES, "shards"],
    ),
)
def test_every_machine_draws_by_weights(sampling: Sampling, learners: Selection, growth: Growth, machine: str) -> None:
    case = random_case(5, 400, 6, categorical=0.3, weights="real")
    recipe = Recipe(losses.SquaredError(), 5, 0.4, growth, sampling, weighted(learners, WEIGHTS))
    if machine in MACHINES:
        found = assert_parity(recipe, case.data, machine, seed=3, order="random", threads=(1, 3))
        assert not any((tree.nodes.feature == 1).any() for tree in found.trees)
        return
    assert_shard_parity(recipe, case)


@pytest.mark.slow
def test_shards_on_gpus_draw_by_weights() -> None:
    case = random_case(5, 5000, 6, categorical=0.3, weights="whole")
    drawn = weighted(RandomByNode(3), WEIGHTS)
    recipe = Recipe(losses.SquaredError(), 4, 0.4, DepthWise(Limits(8, 3)), EveryRow(), drawn)
    backend, data = gpu_place(case, whole_stretches(5000, 2), World())
    expected = model_bytes(boost(recipe, case.data, TEAMS[1], seed=3))
    assert model_bytes(boost(recipe, data, backend, seed=3)) == expected
