"""Sums at the very edge of their 32 bits, on the emulated device: exact, and the trees those of Reference."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from emulator import emulated_runtime
from support.builders import grow, structure_bytes
from support.growing_on_device import Device

from gpuboost.backends.cuda.trees.plan import Tuning
from gpuboost.backends.numerics.exact_sums import integers
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise
from gpuboost.types import Cuts, DenseBins, Gradients, Limits, TrainingSet

Array = np.ndarray
STRETCH = 65_535  # rows whose sums must fit
GROWTH = DepthWise(Limits(4, 2, 1, 0.0, 1.0))


@cache
def device() -> Device:
    """One stretch is as many rows as there may be in one."""
    return Device(emulated_runtime(), Tuning(least_rows=STRETCH, shares=1))


def one_feature(codes: Array) -> TrainingSet:
    """Seven bins and one for missing values."""
    columns = codes.astype(np.uint8)[None]
    cuts = Cuts((np.arange(6.0),), (None,))
    return TrainingSet(DenseBins(np.ascontiguousarray(columns.T), columns), cuts, np.zeros(len(codes)))


def assert_exact(codes: Array, gradients: Gradients) -> None:
    data = one_feature(codes)
    expected, found = (grow(machine, GROWTH, data, gradients) for machine in (Reference(), device()))
    assert structure_bytes(found) == structure_bytes(expected)
    g, h, units = integers(gradients, 0)
    root_g, root_h = (sums[0] for sums in expected.sums)
    assert (root_g, root_h) == (g.sum() * units[0], h.sum() * units[1])


@pytest.mark.parametrize("signs", ["up", "down", "by bin"])
def test_a_stretch_of_the_largest_rows_in_one_bin(signs: str) -> None:
    """32,766 * 65,535 and 65,534 * 65,535 in one cell: pairs of 16 bits, sums of 31 and 32."""
    n = STRETCH + 11
    codes = np.full(n, 2)
    codes[STRETCH:] = 5
    sign = np.where(codes == 2, 1.0, -1.0) if signs == "by bin" else 1.0 if signs == "up" else -1.0
    g = (np.full((1, n), 32766.5) * sign).astype(np.float32)
    gradients = Gradients(g, np.full((1, n), 65534.5, np.float32))
    rows_g, rows_h, units = integers(gradients, 0)
    assert units == (1.0, 1.0)
    assert np.abs(rows_g[codes == 2].sum()) >= 2**31 - 2**18
    assert rows_h[codes == 2].sum() >= 2**32 - 2**18
    assert_exact(codes, gradients)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_few_rows_whose_sum_fills_its_bits(sign: float) -> None:
    """65,535 * 2^15 and 131,071 * 2^15, in pairs of 32 bits."""
    n = 1 << 15
    gradients = Gradients(np.full((1, n), sign * 65535.0, np.float32), np.full((1, n), 131071.0, np.float32))
    assert integers(gradients, 0)[2] == (1.0, 1.0)
    codes = np.full(n, 3)
    assert_exact(codes, gradients)
    codes[: n // 2] = 1
    gradients.g[0, : n // 2] *= -1.0
    assert_exact(codes, gradients)
