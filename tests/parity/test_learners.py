"""Selection rules, stumps of one value and line searches: the same model on every backend, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, as_sparse, eager_threads, model_bytes, random_case, sparse
from support.rules import FOR_STUMPS, FOR_TREES, STUMP

from gpuboost import losses
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise, SignStump
from gpuboost.learners import (
    AllLearners,
    RandomByNode,
    RandomGroups,
    RandomLearners,
    Selection,
)
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, UniformSampling
from gpuboost.steps import ConstantStep, LineSearchStep, NewtonStep, Step
from gpuboost.types import DenseBins, Ensemble, Limits, TrainingSet


def assert_same(recipe: Recipe, data: TrainingSet, seed: int) -> Ensemble:
    """Reference; Cpu with 1 to 3 threads, dense and sparse, on small pieces."""
    expected = boost(recipe, data, Reference(), seed=seed)
    with eager_threads():
        for threads in (1, 2, 3):
            for bins in (data, sparse(data, seed)):
                found = boost(recipe, bins, TEAMS[threads], seed=seed)
                assert model_bytes(found) == model_bytes(expected), (threads, type(bins.bins).__name__)
    return expected


@settings(max_examples=30)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([3, 40, 300]),
    st.sampled_from(FOR_TREES),
    st.sampled_from([DepthWise(Limits(8, 3)), LeafWise(Limits(6, 4)), DepthWise(Limits(8, 3, 3)), STUMP]),
    st.sampled_from([EveryRow(), UniformSampling(0.6)]),
    st.sampled_from(["real", "binary", "3"]),
)
def test_trees_of_drawn_learners(
    seed: int, n: int, learners: Selection, growth: Any, sampling: Any, target: str
) -> None:
    loss: Loss = {"real": losses.Huber(), "binary": losses.Logistic(), "3": losses.Softmax(3)}[target]
    data = random_case(seed, n, 5, target=target, weights="whole").data
    assert_same(Recipe(loss, 3, 0.5, growth, sampling, learners, ConstantStep()), data, seed)


@settings(max_examples=30)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([3, 60, 300]),
    st.sampled_from([AllLearners(), *FOR_STUMPS]),
    st.sampled_from([STUMP, LeafWise(Limits(2, 6, 4)), SignStump(Limits(2, 1)), SignStump(Limits(2, 1, 4))]),
    st.sampled_from([EveryRow(), UniformSampling(0.6)]),
    st.sampled_from([ConstantStep(), NewtonStep()]),
)
def test_stumps_of_drawn_pairs(seed: int, n: int, learners: Selection, growth: Any, sampling: Any, step: Step) -> None:
    data = random_case(seed, n, 5, target="binary", categorical=0.0, weights="real").data
    assert_same(Recipe(losses.Logistic(0.1), 4, 0.5, growth, sampling, learners, step), data, seed)


def test_stumps_of_one_value_of_categories() -> None:
    for seed in range(6):
        data = random_case(seed, 200, 4, categorical=0.9, target="binary").data
        found = assert_same(Recipe(losses.Logistic(), 5, 1.0, SignStump(Limits(2, 1)), step=ConstantStep()), data, seed)
        for tree in found.trees:
            assert len(tree.value) == 1 or tree.value[1] == -tree.value[2]


def wide(seed: int) -> TrainingSet:
    """Sparse bins of so few entries that columns are searched one by one."""
    rng = np.random.default_rng(seed)
    case = random_case(seed, 120, 60, most_cuts=2, missing=0.0, categorical=0.0, target="binary", full=True)
    codes = case.data.bins.rows.copy()
    codes[rng.random(codes.shape) < 0.97] = 1
    made = DenseBins(codes, np.ascontiguousarray(codes.T))
    return replace(case.data, bins=as_sparse(made, case.data.cuts.n_bins, seed))


@pytest.mark.parametrize("learners", [RandomGroups(7), RandomGroups(7, "root"), RandomByNode(9), RandomLearners(40)])
def test_wide_sparse_rows(learners: Selection) -> None:
    growth = STUMP if isinstance(learners, RandomLearners) else DepthWise(Limits(8, 3))
    for seed in range(3):
        data = wide(seed)
        recipe = Recipe(losses.Logistic(), 4, 0.5, growth, learners=learners)
        expected = model_bytes(boost(recipe, data, Reference(), seed=seed))
        for threads in (1, 3):
            assert model_bytes(boost(recipe, data, TEAMS[threads], seed=seed)) == expected


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Softmax(3), losses.Exponential(), losses.Quantile(0.3)])
@pytest.mark.parametrize("per", ["tree", "leaf"])
def test_line_searches(loss: Loss, per: str) -> None:
    target = {"multiclass": "3", "binary": "binary"}.get(loss.task, "real")
    for seed, weights in enumerate(["none", "real", "whole"]):
        data = random_case(seed, 150, 4, target=target, weights=weights).data
        recipe = Recipe(loss, 4, 0.7, DepthWise(Limits(6, 3)), UniformSampling(0.7), step=LineSearchStep(per))
        assert_same(recipe, data, seed)
