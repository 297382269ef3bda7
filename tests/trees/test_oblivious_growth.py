"""Oblivious trees: what all nodes of a level share, how the shared split is chosen, and what becomes of empty sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, assert_same_tree, eager_threads, grow, random_case, random_gradients, sparse
from support.examples import examples

from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.numerics.leaf_values import newton_values
from gpuboost.backends.prediction.routing import dense_rows, route
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise, Oblivious
from gpuboost.types import Cuts, DenseBins, Gradients, Limits, Nodes, TrainingSet

Array = np.ndarray
BACKENDS = [Reference(), TEAMS[2]]
QUICK = settings(max_examples=examples(60))


def numeric(codes: Array, n_cuts: int) -> TrainingSet:
    """Rows of given bins; code n_cuts + 1 is a missing value."""
    codes = np.ascontiguousarray(codes, np.uint8)
    d = codes.shape[1]
    cuts = Cuts((np.arange(float(n_cuts)),) * d, (None,) * d)
    return TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(len(codes)))


def plain(g: Array) -> Gradients:
    """With a curvature of 1."""
    return Gradients(np.asarray(g, np.float32)[None], np.ones((1, len(g)), np.float32))


def levels(nodes: Nodes) -> list[Array]:
    """The inner nodes of each depth."""
    depth = np.zeros(len(nodes.feature), int)
    inner = np.flatnonzero(~nodes.is_leaf)
    for v in inner:
        depth[[nodes.left[v], nodes.right[v]]] = depth[v] + 1
    return [inner[depth[inner] == k] for k in range(depth.max())]


limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([4, 20, 1000]),
    max_depth=st.integers(1, 7),
    min_samples_leaf=st.sampled_from([1, 1, 4]),
    min_child_weight=st.sampled_from([0.0, 1e-3, 3.0]),
    reg_lambda=st.sampled_from([0.0, 1.0]),
    min_split_gain=st.sampled_from([0.0, 0.5]),
)


@QUICK
@given(st.integers(0, 2**32 - 1), st.sampled_from([5, 60, 300]), limits, st.sampled_from(["plain", "ties", "flat"]))
def test_all_nodes_of_a_level_share_one_split(seed: int, n: int, limit: Limits, kind: str) -> None:
    data = random_case(seed, n, 4).data
    gradients = random_gradients(np.random.default_rng(seed), n, kind)
    found = grow(TEAMS[2], Oblivious(limit), data, gradients)
    nodes = found.nodes
    for level in levels(nodes):
        for column in (nodes.feature, nodes.bin, nodes.missing_left, nodes.left_set):
            assert (column[level] == column[level[0]]).all()
        assert nodes.gain[level].sum() > limit.min_split_gain
    assert nodes.is_leaf.sum() <= limit.max_leaves
    assert len(levels(nodes)) <= limit.max_depth

    # A leaf above the last level is one that no split could part.
    of_level = levels(nodes)
    for depth in range(1, len(of_level)):
        born = np.concatenate([nodes.left[of_level[depth - 1]], nodes.right[of_level[depth - 1]]])
        leaves = np.setdiff1d(born, of_level[depth])
        light = (nodes.cover[leaves] <= 0.0) | (nodes.cover[leaves] < 2.0 * limit.min_child_weight)
        few = (limit.min_samples_leaf > 1) & (nodes.count[leaves] < 2 * limit.min_samples_leaf)
        assert (light | few).all()


def shared_gain(codes: Array, missing: int, leaf: Array, g: Array, h: Array, limit: Limits, left: Array) -> float:
    """By sums over rows, not by histograms."""
    total = 0.0
    for v in np.unique(leaf):
        here = leaf == v
        sides = [here & left, here & ~left]
        if all(side.any() and h[side].sum() >= limit.min_child_weight for side in sides):
            score = [g[rows].sum() ** 2 / (h[rows].sum() + limit.reg_lambda) for rows in (*sides, here)]
            total += score[0] + score[1] - score[2]
    return total


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", range(6))
def test_no_other_split_of_the_level_gains_more(backend: Backend, seed: int) -> None:
    rng, n, n_cuts = np.random.default_rng(seed), 120, 7
    codes = rng.integers(0, n_cuts + 2, (n, 3))
    g, h = rng.integers(-8, 9, n) / 8.0, rng.integers(1, 9, n) / 8.0
    gradients = Gradients(g.astype(np.float32)[None], h.astype(np.float32)[None])
    limit = Limits(64, 4, min_child_weight=0.5)
    data = numeric(codes, n_cuts)
    nodes = grow(backend, Oblivious(limit), data, gradients).nodes
    assert len(levels(nodes)) == 4
    for depth, level in enumerate(levels(nodes)):
        above = grow(backend, Oblivious(Limits(64, max(depth, 1), min_child_weight=0.5)), data, gradients)
        leaf = above.leaf_of_row if depth else np.zeros(n, int)
        gains = {
            (f, cut, to_left): shared_gain(
                codes, n_cuts + 1, leaf, g, h, limit,
                (codes[:, f] <= cut) | (codes[:, f] == n_cuts + 1) & to_left,
            )
            for f in range(3) for cut in range(n_cuts + 1) for to_left in (False, True)
        }  # fmt: skip
        v = level[0]
        chosen = gains[int(nodes.feature[v]), int(nodes.bin[v]), bool(nodes.missing_left[v])]
        assert chosen == pytest.approx(max(gains.values()), rel=1e-12)
        assert nodes.gain[level].sum() == pytest.approx(chosen, rel=1e-12)


def test_the_first_split_is_that_of_any_other_tree() -> None:
    for seed in range(20):
        data = random_case(seed, 400, 5).data
        gradients = random_gradients(np.random.default_rng(seed), 400, "plain")
        roots = [grow(TEAMS[1], growth(Limits(2, 1)), data, gradients).nodes for growth in (DepthWise, Oblivious)]
        for name in ("feature", "bin", "missing_left", "left_set"):
            assert np.array_equal(getattr(roots[0], name), getattr(roots[1], name))
        assert roots[1].gain[0] == roots[0].gain[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_second_cut_of_a_feature_leaves_an_empty_leaf_of_value_0(backend: Backend) -> None:
    codes = np.repeat(np.arange(4), 25)[:, None]
    g = np.array([-6.0, -3.0, 5.0, 5.5])[codes[:, 0]]
    nodes = grow(backend, Oblivious(Limits(4, 2)), numeric(codes, 3), plain(g)).nodes
    assert nodes.feature.tolist() == [0, 0, 0, -1, -1, -1, -1]
    assert nodes.bin[:3].tolist() == [1, 0, 0]
    assert nodes.count.tolist() == [100, 50, 50, 25, 25, 0, 50]
    assert nodes.gain[1] > nodes.gain[2] == 0.0
    for ridge in (0.0, 1.0):
        sums = nodes.count * np.array([0.0, 0.0, 0.0, -6.0, -3.0, 0.0, 5.25]), nodes.count * 1.0
        values = newton_values(nodes, sums, Limits(4, 2, reg_lambda=ridge))
        assert values[5] == 0.0
        assert (values[[3, 4, 6]] != 0.0).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_node_that_the_second_split_leaves_whole_goes_on(backend: Backend) -> None:
    """Were it to become a leaf, the third level could not part its rows."""
    rng = np.random.default_rng(0)
    codes = np.stack([np.repeat(np.arange(4), 50), rng.integers(0, 4, 200)], axis=1)
    g = np.array([-6.0, -3.0, 5.0, 5.0])[codes[:, 0]] + np.where(codes[:, 0] > 1, 0.6 * (codes[:, 1] > 1), 0.0)
    found = grow(backend, Oblivious(Limits(8, 3, reg_lambda=0.0)), numeric(codes, 3), plain(g))
    assert [found.nodes.feature[level[0]] for level in levels(found.nodes)] == [0, 0, 1]
    whole = found.leaf_of_row[codes[:, 0] > 1]
    assert len(set(whole[codes[codes[:, 0] > 1, 1] > 1]) & set(whole[codes[codes[:, 0] > 1, 1] <= 1])) == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_level_is_split_as_a_whole_or_not_at_all(backend: Backend) -> None:
    data = random_case(0, 600, 5, full=True, categorical=0.0, missing=0.0).data
    gradients = random_gradients(np.random.default_rng(0), 600, "plain")
    leaves = [
        int(grow(backend, Oblivious(Limits(most, 10)), data, gradients).nodes.is_leaf.sum()) for most in range(2, 20)
    ]
    assert leaves[:15] == [2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 16]
    assert all(found <= most for found, most in zip(leaves, range(2, 20), strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
def test_min_split_gain_is_asked_of_the_whole_level(backend: Backend) -> None:
    data = random_case(3, 500, 4, full=True, categorical=0.0, missing=0.0).data
    gradients = random_gradients(np.random.default_rng(3), 500, "plain")
    nodes = grow(backend, Oblivious(Limits(8, 3)), data, gradients).nodes
    gains = [float(nodes.gain[level].sum()) for level in levels(nodes)]
    assert len(gains) == 3
    for depth, gain in enumerate(gains):
        above = [levels(grow(backend, Oblivious(Limits(8, 3, min_split_gain=least)), data, gradients).nodes)
                 for least in (gain * 0.999, gain * 1.001)]  # fmt: skip
        if gain == min(gains[: depth + 1]):
            assert len(above[1]) == depth < len(above[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sparse_bins", [False, True])
def test_missing_values_go_one_way_on_a_level_and_to_the_heavier_side_where_none_was_seen(
    backend: Backend, sparse_bins: bool
) -> None:
    codes = np.repeat([[0], [1], [2]], [10, 10, 40], axis=0)
    data = numeric(codes, 2)
    data = sparse(data) if sparse_bins else data
    nodes = grow(backend, Oblivious(Limits(4, 1)), data, plain(np.array([-1.0, -1.0, 1.0])[codes[:, 0]])).nodes
    assert nodes.bin[0] == 1
    assert not nodes.missing_left[0]
    nodes = grow(backend, Oblivious(Limits(4, 1)), data, plain(np.array([9.0, 1.0, 0.9])[codes[:, 0]])).nodes
    assert nodes.bin[0] == 0
    assert not nodes.missing_left[0]
    codes[:5] = 3  # missing, and like those of bin 2
    g = np.array([-1.0, -1.0, 1.0, 1.0])[codes[:, 0]]
    nodes = grow(backend, Oblivious(Limits(4, 1)), numeric(codes, 2), plain(g)).nodes
    assert nodes.bin[0] == 1
    assert not nodes.missing_left[0]
    nodes = grow(backend, Oblivious(Limits(4, 1)), numeric(codes, 2), plain(np.where(codes[:, 0] == 3, -1.0, g))).nodes
    assert nodes.missing_left[0]


def test_gradients_that_cancel_without_curvature_leave_the_backends_equal() -> None:
    """Missing values of two nodes whose sums cancel on the level are not seen there, but are in each node."""
    codes = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [0, 3], [1, 3]] * 4)
    g = np.array([-4.0, -2.0, 0.0, 4.0, 8.0, 9.0, -1.0, 1.0] * 4)
    h = np.where(codes[:, 1] == 3, 0.0, 1.0)
    gradients = Gradients(g.astype(np.float32)[None], h.astype(np.float32)[None])
    cuts = Cuts((np.arange(1.0), np.arange(2.0)), (None, None))
    bins = DenseBins(np.ascontiguousarray(codes, np.uint8), np.ascontiguousarray(codes.T, np.uint8))
    with eager_threads():
        nodes = assert_same_tree(TrainingSet(bins, cuts, np.zeros(len(g))), Oblivious(Limits(8, 3)), gradients).nodes
    assert nodes.is_leaf.sum() > 2


@pytest.mark.parametrize("least", [1, 10])
def test_wide_sparse_data(least: int) -> None:
    """Such data is searched by column elsewhere; the sums of a level need histograms."""
    data = random_case(3, 60, 25, missing=0.0, categorical=0.0, most_cuts=250).data
    gradients = random_gradients(np.random.default_rng(0), 60, "plain")
    with eager_threads():
        nodes = assert_same_tree(data, Oblivious(Limits(31, 5, min_samples_leaf=least)), gradients).nodes
    assert nodes.is_leaf.sum() > 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sample_shapes_the_tree_and_all_rows_fill_its_leaves(backend: Backend) -> None:
    data = random_case(5, 300, 4).data
    gradients = random_gradients(np.random.default_rng(5), 300, "plain")
    rows = np.arange(0, 300, 7, dtype=np.int32)
    growth = Oblivious(Limits(32, 5))
    structure = grow(backend, growth, data, gradients, rows)
    tree, leaf_of_row = backend.leaf_values(structure, gradients, data, growth.limits, 0)
    assert structure.nodes.count[0] == len(rows)
    assert np.array_equal(leaf_of_row, route(tree.nodes, dense_rows(data.bins), data.cuts))
    g, h, units = integers(gradients, 0)
    for leaf in np.flatnonzero(tree.nodes.is_leaf):
        here = leaf_of_row == leaf
        expected = -(g[here].sum() * units[0]) / (h[here].sum() * units[1] + 1.0)
        assert tree.value[leaf] == expected


def test_limits_are_made_symmetric() -> None:
    limit = Limits(8, 3)
    assert not limit.symmetric
    assert Oblivious(limit).limits == Limits(8, 3, growth="oblivious")
    assert Oblivious(limit) == Oblivious(Oblivious(limit).limits)
