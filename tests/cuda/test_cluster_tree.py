"""Trees grown in one launch by a cluster of blocks: the tree of the definition, when it is asked for, and its races."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu, emulated_runtime
from emulator.sanitizer import sanitized
from hypothesis import given, settings
from hypothesis import strategies as st
from support import cuda_modules
from support.builders import (
    GRADIENT_KINDS,
    grow,
    model_bytes,
    random_case,
    random_gradients,
    structure_bytes,
)
from support.cuda_compiler import PTX_OF, resources
from support.examples import daily, examples
from support.growing_on_device import ORDERS, Device, device, shaped

import gpuboost as gb
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.trees.cluster_tree import STATIC_BYTES, ClusterPlan
from gpuboost.backends.cuda.trees.plan import ArenaPlan
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise, Oblivious, SignStump
from gpuboost.langevin import Langevin
from gpuboost.learners import RandomByLevel, RandomByNode, RandomGroups
from gpuboost.losses import Logistic, Softmax
from gpuboost.recipe import Recipe
from gpuboost.sampling import MVS, UniformSampling
from gpuboost.steps import GradientStep
from gpuboost.types import Cuts, Interactions, Limits

limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([2, 3, 5, 31, 256]),
    max_depth=st.sampled_from([1, 2, 3, 5, 6]),
    min_child_weight=st.sampled_from([0.0, 1e-3, 1.0]),
    reg_lambda=st.sampled_from([0.0, 1e-6, 1.0, 10.0]),
    min_split_gain=st.sampled_from([0.0, 0.01, 5.0]),
)


@settings(max_examples=examples(60))
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 7, 30, 150, 400, 2_100]), st.sampled_from([1, 2, 5, 9, 17, 24]),
    st.sampled_from([3, 20, 254]), st.sampled_from([0.0, 0.1, 0.3]), st.booleans(), st.sampled_from(GRADIENT_KINDS),
    limits, st.sampled_from([None, None, 0.0, 0.5, 1.0]), st.booleans(), st.sampled_from(sorted(ORDERS)),
)  # fmt: skip
def test_the_tree_is_that_of_the_definition(
    seed: int, n: int, d: int, most_cuts: int, missing: float, whole: bool, kind: str, of_tree: Limits,
    drawn: float | None, subset: bool, order: str,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    weights = "whole" if whole else "none"
    case = random_case(seed, n, d, most_cuts=most_cuts, missing=missing, categorical=0.0, weights=weights)
    gradients = random_gradients(rng, n, kind, case.data.multiplicity)
    rows = None if drawn is None else np.flatnonzero(rng.random(n) < drawn).astype(np.int32)
    features = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False)).astype(np.int32) if subset else None
    on, growth = device(order, "cluster"), DepthWise(of_tree)
    expected = grow(Reference(), growth, case.data, gradients, rows, features)
    assert structure_bytes(grow(on, growth, case.data, gradients, rows, features)) == structure_bytes(expected)
    assert all(arena.cluster is not None for arena in on.arenas.values())


@pytest.mark.slow
@pytest.mark.parametrize("n", [5_000, 65_535])
def test_the_largest_sums_that_32_bits_hold(n: int) -> None:
    data, gradients = shaped(n, 3, 200)
    growth = DepthWise(Limits(8, 3))
    expected = grow(Cpu(1), growth, data, gradients)
    on = Device(device("forward", "cluster").runtime, spare=0)
    assert structure_bytes(grow(on, growth, data, gradients)) == structure_bytes(expected)
    assert all(arena.cluster is not None for arena in on.arenas.values())


def plan_for(n: int, d: int, bins: int, limits: Limits, *, categories: bool = False, **of_device: Any) -> Any:
    runtime = emulated_runtime()
    runtime.use_clusters(True)
    for name, value in of_device.items():
        setattr(runtime, name, value)
    cuts = Cuts((np.arange(bins - 1.0),) * d, (np.arange(3.0) if categories else None,) * d)
    return ClusterPlan.of(ArenaPlan.of(n, cuts, limits, runtime), runtime)


SMALL = Limits(64, 6)


def test_what_a_cluster_has_room_for() -> None:
    """The blocks share out the features, each with the histograms of its own."""
    found = plan_for(10_000, 20, 255, SMALL)
    assert (found.blocks, found.features, found.histograms) == (8, 3, 32)
    assert 32 * 3 * 256 * 8 + 10_000 < found.shared <= (227 << 10) - STATIC_BYTES
    assert [plan_for(100, d, 255, SMALL).blocks for d in (1, 2, 3, 8, 9)] == [1, 2, 4, 8, 8]
    assert plan_for(65_535, 16, 255, SMALL).shared > 65_535


@pytest.mark.parametrize(
    ("n", "d", "bins", "limits", "more"),
    [
        (65_536, 5, 255, SMALL, {}),
        (20_000, 24, 255, SMALL, {}),  # too many histograms beside the rows
        (1_000, 33, 60, SMALL, {}),
        (1_000, 5, 255, Limits(512, 9), {}),
        (1_000, 5, 255, Limits(64, 2**31), {}),
        (1_000, 5, 255, Limits(1, 6), {}),
        (1_000, 5, 255, Limits(64, 6, 2), {}),
        (1_000, 5, 255, Limits(64, 6, extra_trees=True), {}),
        (1_000, 5, 255, Limits(64, 6, random_strength=1.0), {}),
        (1_000, 5, 255, Limits(64, 6, reg_alpha=1.0), {}),
        (1_000, 5, 255, Limits(64, 6, directions=(1,) * 5), {}),
        (1_000, 5, 255, Limits(64, 6, interactions=Interactions(((0, 1),))), {}),
        (1_000, 5, 255, LeafWise(SMALL).limits, {}),
        (1_000, 5, 255, Oblivious(SMALL).limits, {}),
        (1_000, 5, 255, SignStump(Limits(2, 1)).limits, {}),
        (1_000, 5, 255, SMALL, {"categories": True}),
        (1_000, 5, 255, SMALL, {"clusters": False}),
        (1_000, 5, 255, SMALL, {"block_memory": 64 << 10}),
    ],
)
def test_other_trees_are_grown_by_the_kernels_of_levels(
    n: int, d: int, bins: int, limits: Limits, more: dict[str, Any]
) -> None:
    assert plan_for(n, d, bins, limits, **more) is None


def test_a_device_is_asked_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not emulated_runtime().clusters
    monkeypatch.setenv("GPUBOOST_CLUSTERS", "1")
    assert emulated_runtime().clusters
    assert emulated_runtime().spawn().clusters


def test_one_launch_grows_all_levels() -> None:
    runtime = emulated_runtime()
    runtime.use_clusters(True)
    grow(Device(runtime), DepthWise(SMALL), *shaped(500, 20, 60))
    launched = {kind.removeprefix("kernel "): count for kind, count in runtime.cp.counts.items() if "kernel " in kind}
    assert launched == {"grow_in_cluster": 1, "route": 1}


RECIPES = {
    "plain": Recipe(Logistic(), 4, growth=DepthWise(SMALL)),
    "classes": Recipe(Softmax(3), 3, growth=DepthWise(Limits(16, 4))),
    "rows": Recipe(Logistic(), 4, growth=DepthWise(SMALL), sampling=UniformSampling(0.5)),
    "important rows": Recipe(Logistic(), 4, growth=DepthWise(SMALL), sampling=MVS(0.4)),
    "features of a tree": Recipe(Logistic(), 4, growth=DepthWise(SMALL), learners=RandomGroups(0.5)),
    "features of nodes": Recipe(Logistic(), 4, growth=DepthWise(SMALL), learners=RandomByNode(3)),
    "features of levels": Recipe(Logistic(), 4, growth=DepthWise(SMALL), learners=RandomByLevel(3)),
    "Langevin": Recipe(Logistic(), 4, growth=DepthWise(SMALL), step=GradientStep(), langevin=Langevin()),
}


@pytest.mark.parametrize("name", daily(list(RECIPES), 1))
def test_models_are_those_of_a_cpu(name: str) -> None:
    recipe = RECIPES[name]
    case = random_case(3, 900, 10, target="3" if name == "classes" else "binary", categorical=0.0, missing=0.1)
    runtime = emulated_runtime("random")
    runtime.use_clusters(True)
    assert model_bytes(boost(recipe, case.data, Cuda(runtime))) == model_bytes(boost(recipe, case.data, Cpu(1)))
    assert runtime.cp.counts["kernel grow_in_cluster"] > 0
    assert runtime.cp.counts["kernel evaluate"] == 0


@pytest.mark.slow
def test_trainings_in_lock_step_share_launches_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUBOOST_CLUSTERS", "1")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    y = x[:, 0] + x[:, 1] * x[:, 2]
    model = gb.GradientBoostingRegressor(n_estimators=6, max_depth=2, random_state=0)
    expected = gb.cv(model, x, y, folds=3)
    with emulated_gpu() as cupy:
        found = gb.cv(model.set_params(device="cuda"), x, y, folds=3)
        assert cupy.counts["kernel grow_in_cluster_of_each"] > 0
    assert np.array_equal(found.predictions, expected.predictions)


@pytest.mark.slow
def test_static_shared_memory_is_within_its_bound() -> None:
    texts = [asked for asked in cuda_modules.usual() if "__cluster_dims__" in asked[0]]
    assert len(texts) >= 3
    for text, functions in texts:
        for taken in resources(text, PTX_OF, functions).values():
            assert taken.shared <= STATIC_BYTES


UNDER_A_SANITIZER = """
import sys
import numpy as np
from emulator import FakeCupy, Schedule
from support.builders import grow, random_case, random_gradients
from support.growing_on_device import Device
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.growth import DepthWise
from gpuboost.types import Limits

data = random_case(2, 2100, 10, most_cuts=30, weights="whole", categorical=0.0).data
gradients = random_gradients(np.random.default_rng(2), 2100, "plain", data.multiplicity)
runtime = CupyRuntime(FakeCupy(Schedule(chained=False), sys.argv[1], multiprocessors=1), name="emulated")
runtime.use_clusters(True)
assert len(grow(Device(runtime), DepthWise(Limits(8, 3)), data, gradients).nodes.feature) > 5
assert runtime.cp.counts["kernel grow_in_cluster"] == 1
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("build", ["thread", "address"])
def test_no_race_and_no_stray_access(build: str) -> None:
    result = sanitized(build, UNDER_A_SANITIZER, build)
    assert (result.returncode, result.stdout) == (0, "")
