"""Selection rules, stumps of one value and line searches: the same model on every backend, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emulator import emulated_runtime
from emulator.sanitizer import sanitized
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, as_sparse, model_bytes, random_case
from support.examples import crossed, daily, examples
from support.rules import FOR_STUMPS, FOR_TREES, STUMP
from support.training import MACHINES, assert_parity, target_of, total_submitted

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.numerics.feature_subsets import subset
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise, Oblivious, SignStump
from gpuboost.keys import Key
from gpuboost.learners import (
    AllLearners,
    RandomByLevel,
    RandomByNode,
    RandomGroups,
    RandomLearners,
    Selection,
)
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.sampling import EveryRow, UniformSampling, smart_second_order
from gpuboost.steps import ConstantStep, GradientStep, LineSearchStep, NewtonStep, Step
from gpuboost.types import Candidates, Cuts, DenseBins, Ensemble, Limits, TrainingSet


def assert_on_a_device(recipe: Recipe, data: TrainingSet, seed: int = 3, order: str = "random") -> Ensemble:
    return assert_parity(recipe, data, "cuda", seed=seed, order=order)


@settings(max_examples=examples(30))
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
    assert_parity(
        Recipe(loss, 3, 0.5, growth, sampling, learners, ConstantStep()), data, "cpu", seed=seed, threads=(1, 2, 3)
    )


@settings(max_examples=examples(30))
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
    assert_parity(
        Recipe(losses.Logistic(0.1), 4, 0.5, growth, sampling, learners, step),
        data,
        "cpu",
        seed=seed,
        threads=(1, 2, 3),
    )


def wide(seed: int) -> TrainingSet:
    """Sparse bins of so few entries that columns are searched one by one."""
    rng = np.random.default_rng(seed)
    case = random_case(seed, 120, 60, most_cuts=2, missing=0.0, categorical=0.0, target="binary", full=True)
    codes = case.data.bins.rows.copy()
    codes[rng.random(codes.shape) < 0.97] = 1
    made = DenseBins(codes, np.ascontiguousarray(codes.T))
    return replace(case.data, bins=as_sparse(made, case.data.cuts.n_bins, seed))


@pytest.mark.slow
@pytest.mark.parametrize(
    "learners", [RandomGroups(7), RandomGroups(7, "root"), RandomByNode(9), RandomByLevel(9), RandomLearners(40)]
)
def test_wide_sparse_rows(learners: Selection) -> None:
    growth = STUMP if isinstance(learners, RandomLearners) else DepthWise(Limits(8, 3))
    for seed in range(3):
        data = wide(seed)
        recipe = Recipe(losses.Logistic(), 4, 0.5, growth, learners=learners)
        expected = model_bytes(boost(recipe, data, Reference(), seed=seed))
        for threads in (1, 3):
            assert model_bytes(boost(recipe, data, TEAMS[threads], seed=seed)) == expected


@pytest.mark.parametrize("growth", [DepthWise(Limits(8, 3, 4)), LeafWise(Limits(6, 4, 7))], ids=["levels", "leaves"])
def test_wide_sparse_rows_of_leaves_with_least_numbers_of_rows(growth: Any) -> None:
    recipe = Recipe(losses.Logistic(), 4, 0.5, growth)
    for seed in range(3):
        data = wide(seed)
        expected = model_bytes(boost(recipe, data, Reference(), seed=seed))
        any_leaf = replace(recipe, growth=type(growth)(replace(growth.limits, min_samples_leaf=1)))
        assert expected != model_bytes(boost(any_leaf, data, TEAMS[1], seed=seed))
        for threads in (1, 3):
            assert model_bytes(boost(recipe, data, TEAMS[threads], seed=seed)) == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", range(5))
def test_stumps_of_one_value_of_categories(seed: int, machine: str) -> None:
    data = random_case(seed, 300, 4, categorical=0.9, target="binary", weights="whole" if seed % 2 else "none").data
    recipe = Recipe(losses.Logistic(), 6, 1.0, SignStump(Limits(2, 1)), step=ConstantStep())
    found = assert_parity(recipe, data, machine, seed=seed, order="random")
    assert any(len(tree.value) == 3 for tree in found.trees)
    for tree in found.trees:
        assert len(tree.value) == 1 or tree.value[1] == -tree.value[2]


SEARCHED: list[Loss] = [
    losses.SquaredError(), losses.Huber(), losses.Poisson(), losses.Gamma(), losses.Tweedie(), losses.Logistic(0.01),
    losses.Exponential(), losses.AbsoluteError(), losses.Quantile(0.3), losses.Softmax(3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "loss", "per", "weights"),
    crossed(
        [
            *(("cpu", each) for each in (losses.Logistic(), losses.Softmax(3), losses.Exponential())),
            ("cpu", losses.Quantile(0.3)),
            *(("cuda", each) for each in SEARCHED),
        ],
        ["tree", "leaf"],
        ["none", "real", "whole"],
        most=5,
    ),
    ids=lambda given: getattr(given, "name", given),
)
def test_line_searches(loss: Loss, per: str, weights: str, machine: str) -> None:
    data = random_case(3, 200, 4, target=target_of(loss), weights=weights).data
    sampling = EveryRow() if weights == "none" else UniformSampling(0.7)
    recipe = Recipe(loss, 4, 0.7, DepthWise(Limits(6, 3)), sampling, step=LineSearchStep(per))
    assert_parity(recipe, data, machine, seed=3, order="random")


# on a device


@pytest.mark.parametrize(
    "learners", daily([*FOR_TREES[:3], *FOR_STUMPS[:3], *FOR_TREES[3:], *FOR_STUMPS[3:]], 6), ids=str
)
def test_every_rule(learners: Selection) -> None:
    stumps = any(learners == one for one in FOR_STUMPS)
    for growth in [STUMP] if stumps else [DepthWise(Limits(8, 3)), LeafWise(Limits(6, 4, 3))]:
        data = random_case(5, 300, 5, target="binary", categorical=0.0 if stumps else 0.4).data
        assert_on_a_device(Recipe(losses.Logistic(), 5, 0.5, growth, UniformSampling(0.7), learners), data)


DRAWING = [DepthWise(Limits(64, 6)), DepthWise(Limits(5, 6, 3)), LeafWise(Limits(15, 9)), LeafWise(Limits(40))]


@pytest.mark.slow
@settings(max_examples=examples(24), deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([3, 200, 900]),
    st.sampled_from([(5, 2), (5, 0.9), (33, 1), (33, 7), (70, 0.5)]),
    st.sampled_from(
        [
            *((RandomByNode, growth) for growth in DRAWING),
            *((RandomByLevel, growth) for growth in (*DRAWING, Oblivious(Limits(64, 5)))),
        ]
    ),
    st.sampled_from([0.0, 1.5]),
    st.sampled_from([EveryRow(), UniformSampling(0.6)]),
    st.sampled_from(["real", "3"]),
)
def test_features_drawn_for_every_node_or_level(
    seed: int, n: int, wide: tuple[int, float], drawing: Any, strength: float, sampling: Any, target: str
) -> None:
    (d, t), (rule, growth) = wide, drawing
    loss: Loss = losses.Huber() if target == "real" else losses.Softmax(3)
    data = random_case(seed, n, d, target=target, weights="whole").data
    growth = type(growth)(replace(growth.limits, random_strength=strength))
    assert_on_a_device(Recipe(loss, 4, 0.5, growth, sampling, rule(t), ConstantStep()), data, seed % 1000)


@pytest.mark.parametrize("key", [Key.root(7) / "learners" / 5, Key.root(2**63 + 5) / "learners"], ids=str)
def test_the_subsets_are_those_of_the_host(key: Key) -> None:
    """All nodes up to four figures, also where the path has no number before the node's."""
    backend = Cuda(runtime := emulated_runtime())
    arena: Any = SimpleNamespace(plan=SimpleNamespace(most_nodes=1_200, most_levels=20))
    for count, of in [(1, 1), (3, 9), (16, 32), (17, 33), (40, 41), (9, 9), (12, 9)]:
        for by_level in (False, True):
            candidates = Candidates(np.arange(of, dtype=np.int32), by_node=(count, key), by_level=by_level)
            draw, most = backend._subsets.drawn(candidates), 20 if by_level else 1_200
            backend._rounds._write_inputs()
            found = backend._subsets.draw(draw, arena, of)
            assert found is not None
            bits = runtime.download(found.bits).reshape(most, found.words)
            for v in [*range(12), 19] if by_level else [*range(12), 99, 100, 1_000, 1_199]:
                chosen = np.flatnonzero(np.unpackbits(bits[v].view(np.uint8), bitorder="little"))
                assert chosen.tolist() == subset(count, of, candidates.node_key(v, v)).tolist()


