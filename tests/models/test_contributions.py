"""Contributions against the definition of the Shapley value: every subset of features, one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from support.strategies import Array, probing_rows, random_ensemble

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.prediction import predictor
from gpuboost.backends.prediction.contributions import Explainer, contributions
from gpuboost.backends.prediction.tree_shap import Paths, contributions_by_definition
from gpuboost.errors import InputError
from gpuboost.types import Cuts, Ensemble, FittedTree, Nodes


def explained(ensemble: Ensemble, x: object, n: int) -> Array:
    out = np.full((n, ensemble.n_outputs, ensemble.cuts.n_columns + 1), np.nan)
    contributions(Explainer.of(ensemble), x, 0, n, out)
    return out


def scores(ensemble: Ensemble, x: Array) -> Array:
    out = np.empty((ensemble.n_outputs, len(x)))
    predictor.predict(predictor.ForestPredictor.of(ensemble), x, 0, len(x), out)
    return out


def goes_left(nodes: Nodes, cuts: Cuts, i: int, row: Array) -> bool:
    f = int(nodes.feature[i])
    value, categories = row[cuts.columns[f]], cuts.categories[f]
    if categories is not None:
        found = np.flatnonzero(categories == value)
        if len(found):
            return bool(nodes.left_set[i][found[0] // 32] >> (found[0] % 32) & 1)
        return bool(nodes.missing_left[i])
    if np.isnan(value):
        return bool(nodes.missing_left[i])
    return bool(nodes.bin[i] == len(cuts.thresholds[f]) or value <= cuts.thresholds[f][nodes.bin[i]])


def expectation(tree: FittedTree, cuts: Cuts, row: Array, known: frozenset[int], i: int = 0) -> float:
    """Of the tree's value when the columns in ``known`` are; the others go both ways, as the training rows did."""
    nodes = tree.nodes
    if nodes.feature[i] < 0:
        return float(tree.value[i])
    left, right = int(nodes.left[i]), int(nodes.right[i])
    if int(cuts.columns[nodes.feature[i]]) in known:
        return expectation(tree, cuts, row, known, left if goes_left(nodes, cuts, i, row) else right)
    total = nodes.count[left] + nodes.count[right]
    share = nodes.count[left] / total if total else 0.5
    return share * expectation(tree, cuts, row, known, left) + (1 - share) * expectation(tree, cuts, row, known, right)


def shapley_by_definition(ensemble: Ensemble, row: Array) -> Array:
    """(k, d + 1)"""
    d = ensemble.cuts.n_columns
    phi = np.zeros((ensemble.n_outputs, d + 1))
    phi[:, d] = ensemble.bias
    for tree, factor in zip(ensemble.trees, ensemble.factors, strict=True):
        by = ensemble.scale * factor
        phi[tree.output, d] += by * expectation(tree, ensemble.cuts, row, frozenset())
        for f in range(d):
            others = [e for e in range(d) if e != f]
            for size in range(d):
                weight = math.factorial(size) * math.factorial(d - size - 1) / math.factorial(d)
                for subset in combinations(others, size):
                    known = frozenset(subset)
                    gained = expectation(tree, ensemble.cuts, row, known | {f}) - expectation(
                        tree, ensemble.cuts, row, known
                    )
                    phi[tree.output, f] += by * weight * gained
    return phi


def interactions_by_shapley(ensemble: Ensemble, row: Array) -> Array:
    """(k, d + 1, d + 1): half of the interaction index of each pair of columns, and on the diagonal what is left."""
    d = ensemble.cuts.n_columns
    phi = np.zeros((ensemble.n_outputs, d + 1, d + 1))
    for tree, factor in zip(ensemble.trees, ensemble.factors, strict=True):

        def worth(*known: int, tree: FittedTree = tree) -> float:
            return expectation(tree, ensemble.cuts, row, frozenset(known))

        for e, f in combinations(range(d), 2):
            others = [g for g in range(d) if g not in (e, f)]
            for size in range(d - 1):
                weight = math.factorial(size) * math.factorial(d - size - 2) / math.factorial(d - 1) / 2.0
                for s in combinations(others, size):
                    both = worth(*s, e, f) - worth(*s, e) - worth(*s, f) + worth(*s)
                    phi[tree.output, e, f] += ensemble.scale * factor * weight * both
    phi += phi.swapaxes(1, 2)
    for e, alone in enumerate(shapley_by_definition(ensemble, row).T):
        phi[:, e, e] = alone - phi[:, e].sum(axis=1)
    return phi


