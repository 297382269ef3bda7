"""Levels that are grown in one call: the same tree, wherever a call ends, and leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import (
    GRADIENT_KINDS,
    TEAMS,
    assert_same_tree,
    eager_threads,
    grow,
    random_case,
    random_gradients,
    sparse,
    structure_bytes,
)
from support.examples import examples
from support.kernel_calls import noted_calls

import gpuboost as gb
from gpuboost.backends.cpu import grower
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.compilation import background
from gpuboost.backends.cpu.trees import histograms, small_trees
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise, Growth, LeafWise
from gpuboost.kernels.growth import small_general_trees as general
from gpuboost.kernels.growth import small_oblivious_trees as oblivious
from gpuboost.kernels.growth import small_trees as kernel
from gpuboost.keys import Key, Stream
from gpuboost.types import Candidates, Interactions, Limits, Noise, Target

SIZES = st.sampled_from([1, 8, 50, 200, 10**9])


@settings(max_examples=examples(60))
@given(
    st.integers(0, 10**6), st.sampled_from([20, 90, 400]), SIZES, SIZES, st.integers(1, 7),
    st.sampled_from([3, 11, 1000]), st.sampled_from(["plain", "ties", "flat"]),
)  # fmt: skip
def test_a_call_may_end_after_any_step(
    seed: int, n: int, rows: int, cells: int, depth: int, leaves: int, kind: str
) -> None:
    data = random_case(seed, n).data
    with eager_threads(rows=rows, cells=cells, narrow=None):
        assert_same_tree(data, DepthWise(Limits(leaves, depth)), random_gradients(np.random.default_rng(seed), n, kind))


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4, 5])
def test_levels_end_with_the_limits(depth: int) -> None:
    data, gradients = random_case(11, 500, 6).data, random_gradients(np.random.default_rng(2), 500, "plain")
    found = assert_same_tree(data, DepthWise(Limits(1000, depth)), gradients)
    assert found.nodes.is_leaf.sum() > depth


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each call of the kernel."""
    return noted_calls(kernel, monkeypatch)


@pytest.mark.parametrize("growth", [DepthWise(Limits(1000, 5)), LeafWise(Limits(31, 62))], ids=["depth", "leaf"])
def test_a_small_tree_is_grown_in_one_call(growth: Growth, calls: list[int]) -> None:
    data = random_case(12, 300, 6).data
    gradients = random_gradients(np.random.default_rng(3), 300, "plain")
    found = grow(TEAMS[2], growth, data, gradients)
    assert found.nodes.is_leaf.sum() > 8
    assert len(calls) == 1


@settings(max_examples=examples(100))
@given(
    st.integers(0, 10**6), st.sampled_from([30, 150, 400]), st.sampled_from(GRADIENT_KINDS),
    st.sampled_from([2, 3, 9, 31, 255, 1000]), st.sampled_from([1, 2, 4, 12, 62]), st.sampled_from([1, 5]),
    st.sampled_from(["none", "whole"]),
)  # fmt: skip
def test_leaves_that_are_split_one_by_one_in_a_call(
    seed: int, n: int, kind: str, leaves: int, depth: int, rows: int, weights: str
) -> None:
    data = random_case(seed, n, 4, weights=weights).data
    gradients = random_gradients(np.random.default_rng(seed), n, kind)
    found = assert_same_tree(data, LeafWise(Limits(leaves, depth, rows)), gradients)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_trees, "MOST_ONE_BY_ONE", 0)  # speculative splits instead
        assert_same_tree(data, LeafWise(Limits(leaves, depth, rows)), gradients)
    assert found.nodes.is_leaf.sum() <= leaves


