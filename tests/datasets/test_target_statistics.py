"""Ordered target statistics, against the definition row by row."""

from __future__ import annotations

import numpy as np
import pytest

from gpuboost.data.target_statistics import (
    LEAST_PRIOR_WEIGHT,
    StatisticsTable,
    joined,
    joined_columns,
    ordered_means,
    permutation,
)


def by_definition(groups, target, weight, order, prior, prior_weight):
    """Equation 5 of the paper, one row after the other."""
    out, seen = np.empty(target.shape), {}
    for row in order:
        total, mass = seen.get(groups[row], (np.zeros(target.shape[1]), 0.0))
        out[row] = (total + prior_weight * prior) / (mass + prior_weight)
        seen[groups[row]] = (total + weight[row] * target[row], mass + weight[row])
    return out


@pytest.mark.parametrize("groups", [1, 7, 300, 200_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_of_training_rows_are_those_of_the_definition(groups, weighted):
    rng = np.random.default_rng(groups)
    n = 500
    group, target = rng.integers(0, groups, n), rng.normal(size=(n, 2))
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    order, prior = permutation(n, 3, 1), target.mean(axis=0)
    a = np.array([1.5, 0.1])
    values = ordered_means(group, target, weight, order, prior, a)
    mass = np.ones(n) if weight is None else weight
    np.testing.assert_allclose(values, by_definition(group, target, mass, order, prior, a), atol=1e-12)


def test_the_target_of_a_row_has_no_part_in_its_own_value():
    rng = np.random.default_rng(0)
    group, target, order = rng.integers(0, 5, 80), rng.normal(size=(80, 1)), permutation(80, 0, 0)
    values = ordered_means(group, target, None, order, np.zeros(1), np.ones(1))
    for row in range(80):
        changed = target.copy()
        changed[row] += 100.0
        assert ordered_means(group, changed, None, order, np.zeros(1), np.ones(1))[row] == values[row]


def test_permutations_differ_by_seed_and_number_and_by_nothing_else():
    a, again = permutation(1000, 5, 0), permutation(1000, 5, 0)
    np.testing.assert_array_equal(a, again)
    np.testing.assert_array_equal(np.sort(a), np.arange(1000))
    assert (a != permutation(1000, 5, 1)).any()
    assert (a != permutation(1000, 6, 0)).any()


def test_rows_to_predict_are_given_the_mean_of_all_training_rows_and_unseen_ones_the_prior():
    keys, target = np.array([3, 3, 8, 3]), np.array([[1.0], [0.0], [5.0], [1.0]])
    table = StatisticsTable.of((0,), keys, target, np.array([1.0, 2.0, 1.0, 1.0]), 2.0)
    rows = table.rows_of(np.array([8, 3, 4]))
    np.testing.assert_array_equal(rows, [1, 0, -1])
    np.testing.assert_allclose(table.means(rows, np.array([0.5]))[:, 0], [6 / 3, 3 / 6, 0.5])
    np.testing.assert_array_equal(table.counts(rows), [1.0, 4.0, 0.0])


def chosen(keys, target, weight=None):
    return StatisticsTable.of((0,), keys, target, weight).prior_weight


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("noise", [0.2, 0.5, 0.8])
def test_the_weight_of_the_prior_is_the_variance_within_categories_over_that_between_them(noise, weighted):
    """In the mean of 40 sets, within four standard errors. Rows of weight w have noise of 1/w of the variance."""
    rng, found = np.random.default_rng(3), []
    for _ in range(40):
        keys = rng.integers(0, 300, 900)
        weight = rng.uniform(0.3, 3.0, 900) if weighted else np.ones(900)
        target = rng.normal(size=300)[keys] + noise * rng.normal(size=900) / np.sqrt(weight)
        found += chosen(keys, target[:, None], weight if weighted else None).tolist()
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - noise**2) < 4 * error + 0.01 * noise**2  # a ratio of estimates is a little biased
    assert error < 0.03 * noise


def test_the_weight_that_is_chosen_is_1_where_categories_tell_little_or_have_one_row_each():
    rng = np.random.default_rng(4)
    keys, noise = rng.integers(0, 50, 400), rng.normal(size=(400, 1))
    assert chosen(keys, noise) == 1.0
    assert chosen(keys, 0.5 * rng.normal(size=(50, 1))[keys] + noise) == 1.0
    assert chosen(np.arange(400), noise) == 1.0
    assert chosen(np.zeros(400, np.int64), noise) == 1.0
    assert chosen(keys, keys[:, None] * 1.0) == LEAST_PRIOR_WEIGHT  # no noise
    kept, target = np.append(np.ones(399), 0.0), 2.0 * rng.normal(size=(50, 1))[keys] + noise
    assert 0.1 < chosen(keys, target, kept) < 0.5
    np.testing.assert_allclose(chosen(keys, target, kept), chosen(keys[:-1], target[:-1], kept[:-1]))
    np.testing.assert_array_equal(chosen(keys, np.hstack([noise, keys[:, None]])), [1.0, LEAST_PRIOR_WEIGHT])


def test_combinations_have_a_key_each_and_those_that_one_column_determines_are_left_out():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 6, 400).astype(float), rng.integers(0, 5, 400).astype(float)
    b[::7] = np.nan
    pairs = list(zip(a, np.where(np.isnan(b), 5, b), strict=True))
    assert len(np.unique(joined([a, b], [6, 5]))) == len(set(pairs))
    made = joined_columns({0: a, 1: b, 2: a // 2}, {0: 6, 1: 5, 2: 3}, 2, np.ones((400, 1)), None)
    assert [columns for columns, _ in made] == [(0,), (1,), (2,), (0, 1), (1, 2)]


def test_of_many_columns_those_that_explain_the_target_are_combined():
    rng = np.random.default_rng(2)
    codes = {f: rng.integers(0, 4, 600).astype(float) for f in range(14)}
    target = (codes[13] + codes[5])[:, None]
    made = joined_columns(codes, dict.fromkeys(codes, 4), 2, target, None)
    pairs = [columns for columns, _ in made if len(columns) == 2]
    assert len(pairs) == 66
    assert (5, 13) in pairs
