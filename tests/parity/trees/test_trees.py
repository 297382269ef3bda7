"""One tree from given gradients: every machine grows the tree of the definition, and keeps what every tree keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
    node_bytes,
    random_case,
    random_gradients,
    sparse,
    structure_bytes,
    take,
    weighted,
)
from support.examples import crossed, examples
from support.growing_on_device import ORDERS, TUNINGS, device, scales_of, shaped
from support.training import MACHINES

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.trees.layout import columns_of
from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.prediction.routing import dense_rows, route
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise, Growth, LeafWise, Oblivious
from gpuboost.types import Cuts, DenseBins, Gradients, Limits, Structure, TrainingSet

Array = np.ndarray
QUICK = settings(max_examples=examples(60))
seeds = st.integers(0, 2**32 - 1)
limits = st.builds(
    Limits,
    max_leaves=st.sampled_from([1, 2, 5, 31, 500]),
    max_depth=st.sampled_from([0, 1, 2, 4, 9, 14]),
    min_samples_leaf=st.sampled_from([1, 1, 2, 5, 20]),
    min_child_weight=st.sampled_from([0.0, 1e-3, 1.0]),
    reg_lambda=st.sampled_from([0.0, 1e-6, 1.0, 10.0]),
    min_split_gain=st.sampled_from([0.0, 0.01, 5.0]),
)
growths = st.one_of(st.builds(DepthWise, limits), st.builds(LeafWise, limits), st.builds(Oblivious, limits))
sizes = st.sampled_from([1, 2, 3, 7, 30, 150, 400])
kinds = st.sampled_from(GRADIENT_KINDS)


EACH = pytest.mark.parametrize("machine", MACHINES)


def assert_same(
    machine: str, data: TrainingSet, growth: Growth, gradients: Gradients, rows: Array | None = None,
    features: Array | None = None, **more: Any,
) -> Structure:  # fmt: skip
    """The machine's tree is that of the definition, which comes back. ``more``: of a device, see ``device``."""
    if machine == "cpu":
        return assert_same_tree(data, growth, gradients, rows, features)
    expected = grow(Reference(), growth, data, gradients, rows, features)
    found = grow(device(**more), growth, data, gradients, rows, features)
    assert structure_bytes(found) == structure_bytes(expected)
    return expected


# The machines agree.


@EACH
@settings(max_examples=examples(120))
@given(
    seeds, sizes, st.sampled_from([1, 2, 5, 9, 17, 40, 70, 100]), st.sampled_from([3, 20, 254]),
    st.sampled_from([0.0, 0.1, 0.3]), st.sampled_from([0.0, 0.3, 1.0]), st.booleans(), kinds, growths,
    st.sampled_from([None, None, 0.0, 0.5, 1.0]), st.booleans(), st.sampled_from([3, 40, 10**6]),
    st.sampled_from(sorted(ORDERS)), st.sampled_from(sorted(TUNINGS)), st.booleans(),
)  # fmt: skip
def test_every_machine_grows_the_same_tree(
    machine: str, seed: int, n: int, d: int, most_cuts: int, missing: float, categorical: float, whole: bool, kind: str,
    growth: Growth, drawn: float | None, subset: bool, narrow: int, order: str, tuning: str, wide: bool,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    data = random_case(
        seed, n, d, most_cuts=most_cuts, missing=missing, categorical=categorical, weights="whole" if whole else "none"
    ).data
    gradients = random_gradients(rng, n, kind, data.multiplicity)
    rows = None if drawn is None else np.flatnonzero(rng.random(n) < drawn).astype(np.int32)
    features = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False)).astype(np.int32) if subset else None
    with eager_threads(rows=8, narrow=narrow):
        assert_same(machine, data, growth, gradients, rows, features, order=order, tuning=tuning, wide=wide)


@EACH
@pytest.mark.parametrize(
    ("n", "d", "most_cuts", "categorical", "growth"),
    crossed(
        [(2000, 1, 254, 0.0), (2000, 3, 30, 0.0), (1500, 40, 4, 0.2), (60, 100, 30, 0.0), (800, 2, 5, 1.0)],
        [
            DepthWise(Limits(64, 6)),
            LeafWise(Limits(31, 12, min_samples_leaf=3)),
            Oblivious(Limits(64, 6)),
            Oblivious(Limits(32, 5, min_samples_leaf=3)),
        ],
        most=3,
    ),
)
def test_shapes_from_one_wide_column_to_a_hundred(
    n: int, d: int, most_cuts: int, categorical: float, growth: Growth, machine: str
) -> None:
    data = random_case(n + d, n, d, most_cuts=most_cuts, categorical=categorical, missing=0.05, full=True).data
    gradients = random_gradients(np.random.default_rng(n), n, "plain")
    with eager_threads(rows=100, narrow=300):
        assert len(assert_same(machine, data, growth, gradients).nodes.feature) > 5