@settings(max_examples=examples(150))
@given(
    st.integers(0, 10**6), st.sampled_from([30, 150, 400, 1500]), st.sampled_from(GRADIENT_KINDS),
    st.sampled_from([2, 3, 7, 20, 60]), st.sampled_from([DepthWise(Limits(1000, 6)), LeafWise(Limits(31, 62))]),
    st.sampled_from([20, 250]), st.sampled_from([0.0, 0.4]),
)  # fmt: skip
def test_leaves_of_several_rows(
    seed: int, n: int, kind: str, least: int, growth: Growth, cuts: int, categorical: float
) -> None:
    """Rows that add nothing to the sums of their cells count, too."""
    data = random_case(seed, n, 4, most_cuts=cuts, categorical=categorical).data
    gradients = random_gradients(np.random.default_rng(seed), n, kind)
    growth = type(growth)(replace(growth.limits, min_samples_leaf=least))
    nodes = assert_same_tree(data, growth, gradients).nodes
    assert len(nodes.count) == 1 or nodes.count.min() >= least


@settings(max_examples=examples(150))
@given(
    st.integers(0, 10**6), st.sampled_from([30, 150, 400, 1500]), st.sampled_from(GRADIENT_KINDS),
    st.sampled_from([1, 2, 20]), st.sampled_from(["depthwise", "leafwise"]), st.sampled_from([2, 250]),
    st.sampled_from(["cuts", "nodes", "levels", "nodes and cuts", "noise", "nodes and noise", "cuts and noise"]),
)  # fmt: skip
def test_cuts_features_and_noise_that_nodes_draw(
    seed: int, n: int, kind: str, least: int, growth: str, cuts: int, drawn: str
) -> None:
    data, key = random_case(seed, n, 4, most_cuts=cuts).data, Key.root(seed)
    limits = Limits(31, 6, least, growth=growth)
    target = Target(0, None, random_gradients(np.random.default_rng(seed), n, kind))
    candidates = Candidates(
        np.arange(data.cuts.n_features, dtype=np.int32),
        by_node=(2, key / Stream.LEARNERS / 3) if "nodes" in drawn or drawn == "levels" else None,
        by_level=drawn == "levels",
        cuts=key / Stream.EXTRA_TREES / 3 if "cuts" in drawn else None,
        noise=Noise(1.5, key / Stream.RANDOM_STRENGTH / 3) if "noise" in drawn else None,
    )
    expected = structure_bytes(Reference().grow(data, target, 0, candidates, limits))
    for bins in (data, sparse(data, seed=n)):
        for threads in (1, 3):
            assert structure_bytes(TEAMS[threads].grow(bins, target, 0, candidates, limits)) == expected


@settings(max_examples=examples(200))
@given(
    st.integers(0, 10**6), st.sampled_from([30, 150, 400, 1500]), st.sampled_from(GRADIENT_KINDS),
    st.sampled_from([1, 2, 20]), st.sampled_from(["depthwise", "leafwise"]), st.sampled_from([2, 250]),
    st.sampled_from([0.0, 0.3, 50.0]), st.sampled_from([0.0, 0.05, 1.0, 1e6]), st.sampled_from([0, 1, 2]),
    st.sampled_from(["all", "cuts", "nodes", "noise"]), st.sampled_from([0.0, 0.4]),
    st.sampled_from([0.0, 1e-3, 2.0, 1e20]),
)  # fmt: skip
def test_leaf_values_within_bounds(
    seed: int, n: int, kind: str, least: int, growth: str, cuts: int, alpha: float, step: float, ordered: int,
    drawn: str, categorical: float, smooth: float,
) -> None:  # fmt: skip
    """Monotonic constraints on no, some or all numbers, ``reg_alpha``, ``max_delta_step`` and ``path_smooth``."""
    data, key = random_case(seed, n, 4, most_cuts=cuts, categorical=categorical).data, Key.root(seed)
    random = np.random.default_rng(seed)
    directions = np.where(data.cuts.is_categorical, 0, random.integers(-1, 2, 4)).tolist()
    held = {"reg_alpha": alpha, "max_delta_step": step, "directions": tuple(directions) if ordered else None}
    held["path_smooth"] = smooth
    limits = Limits(31, 6, least, growth=growth, **held)
    target = Target(0, None, random_gradients(random, n, kind))
    candidates = Candidates(
        np.arange(data.cuts.n_features, dtype=np.int32),
        by_node=(2, key / Stream.LEARNERS / 3) if drawn == "nodes" else None,
        cuts=key / Stream.EXTRA_TREES / 3 if drawn == "cuts" else None,
        noise=Noise(1.5, key / Stream.RANDOM_STRENGTH / 3) if drawn == "noise" else None,
    )
    expected = structure_bytes(Reference().grow(data, target, 0, candidates, limits))
    for bins in (data, sparse(data, seed=n)):
        for threads in (1, 3):
            assert structure_bytes(TEAMS[threads].grow(bins, target, 0, candidates, limits)) == expected


