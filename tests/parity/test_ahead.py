"""Leaf-wise splits made before their turn leave no trace, however many of them never have a turn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import GRADIENT_KINDS, TEAMS, assert_same_tree, grow, node_bytes, random_case, random_gradients

from gpuboost.backends.cpu import best_first as cpu_ahead
from gpuboost.backends.cpu.best_first import Ahead
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import LeafWise
from gpuboost.kernels.common import nodes as table
from gpuboost.keys import Key
from gpuboost.types import Candidates, Limits, Target

seeds = st.integers(0, 2**32 - 1)
OF_NODE = table.LEFT, table.RIGHT, table.STATE


def some_tree(children: dict[int, int], states: list[int]) -> np.ndarray:
    """A table of nodes: the left child of each that is split (the right one follows it), and every state."""
    node = np.zeros((len(states), table.COLUMNS), np.int64)
    node[:, table.STATE] = states
    for v, left in children.items():
        node[v, table.LEFT], node[v, table.RIGHT] = left, left + 1
    return node


@settings(max_examples=150)
@given(
    seeds, st.sampled_from([30, 150, 400]), st.sampled_from(GRADIENT_KINDS), st.sampled_from([2, 3, 9, 40, 500]),
    st.sampled_from([1, 4, 12]), st.sampled_from([1, 5]), st.sampled_from([1, 2, 8]), st.sampled_from([1, 8, 1000]),
)  # fmt: skip
def test_a_tree_grown_ahead_is_the_tree_of_the_definition(
    seed: int, n: int, kind: str, leaves: int, depth: int, rows: int, share: int, few: int
) -> None:
    case = random_case(seed, n, 4)
    gradients = random_gradients(np.random.default_rng(seed), n, kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_ahead, "SHARE", share)
        patch.setattr(cpu_ahead, "FEW", few)
        assert_same_tree(case.data, LeafWise(Limits(leaves, depth, rows)), gradients)


@pytest.mark.parametrize("splits", [0, 1, 5, 20])
def test_a_tree_can_be_harvested_before_it_is_full(splits: int) -> None:
    data = random_case(4, 400, 5, full=True).data
    gradients = random_gradients(np.random.default_rng(4), 400, "plain")
    target, candidates = Target(0, None, gradients), Candidates(np.arange(5, dtype=np.int32))
    found = []
    for backend in (Reference(), TEAMS[2]):
        frontier = backend.plant(data, target, 0, candidates, Limits(200, 30))
        for _ in range(splits):
            backend.histograms(frontier)
            backend.best_splits(frontier)
            assert backend.partition(frontier, most=1)
        found.append(backend.harvest(frontier, data, target))
    assert found[0].nodes.is_leaf.sum() == splits + 1
    assert node_bytes(found[0].nodes) == node_bytes(found[1].nodes)
    assert np.array_equal(found[0].leaf_of_row, found[1].leaf_of_row)


def test_what_comes_next_is_certain_up_to_the_first_node_that_is_not_split() -> None:
    node = some_tree({0: 1, 1: 3}, [table.SPLIT, table.SPLIT, table.OPEN, table.OPEN, table.CLOSED])
    gain = np.array([9.0, 5.0, 7.0, 6.0, 0.0])
    ahead = Ahead(most=10)
    assert ahead.wanted(node, 5, gain)[:1].tolist() == [2]  # 0, then 2; 1 and 3 may have to wait for its children
    assert ahead.knows(0)
    assert not ahead.knows(1)


def test_of_equal_gains_the_older_node_is_split_first() -> None:
    node = some_tree({0: 1}, [table.SPLIT, table.OPEN, table.OPEN])
    assert Ahead(most=2).wanted(node, 3, np.array([1.0, 4.0, 4.0]))[0] == 1
    assert Ahead(most=2).wanted(node, 3, np.array([1.0, 4.0, np.nextafter(4.0, 5.0)]))[0] == 2


def test_a_split_that_had_no_turn_is_undone() -> None:
    node = some_tree({0: 1, 1: 3, 2: 5}, [table.SPLIT] * 3 + [table.OPEN] * 4)
    node[:, table.SUM_H] = range(7)
    gain, left_set = np.array([9.0, 5.0, 7.0, 1.0, 1.0, 1.0, 1.0]), np.zeros((7, 8), np.uint32)
    found, gains, sets = Ahead.in_order(node, 7, gain, left_set, 2)
    assert found[:, table.SUM_H].tolist() == [0, 1, 2, 5, 6]  # 0, then 2, whose children are now numbers 3 and 4
    assert gains.tolist() == [9.0, 5.0, 7.0, 1.0, 1.0]
    assert found[:, OF_NODE].tolist() == [
        [1, 2, table.SPLIT], [0, 0, table.OPEN], [3, 4, table.SPLIT], [0, 0, table.OPEN], [0, 0, table.OPEN]
    ]  # fmt: skip
    assert sets.shape == (5, 8)


def test_splits_ahead_are_few_where_few_are_to_come() -> None:
    gain = np.arange(40.0)
    node = some_tree({}, [table.SPLIT] + [table.OPEN] * 39)
    node[0, table.LEFT], node[0, table.RIGHT] = 1, 2
    assert len(Ahead(most=3).wanted(node, 40, gain)) == 1
    assert len(Ahead(most=100).wanted(node, 40, gain)) == 2


def test_draws_by_node_number_are_made_one_split_at_a_time() -> None:
    """A node that draws its own features is known by its number, which it has only when its turn comes."""
    data = random_case(7, 300, 6, full=True).data
    gradients = random_gradients(np.random.default_rng(7), 300, "plain")
    features = np.arange(6, dtype=np.int32)
    candidates = Candidates(features, by_node=(2, Key.root(1)))
    target, growth = Target(0, None, gradients), LeafWise(Limits(60, 20))
    found = [growth.structure(one, data, target, 0, candidates).nodes for one in (Reference(), TEAMS[2])]
    assert node_bytes(found[0]) == node_bytes(found[1])
    assert node_bytes(found[0]) != node_bytes(grow(TEAMS[1], growth, data, gradients).nodes)
