"""Forced splits: every machine that makes them grows the tree of the definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulator import emulated_runtime
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import GRADIENT_KINDS, TEAMS, assert_same_tree, eager_threads, grow, model_bytes, random_case
from support.builders import random_gradients as gradients_of
from support.cpu_shards import even, place
from support.examples import crossed, examples
from support.training import assert_parity

from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.numerics.forced_splits import cut_of, made
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import RecipeError
from gpuboost.growth import DepthWise, Growth, LeafWise
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, ImportanceSampling, Sampling, UniformSampling
from gpuboost.types import Array, Cuts, DenseBins, ForcedSplit, Gradients, Limits, TrainingSet

PLAN = ForcedSplit(
    1, 0.2, ForcedSplit(0, -0.5, ForcedSplit(2, 0.0), None), ForcedSplit(1, 0.9, None, ForcedSplit(3, 0.1))
)
seeds = st.integers(0, 2**32 - 1)
plans = st.recursive(
    st.builds(ForcedSplit, st.integers(0, 2), st.floats(-1.5, 1.5)),
    lambda side: st.builds(ForcedSplit, st.integers(0, 2), st.floats(-1.5, 1.5), side | st.none(), side | st.none()),
    max_leaves=6,
)
limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([2, 4, 9, 40]),
    max_depth=st.sampled_from([1, 2, 4]),
    min_samples_leaf=st.sampled_from([1, 1, 3]),
    random_strength=st.sampled_from([0.0, 0.0, 1.0]),
    max_delta_step=st.sampled_from([0.0, 0.0, 0.2]),
    path_smooth=st.sampled_from([0.0, 0.0, 5.0]),
    forced=plans,
)
growths = st.one_of(st.builds(DepthWise, limits), st.builds(LeafWise, limits))


@settings(max_examples=examples(60))
@given(
    seeds, st.sampled_from([2, 30, 150, 400]), st.sampled_from([3, 20, 254]), st.sampled_from([0.0, 0.3]),
    st.booleans(), st.sampled_from(GRADIENT_KINDS), growths, st.sampled_from([None, 0.5]), st.sampled_from([3, 10**6]),
)  # fmt: skip
def test_every_backend_grows_the_same_tree(
    seed: int, n: int, most_cuts: int, missing: float, whole: bool, kind: str, growth: Growth, drawn: float | None,
    narrow: int,
) -> None:  # fmt: skip
    rng, weights = np.random.default_rng(seed), "whole" if whole else "none"
    data = random_case(seed, n, 3, most_cuts=most_cuts, categorical=0.0, missing=missing, weights=weights).data
    gradients = gradients_of(rng, n, kind, data.multiplicity)
    rows = None if drawn is None else np.flatnonzero(rng.random(n) < drawn).astype(np.int32)
    with eager_threads(rows=8, narrow=narrow):
        assert_same_tree(data, growth, gradients, rows)


@pytest.mark.parametrize("machine", ["cpu", "shards"])
@pytest.mark.parametrize(
    ("growth", "sampling"),
    crossed(
        [DepthWise(Limits(16, 5, forced=PLAN)), LeafWise(Limits(12, 9, 3, path_smooth=4.0, forced=PLAN))],
        [EveryRow(), UniformSampling(0.4), ImportanceSampling(0.3)],
    ),
)
def test_every_machine_makes_the_same_model(sampling: Sampling, growth: Growth, machine: str) -> None:
    case = random_case(5, 400, 6, categorical=0.0, weights="real")
    recipe = Recipe(losses.SquaredError(), 3, 0.4, growth, sampling)
    if machine == "cpu":
        assert_parity(recipe, case.data, machine, seed=3, threads=(1, 2, 4))
        return
    expected = model_bytes(boost(recipe, case.data, TEAMS[1], seed=3))
    for ends in ([400], even(400, 3)):
        backend, data = place(case, ends)
        assert model_bytes(boost(recipe, data, backend, seed=3)) == expected


def test_a_gpu_refuses_them() -> None:
    data = random_case(5, 40, 4, categorical=0.0).data
    recipe = Recipe(losses.SquaredError(), 1, growth=DepthWise(Limits(4, 2, forced=PLAN)))
    with pytest.raises(RecipeError, match="forced_splits: forced splits are made on the CPU"):
        boost(recipe, data, Cuda(emulated_runtime()))


def rows() -> tuple[TrainingSet, Gradients]:
    """16 rows: column 0 is 0 .. 3, column 1 is 0 or 1, and g is -1 where column 0 is 3, and -0.5 more by column 1."""
    x = np.array([[a, b] for a in range(4) for b in (0, 0, 1, 1)])
    codes = np.ascontiguousarray(x, np.uint8)
    cuts = Cuts((np.array([0.5, 1.5, 2.5]), np.array([0.5])), (None, None))
    g = -(x[:, 0] == 3).astype(np.float32) - np.float32(0.5) * x[:, 1]
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(16))
    return data, Gradients(g.astype(np.float32)[None], np.ones((1, 16), np.float32))


@pytest.mark.parametrize("growth", [DepthWise, LeafWise])
@pytest.mark.parametrize("machine", ["reference", "cpu"])
@pytest.mark.parametrize(
    ("plan", "features", "bins"),
    [
        (None, [0, 1, 1], [2, 0, 0]),  # the best ones
        (ForcedSplit(1, 0.5), [1, 0, 0], [0, 2, 2]),  # growth goes on as usual
        (ForcedSplit(0, 1.0, ForcedSplit(1, 0.1)), [0, 1, 0], [1, 0, 2]),  # the cut above 1.0; below it, one side
        (ForcedSplit(0, 2.5, None, ForcedSplit(0, 0.0)), [0, 1, 1], [2, 0, 0]),  # a right side without rows
        (ForcedSplit(0, 2.6, ForcedSplit(1, 0.0)), [0, 1, 1], [2, 0, 0]),  # above all cuts, with what is below it
    ],
)
def test_trees_by_hand(
    machine: str, growth: type[Growth], plan: ForcedSplit | None, features: list[int], bins: list[int]
) -> None:
    data, gradients = rows()
    backend = Reference() if machine == "reference" else TEAMS[1]
    held = Limits(4, 2, min_child_weight=0.0, reg_lambda=0.0, forced=plan)
    nodes = grow(backend, growth(held), data, gradients).nodes  # type: ignore[call-arg]
    assert (nodes.feature[:3].tolist(), nodes.bin[:3].tolist()) == (features, bins)


def test_what_is_forced_comes_first_where_leaves_run_out() -> None:
    data, gradients = rows()
    plan = ForcedSplit(1, 0.5, ForcedSplit(0, 0.5), None)
    for backend in (Reference(), TEAMS[1]):
        for growth in (DepthWise, LeafWise):
            nodes = grow(backend, growth(Limits(3, 5, min_child_weight=0.0, forced=plan)), data, gradients).nodes
            assert made(cut_of(plan, data.cuts), nodes) == 2
            assert len(nodes.feature) == 5
            many = growth(replace(growth(Limits(3, 5, forced=plan)).limits, max_leaves=2, min_child_weight=0.0))
            assert len(grow(backend, many, data, gradients).nodes.feature) == 3


def test_thresholds_are_found_in_the_features_of_a_wide_column() -> None:
    wide: tuple[Array, ...] = (np.arange(3.0), np.arange(3.0, 5.0), np.arange(2.0))
    cuts = Cuts(wide, (None, None, None), np.array([0, 0, 1], np.int32))
    found = [cut_of(ForcedSplit(0, t), cuts) for t in (-9.0, 1.0, 1.5, 2.5, 4.0, 4.1)]
    assert [cut and (cut.feature, cut.bin) for cut in found] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), None]
    assert cut_of(ForcedSplit(1, 0.5), cuts).feature == 2  # type: ignore[union-attr]
