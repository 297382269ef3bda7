"""Orders of growth: who is split first, and where they stop."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, grow, node_bytes, random_case, random_gradients
from support.examples import examples

from gpuboost.backends.numerics.random_trees import random_nodes
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious, SignStump
from gpuboost.keys import Key
from gpuboost.types import Candidates, Gradients, Limits, Nodes, Target

BACKENDS = [Reference(), TEAMS[2]]
QUICK = settings(max_examples=examples(40))


def depths(nodes: Nodes) -> np.ndarray:
    depth = np.zeros(len(nodes.feature), int)
    for v in np.flatnonzero(nodes.feature >= 0):
        depth[[nodes.left[v], nodes.right[v]]] = depth[v] + 1
    return depth


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 6))
def test_depth_wise_splits_a_level_before_the_next(seed: int, leaves: int, depth: int) -> None:
    data = random_case(seed, 200, 4, full=True).data
    gradients = random_gradients(np.random.default_rng(seed), 200, "plain")
    nodes = grow(TEAMS[2], DepthWise(Limits(leaves, depth)), data, gradients).nodes
    inner = np.flatnonzero(nodes.feature >= 0)
    of_inner = depths(nodes)[inner[np.argsort(nodes.left[inner])]]  # in the order in which they were split
    assert (np.diff(of_inner) >= 0).all()
    assert nodes.is_leaf.sum() <= leaves
    assert depths(nodes).max() <= depth


@pytest.mark.parametrize("backend", BACKENDS)
def test_depth_wise_gives_the_last_leaves_to_the_nodes_that_gain_most(backend: Backend) -> None:
    """Of a full level of 8 nodes, those split with 12 leaves are the 4 that gain most."""
    data = random_case(0, 600, 5, full=True, categorical=0.0, missing=0.0).data
    gradients = random_gradients(np.random.default_rng(0), 600, "plain")
    whole, cut = (
        grow(backend, DepthWise(Limits(leaves, 4, reg_lambda=0.0)), data, gradients).nodes for leaves in (16, 12)
    )
    level = np.flatnonzero(depths(whole) == 3)
    assert (whole.feature[level] >= 0).sum() == 8
    best = level[np.argsort(-whole.gain[level], kind="stable")[:4]]
    assert np.array_equal(np.flatnonzero((cut.feature >= 0) & (depths(cut) == 3)), np.sort(best))


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(2, 25), st.integers(1, 10))
def test_leaf_wise_always_splits_the_leaf_that_gains_most(seed: int, leaves: int, depth: int) -> None:
    """Each tree extends the one with a leaf less, at the leaf whose split gains most."""
    data = random_case(seed, 200, 4, full=True).data
    gradients = random_gradients(np.random.default_rng(seed), 200, "plain")
    nodes = grow(TEAMS[2], LeafWise(Limits(leaves, depth)), data, gradients).nodes
    order = np.argsort(nodes.left[nodes.feature >= 0])
    inner = np.flatnonzero(nodes.feature >= 0)[order]
    open_nodes = {0}
    for v in inner.tolist():
        gains = {u: nodes.gain[u] for u in open_nodes if u in inner}
        assert v == min(gains, key=lambda u: (-gains[u], u))
        open_nodes = open_nodes - {v} | {int(nodes.left[v]), int(nodes.right[v])}
    if leaves > 2:
        fewer = grow(TEAMS[2], LeafWise(Limits(leaves - 1, depth)), data, gradients).nodes
        assert np.array_equal(fewer.count, nodes.count[: len(fewer.count)])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("growth", [DepthWise, LeafWise, Oblivious])
@pytest.mark.parametrize(
    "limits", [Limits(1, 5), Limits(8, 0), Limits(8, 5, 101), Limits(8, 5, 1, 1e9), Limits(8, 5, 1, 1e-3, 1.0, 1e9)]
)
def test_a_limit_that_allows_no_split_leaves_the_root(
    backend: Backend, growth: type[DepthWise], limits: Limits
) -> None:
    data = random_case(1, 200, 3).data
    found = grow(backend, growth(limits), data, random_gradients(np.random.default_rng(1), 200, "plain"))
    assert found.nodes.feature.tolist() == [-1]
    assert found.nodes.count.tolist() == [200]
    assert found.leaf_of_row.tolist() == [0] * 200


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("growth", [DepthWise(Limits(64, 10)), LeafWise(Limits(64, 10)), Oblivious(Limits(64, 10))])
def test_a_tree_stops_where_nothing_is_left_to_gain(backend: Backend, growth: Growth) -> None:
    """Gradients of two values that one cut tells apart: two leaves, however many are allowed."""
    data = random_case(2, 100, 3, full=True, categorical=0.0, missing=0.0).data
    g = np.where(data.bins.columns[1] <= 5, -1.0, 1.0).astype(np.float32)[None]
    nodes = grow(backend, growth, data, Gradients(g, np.ones((1, 100), np.float32))).nodes
    # With lambda = 1 further splits of equal gradients cost more than they gain.
    assert nodes.feature.tolist() == [1, -1, -1]
    assert nodes.bin[0] == 5


@dataclass
class Noting:
    """A backend that notes what it is asked to grow."""

    limits: list[Limits] = field(default_factory=list)

    def grow(self, data: object, target: object, output: int, candidates: object, limits: Limits) -> tuple[object, ...]:
        self.limits.append(limits)
        return data, target, output, candidates


@pytest.mark.parametrize(
    ("policy", "grown"),
    [
        (DepthWise, Limits(40, 7, growth="depthwise")),
        (LeafWise, Limits(40, 7, growth="leafwise")),
        (Oblivious, Limits(40, 7, growth="oblivious")),
        (SignStump, Limits(2, 1, growth="sign_stump")),
    ],
)
def test_a_policy_names_its_order_in_one_call(policy: type[DepthWise], grown: Limits) -> None:
    """Whatever the limits that it is made of were for."""
    data = random_case(0, 10, 2).data
    target = Target(0, None, random_gradients(np.random.default_rng(0), 10, "plain"))
    every = Candidates(np.arange(2, dtype=np.int32))
    for before in ("depthwise", "leafwise", "oblivious", "sign_stump"):
        backend, growth = Noting(), policy(Limits(40, 7, growth=before))
        assert growth.structure(backend, data, target, 0, every) == (data, target, 0, every)
        assert backend.limits == [growth.limits] == [grown]
        assert growth == policy(grown)
        assert hash(growth) == hash(policy(grown))


@pytest.mark.parametrize("policy", [DepthWise, LeafWise, Oblivious])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_limit_of_depth_cuts_the_tree_off(policy: type[DepthWise], depth: int) -> None:
    """Of a tree with room for all leaves, the nodes down to a depth are those of the tree of that depth."""
    data = random_case(11, 500, 6).data
    gradients = random_gradients(np.random.default_rng(2), 500, "plain")
    for backend in (*BACKENDS, TEAMS[1]):
        whole, cut = (grow(backend, policy(Limits(1000, d)), data, gradients).nodes for d in (5, depth))
        assert depths(cut).max() == depth
        above = depths(whole) < depth
        assert above.sum() == (depths(cut) < depth).sum()
        assert sorted(whole.gain[above]) == sorted(cut.gain[depths(cut) < depth])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("policy", [DepthWise, LeafWise, Oblivious, SignStump])
def test_with_a_key_the_shape_is_random(backend: Backend, policy: type[DepthWise]) -> None:
    data, growth = random_case(3, 90, 4).data, policy(Limits(8, 3))
    target = Target(4, None, random_gradients(np.random.default_rng(3), 90, "plain"))
    every, key = Candidates(np.arange(4, dtype=np.int32)), Key.root(7)
    found = backend.grow(data, target, 2, every, growth.limits, key)
    assert (found.output, found.version, found.blind, found.sums) == (2, 4, True, None)
    assert node_bytes(found.nodes) == node_bytes(random_nodes(data.cuts, every, growth.limits, key / 2))
