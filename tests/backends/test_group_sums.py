"""Sums of groups: each is the sum of its own numbers, in the order that every machine keeps to."""

from __future__ import annotations

import numpy as np
import pytest

from gpuboost.backends.numerics.exact_sums import fixed_order_sum
from gpuboost.kernels.gradients import pointwise
from gpuboost.kernels.leaves import group_sums


@pytest.mark.parametrize(
    "counts", [[0, 1, 0], [15, 16, 17], [4_095, 4_096, 4_097, 0], [65_536, 3], [65_537, 139_264, 70_000]], ids=str
)
def test_each_is_summed_as_if_it_stood_alone(rng: np.random.Generator, counts: list[int]) -> None:
    group = rng.permutation(np.repeat(np.arange(len(counts), dtype=np.int32), counts))
    x = rng.standard_cauchy(len(group)) * 10.0 ** rng.integers(-9, 9, len(group))
    found = np.empty(len(counts))
    group_sums.sums_in_order(x, group, found)
    of_each = [x[group == j] for j in range(len(counts))]
    assert found.tolist() == [fixed_order_sum(one) for one in of_each]
    assert found.tolist() == [float(pointwise.sum_in_order(one)) for one in of_each]


def test_what_is_no_number_stays_in_its_group() -> None:
    found = np.empty(3)
    group_sums.sums_in_order(
        np.array([1.0, np.inf, 2.0, -np.inf, 3.0, np.inf]), np.array([0, 1, 0, 1, 0, 2], np.int32), found
    )
    assert found[0] == 6.0
    assert np.isnan(found[1])
    assert found[2] == np.inf