@pytest.mark.parametrize(
    ("n", "d", "bins", "growth"),
    [
        (70_000, 3, 200, DepthWise(Limits(16, 4))),  # more rows than 32 bits add up: pairs of 2 x 16 bits
        (1_000, 310, 60, DepthWise(Limits(16, 4))),  # ten tiles of features
        (5_000, 5, 100, LeafWise(Limits(127, 62))),
        pytest.param(5_000, 28, 255, Oblivious(Limits(256, 5, 3)), marks=pytest.mark.slow),
        # more lines than are counted in shared memory
        pytest.param(20_000, 2, 255, DepthWise(Limits(65_536, 16)), marks=pytest.mark.slow),
    ],
)
def test_large_shapes(n: int, d: int, bins: int, growth: Growth) -> None:
    """Too large for the definition: a device against two threads."""
    data, gradients = shaped(n, d, bins)
    assert n <= 65_535 or not scales_of(gradients, 0, n)["wide"][0]
    expected = grow(TEAMS[2], growth, data, gradients)
    assert structure_bytes(grow(device("forward"), growth, data, gradients)) == structure_bytes(expected)


@pytest.mark.parametrize("growth", [DepthWise(Limits(32, 5)), Oblivious(Limits(32, 5))])
def test_the_thresholds_of_everyday_use_give_the_same_tree_as_the_eager_ones(growth: Growth) -> None:
    data = random_case(8, 2000, 6).data
    gradients = random_gradients(np.random.default_rng(8), 2000, "plain")
    usual = structure_bytes(assert_same_tree(data, growth, gradients))
    with eager_threads():
        assert structure_bytes(assert_same_tree(data, growth, gradients)) == usual


@EACH
def test_255_bins_use_every_code_of_a_byte(machine: str) -> None:
    n, rng = 600, np.random.default_rng(0)
    codes = rng.permutation(np.concatenate([np.arange(256), rng.integers(0, 256, n - 256)])).astype(np.uint8)[:, None]
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), Cuts((np.arange(254.0),), (None,)), np.zeros(n))
    for extreme in (0, 1, 253, 254, 255):
        g = np.where(codes[:, 0] == extreme, -5.0, 1.0).astype(np.float32)
        gradients = Gradients(g[None], np.ones((1, n), np.float32))
        with eager_threads():
            nodes = assert_same(machine, data, LeafWise(Limits(3, 4)), gradients).nodes
        at = route(nodes, codes, data.cuts)
        alone = at[codes[:, 0] == extreme]
        assert len(set(alone)) == 1
        assert not np.isin(at[codes[:, 0] != extreme], alone).any()


def test_one_backend_serves_sparse_bins_with_and_without_a_least_leaf_size() -> None:
    """Wide sparse data is searched by column unless rows must be counted; one must not see what the other kept."""
    data = sparse(random_case(3, 40, 20, missing=0.0, categorical=0.0, most_cuts=250).data)
    backend = Cpu(2)
    assert columns_of(data.bins, data.cuts, backend._pool) is not None
    gradients = random_gradients(np.random.default_rng(0), 40, "plain")
    for least in (1, 2, 1, 3):
        growth = DepthWise(Limits(31, 5, min_samples_leaf=least))
        expected = grow(Reference(), growth, data, gradients)
        assert structure_bytes(grow(backend, growth, data, gradients)) == structure_bytes(expected)


@EACH
@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("columns", [3, 20])
def test_a_node_without_curvature_is_a_leaf(ridge: float, columns: int, machine: str) -> None:
    data = random_case(1, 50, columns, missing=0.0, categorical=0.0, most_cuts=100).data
    gradients = Gradients(np.ones((1, 50), np.float32), np.zeros((1, 50), np.float32))
    for growth in (one(Limits(8, 3, 1, 0.0, ridge)) for one in (DepthWise, LeafWise, Oblivious)):
        assert assert_same(machine, data, growth, gradients).nodes.feature.tolist() == [-1]


