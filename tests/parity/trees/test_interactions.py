"""Trees under interaction constraints: every machine grows the tree of the definition, whose paths keep to the sets."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

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
from gpuboost.backends.numerics.interactions import PathRule
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious
from gpuboost.langevin import Langevin
from gpuboost.learners import AllLearners, RandomByLevel, RandomByNode, RandomGroups, Selection
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, ImportanceSampling, Sampling, UniformSampling
from gpuboost.steps import GradientStep
from gpuboost.types import Interactions, Limits, Nodes

seeds = st.integers(0, 2**32 - 1)
PAIRS = Interactions(tuple(combinations(range(9), 2)))  # more sets than there are bits in a word
RULES = (
    Interactions(((0, 1), (2, 3, 4, 5))),
    Interactions(((0, 1, 2), (1, 2, 3), (5,))),
    PAIRS,
    Interactions((tuple(range(9)),), 1),
    Interactions((tuple(range(9)),), 2),
    Interactions(((0, 1, 2, 3), (3, 4, 5)), 2, (0, 0, 1, 2, 2, 3, 4, 5, 6)),
)
limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([5, 31, 500]),
    max_depth=st.sampled_from([2, 4, 7]),
    min_samples_leaf=st.sampled_from([1, 1, 3]),
    random_strength=st.sampled_from([0.0, 0.0, 1.0]),
)
growths = st.one_of(st.builds(DepthWise, limits), st.builds(LeafWise, limits), st.builds(Oblivious, limits))


def under(growth: Growth, rule: Interactions, d: int) -> Growth:
    """The growth under the rule, of which columns below d are kept."""
    sets = tuple(tuple(f for f in members if f < d) for members in rule.sets)
    same = None if rule.same is None else rule.same[:d]
    return type(growth)(replace(growth.limits, interactions=Interactions(sets, rule.most, same)))


def paths_of(nodes: Nodes) -> list[tuple[int, ...]]:
    """The features from the root to each inner node."""
    above: dict[int, tuple[int, ...]] = {0: ()}
    for v in np.flatnonzero(nodes.feature >= 0).tolist():
        above[v] = (*above[v], int(nodes.feature[v]))
        above[int(nodes.left[v])] = above[int(nodes.right[v])] = above[v]
    return [above[v] for v in np.flatnonzero(nodes.feature >= 0).tolist()]


@settings(max_examples=examples(60))
@given(
    seeds, st.sampled_from([2, 30, 150, 400]), st.sampled_from([3, 9]), st.sampled_from([3, 20, 254]),
    st.sampled_from([0.0, 0.3]), st.booleans(), st.sampled_from(GRADIENT_KINDS), growths, st.sampled_from(RULES),
    st.sampled_from([None, 0.5]), st.booleans(), st.sampled_from([3, 40, 10**6]),
)  # fmt: skip
def test_every_backend_grows_the_same_tree_whose_paths_keep_to_the_sets(
    seed: int, n: int, d: int, most_cuts: int, categorical: float, whole: bool, kind: str, growth: Growth,
    rule: Interactions, drawn: float | None, subset: bool, narrow: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    weights = "whole" if whole else "none"
    data = random_case(seed, n, d, most_cuts=most_cuts, categorical=categorical, weights=weights).data
    gradients = random_gradients(rng, n, kind, data.multiplicity)
    rows = None if drawn is None else np.flatnonzero(rng.random(n) < drawn).astype(np.int32)
    features = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False)).astype(np.int32) if subset else None
    growth = under(growth, rule, d)
    with eager_threads(rows=8, narrow=narrow):
        tree = assert_same_tree(data, growth, gradients, rows, features)
    constraints = growth.limits.interactions
    assert constraints is not None
    same = constraints.same or tuple(range(d))
    for path in paths_of(tree.nodes):
        assert any(set(path) <= set(members) for members in constraints.sets)
        assert not constraints.most or len({same[f] for f in path}) <= constraints.most


@pytest.mark.parametrize(
    ("learners", "growth", "rule", "sampling", "machine"),
    crossed(
        [
            (AllLearners(), LeafWise(Limits(20, 9)), RULES[1]),
            (RandomGroups(4), DepthWise(Limits(16, 4, random_strength=1.0)), RULES[0]),
            (RandomByNode(3), LeafWise(Limits(9, 6)), RULES[3]),
            (RandomByNode(0.7), DepthWise(Limits(30, 5)), PAIRS),
            (RandomByLevel(3), Oblivious(Limits(32, 5, 2)), RULES[5]),
            (AllLearners(), DepthWise(Limits(2, 1)), RULES[5]),
        ],
        [EveryRow(), UniformSampling(0.4), ImportanceSampling(0.3)],
        [*MACHINES, "shards"],
        most=4,
    ),
)
def test_every_machine_makes_the_same_model(
    sampling: Sampling, learners: Selection, growth: Growth, rule: Interactions, machine: str
) -> None:
    case = random_case(5, 400, 6, categorical=0.3, weights="real")
    recipe = Recipe(losses.SquaredError(), 4, 0.4, under(growth, rule, 6), sampling, learners)
    if machine != "shards":
        assert_parity(recipe, case.data, machine, seed=3, order="random", threads=(1, 2, 3, 4))
        return
    assert_shard_parity(recipe, case)


@pytest.mark.slow
@settings(max_examples=examples(16), deadline=None, derandomize=True)
@given(
    seeds, st.sampled_from([2, 100, 500]), st.sampled_from([4, 9]), st.sampled_from([0.0, 0.3]),
    st.sampled_from(["none", "real", "whole"]), growths, st.sampled_from(RULES), st.sampled_from(["forward", "random"]),
)  # fmt: skip
def test_every_tree_on_a_device(
    seed: int, n: int, d: int, categorical: float, weights: str, growth: Growth, rule: Interactions, order: str
) -> None:
    data = random_case(seed, n, d, categorical=categorical, weights=weights).data
    assert_parity(Recipe(losses.SquaredError(), 2, 0.7, under(growth, rule, d)), data, "cuda", order=order)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("growth", [DepthWise(Limits(16, 5)), LeafWise(Limits(9, 6, 3))])
def test_with_monotonic_constraints_and_with_noise(growth: Growth, machine: str) -> None:
    data = random_case(3, 300, 6, categorical=0.0).data
    both = under(constrained(growth, data.cuts, 1), RULES[1], 6)
    assert_parity(Recipe(losses.Poisson(), 3, 0.6, both), replace(data, y=np.abs(data.y)), machine)
    noisy = Recipe(losses.SquaredError(), 3, 0.3, under(growth, PAIRS, 6), step=GradientStep(), langevin=Langevin())
    assert_parity(noisy, data, machine)


@pytest.mark.slow
@pytest.mark.parametrize("growth", [DepthWise(Limits(16, 5)), Oblivious(Limits(16, 4)), LeafWise(Limits(9, 6, 40))])
def test_several_gpus(growth: Growth) -> None:
    rows = 9_000
    case = random_case(2, rows, 6, categorical=0.0, missing=0.05)
    recipe = Recipe(losses.SquaredError(), 2, 0.5, under(growth, RULES[1], 6))
    expected, scores = trained(recipe, case.data, TEAMS[1])
    backend, data = gpu_place(case, whole_stretches(rows, 3), World())
    found, running = trained(recipe, data, backend)
    assert model_bytes(found) == model_bytes(expected)
    assert running == scores


@pytest.mark.parametrize("growth", [DepthWise(Limits(32, 5)), LeafWise(Limits(20, 8)), Oblivious(Limits(16, 4))])
@pytest.mark.parametrize("backend", [Reference(), TEAMS[2]])
def test_one_set_of_all_columns_changes_no_bit(growth: Growth, backend: Reference) -> None:
    data = random_case(1, 300, 5).data
    gradients = random_gradients(np.random.default_rng(0), 300, GRADIENT_KINDS[0], data.multiplicity)
    free = grow(backend, growth, data, gradients)
    together = under(growth, Interactions((tuple(range(5)),)), 5)
    assert node_bytes(grow(backend, together, data, gradients).nodes) == node_bytes(free.nodes)


def test_a_word_is_the_sets_that_it_stands_for() -> None:
    """Pairs as a number of columns, and listed one by one."""
    data = random_case(4, 400, 6).data
    every = Interactions((tuple(range(6)),), 2)
    for growth in (DepthWise(Limits(64, 6)), Oblivious(Limits(32, 5))):
        words = boost(Recipe(losses.SquaredError(), 3, 0.5, under(growth, every, 6)), data, TEAMS[2])
        listed = boost(Recipe(losses.SquaredError(), 3, 0.5, under(growth, PAIRS, 6)), data, TEAMS[2])
        assert model_bytes(words) == model_bytes(listed)


def test_features_of_one_column_are_one() -> None:
    """A column of many categories is spread over features: they may follow each other on a path."""
    data = random_case(0, 50, 3).data
    cuts = replace(data.cuts, source=np.array([0, 0, 1], np.int32))
    rule = PathRule.of_features(Interactions(((0, 1),), 1), cuts)
    assert rule.allows((0,), 1)
    assert not rule.allows((0,), 2)
    assert PathRule.of_features(Interactions(((0,), (1,))), cuts).allows((0, 0, 1), 1)