@settings(max_examples=examples(100))
@given(
    st.integers(0, 10**6), st.sampled_from([30, 150, 1500]), st.sampled_from(GRADIENT_KINDS),
    st.sampled_from([1, 20]), st.sampled_from(["depthwise", "leafwise"]), st.sampled_from([0.0, 0.3]),
    st.sampled_from([((0, 1), (2, 3)), ((0,), (1, 2, 3)), tuple(combinations(range(4), 2)) * 6]), st.integers(0, 3),
    st.sampled_from(["all", "cuts", "nodes", "levels"]), st.sampled_from([0.0, 0.4]),
)  # fmt: skip
def test_paths_of_restricted_features(
    seed: int, n: int, kind: str, least: int, growth: str, alpha: float, sets: tuple[tuple[int, ...], ...], most: int,
    drawn: str, categorical: float,
) -> None:  # fmt: skip
    """Also sets of more than 32 bits, and features of which a node draws some."""
    data, key = random_case(seed, n, 4, categorical=categorical).data, Key.root(seed)
    limits = Limits(31, 6, least, growth=growth, reg_alpha=alpha, interactions=Interactions(sets, most))
    target = Target(0, None, random_gradients(np.random.default_rng(seed), n, kind))
    candidates = Candidates(
        np.arange(data.cuts.n_features, dtype=np.int32),
        by_node=(2, key / Stream.LEARNERS / 3) if drawn in ("nodes", "levels") else None,
        by_level=drawn == "levels",
        cuts=key / Stream.EXTRA_TREES / 3 if drawn == "cuts" else None,
    )
    expected = structure_bytes(Reference().grow(data, target, 0, candidates, limits))
    for bins in (data, sparse(data, seed=n)):
        for threads in (1, 3):
            assert structure_bytes(TEAMS[threads].grow(bins, target, 0, candidates, limits)) == expected