@pytest.mark.parametrize("drawn", [RandomByNode(3), RandomGroups(3)])
def test_a_tree_with_drawn_features_takes_one_launch_more(drawn: Any) -> None:
    """In a graph that is recorded once, though every round draws others, without waiting for the device."""
    data, rounds = random_case(2, 400, 9).data, 6
    recipe = Recipe(losses.SquaredError(), rounds, 0.5, DepthWise(Limits(16, 4)))
    _, before = total_submitted(recipe, data)
    ensemble, found = total_submitted(replace(recipe, learners=drawn), data)
    assert len({tree.nodes.feature.tobytes() for tree in ensemble.trees}) == rounds
    assert found["graph"] == before["graph"] == rounds - 2
    assert found["graph nodes"] == before["graph nodes"] + found["graph"]
    assert found["sync"] == before["sync"]


STEPS_OF_STUMPS: list[Step] = [ConstantStep(), NewtonStep()]


@pytest.mark.slow
@settings(max_examples=examples(12), deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([3, 60, 700]),
    st.sampled_from([AllLearners(), *FOR_STUMPS]),
    st.sampled_from([SignStump(Limits(2, 1)), SignStump(Limits(2, 1, 4, reg_lambda=0.0, random_strength=0.5))]),
    st.sampled_from([EveryRow(), UniformSampling(0.6), smart_second_order(0.6)]),
    st.sampled_from(STEPS_OF_STUMPS),
    st.sampled_from(["binary", "3"]),
)
def test_stumps_of_one_value_on_a_device(
    seed: int, n: int, learners: Selection, growth: SignStump, sampling: Any, step: Step, target: str
) -> None:
    """Values of own sums, of all rows where some were drawn, and at the end of a tree in one launch."""
    loss: Loss = losses.Logistic(0.1) if target == "binary" else losses.Softmax(3)
    data = random_case(seed, n, 5, target=target, categorical=0.0, weights="real").data
    for tree in assert_on_a_device(Recipe(loss, 4, 0.5, growth, sampling, learners, step), data, seed % 1000).trees:
        assert len(tree.value) == 1 or tree.value[1] == -tree.value[2]