@EACH
@pytest.mark.parametrize(
    ("d", "weights", "tuning", "growth"),
    crossed(
        [(1, "none", "starved"), (4, "whole", "half"), (4, "none", "everyday"), (6, "whole", "shared out")],
        [
            DepthWise(Limits(64, 6)),
            LeafWise(Limits(20, 8, min_samples_leaf=30)),
            Oblivious(Limits(64, 6)),
            Oblivious(Limits(64, 6, min_samples_leaf=30)),
        ],
    ),
)
def test_categories_of_many_rows(d: int, weights: str, tuning: str, growth: Growth, machine: str) -> None:
    """Enough rows of each category for sets of them to be formed, with rare and missing ones among them. Beside them,
    if they are six, two numeric columns.
    """
    rng, n = np.random.default_rng(d), 2500
    counts = [12, 40, 254, 6, 4, 3][:d]
    columns = [np.minimum(rng.geometric(min(4.0 / b, 0.7), n), b) for b in counts]
    numeric = 2 * (d == 6)
    codes = np.stack([*columns, *rng.integers(0, 200, (numeric, n))], axis=1).astype(np.uint8)
    cuts = Cuts(
        (np.empty(0),) * d + (np.arange(199.0),) * numeric, (*(np.arange(b) for b in counts), *(None,) * numeric)
    )
    data = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, np.zeros(n))
    data = weighted(data, weights, rng)
    noise = random_gradients(rng, n, "plain", data.multiplicity)
    g = noise.g + np.float32(2.0) * rng.normal(size=255).astype(np.float32)[codes[:, min(d, 3) - 1]]
    with eager_threads(rows=200, narrow=500):
        nodes = assert_same(machine, data, growth, replace(noise, g=g), tuning=tuning).nodes
    sizes = np.array([bin(int.from_bytes(words.tobytes(), "little")).count("1") for words in nodes.left_set])
    assert sizes.max() > (1 if d == 1 else 4)
    if weights == "whole" and growth.limits.min_samples_leaf == 1:
        again = np.repeat(np.arange(n), data.multiplicity)
        repeated = Gradients(g[:, again], noise.h[:, again])
        found = grow(TEAMS[3], growth, take(replace(data, multiplicity=None), again), repeated).nodes
        assert node_bytes(found, counts=False) == node_bytes(nodes, counts=False)


# What is true of every tree.


@EACH
@settings(max_examples=examples(120))
@given(seeds, sizes, st.integers(1, 6), kinds, growths, st.booleans())
def test_a_tree_keeps_its_rows_its_sums_and_its_limits(
    machine: str, seed: int, n: int, d: int, kind: str, growth: Growth, whole: bool
) -> None:
    data = random_case(seed, n, d, missing=0.2, weights="whole" if whole else "none").data
    gradients = random_gradients(np.random.default_rng(seed), n, kind, data.multiplicity)
    g, h, units = integers(gradients, 0)
    with eager_threads(rows=8):
        found = grow(TEAMS[3] if machine == "cpu" else device(), growth, data, gradients)
    nodes, limit = found.nodes, growth.limits
    leaves, inner = np.flatnonzero(nodes.is_leaf), np.flatnonzero(~nodes.is_leaf)

    assert len(leaves) == len(inner) + 1 <= limit.max_leaves
    assert nodes.count[0] == n == nodes.count[leaves].sum()
    assert np.array_equal(route(nodes, dense_rows(data.bins), data.cuts), found.leaf_of_row)
    assert np.array_equal(np.bincount(found.leaf_of_row, minlength=len(nodes.count))[leaves], nodes.count[leaves])

    left, right = nodes.left[inner], nodes.right[inner]
    assert (left > inner).all()
    assert (right == left + 1).all()
    assert sorted([0, *left, *right]) == list(range(len(nodes.feature)))
    for sums, units_of, rows in ((found.sums[0], units[0], g), (found.sums[1], units[1], h)):
        whole_sums = np.rint(sums / units_of).astype(np.int64)
        assert np.array_equal(whole_sums[inner], whole_sums[left] + whole_sums[right])
        assert all(whole_sums[leaf] == rows[found.leaf_of_row == leaf].sum() for leaf in leaves)
    assert np.array_equal(nodes.count[inner], nodes.count[left] + nodes.count[right])
    assert np.array_equal(nodes.cover, found.sums[1])

    depth = np.zeros(len(nodes.feature), int)
    for v in inner:
        depth[[nodes.left[v], nodes.right[v]]] = depth[v] + 1
    assert depth.max() <= limit.max_depth
    if len(inner) and not limit.symmetric:
        assert nodes.count[leaves].min() >= limit.min_samples_leaf
        assert nodes.cover[leaves].min() >= limit.min_child_weight
        assert nodes.gain[inner].min() > limit.min_split_gain
    unused = nodes.gain[leaves], nodes.bin[leaves], nodes.left[leaves], nodes.right[leaves], nodes.left_set[leaves]
    assert not any(column.any() for column in unused)
    numeric = inner[~data.cuts.is_categorical[nodes.feature[inner]]]
    assert not nodes.left_set[numeric].any()