def test_a_tree_within_bounds_without_room_is_grown_on_in_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of nodes are kept from call to call, and their paths are found again."""
    monkeypatch.setattr(histograms, "FIRST_SLOTS", 2)
    monkeypatch.setattr(histograms, "FIRST_BYTES", 0)
    made, compiled = list[int](), general.grow_within_bounds
    monkeypatch.setattr(general, "grow_within_bounds", lambda *given: made.append(1) or compiled(*given))
    data = random_case(12, 300, 6, categorical=0.0).data
    held = {"directions": (1, -1, 0, 1, 0, 0), "reg_alpha": 0.1, "path_smooth": 2.0}
    growth = DepthWise(Limits(60, 6, **held, interactions=Interactions(((0, 1, 2), (2, 3, 4, 5)))))
    gradients = random_gradients(np.random.default_rng(3), 300, "plain")
    found = grow(Cpu(1), growth, data, gradients)
    assert len(made) > 1
    assert structure_bytes(found) == structure_bytes(grow(Reference(), growth, data, gradients))


@pytest.mark.parametrize("first", [1, 2, 5])
def test_a_leaf_wise_tree_without_room_is_grown_on_in_more(
    first: int, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histograms, "FIRST_SLOTS", first)
    monkeypatch.setattr(histograms, "FIRST_BYTES", 0)
    data, growth = random_case(12, 300, 6).data, LeafWise(Limits(60, 62))
    gradients = random_gradients(np.random.default_rng(3), 300, "plain")
    found = grow(Cpu(1), growth, data, gradients)
    assert len(calls) > 1
    assert structure_bytes(found) == structure_bytes(grow(Reference(), growth, data, gradients))


@pytest.mark.parametrize("threads", [1, 2])
def test_no_leaf_wise_tree_waits_for_the_kernel(
    threads: int, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def request(_: object, kind: str, is_there: Callable[[], bool]) -> bool:
        asked.append(kind)
        return False

    monkeypatch.setattr(grower, "BACKGROUND", type("Background", (), {"request": request})())
    data, growth = random_case(12, 300, 6, categorical=0.0).data, LeafWise(Limits(31, 62))
    gradients = random_gradients(np.random.default_rng(3), 300, "plain")
    found = grow(Cpu(threads), growth, data, gradients)
    assert calls == []
    assert asked == ["levels-numeric"]
    assert structure_bytes(found) == structure_bytes(grow(Reference(), growth, data, gradients))
    grow(Cpu(threads), DepthWise(Limits(31, 5)), data, gradients)  # that one does
    assert calls == [1]
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("growth", "kind", "kernel_name"),
    [
        (DepthWise(Limits(31, 5, 3)), "general", "grow"),
        (LeafWise(Limits(31, 62, 3)), "general", "grow"),
        (DepthWise(Limits(31, 5, interactions=Interactions(((0, 1, 2),)))), "general", "grow"),
        (DepthWise(Limits(31, 5, max_delta_step=0.5)), "bounded", "grow_within_bounds"),
        (LeafWise(Limits(31, 62, 3, reg_alpha=0.5)), "bounded", "grow_within_bounds"),
        (DepthWise(Limits(31, 5, path_smooth=0.5)), "bounded", "grow_within_bounds"),
    ],
    ids=["depth", "leaf", "interactions", "bounded", "bounded leaf", "smooth"],
)
@pytest.mark.parametrize("is_there", [False, True])
def test_no_tree_that_needs_a_kernel_of_its_own_waits_for_it(
    growth: Growth, kind: str, kernel_name: str, is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, made, compiled = list[str](), list[int](), getattr(general, kernel_name)

    def request(_: object, kind: str, is_there_too: Callable[[], bool]) -> bool:
        asked.append(kind)
        return is_there

    monkeypatch.setattr(general, kernel_name, lambda *given: made.append(1) or compiled(*given))
    monkeypatch.setattr(grower, "BACKGROUND", type("Background", (), {"request": request})())
    data, gradients = random_case(12, 300, 6).data, random_gradients(np.random.default_rng(3), 300, "plain")
    found = grow(Cpu(1), growth, data, gradients)
    assert (made, asked) == ([1] * is_there, [f"levels-{kind}-categorical"])
    assert structure_bytes(found) == structure_bytes(grow(Reference(), growth, data, gradients))


def test_a_leaf_wise_tree_is_grown_by_the_kernel_that_another_tree_has_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "is_noted", lambda _: False)
    monkeypatch.setattr(grower, "BACKGROUND", background.Background())
    used, plain = [], small_trees.Levels.grow
    monkeypatch.setattr(small_trees.Levels, "grow", lambda *given: used.append(1) or plain(*given))
    data, gradients = random_case(12, 300, 6).data, random_gradients(np.random.default_rng(3), 300, "plain")
    for growth in (DepthWise(Limits(31, 5)), LeafWise(Limits(31, 62))):
        grow(Cpu(1), growth, data, gradients)
    assert used == [1, 1]


def test_no_array_is_returned() -> None:
    """numba runs Python code to make one; an interrupt that comes meanwhile would end in a SystemError."""
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    gb.GradientBoostingRegressor(n_estimators=1).fit(x, y)
    gb.GradientBoostingRegressor(n_estimators=1, min_samples_leaf=2).fit(x, y)
    gb.GradientBoostingRegressor(n_estimators=1, reg_alpha=0.1).fit(x, y)
    gb.GradientBoostingRegressor(n_estimators=1, growth="oblivious").fit(x, y)
    kernels = kernel.grow, general.grow, general.grow_within_bounds, oblivious.grow
    for signature in (signature for of in kernels for signature in of.nopython_signatures):
        assert all(isinstance(kind, numba.types.Integer) for kind in signature.return_type)