@pytest.mark.slow
@pytest.mark.parametrize("per", ["tree", "leaf"])
@pytest.mark.parametrize(
    "loss", [losses.Exponential(), losses.Poisson(), losses.Logistic()], ids=lambda loss: loss.name
)
def test_a_search_that_newton_would_overflow_in(loss: Loss, per: str) -> None:
    """One leaf's gradients are no numbers, and another's lengths are none the worse; pure leaves have no minimum."""
    data = random_case(2, 200, 4, target=target_of(loss)).data
    data = replace(data, y=data.y * 50.0) if loss.name == "poisson" else data
    growth = DepthWise(Limits(32, 5, 1, 0.0, 0.0))
    found = assert_on_a_device(Recipe(loss, 8, 1.0, growth, step=LineSearchStep(per)), data)
    assert all(np.isfinite(tree.value).all() for tree in found.trees)


@pytest.mark.slow
@settings(max_examples=examples(10), deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 700]),
    st.sampled_from(
        [LeafWise(Limits(9, 6)), Oblivious(Limits(16, 4)), SignStump(Limits(2, 1)), DepthWise(Limits(4, 0))]
    ),
    st.sampled_from([EveryRow(), UniformSampling(0.5), smart_second_order(0.6)]),
    st.sampled_from(["tree", "leaf"]),
    st.sampled_from([losses.Logistic(0.01), losses.Softmax(3), losses.Quantile(0.8)]),
    st.sampled_from(["forward", "reverse", "random"]),
)
def test_searches_along_other_trees(
    seed: int, n: int, growth: Any, sampling: Any, per: str, loss: Loss, order: str
) -> None:
    per = "tree" if growth.limits.signed else per
    data = random_case(seed, n, 3, target=target_of(loss), weights="real").data
    assert_on_a_device(Recipe(loss, 3, 0.5, growth, sampling, step=LineSearchStep(per)), data, seed % 1000, order)