@QUICK
@given(seeds, st.integers(2, 300), kinds, growths)
def test_the_order_of_rows_does_not_matter(seed: int, n: int, kind: str, growth: Growth) -> None:
    data = random_case(seed, n, 4, weights="whole").data
    rng = np.random.default_rng(seed)
    gradients = random_gradients(rng, n, kind, data.multiplicity)
    order = rng.permutation(n)
    shuffled = Gradients(gradients.g[:, order], gradients.h[:, order], gradients.multiplicity[order])
    with eager_threads(rows=8):
        one = grow(TEAMS[2], growth, data, gradients)
        other = grow(TEAMS[2], growth, take(data, order), shuffled)
    assert structure_bytes(other) == structure_bytes(replace(one, leaf_of_row=one.leaf_of_row[order]))


@QUICK
@given(
    seeds, st.integers(1, 150), kinds, st.sampled_from([DepthWise, LeafWise, Oblivious]), st.sampled_from([0.0, 1.0])
)
def test_a_row_of_multiplicity_three_is_three_rows(
    seed: int, n: int, kind: str, growth_of: type[DepthWise], least: float
) -> None:
    data = random_case(seed, n, 4, weights="whole").data
    gradients = random_gradients(np.random.default_rng(seed), n, kind, data.multiplicity)
    growth = growth_of(Limits(20, 5, min_child_weight=least))
    again = np.repeat(np.arange(n), data.multiplicity)
    repeated = take(replace(data, multiplicity=None), again)
    one = grow(TEAMS[2], growth, data, gradients)
    other = grow(TEAMS[2], growth, repeated, Gradients(gradients.g[:, again], gradients.h[:, again]))
    assert structure_bytes(other, counts=False) == structure_bytes(
        replace(one, leaf_of_row=one.leaf_of_row[again]), counts=False
    )


@QUICK
@given(seeds, st.integers(2, 200), growths)
def test_features_outside_the_subset_might_as_well_not_exist(seed: int, n: int, growth: Growth) -> None:
    data = random_case(seed, n, 6).data
    gradients = random_gradients(np.random.default_rng(seed), n, "plain")
    features = np.array([1, 4, 5], np.int32)
    codes = np.ascontiguousarray(dense_rows(data.bins)[:, features])
    cuts = Cuts(tuple(data.cuts.thresholds[f] for f in features), tuple(data.cuts.categories[f] for f in features))
    alone = TrainingSet(DenseBins(codes, np.ascontiguousarray(codes.T)), cuts, data.y)
    for bins in (data, sparse(data)):
        found = grow(TEAMS[2], growth, bins, gradients, None, features).nodes
        expected = grow(TEAMS[2], growth, alone, gradients).nodes
        named = np.where(expected.feature < 0, -1, features[expected.feature]).astype(np.int32)
        assert node_bytes(found) == node_bytes(replace(expected, feature=named))


@QUICK
@given(seeds, st.integers(2, 200), st.integers(1, 5))
def test_with_room_for_all_leaves_both_growths_part_the_rows_alike(seed: int, n: int, depth: int) -> None:
    data = random_case(seed, n, 4).data
    gradients = random_gradients(np.random.default_rng(seed), n, "plain")
    leaves = [
        grow(TEAMS[1], growth(Limits(2**depth, depth)), data, gradients).leaf_of_row for growth in (DepthWise, LeafWise)
    ]
    pairs = set(zip(*(found.tolist() for found in leaves), strict=True))
    assert len(pairs) == len(set(leaves[0].tolist())) == len(set(leaves[1].tolist()))
