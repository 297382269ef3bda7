"""Leaves that are quantiles: weights are integers there, so that no order of a sum matters."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import random_case, take

from gpuboost.backends.numerics.leaf_values import weighted_quantile, whole_weights

VALUES = st.sampled_from([-3.0, -0.5, 0.0, 0.25, 7.0])


def by_definition(x: list[float], weight: list[int], alpha: Fraction) -> float:
    reached = 0
    for value, own in sorted(zip(x, weight, strict=True)):
        reached += own
        if reached >= alpha * sum(weight):
            return value
    raise AssertionError("the last value reaches every share below 1")


@given(st.lists(st.tuples(VALUES, st.integers(1, 9)), min_size=1, max_size=30), st.sampled_from([1, 2, 4, 6, 7]))
def test_it_is_the_smallest_value_that_reaches_its_share(pairs: list[tuple[float, int]], eighths: int) -> None:
    x, weight = [value for value, _ in pairs], [own for _, own in pairs]
    found = weighted_quantile(np.array(x), np.array(weight, np.int64), eighths / 8)
    assert found == by_definition(x, weight, Fraction(eighths, 8))


@given(st.lists(st.tuples(VALUES, st.integers(1, 9)), min_size=1, max_size=30), st.floats(0.01, 0.99))
def test_a_row_of_weight_three_is_three_rows_and_the_unit_of_weights_does_not_matter(
    pairs: list[tuple[float, int]], alpha: float
) -> None:
    x, weight = np.array([value for value, _ in pairs]), np.array([own for _, own in pairs], np.int64)
    found = weighted_quantile(x, weight, alpha)
    repeated = np.repeat(x, weight)
    assert found == weighted_quantile(repeated, np.ones(len(repeated), np.int64), alpha)
    assert found == weighted_quantile(x, weight << 28, alpha)


def test_no_rows_have_the_quantile_0() -> None:
    assert weighted_quantile(np.empty(0), np.empty(0, np.int64), 0.5) == 0.0


@pytest.mark.parametrize("factor", [1.0, 2.0**-40, 1e-300, 1e300])
def test_real_weights_become_integers_of_31_bits_that_keep_their_proportions(factor: float) -> None:
    data = random_case(1, 200, 1, weights="real").data
    whole = whole_weights(replace(data, weight=data.weight * factor))
    assert whole.dtype == np.int64
    assert 2**30 <= whole.max() <= 2**31 or factor == 1e-300
    assert whole.min() >= 1
    if factor != 1e-300:
        np.testing.assert_allclose(whole / whole.max(), data.weight / data.weight.max(), atol=2.0**-30)


def test_whole_weights_and_no_weights_stand_for_themselves() -> None:
    data = random_case(1, 50, 1, weights="whole").data
    assert whole_weights(data).tolist() == data.multiplicity.tolist()
    assert whole_weights(take(replace(data, multiplicity=None), np.arange(7))).tolist() == [1] * 7
