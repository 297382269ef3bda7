"""Leaf-wise splits made before their turn leave no trace, however many of them never have a turn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import GRADIENT_KINDS, TEAMS, assert_same_tree, grow, node_bytes, random_case, random_gradients
from support.examples import examples

from gpuboost.backends.cpu.trees import small_trees
from gpuboost.backends.cpu.trees.best_first import keep_first, next_splits
from gpuboost.backends.cpu.trees.histograms import free_slots
from gpuboost.backends.cpu.trees.nodes import NodeTable
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import LeafWise
from gpuboost.kernels.common import nodes as table
from gpuboost.kernels.growth import best_first
from gpuboost.keys import Key
from gpuboost.types import Candidates, Limits, Target


@pytest.fixture(autouse=True, scope="module")
def speculative() -> Iterator[None]:
    """Also of trees that one thread would grow leaf by leaf in one call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_trees, "MOST_ONE_BY_ONE", 0)
        yield


seeds = st.integers(0, 2**32 - 1)
OF_NODE = table.LEFT, table.RIGHT, table.STATE


def some_tree(children: dict[int, int], states: list[int]) -> NodeTable:
    """A table of nodes: the left child of each that is split (the right one follows it), and every state."""
    tree = NodeTable(Limits((len(states) + 1) // 2, 62), len(states))
    tree.lengthen(len(states))
    tree.size = len(states)
    tree.node, tree.gain = tree.node[: tree.size], tree.gain[: tree.size]
    tree.node[:, table.STATE] = states
    for v, left in children.items():
        tree.node[v, table.LEFT], tree.node[v, table.RIGHT] = left, left + 1
    return tree


@settings(max_examples=examples(150))
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
        at_once = lambda most, certain: max((most - certain) // share, min(most // share, few), 1)  # noqa: E731
        patch.setattr(best_first, "at_once", at_once)
        assert_same_tree(case.data, LeafWise(Limits(leaves, depth, rows)), gradients)


@pytest.mark.parametrize("splits", [0, 1, 5, 20])
def test_what_was_split_ahead_of_the_last_turn_is_not_part_of_the_tree(splits: int) -> None:
    data = random_case(4, 400, 5, full=True).data
    gradients = random_gradients(np.random.default_rng(4), 400, "plain")
    found = assert_same_tree(data, LeafWise(Limits(splits + 1, 30)), gradients)
    assert found.nodes.is_leaf.sum() == splits + 1


def test_what_comes_next_is_certain_up_to_the_first_node_that_is_not_split() -> None:
    tree = some_tree({0: 1, 1: 3}, [table.SPLIT, table.SPLIT, table.OPEN, table.OPEN, table.CLOSED])
    tree.gain[:] = [9.0, 5.0, 7.0, 6.0, 0.0]
    wanted, certain = next_splits(tree, 10, None)
    assert wanted[:1].tolist() == [2]  # 0, then 2; 1 and 3 may have to wait for its children
    assert certain == 1


def test_leaves_that_will_never_be_split_give_their_histograms_back() -> None:
    tree = some_tree({0: 1, 1: 3}, [table.SPLIT, table.SPLIT, table.OPEN, table.OPEN, table.OPEN])
    tree.gain[:], tree.node[:, table.SLOT] = [9.0, 7.0, 5.0, 6.0, 5.0], [0, 0, 1, 0, 2]
    slots = free_slots(3, 9)
    free = slots[0]
    assert next_splits(tree, 4, slots)[0].tolist() == [3]  # two splits are left: 3, and then 2 unless a child of 3
    assert tree.node[2:5, table.STATE].tolist() == [table.OPEN, table.OPEN, table.CLOSED]
    assert slots[0] == free + 1
    assert slots[slots[0]] == 2
    next_splits(tree, 3, slots)
    assert tree.node[2:5, table.STATE].tolist() == [table.CLOSED, table.OPEN, table.CLOSED]
    assert slots[slots[0]] == 1


def test_of_equal_gains_the_older_node_is_split_first() -> None:
    tree = some_tree({0: 1}, [table.SPLIT, table.OPEN, table.OPEN])
    tree.gain[:] = [1.0, 4.0, 4.0]
    assert next_splits(tree, 2, None)[0][0] == 1
    tree.gain[2] = np.nextafter(4.0, 5.0)
    assert next_splits(tree, 2, None)[0][0] == 2


def test_a_split_that_had_no_turn_is_undone() -> None:
    tree = some_tree({0: 1, 1: 3, 2: 5}, [table.SPLIT] * 3 + [table.OPEN] * 4)
    tree.node[:, table.SUM_H] = range(7)
    tree.gain[:] = [9.0, 5.0, 7.0, 1.0, 1.0, 1.0, 1.0]
    keep_first(tree, 2)
    assert tree.size == 5
    assert tree.node[:, table.SUM_H].tolist() == [0, 1, 2, 5, 6]  # 0, then 2, whose children are now numbers 3 and 4
    assert tree.gain.tolist() == [9.0, 5.0, 7.0, 1.0, 1.0]
    assert tree.node[:, OF_NODE].tolist() == [
        [1, 2, table.SPLIT], [0, 0, table.OPEN], [3, 4, table.SPLIT], [0, 0, table.OPEN], [0, 0, table.OPEN]
    ]  # fmt: skip
    assert tree.left_set.shape == (5, 8)


def test_splits_ahead_are_few_where_few_are_to_come() -> None:
    tree = some_tree({}, [table.SPLIT] + [table.OPEN] * 39)
    tree.gain[:] = np.arange(40.0)
    tree.node[0, table.LEFT], tree.node[0, table.RIGHT] = 1, 2
    assert len(next_splits(tree, 3, None)[0]) == 1
    assert len(next_splits(tree, 100, None)[0]) == 2


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
