"""The contract of a backend: the verbs that bin the data, take its gradients and grow a tree."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from scipy import sparse as scipy_sparse
from support.builders import grow, node_bytes, random_case, random_gradients, sparse

from gpuboost import losses
from gpuboost.backends import get
from gpuboost.backends.prediction.routing import dense_rows
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.keys import Key
from gpuboost.losses import Loss
from gpuboost.types import Candidates, Cuts, Gradients, Limits, Nodes, Sample, Target, TrainingSet

Array = np.ndarray


def all_features(data: TrainingSet) -> Candidates:
    return Candidates(np.arange(data.cuts.n_features, dtype=np.int32))


# the data, once


def test_a_backend_has_a_name_and_is_found_by_it(backend: Backend) -> None:
    assert isinstance(get(backend.name, 1), type(backend))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_a_bin_holds_what_is_above_its_lower_cut_and_up_to_its_upper_one(
    backend: Backend, dtype: type, order: str
) -> None:
    cuts = Cuts((np.array([-1.5, 0.0, 2.0]), np.empty(0)), (None, None))
    column = [-np.inf, -1.5, np.nextafter(dtype(-1.5), dtype(0)), -0.0, 0.0, 1e-30, 2.0, 2.5, np.inf, np.nan]
    expected = [0, 0, 1, 1, 1, 2, 2, 3, 3, 4]
    x = np.stack([column, [7.0] * 9 + [np.nan]], axis=1).astype(dtype)
    x = {"C": x, "F": np.asfortranarray(x), "strided": np.repeat(x, 2, axis=0)[::2]}[order]
    bins = backend.quantise(x, cuts)
    assert bins.shape == (10, 2)
    assert bins.rows.dtype == bins.columns.dtype == np.uint8
    assert bins.rows.tolist() == [[c, 0] for c in expected[:9]] + [[4, 1]]
    assert np.array_equal(bins.columns, bins.rows.T)
    assert bins.rows.flags.c_contiguous
    assert bins.columns.flags.c_contiguous


def test_categories_are_coded_by_their_place_and_all_else_is_missing(backend: Backend) -> None:
    cuts = Cuts((np.empty(0),), (np.array([5, 0, 3]),))
    x = np.array([[5.0], [0.0], [3.0], [-0.0], [1.0], [-1.0], [3.5], [1e18], [np.nan]])
    assert backend.quantise(x, cuts).rows[:, 0].tolist() == [0, 1, 2, 1, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("density", [0.02, 0.6])
def test_sparse_values_get_the_bins_of_dense_ones(backend: Backend, format: str, density: float) -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random((80, 7)) < density, rng.normal(size=(80, 7)), 0.0)
    x[3, 2] = np.nan
    cuts = Cuts(tuple(np.unique(np.round(rng.normal(size=5), 1)) for _ in range(7)), (None,) * 7)
    bins = backend.quantise(scipy_sparse.coo_array(x).asformat(format), cuts)
    assert np.array_equal(dense_rows(bins), Reference().quantise(x, cuts).rows)


# the target, once a round


@pytest.mark.parametrize("k", [1, 3])
def test_start_scores_are_the_bias(backend: Backend, k: int) -> None:
    data, bias = random_case(0, 20, 2).data, np.arange(1.0, k + 1)
    scores = backend.start(data, bias)
    assert scores.dtype == np.float64
    assert scores.tolist() == [[float(c)] * 20 for c in range(1, k + 1)]
    scores[:] = 0.0
    assert bias[0] == 1.0


@pytest.mark.parametrize(("loss", "target"), [(losses.Huber(0.5), "real"), (losses.Softmax(3), "3")])
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
@pytest.mark.parametrize("curvature", [None, 0.0, 0.3])
def test_gradients_are_the_formula_in_float64_times_the_weight_rounded_once(
    backend: Backend, loss: Loss, target: str, weights: str, curvature: float | None
) -> None:
    data = random_case(1, 40, 2, target=target, weights=weights).data
    scores = np.random.default_rng(1).normal(size=(loss.n_outputs, 40))
    before = scores.copy()
    found = backend.gradients(loss, scores, data, curvature)
    assert np.array_equal(scores, before)
    assert found.multiplicity is data.multiplicity
    g, h = np.empty_like(scores), np.empty_like(scores)
    for i, y in enumerate(data.y):
        if loss.n_outputs == 1:
            g[0, i], h[0, i] = loss.derivatives(y, scores[0, i], loss.parameter)
        else:
            loss.row_derivatives(y, scores[:, i], g[:, i], h[:, i], loss.parameter)
    weight = 1.0 if data.weight is None else data.weight
    h = h if curvature is None else np.full_like(h, curvature)
    for values, expected in ((found.g, g * weight), (found.h, h * weight)):
        assert values.dtype == np.float32
        assert np.array_equal(values, expected.astype(np.float32))


def test_a_sample_lists_rows_and_what_one_over_p_is(backend: Backend) -> None:
    sample = backend.sample(0.25, 1000, Key.root(1) / "rows" / 0)
    assert sample.rows.dtype == np.int32
    assert (np.diff(sample.rows) > 0).all()
    assert sample.rows[0] >= 0
    assert sample.rows[-1] < 1000
    assert sample.inverse_probability.dtype == np.float32
    assert sample.inverse_probability.tolist() == [4.0] * len(sample.rows)
    assert len(backend.sample(1e-12, 1000, Key.root(1) / "rows" / 0).rows) == 0


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("whole", [False, True])
def test_weighing_takes_the_rows_of_the_sample(backend: Backend, k: int, whole: bool) -> None:
    rng = np.random.default_rng(2)
    g, h = rng.normal(size=(2, k, 50)).astype(np.float32)
    m = rng.integers(1, 9, 50).astype(np.int32) if whole else None
    sample = Sample(np.array([0, 3, 49], np.int32), np.array([2.0, 3.0, 4.0], np.float32))
    found = backend.weigh(Gradients(g, h, m), sample)
    for values, of_all in ((found.g, g), (found.h, h)):
        assert values.dtype == np.float32
        assert np.array_equal(values, of_all[:, [0, 3, 49]] * np.float32([2.0, 3.0, 4.0]))
    assert found.multiplicity is None if m is None else np.array_equal(found.multiplicity, m[[0, 3, 49]])


# the tree


@pytest.mark.parametrize("growth", [DepthWise, LeafWise, Oblivious])
def test_a_tree_has_the_leaves_that_it_may(backend: Backend, growth: type[DepthWise]) -> None:
    """It says for what output it was grown, and at what version; its rows are in the leaves that it sends them to."""
    data = random_case(3, 200, 4, full=True, categorical=0.0).data
    gradients = random_gradients(np.random.default_rng(3), 200, "plain")
    target = Target(5, None, Gradients(np.repeat(gradients.g, 2, 0), np.repeat(gradients.h, 2, 0)))
    for leaves in (1, 2, 4):
        found = growth(Limits(leaves, 5)).structure(backend, data, target, 1, all_features(data))
        assert (found.output, found.version) == (1, 5)
        assert found.nodes.is_leaf.sum() == leaves
        assert found.leaf_of_row.dtype == np.int32
        assert np.array_equal(np.bincount(found.leaf_of_row, minlength=2 * leaves - 1) > 0, found.nodes.is_leaf)


def test_with_a_key_the_gradients_are_not_looked_at(backend: Backend) -> None:
    data, rng = random_case(3, 200, 4).data, np.random.default_rng(3)
    found = [
        backend.grow(
            data, Target(5, None, random_gradients(rng, 200, "plain")), 0, all_features(data), Limits(8, 3), Key.root(1)
        )
        for _ in range(2)
    ]
    assert node_bytes(found[0].nodes) == node_bytes(found[1].nodes)
    assert found[0].nodes.is_leaf.sum() == 8
    assert found[0].blind


def test_the_arrays_of_a_tree_have_their_dtypes(backend: Backend) -> None:
    data = random_case(4, 150, 4).data
    nodes = grow(backend, DepthWise(Limits(8, 3)), data, random_gradients(np.random.default_rng(4), 150, "plain")).nodes
    dtypes = {"feature": np.int32, "bin": np.int32, "missing_left": np.bool_, "left": np.int32, "right": np.int32,
              "gain": np.float64, "cover": np.float64, "count": np.int64, "left_set": np.uint32}  # fmt: skip
    assert {one.name for one in fields(Nodes)} == set(dtypes)
    for name, dtype in dtypes.items():
        array = getattr(nodes, name)
        assert array.dtype == dtype
        assert array.shape == ((15, 8) if name == "left_set" else (15,))


def test_a_tree_of_a_sample_knows_no_leaves_of_rows_and_counts_the_sample(backend: Backend) -> None:
    data = random_case(5, 200, 4).data
    rows = np.arange(0, 200, 2, dtype=np.int32)
    gradients = random_gradients(np.random.default_rng(5), 200, "plain")
    for bins in (data, sparse(data)):
        found = grow(backend, DepthWise(Limits(8, 3)), bins, gradients, rows)
        assert found.leaf_of_row is None
        assert found.sums is None
        assert found.nodes.count[0] == 100
        assert rows.tolist() == list(range(0, 200, 2))


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("version", [0, 1])
def test_leaf_values_are_those_of_all_rows_at_the_version_asked_for(
    backend: Backend, sampled: bool, version: int
) -> None:
    data, rng = random_case(6, 200, 4, weights="whole").data, np.random.default_rng(6)
    old = random_gradients(rng, 200, "plain", data.multiplicity)
    new = old if version == 0 else random_gradients(rng, 200, "plain", data.multiplicity)
    rows = np.arange(0, 200, 2, dtype=np.int32) if sampled else None
    for bins in (data, sparse(data)):
        structure = grow(backend, DepthWise(Limits(8, 3)), bins, old, rows)
        tree, leaf = backend.leaf_values(structure, new, bins, Limits(8, 3, reg_lambda=0.5), version)
        assert (tree.output, tree.version) == (0, 0)
        assert leaf.dtype == np.int32
        assert leaf.shape == (200,)
        assert tree.nodes.is_leaf[leaf].all()
        assert not tree.value[~tree.nodes.is_leaf].any()
        for v in np.unique(leaf):
            at = leaf == v
            g, h = (float((values[0] * data.multiplicity)[at].sum(dtype=float)) for values in (new.g, new.h))
            assert tree.value[v] == pytest.approx(-g / (h + 0.5), rel=1e-4, abs=1e-6)


def test_a_leaf_without_curvature_has_the_value_0(backend: Backend) -> None:
    data = random_case(6, 60, 2).data
    nothing = Gradients(np.ones((1, 60), np.float32), np.zeros((1, 60), np.float32))
    structure = grow(backend, DepthWise(Limits(4, 2, 1, 0.0, 0.0)), data, nothing)
    tree, _ = backend.leaf_values(structure, nothing, data, Limits(4, 2, 1, 0.0, 0.0), 0)
    assert tree.value.tolist() == [0.0]
    assert not np.signbit(tree.value).any()
