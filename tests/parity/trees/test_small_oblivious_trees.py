"""Small oblivious trees in one call: the same trees, and a loop for those that the kernel does not know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import GRADIENT_KINDS, TEAMS, grow, random_case, random_gradients, sparse, structure_bytes
from support.examples import examples
from support.kernel_calls import noted_calls

from gpuboost.backends.cpu import grower
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.trees import histograms
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import Oblivious
from gpuboost.kernels.growth import small_oblivious_trees as kernel
from gpuboost.types import Limits

LEVELS = Oblivious(Limits(64, 6))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One for each call of the kernel."""
    return noted_calls(kernel, monkeypatch)


@settings(max_examples=examples(300))
@given(
    st.integers(0, 10**6), st.sampled_from([8, 30, 150, 400, 1500]), st.sampled_from(GRADIENT_KINDS),
    st.sampled_from([2, 9, 64, 1000]), st.integers(1, 8), st.sampled_from([1, 20, 250]), st.sampled_from([0.0, 0.4]),
    st.sampled_from([0.0, 1.0, 1e6]), st.sampled_from([0.0, 1.0]), st.sampled_from(["none", "whole"]), st.booleans(),
)  # fmt: skip
def test_levels_that_share_a_split(
    seed: int, n: int, kind: str, leaves: int, depth: int, cuts: int, categorical: float, ridge: float, least_h: float,
    weights: str, is_shifted: bool,
) -> None:  # fmt: skip
    """Few rows are nodes most cells of which are empty, and many leaves are empty children.

    Where all gradients are shifted, no estimate tells cuts apart.
    """
    data = random_case(seed, n, 4, most_cuts=cuts, categorical=categorical, weights=weights).data
    growth = Oblivious(Limits(leaves, depth, reg_lambda=ridge, min_child_weight=least_h))
    gradients = random_gradients(np.random.default_rng(seed), n, kind, data.multiplicity)
    if is_shifted:
        gradients = replace(gradients, g=gradients.g + np.float32(1e3) * np.abs(gradients.g).max())
    expected = structure_bytes(grow(Reference(), growth, data, gradients))
    for bins in (data, sparse(data, seed=n)):
        for threads in (1, 3):
            assert structure_bytes(grow(TEAMS[threads], growth, bins, gradients)) == expected


@pytest.mark.parametrize("first", [2, 100])
def test_a_tree_is_grown_in_one_call_where_there_is_room(
    first: int, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histograms, "FIRST_SLOTS", first)
    monkeypatch.setattr(histograms, "FIRST_BYTES", 0)
    data, gradients = random_case(12, 300, 6).data, random_gradients(np.random.default_rng(3), 300, "plain")
    found = grow(Cpu(1), LEVELS, data, gradients)
    assert (len(calls) == 1) == (first == 100)
    assert found.nodes.is_leaf.sum() > 8
    assert structure_bytes(found) == structure_bytes(grow(Reference(), LEVELS, data, gradients))


@pytest.mark.parametrize("is_there", [False, True])
def test_no_tree_waits_for_the_kernel(is_there: bool, calls: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def request(_: object, kind: str, is_there_too: Callable[[], bool]) -> bool:
        asked.append(kind)
        return is_there

    monkeypatch.setattr(grower, "BACKGROUND", type("Background", (), {"request": request})())
    data, gradients = random_case(12, 300, 6).data, random_gradients(np.random.default_rng(3), 300, "plain")
    found = grow(Cpu(1), LEVELS, data, gradients)
    assert (calls, asked) == ([1] * is_there, ["levels-oblivious-categorical"])
    assert structure_bytes(found) == structure_bytes(grow(Reference(), LEVELS, data, gradients))


@pytest.mark.parametrize("more", [{"min_samples_leaf": 3}, {"reg_alpha": 0.1}, {"path_smooth": 2.0}], ids=str)
def test_other_trees_go_through_the_loop(more: dict[str, float], calls: list[int]) -> None:
    growth = Oblivious(replace(LEVELS.limits, **more))
    data, gradients = random_case(12, 300, 6).data, random_gradients(np.random.default_rng(3), 300, "plain")
    found = grow(Cpu(1), growth, data, gradients)
    assert calls == []
    assert structure_bytes(found) == structure_bytes(grow(Reference(), growth, data, gradients))
