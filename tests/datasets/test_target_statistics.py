"""Ordered target statistics, against the definition row by row."""

from __future__ import annotations

import numpy as np
import pytest
from emulator import emulated_gpu, emulated_runtime
from support.examples import crossed

import gpuboost as gb
from gpuboost.backends.cuda.device.gpus import open_gpu
from gpuboost.backends.cuda.inputs.matrix import CudaMatrix
from gpuboost.data.category_groups import Units, grouped, joined, ordered_means, permutation
from gpuboost.data.target_statistics import LEAST_PRIOR_WEIGHT, StatisticsTable, TargetMoments, tables_of
from gpuboost.errors import InputError, RecipeError

ALL = {"permutations": 1, "seed": 0, "threads": 2}


def table_of(codes, size, target, weight=None, prior_weight=None):
    """That of one column."""
    groups = grouped(codes[:, None].astype(float), target, weight, {0: size}, None, **ALL)
    return StatisticsTable.of((0,), groups, TargetMoments.of(target, weight), prior_weight)


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
    values = ordered_means(group, Units.of(target, weight), order, prior, a)
    mass = np.ones(n) if weight is None else weight
    np.testing.assert_allclose(values, by_definition(group, target, mass, order, prior, a), atol=1e-12)


def test_the_target_of_a_row_has_no_part_in_its_own_value():
    rng = np.random.default_rng(0)
    group, target, order = rng.integers(0, 5, 80), rng.normal(size=(80, 1)), permutation(80, 0, 0)
    values = ordered_means(group, Units.of(target, None), order, np.zeros(1), np.ones(1))
    for row in range(80):
        changed = target.copy()
        changed[row] += 100.0
        again = ordered_means(group, Units.of(changed, None), order, np.zeros(1), np.ones(1))
        assert again[row] == pytest.approx(values[row], abs=1e-15)  # the unit is another one


def test_permutations_differ_by_seed_and_number_and_by_nothing_else():
    a, again = permutation(1000, 5, 0), permutation(1000, 5, 0)
    np.testing.assert_array_equal(a, again)
    np.testing.assert_array_equal(np.sort(a), np.arange(1000))
    assert (a != permutation(1000, 5, 1)).any()
    assert (a != permutation(1000, 6, 0)).any()


def test_rows_to_predict_are_given_the_mean_of_all_training_rows_and_unseen_ones_the_prior():
    codes, target = np.array([3, 3, 8, 3]), np.array([[1.0], [0.0], [5.0], [1.0]])
    table = table_of(codes, 9, target, np.array([1.0, 2.0, 1.0, 1.0]), 2.0)
    keys = np.array([8, 3, 4])
    np.testing.assert_array_equal(table.means_of(keys, np.array([0.5]))[:, 0], [6 / 3, 3 / 6, 0.5])
    np.testing.assert_array_equal(table.counts_of(keys), [1.0, 4.0, 0.0])


@pytest.mark.parametrize("scale", [1e-280, 1e-8, 1.0, 1e8, 1e300])
def test_units_are_exact_where_numbers_are_whole_and_far_below_their_sum_elsewhere(scale):
    rng = np.random.default_rng(5)
    target, weight = scale * rng.normal(size=(1000, 2)), rng.integers(0, 5, 1000).astype(float)
    units = Units.of(target, weight)
    assert (units.values[0] * units.scales[0] == weight).all()
    off = np.abs(units.values[1:] * units.scales[1:, None] - (weight[:, None] * target).T)
    assert (off <= 2.0**-60 * np.abs(weight[:, None] * target).sum(axis=0)[:, None]).all()
    assert (np.abs(units.values.astype(float)).sum(axis=1) <= 2.0**62.01).all()
    with pytest.raises(InputError, match="beyond float64"):
        Units.of(np.full((1000, 1), 1e307), None)


