"""Prediction from raw values: the kernels against the definition in a few lines of numpy, bit for bit."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from support.builders import random_gradients
from support.examples import examples
from support.strategies import Array, probing_rows, random_cuts, random_ensemble, random_nodes

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.prediction import predictor
from gpuboost.backends.prediction.few_binned_rows import MOST, MOST_AFTER_ROUNDS, scores_after, walked
from gpuboost.backends.prediction.flat_forest import FlatForest
from gpuboost.backends.prediction.predictor import ForestPredictor
from gpuboost.backends.prediction.raw_values import rows_of
from gpuboost.backends.reference.backend import Reference
from gpuboost.errors import InputError
from gpuboost.types import Cuts, DenseBins, Ensemble, FittedTree, Nodes, SparseBins


def leaf_by_definition(nodes: Nodes, cuts: Cuts, row: Array) -> int:
    """One decision after the other, on the raw values of one row."""
    at = 0
    while nodes.feature[at] >= 0:
        f = int(nodes.feature[at])
        value, categories = float(row[cuts.columns[f]]), cuts.categories[f]
        if categories is not None:
            found = np.flatnonzero(categories == value)
            code = int(found[0]) if len(found) else -1
            left = bool(nodes.missing_left[at]) if code < 0 else bool(nodes.left_set[at][code // 32] >> (code % 32) & 1)
        elif np.isnan(value):
            left = bool(nodes.missing_left[at])
        else:
            left = nodes.bin[at] == len(cuts.thresholds[f]) or value <= cuts.thresholds[f][nodes.bin[at]]
        at = int(nodes.left[at] if left else nodes.right[at])
    return at


def leaves_by_definition(ensemble: Ensemble, x: Array) -> Array:
    found = [[leaf_by_definition(tree.nodes, ensemble.cuts, row) for tree in ensemble.trees] for row in x]
    return np.array(found, np.int32).reshape(len(x), len(ensemble.trees))


def scores_by_definition(ensemble: Ensemble, x: Array) -> Array:
    leaves, sums = leaves_by_definition(ensemble, x), np.zeros((ensemble.n_outputs, len(x)))
    if ensemble.scale == 1.0:
        sums += ensemble.bias[:, None]
    for t, (tree, factor) in enumerate(zip(ensemble.trees, ensemble.factors, strict=True)):
        sums[tree.output] += (factor * tree.value)[leaves[:, t]]
    return sums if ensemble.scale == 1.0 else ensemble.bias[:, None] + ensemble.scale * sums


def predicted(ensemble: Ensemble, x: object, n: int) -> Array:
    out = np.full((ensemble.n_outputs, n), np.nan)
    predictor.predict(ForestPredictor.of(ensemble), x, 0, n, out)
    return out


def leaves(ensemble: Ensemble, x: object, n: int) -> Array:
    out = np.full((n, len(ensemble.trees)), -1, np.int32)
    predictor.leaves(ForestPredictor.of(ensemble), x, 0, n, out)
    return out


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([1, 2, 7, 8, 23, 24, 25, 64, 65, 130]),
    d=st.sampled_from([1, 2, 7, 40]),
    k=st.sampled_from([1, 3]),
    max_leaves=st.sampled_from([1, 2, 3, 8, 60]),
    categorical=st.sampled_from([0.0, 0.5, 1.0]),
    scale=st.sampled_from([1.0, 0.3]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_kernels_agree_with_the_definition(
    seed: int, n: int, d: int, k: int, max_leaves: int, categorical: float, scale: float, dtype: type
) -> None:
    ensemble = random_ensemble(
        seed, n_columns=d, rounds=3, n_outputs=k, max_leaves=max_leaves, categorical=categorical, scale=scale
    )
    x = probing_rows(ensemble, n, seed, dtype)
    np.testing.assert_array_equal(leaves(ensemble, x, n), leaves_by_definition(ensemble, x))
    np.testing.assert_array_equal(predicted(ensemble, x, n), scores_by_definition(ensemble, x))


@pytest.mark.parametrize("seed", range(4))
def test_reference_and_cpu_agree_on_every_verb_of_a_model(seed: int) -> None:
    ensemble = random_ensemble(seed, n_columns=7, n_outputs=2, max_leaves=30, categorical=0.4)
    x = probing_rows(ensemble, 90, seed)
    reference, cpu = Reference(), Cpu(threads=2)
    np.testing.assert_array_equal(cpu.predict(ensemble, x), reference.predict(ensemble, x))
    np.testing.assert_array_equal(cpu.leaves(ensemble, x), reference.leaves(ensemble, x))
    np.testing.assert_array_equal(cpu.contributions(ensemble, x), reference.contributions(ensemble, x))
    np.testing.assert_array_equal(cpu.interactions(ensemble, x), reference.interactions(ensemble, x))


@pytest.mark.parametrize("max_leaves", [255, 256, 257, 600])
@pytest.mark.parametrize("categorical", [0.0, 0.6])
def test_trees_around_256_leaves(max_leaves: int, categorical: float) -> None:
    rng = np.random.default_rng(max_leaves)
    cuts = random_cuts(rng, 6, categorical)
    nodes = [random_nodes(rng, cuts, max_leaves) for _ in range(4)]
    assert any(len(tree.feature) == 2 * max_leaves - 1 for tree in nodes)
    trees = tuple(FittedTree(tree, rng.normal(size=len(tree.feature)), 0, 0) for tree in nodes)
    ensemble = Ensemble(np.zeros(1), cuts, trees, (0.3,) * 4)
    x = probing_rows(ensemble, 90, 1)
    np.testing.assert_array_equal(leaves(ensemble, x, 90), leaves_by_definition(ensemble, x))
    np.testing.assert_array_equal(predicted(ensemble, x, 90), scores_by_definition(ensemble, x))


def test_infinite_values_lie_beyond_every_cut() -> None:
    ensemble = random_ensemble(3, n_columns=3, categorical=0.0)
    x = np.full((64, 3), np.inf)
    x[::2] = -np.inf
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(
            leaves(ensemble, x.astype(dtype), 64), leaves_by_definition(ensemble, x.astype(dtype))
        )


def test_a_category_is_met_exactly_or_is_missing() -> None:
    ensemble = random_ensemble(5, n_columns=2, categorical=1.0, max_leaves=30)
    codes = [c for c in ensemble.cuts.categories if c is not None]
    x = np.stack([np.resize(np.concatenate([c, c + 0.5, [-1.0, 1e30, np.inf, 2.0**53]]), 200) for c in codes], axis=1)
    np.testing.assert_array_equal(leaves(ensemble, x, 200), leaves_by_definition(ensemble, x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layout_and_length_leave_no_trace(dtype: type) -> None:
    ensemble = random_ensemble(7, n_columns=9, rounds=6, n_outputs=2, max_leaves=40)
    x = probing_rows(ensemble, 1300, 7, dtype)
    whole, prepared = predicted(ensemble, x, 1300), ForestPredictor.of(ensemble)
    read_only = x.copy()
    read_only.flags.writeable = False
    for other in (np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], read_only, rows_of(x)):
        np.testing.assert_array_equal(predicted(ensemble, other, 1300), whole)
    for size in (1, 37, 512, 1024):
        out = np.full((2, 1300), np.nan)
        for start in range(0, 1300, size):
            predictor.predict(prepared, x, start, min(start + size, 1300), out)
        np.testing.assert_array_equal(out, whole)


def test_integers_and_booleans_are_numbers() -> None:
    ensemble = random_ensemble(8, n_columns=4)
    x = np.random.default_rng(8).integers(-3, 4, (70, 4))
    for other in (x, x.astype(np.int8), x.astype(np.float32)):
        np.testing.assert_array_equal(predicted(ensemble, other, 70), predicted(ensemble, x.astype(np.float64), 70))
    booleans = x > 0
    np.testing.assert_array_equal(
        predicted(ensemble, booleans, 70), predicted(ensemble, booleans.astype(np.float32), 70)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(4))
def test_sparse_rows_are_the_dense_ones_with_zeros_left_out(seed: int, dtype: type) -> None:
    ensemble = random_ensemble(seed, n_columns=30, rounds=5, max_leaves=20, categorical=0.3)
    x = probing_rows(ensemble, 700, seed, dtype)
    x[np.random.default_rng(seed).random(x.shape) < 0.8] = 0.0
    want = scores_by_definition(ensemble, x)
    stored = sparse.csr_matrix(x)
    for other in (stored, stored.tocsc(), stored.tocoo(), sparse.csr_array(x)):
        np.testing.assert_array_equal(predicted(ensemble, other, 700), want)
    long = stored.copy()
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    np.testing.assert_array_equal(predicted(ensemble, long, 700), want)


def test_stored_zeros_and_doubled_entries_of_a_sparse_matrix() -> None:
    ensemble = random_ensemble(11, n_columns=2, categorical=0.0, rounds=9)
    x = sparse.csr_matrix((np.array([0.25, 0.5, 0.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    before = x.data.copy()
    np.testing.assert_array_equal(predicted(ensemble, x, 2), scores_by_definition(ensemble, x.toarray()))
    np.testing.assert_array_equal(x.data, before)


def test_staged_predictions_are_those_of_the_first_rounds() -> None:
    for scale in (1.0, 0.5):
        ensemble = random_ensemble(13, rounds=5, n_outputs=3, scale=scale)
        x = probing_rows(ensemble, 600, 13)
        stages = list(predictor.staged_predict(ForestPredictor.of(ensemble), x))
        assert len(stages) == 5
        for rounds, scores in enumerate(stages, start=1):
            np.testing.assert_array_equal(scores, predicted(ensemble.first(rounds), x, 600))


def test_an_ensemble_without_trees_is_its_bias() -> None:
    ensemble = replace(random_ensemble(17, n_outputs=2), trees=(), factors=())
    x = probing_rows(ensemble, 5, 17)
    np.testing.assert_array_equal(predicted(ensemble, x, 5), np.repeat(ensemble.bias[:, None], 5, axis=1))
    assert leaves(ensemble, x, 5).shape == (5, 0)
    assert list(predictor.staged_predict(ForestPredictor.of(ensemble), x)) == []


def test_no_rows() -> None:
    ensemble = random_ensemble(18)
    assert predicted(ensemble, np.empty((0, 5)), 0).shape == (1, 0)
    assert [scores.shape for scores in predictor.staged_predict(ForestPredictor.of(ensemble), np.empty((0, 5)))] == [
        (1, 0)
    ] * 4


def test_wide_data_of_which_little_is_used() -> None:
    ensemble = random_ensemble(19, n_columns=3000, rounds=3, max_leaves=10)
    prepared = ForestPredictor.of(ensemble)
    assert len(prepared.flat_forest.features) <= 30
    x = probing_rows(ensemble, 40, 19)
    np.testing.assert_array_equal(predicted(ensemble, x, 40), scores_by_definition(ensemble, x))


def test_a_forest_survives_pickling() -> None:
    ensemble = random_ensemble(23)
    x, out = probing_rows(ensemble, 100, 23), np.empty((1, 100))
    predictor.predict(pickle.loads(pickle.dumps(ForestPredictor.of(ensemble))), x, 0, 100, out)
    np.testing.assert_array_equal(out, predicted(ensemble, x, 100))


def test_another_number_of_features_is_refused() -> None:
    ensemble = random_ensemble(29, n_columns=5)
    with pytest.raises(InputError, match=r"x: the model was trained on 5 features; this has 4\."):
        predicted(ensemble, np.zeros((3, 4)), 3)


def binned(cuts: Cuts, n: int, seed: int) -> DenseBins:
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, b + 1, n) for b in cuts.n_bins], axis=1).astype(np.uint8)
    return DenseBins(rows, np.ascontiguousarray(rows.T))


def as_sparse(bins: DenseBins, default: Array) -> SparseBins:
    n, d = bins.shape
    row, feature = np.nonzero(bins.rows != default)
    column, column_row = np.nonzero(bins.columns != default[:, None])
    return SparseBins(
        default=default,
        row_start=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]),
        feature=feature.astype(np.int32),
        row_bin=bins.rows[row, feature],
        column_start=np.concatenate([[0], np.cumsum(np.bincount(column, minlength=d))]),
        row=column_row.astype(np.int32),
        column_bin=bins.columns[column, column_row],
    )


def route_by_definition(nodes: Nodes, cuts: Cuts, rows: Array) -> Array:
    """The decisions of types.Nodes, on bins."""
    out, n_bins = np.zeros(len(rows), np.int32), cuts.n_bins
    for i, row in enumerate(rows):
        at = 0
        while nodes.feature[at] >= 0:
            f = int(nodes.feature[at])
            code = int(row[f])
            if code == n_bins[f]:
                left = bool(nodes.missing_left[at])
            elif cuts.categories[f] is not None:
                left = bool(nodes.left_set[at][code // 32] >> (code % 32) & 1)
            else:
                left = code <= nodes.bin[at]
            at = int(nodes.left[at] if left else nodes.right[at])
        out[i] = at
    return out


@pytest.mark.parametrize("max_leaves", [1, 2, 40, 256, 400])
@pytest.mark.parametrize("n", [1, 23, 200, 1111])
def test_routing_of_binned_rows(max_leaves: int, n: int) -> None:
    rng = np.random.default_rng(max_leaves + n)
    cuts = random_cuts(rng, 12, 0.3)
    nodes, bins = random_nodes(rng, cuts, max_leaves), binned(cuts, n, n)
    want = route_by_definition(nodes, cuts, bins.rows)
    default = np.array([rng.integers(0, b + 1) for b in cuts.n_bins], np.uint8)
    for form in (bins, as_sparse(bins, default)):
        out, flat_forest = np.full(n, -1, np.int32), FlatForest.of([nodes], cuts)
        flat_forest.route(form, 0, n // 3, out)
        assert (out[n // 3 :] == -1).all()
        flat_forest.route(form, n // 3, n, out)
        np.testing.assert_array_equal(out, want)
    few = np.full(n, -1, np.int32)
    assert walked(nodes, bins, cuts, few)
    np.testing.assert_array_equal(few, want)
    assert not walked(nodes, as_sparse(bins, default), cuts, few)
    assert not walked(nodes, bins, cuts, np.empty(MOST + 1, np.int32))


@pytest.mark.parametrize("categorical", [0.0, 0.3])
@pytest.mark.parametrize("k", [1, 3])
def test_scores_after_each_of_several_rounds(categorical: float, k: int) -> None:
    """The bits of one tree after the other; rows that are many or sparse, and rounds of other trees, are left alone."""
    rng, n, factor = np.random.default_rng(k), 211, 0.3
    cuts = random_cuts(rng, 12, categorical)
    bins, every = binned(cuts, n, k), [random_nodes(rng, cuts, leaves) for leaves in (1, 2, 30, 200, 7)]
    rounds = [
        tuple(FittedTree(nodes, rng.normal(size=len(nodes.feature)) * nodes.is_leaf, c, 0) for c in range(k))
        for nodes in every
    ]
    begin = rng.normal(size=(k, n))
    scores, expected = begin.copy(), begin.copy()
    after = scores_after(scores, rounds, factor, bins, cuts)
    assert after is not None
    for i, trees in enumerate(rounds):
        for tree in trees:
            expected[tree.output] += (factor * tree.value)[route_by_definition(tree.nodes, cuts, bins.rows)]
        np.testing.assert_array_equal(after[:, i], expected)
    np.testing.assert_array_equal(scores, expected)
    default = np.array([rng.integers(0, b + 1) for b in cuts.n_bins], np.uint8)
    vector = [tuple(FittedTree(nodes, np.zeros(len(nodes.feature)), 1, 0) for _ in range(k)) for nodes in every]
    for left_alone in ((scores, rounds, factor, as_sparse(bins, default), cuts), (scores, vector, factor, bins, cuts)):
        assert scores_after(*left_alone) is None
    assert (
        scores_after(np.zeros((k, MOST_AFTER_ROUNDS + 1)), rounds, factor, binned(cuts, MOST_AFTER_ROUNDS + 1, 0), cuts)
        is None
    )
    np.testing.assert_array_equal(scores, expected)


TILE = 65_535  # rows whose packed sums fit


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("n", "max_leaves", "kind"),
    [(1, 8, "plain"), (700, 2, "spike"), (5000, 300, "heavy"), (9 * TILE + 77, 1, "ties"), (9 * TILE, 2, "ties")],
)
def test_routing_sums_what_it_routes(n: int, max_leaves: int, kind: str, whole: bool) -> None:
    rng = np.random.default_rng(n + max_leaves)
    cuts = random_cuts(rng, 3, 0.3)
    nodes, bins = random_nodes(rng, cuts, max_leaves), binned(cuts, n, n)
    m = rng.integers(1, 4097, n if whole else 0).astype(np.int32)
    gradients = random_gradients(rng, n, kind, m if whole else None)
    g, h, units = integers(gradients, 0)
    want = np.empty(n, np.int32)
    FlatForest.of([nodes], cuts).route(bins, 0, n, want)
    sums_wanted = np.zeros((len(nodes.feature), 2), np.int64)
    np.add.at(sums_wanted, want, np.stack([g, h], axis=1))
    pairs = gradients.g[0], gradients.h[0], m, 1.0 / units[0], 1.0 / units[1]
    for form in (bins, as_sparse(bins, np.zeros(bins.shape[1], np.uint8))):
        out, sums, flat_forest = np.full(n, -1, np.int32), np.zeros_like(sums_wanted), FlatForest.of([nodes], cuts)
        for start, stop in ((0, n // 3), (n // 3, n)):
            flat_forest.route_and_sum(form, out, pairs, start, stop, sums)
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(sums, sums_wanted)