@pytest.mark.parametrize(("leaves", "n"), [(1, 1), (3, 4_096), (200, 9_000), (300, 12_289), (70_000, 5_000)])
@pytest.mark.parametrize("order", ["forward", "random"])
def test_rows_in_the_order_of_leaves(leaves: int, n: int, order: str) -> None:
    rng = np.random.default_rng(n)
    leaf_of_row = (rng.random(n) ** 3 * leaves).astype(np.int32)  # some leaves have many rows, some none
    backend = Cuda(runtime := emulated_runtime(order))
    order = backend._line_search._order(runtime.upload(leaf_of_row), n, leaves)
    rows, begins, firsts = order["ordered"], order["begins"], order["first_stretch"]
    counts = np.bincount(leaf_of_row, minlength=leaves)
    assert runtime.download(rows).tolist() == np.argsort(leaf_of_row, kind="stable").tolist()
    assert runtime.download(begins).tolist() == [0, *np.cumsum(counts)]
    assert runtime.download(firsts).tolist() == [0, *np.cumsum(-(-counts // 4_096))]


@pytest.mark.slow
@pytest.mark.parametrize("per", ["tree", "leaf"])
def test_a_search_over_many_stretches_of_rows(per: str) -> None:
    """Of one leaf that has several blocks of 16 stretches, and of hundreds that have few rows; as the CPU has it."""
    n, rng = 150_000, np.random.default_rng(6)
    x = np.where(rng.random((n, 1)) < 0.9, 0.0, rng.integers(0, 60, (n, 3))).astype(np.float64)
    y = np.abs(rng.standard_normal(n)) * (1.0 + (x.sum(axis=1) % 7))
    cuts = Cuts(tuple(np.unique(column)[:-1] for column in x.T), (None,) * 3)
    growth = DepthWise(Limits(512, 9, 1, 0.0, 0.0))
    recipe, host = Recipe(losses.Gamma(), 1, 0.5, growth, step=LineSearchStep(per)), Cpu(1)
    expected = boost(recipe, TrainingSet(host.quantise(x, cuts), cuts, y), host)
    backend = Cuda(emulated_runtime())
    found = boost(recipe, TrainingSet(backend.quantise(x, cuts), cuts, y), backend)
    assert len(expected.trees[0].value) > 256
    assert model_bytes(found) == model_bytes(expected)


@pytest.mark.parametrize("per", ["tree", "leaf"])
@pytest.mark.parametrize("loss", [losses.Huber(), losses.AbsoluteError()], ids=lambda loss: loss.name)
def test_a_round_that_searches_is_one_graph(loss: Loss, per: str) -> None:
    """No wait for the device, however many passes are needed."""
    data, rounds = random_case(2, 400, 5).data, 6
    recipe = Recipe(
        loss, rounds, 0.5, DepthWise(Limits(8, 3)), step=ConstantStep() if loss.smoothness else GradientStep()
    )
    _, before = total_submitted(recipe, data)
    _, found = total_submitted(replace(recipe, step=LineSearchStep(per)), data)
    assert found["graph"] == rounds - 2
    assert found["sync"] == before["sync"]


UNDER_A_SANITIZER = """
import sys
from support.builders import random_case
from emulator import FakeCupy, Schedule
from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, SignStump
from gpuboost.learners import RandomByNode
from gpuboost.recipe import Recipe
from gpuboost.steps import LineSearchStep
from gpuboost.types import Limits

data = random_case(3, 120, 3).data
trees = [(DepthWise(Limits(4, 2)), losses.Huber(), "leaf"), (SignStump(Limits(2, 1)), losses.AbsoluteError(), "tree")]
for growth, loss, per in trees:
    recipe = Recipe(loss, 1, 0.5, growth, learners=RandomByNode(2), step=LineSearchStep(per))
    boost(recipe, data, Cuda(CupyRuntime(FakeCupy(Schedule(), sys.argv[1], multiprocessors=1), name="emulated")))
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("build", ["thread", "address"])
def test_no_race_and_no_stray_access(build: str) -> None:
    result = sanitized(build, UNDER_A_SANITIZER, build)
    assert (result.returncode, result.stdout) == (0, "")