@pytest.mark.parametrize(("dtype", "kept", "n"), crossed([np.float32, np.float64], [False, True], [9_001, 40]))
def test_rows_on_a_device_have_the_bits_of_rows_of_the_host(dtype, kept, n):
    """9,001 rows are three chunks; keys of three columns have 17 bits, which are three passes of the sort."""
    rng, sizes = np.random.default_rng(n), {0: 40, 2: 7, 3: 300}
    x = np.column_stack([rng.integers(0, size, n) for size in (40, 3, 7, 300)]).astype(dtype)
    x[::11, 0] = np.nan
    rows = np.flatnonzero(rng.random(n) < 0.8) if kept else None
    target = rng.normal(size=(n if rows is None else len(rows), 2))
    weight = rng.uniform(0.1, 2.0, len(target))
    options = {"permutations": 2, "seed": 3, "threads": 2}
    runtime = emulated_runtime()
    there = CudaMatrix.of(runtime, runtime.upload(x))
    host, device, uploaded = (
        grouped(of, target, weight, sizes, rows, **options, upload=upload)
        for of, upload in ((x, None), (there, None), (x, lambda codes: CudaMatrix.of(runtime, runtime.upload(codes))))
    )
    prior, prior_weight = target.mean(axis=0), np.array([1.0, 0.3])
    for columns in ((0,), (2,), (0, 2, 3)):
        keys, totals = host.totals(columns)
        values = rng.normal(size=len(keys)) * rng.choice([1.0, 1e-42], len(keys))
        for groups in (device, uploaded):
            found = groups.totals(columns)
            assert (found[0].tobytes(), found[1].tobytes()) == (keys.tobytes(), totals.tobytes())
            pairs = [
                (
                    host.looked_up(columns, keys[::2], values[::2], -1.0),
                    groups.looked_up(columns, keys[::2], values[::2], -1.0),
                )
            ]
            of_orders = zip(
                host.ordered(columns, prior, prior_weight), groups.ordered(columns, prior, prior_weight), strict=True
            )
            pairs += [pair for order in of_orders for pair in zip(*order, strict=True)]
            assert len(pairs) == 5
            for expected, column in pairs:
                answer = runtime.download(column) if groups is device else column
                assert answer.tobytes() == expected.astype(dtype).tobytes()


def test_the_host_computes_what_a_device_has_no_room_for():
    rng = np.random.default_rng(6)
    x, target = rng.integers(0, 5, (3_000, 1)).astype(float), rng.normal(size=(3_000, 1))
    with emulated_gpu(capacity=100_000):
        runtime = open_gpu("cuda:0")
        asked = []

        def upload(codes):
            asked.append(CudaMatrix.of(runtime, runtime.upload(codes)))
            return asked[-1]

        groups = grouped(x, target, None, {0: 5}, None, **ALL, upload=upload)
    assert len(asked) == 1
    np.testing.assert_array_equal(groups.totals((0,))[0], np.arange(5))


def chosen(codes, target, weight=None):
    return table_of(codes, int(codes.max()) + 1, target, weight).prior_weight


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


def all_tables(x, sizes, target):
    groups = grouped(x, target, None, sizes, None, **ALL)
    return tables_of(tuple(sizes), sizes, groups, TargetMoments.of(target, None), most=2, prior_weight=1.0)


def test_combinations_have_a_key_each_and_those_that_one_column_determines_are_left_out():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 6, 400).astype(float), rng.integers(0, 5, 400).astype(float)
    b[::7] = np.nan
    pairs = list(zip(a, np.where(np.isnan(b), 5, b), strict=True))
    assert len(np.unique(joined([a, b], [6, 5]))) == len(set(pairs))
    x, sizes, target = np.column_stack([a, b, a // 2]), {0: 6, 1: 5, 2: 3}, np.ones((400, 1))
    made = all_tables(x, sizes, target)
    assert [table.columns for table in made] == [(0,), (1,), (2,), (0, 1), (1, 2)]


def test_of_many_columns_those_that_explain_the_target_are_combined():
    rng = np.random.default_rng(2)
    codes = {f: rng.integers(0, 4, 600).astype(float) for f in range(14)}
    target = (codes[13] + codes[5])[:, None]
    made = all_tables(np.column_stack(list(codes.values())), dict.fromkeys(codes, 4), target)
    pairs = [table.columns for table in made if len(table.columns) == 2]
    assert len(pairs) == 66
    assert (5, 13) in pairs


@pytest.mark.parametrize("weight", [np.array([1.0, 2.0]), np.array([]), 0.0, "much"])
def test_a_weight_of_the_prior_is_a_number(weight):
    with pytest.raises(RecipeError, match="categorical_encoding: prior_weight must be 'auto', or a number above 0"):
        gb.OrderedTargetStatistics(prior_weight=weight)