@pytest.mark.parametrize("seed", range(12))
def test_equal_to_the_sum_over_all_subsets(seed: int) -> None:
    ensemble = random_ensemble(
        seed,
        n_columns=[1, 2, 3, 5][seed % 4],
        rounds=2,
        n_outputs=1 + seed % 3 // 2,
        max_leaves=[2, 6, 12][seed % 3],
        categorical=0.4,
        scale=1.0 if seed % 2 else 0.6,
    )
    x = probing_rows(ensemble, 6, seed)
    want = np.stack([shapley_by_definition(ensemble, row) for row in x])
    np.testing.assert_allclose(explained(ensemble, x, 6), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_interactions_are_those_of_all_subsets(seed: int) -> None:
    """Missing values and categories among them, also of columns that are divided among several features."""
    ensemble = random_ensemble(
        seed,
        n_columns=[1, 2, 3, 5][seed % 4],
        rounds=2,
        n_outputs=1 + seed % 3 // 2,
        max_leaves=[2, 6, 12][seed % 3],
        categorical=0.4,
        scale=1.0 if seed % 2 else 0.6,
    )
    x = probing_rows(ensemble, 4, seed)
    want = np.stack([interactions_by_shapley(ensemble, row) for row in x])
    np.testing.assert_allclose(Cpu(1).interactions(ensemble, x), want, rtol=0, atol=1e-12)


def test_interactions_of_a_chain_of_a_hundred_features_sum_to_the_contributions() -> None:
    ensemble, x = chain_of_a_hundred()
    found = Cpu(1).interactions(ensemble, x[:9])
    np.testing.assert_allclose(found.sum(axis=3), explained(ensemble, x, 50)[:9], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found, found.swapaxes(2, 3))


def test_interactions_of_no_trees_and_no_splits() -> None:
    ensemble = replace(random_ensemble(6, n_outputs=2), trees=(), factors=())
    found = Cpu(1).interactions(ensemble, np.zeros((2, 5)))
    assert (found[..., :5, :] == 0.0).all()
    np.testing.assert_array_equal(found[..., 5, 5], np.stack([ensemble.bias] * 2))
    assert Cpu(1).interactions(random_ensemble(7, max_leaves=2), np.zeros((0, 5))).shape == (0, 1, 6, 6)


@pytest.mark.parametrize("seed", range(6))
def test_kernels_agree_with_the_formula_bit_for_bit(seed: int) -> None:
    ensemble = random_ensemble(seed, n_columns=8, rounds=3, n_outputs=1 + seed % 2, max_leaves=60, categorical=0.5)
    rng, n = np.random.default_rng(seed), 77
    bins = np.stack([rng.integers(0, b + 1, n) for b in ensemble.cuts.n_bins], axis=1).astype(np.uint8)
    x = np.full((n, ensemble.cuts.n_columns), np.nan)
    for f, (cuts, codes) in enumerate(zip(ensemble.cuts.thresholds, ensemble.cuts.categories, strict=True)):
        values = np.append(cuts, np.inf) if codes is None else codes
        known, column = bins[:, f] < len(values), ensemble.cuts.columns[f]
        fresh = known & np.isnan(x[:, column])
        x[fresh, column] = values[bins[fresh, f]]
        bins[known & ~fresh, f] = len(values)  # another feature of the column holds the category
    want = contributions_by_definition(Paths.of(ensemble), bins, ensemble.cuts.n_columns)
    np.testing.assert_array_equal(explained(ensemble, x, n), want)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_contributions_sum_to_the_score(seed: int, dtype: type) -> None:
    ensemble = random_ensemble(seed, n_columns=30, rounds=6, n_outputs=1 + seed % 3, max_leaves=120, max_depth=25)
    x = probing_rows(ensemble, 300, seed, dtype)
    np.testing.assert_allclose(explained(ensemble, x, 300).sum(axis=2).T, scores(ensemble, x), rtol=0, atol=1e-9)


def chain_of_a_hundred() -> tuple[Ensemble, Array]:
    """A tree that asks for a new feature at each of a hundred levels, and fifty rows."""
    d = 100
    feature = np.full(2 * d + 1, -1, np.int32)
    left, right = np.zeros(2 * d + 1, np.int32), np.zeros(2 * d + 1, np.int32)
    count = np.ones(2 * d + 1, np.int64)
    for i in range(d):
        feature[2 * i if i else 0] = i
        left[2 * i], right[2 * i] = 2 * i + 1, 2 * i + 2
        count[2 * i], count[2 * i + 1] = 2 * (d - i), d - i
    count[2 * d] = 1
    value = np.where(feature < 0, np.linspace(-1.0, 1.0, 2 * d + 1), 0.0)
    nodes = Nodes(
        feature, np.zeros(2 * d + 1, np.int32), np.zeros(2 * d + 1, np.bool_), left, right, np.zeros(2 * d + 1),
        count * 1.0, count, np.zeros((2 * d + 1, 8), np.uint32),
    )  # fmt: skip
    cuts = Cuts((np.array([0.5]),) * d, (None,) * d)
    ensemble = Ensemble(np.zeros(1), cuts, (FittedTree(nodes, value, 0, 0),), (1.0,))
    x = (np.random.default_rng(0).random((50, d)) < 0.95).astype(np.float64)
    return ensemble, x


def test_a_chain_that_asks_for_a_hundred_features() -> None:
    """Degree 99 under the integral: the many-point rules are exact too."""
    ensemble, x = chain_of_a_hundred()
    np.testing.assert_allclose(explained(ensemble, x, 50).sum(axis=2).T, scores(ensemble, x), rtol=0, atol=1e-12)


def test_a_feature_that_is_not_asked_for_contributes_nothing() -> None:
    ensemble = random_ensemble(3, n_columns=60, rounds=2, max_leaves=6)
    columns = ensemble.cuts.columns
    used = {int(columns[f]) for tree in ensemble.trees for f in tree.nodes.feature if f >= 0}
    phi = explained(ensemble, probing_rows(ensemble, 20, 3), 20)
    unused = [f for f in range(60) if f not in used]
    assert (phi[:, 0, unused] == 0.0).all()
    assert np.abs(phi[:, 0, sorted(used)]).sum() > 0


def test_expected_score_is_the_mean_over_rows_that_fill_the_leaves_as_counted() -> None:
    ensemble = random_ensemble(4, rounds=1)
    nodes = ensemble.trees[0].nodes
    mean = (nodes.count * ensemble.trees[0].value)[nodes.is_leaf].sum() / nodes.count[0]
    phi = explained(ensemble, probing_rows(ensemble, 3, 4), 3)
    np.testing.assert_allclose(phi[:, 0, -1], ensemble.bias[0] + ensemble.factors[0] * mean, rtol=1e-12)


def test_rows_do_not_depend_on_each_other() -> None:
    ensemble = random_ensemble(5, n_columns=8, rounds=4, max_leaves=30)
    x = probing_rows(ensemble, 333, 5)
    whole, explainer = explained(ensemble, x, 333), Explainer.of(ensemble)
    out = np.full_like(whole, np.nan)
    for start in range(0, 333, 50):
        contributions(explainer, x, start, min(start + 50, 333), out)
    np.testing.assert_array_equal(out, whole)
    filled = np.nan_to_num(x)
    np.testing.assert_array_equal(explained(ensemble, sparse.csr_matrix(filled), 333), explained(ensemble, filled, 333))


def test_no_trees_and_no_splits() -> None:
    ensemble = replace(random_ensemble(6, n_outputs=2), trees=(), factors=())
    phi = explained(ensemble, np.zeros((2, 5)), 2)
    assert (phi[:, :, :5] == 0.0).all()
    np.testing.assert_array_equal(phi[:, :, 5], np.stack([ensemble.bias] * 2))
    stump = random_ensemble(7, max_leaves=1, rounds=2)
    np.testing.assert_allclose(explained(stump, np.zeros((1, 5)), 1)[0, 0, -1], scores(stump, np.zeros((1, 5)))[0, 0])


def test_another_number_of_features_is_refused() -> None:
    with pytest.raises(InputError, match="trained on 5 features; this has 6"):
        explained(random_ensemble(1), np.zeros((2, 6)), 2)


def test_a_backend_prepares_a_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Ensemble] = []
    prepare = Explainer.of
    monkeypatch.setattr(Explainer, "of", lambda ensemble: made.append(ensemble) or prepare(ensemble))
    models = [random_ensemble(seed) for seed in (1, 2)]
    rows = [probing_rows(model, 20, 3) for model in models]
    backend = Cpu(2)
    expected = [Cpu(1).contributions(model, x) for model, x in zip(models, rows, strict=True)]
    made.clear()
    for at in (0, 0, 0, 1, 1, 0):
        assert backend.contributions(models[at], rows[at]).tobytes() == expected[at].tobytes()
    assert [one is models[at] for one, at in zip(made, (0, 1, 0), strict=True)] == [True] * 3
