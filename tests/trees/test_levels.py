"""Trees that NumPy grows several nodes at a time are those of the definition, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import GRADIENT_KINDS, random_case, random_gradients, structure_bytes
from support.examples import examples

from gpuboost.backends.reference import growth, levels
from gpuboost.keys import Key, Stream
from gpuboost.types import (
    CATEGORY_LIMITS,
    Candidates,
    CategoryLimits,
    Interactions,
    Limits,
    SplitCosts,
    Target,
    TrainingSet,
)

limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([1, 2, 5, 31, 500]),
    max_depth=st.sampled_from([0, 1, 2, 4, 9]),
    min_samples_leaf=st.sampled_from([1, 1, 2, 5]),
    min_child_weight=st.sampled_from([0.0, 1e-3, 1.0]),
    reg_lambda=st.sampled_from([0.0, 1e-6, 1.0, 10.0]),
    min_split_gain=st.sampled_from([0.0, 0.01, 5.0]),
    growth=st.sampled_from(["depthwise", "leafwise", "oblivious"]),
    categories=st.sampled_from(
        [CATEGORY_LIMITS, CategoryLimits(1.0, 0.0, 1.0, 1.0), CategoryLimits(0.5, 2.0, 3.0, 9.0)]
    ),
)
bounds = st.fixed_dictionaries(
    {
        "directions": st.sampled_from([None, (1, -1, 0, 1, -1), (0, 1, 1, 1, 1)]),
        "reg_alpha": st.sampled_from([0.0, 0.0, 0.3]),
        "max_delta_step": st.sampled_from([0.0, 0.0, 0.1]),
        "path_smooth": st.sampled_from([0.0, 0.0, 3.0]),
    }
)
interactions = st.sampled_from(
    [
        None,
        Interactions(((0, 1, 2, 3, 4),), most=2),
        Interactions(((0, 1), (1, 2, 3), *((3, f) for f in range(5)))),
        Interactions(((0, 1, 2, 3, 4),), most=1, same=(0, 0, 1, 1, 2)),
        Interactions((*((s % 5,) for s in range(40)), (0, 4))),
    ]
)


@settings(max_examples=examples(160))
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 3, 7, 30, 150]),
    st.integers(1, 5),
    st.sampled_from(GRADIENT_KINDS),
    limits,
    st.booleans(),
    st.sampled_from([None, None, 0.5]),
    st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)
def test_levels_are_the_definition(
    seed: int,
    n: int,
    d: int,
    kind: str,
    limit: Limits,
    whole: bool,
    drawn: float | None,
    categorical: float,
) -> None:
    data, target, candidates = a_tree(seed, n, d, kind, whole, drawn, categorical)
    assert_same(data, target, candidates, limit)


@settings(max_examples=examples(240))
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([3, 7, 30, 150]),
    st.sampled_from(GRADIENT_KINDS),
    limits,
    bounds,
    interactions,
    st.sampled_from([None, (0.0, 0.01), (0.5, 0.0), (0.001, 0.0)]),
    st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)
def test_bounds_restrictions_costs_and_draws_are_those_of_the_definition(
    seed: int,
    n: int,
    kind: str,
    limit: Limits,
    bounded: dict[str, Any],
    allowed: Interactions | None,
    costs: tuple[float, float] | None,
    categorical: float,
) -> None:
    data, target, candidates = a_tree(seed, n, 5, kind, whole=True, drawn=None, categorical=categorical)
    rng, count = np.random.default_rng(seed), len(candidates.features)
    if costs is not None:
        candidates = replace(candidates, costs=SplitCosts(costs[0] * rng.integers(0, 3, 5).astype(float), costs[1]))
    draws_features, draws_cuts, disturbs, by_level, has_weights = rng.random(5) < 0.4
    if count > 1 and draws_features:
        weights = rng.random(count) + 0.1 if has_weights else None
        drawn = int(rng.integers(1, count)), Key.root(seed) / Stream.LEARNERS / 3
        candidates = replace(candidates, by_node=drawn, by_level=by_level or limit.symmetric, weights=weights)
    if draws_cuts:
        candidates = replace(candidates, cuts=Key.root(seed) / Stream.EXTRA_TREES / 3)
    if disturbs:
        candidates = candidates.disturbed(1.5, Key.root(seed) / Stream.RANDOM_STRENGTH / 3)
    assert_same(data, target, candidates, replace(limit, interactions=allowed, **bounded))


def a_tree(
    seed: int, n: int, d: int, kind: str, whole: bool, drawn: float | None, categorical: float
) -> tuple[TrainingSet, Target, Candidates]:
    rng, weights = np.random.default_rng(seed), "whole" if whole else "none"
    data = random_case(seed, n, d, missing=0.2 * (seed % 2), categorical=categorical, weights=weights).data
    rows = None if drawn is None else np.flatnonzero(rng.random(n) < drawn).astype(np.int32)
    multiplicity = data.multiplicity if rows is None or data.multiplicity is None else data.multiplicity[rows]
    target = Target(0, rows, random_gradients(rng, n if rows is None else len(rows), kind, multiplicity))
    features = np.sort(rng.permutation(d)[: rng.integers(1, d + 1)]).astype(np.int32)
    return data, target, Candidates(features)


def assert_same(data: TrainingSet, target: Target, candidates: Candidates, limit: Limits) -> None:
    assert levels.are_plain(limit)
    found, expected = (one.grow(data, target, 0, candidates, limit) for one in (levels, growth))
    assert structure_bytes(found) == structure_bytes(expected)
