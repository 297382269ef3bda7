"""Gaussian numbers: the table, its twin in numpy, and whether they are Gaussian and independent.

Statistics are of fixed seeds; each may fail for fewer than one seed in 10,000, and is known not to for these.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri
from support.builders import TEAMS, eager_threads

from gpuboost.backends.numerics.random_numbers import uniform_bits
from gpuboost.backends.reference.backend import Reference, gaussian
from gpuboost.kernels.common import normal, normal_table
from gpuboost.kernels.leaves.leaf_noise import add_leaf_noise
from gpuboost.keys import Key
from gpuboost.types import Gradients, Noise

N = 1 << 20
KEY = Key.root(3) / "structure noise" / 5


def by_kernel(n: int, key: Key) -> np.ndarray:
    """The numbers that leaves of H = 1 get as noise of deviation 1."""
    out = np.zeros(n)
    add_leaf_noise(np.full(n, -1, np.int32), np.ones(n), 0.0, 1.0, normal.TABLE, *key.words, out)
    return out


def quantile(words: np.ndarray) -> np.ndarray:
    """What the numbers stand for, by scipy."""
    m = (words & np.uint64(0x7FFF_FFFF)).astype(np.float64)
    z = -ndtri((m + 0.5) / 2.0**32)
    return np.where(words >> np.uint64(31), -z, z)


def words_of_every_segment() -> np.ndarray:
    """Of each segment the first and last words and some between, with both signs."""
    rng, found = np.random.default_rng(0), [np.arange(64)]
    for order in range(4, 32):
        for part in range(8):
            first, width = (8 + part) << (order - 3), 1 << (order - 3)
            u = first + np.unique(np.concatenate([[0, width - 1], rng.integers(0, width, 40)]))
            found.append(u // 2)
    m = np.unique(np.concatenate(found)).astype(np.uint64)
    return np.concatenate([m, m | np.uint64(1 << 31)])


def test_the_table_is_what_its_script_makes() -> None:
    made = normal_table.coefficients()
    assert normal.TABLE.shape == (256, 6)
    np.testing.assert_allclose(normal.TABLE, made, rtol=0.0, atol=1e-9)
    assert normal_table.text(normal.TABLE) == normal_table.PLACE.read_text()


def test_the_error_is_below_1e_10_everywhere() -> None:
    words = words_of_every_segment()
    z = np.array([normal.normal(word, normal.TABLE.ravel()) for word in words])
    assert np.abs(z - quantile(words)).max() < 1e-10
    assert 6.33 < np.abs(z).max() < 6.34
    assert (z[: len(z) // 2] > 0.0).all()
    np.testing.assert_array_equal(z[len(z) // 2 :], -z[: len(z) // 2])


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**31 - 1), st.integers(0, 200))
def test_the_twin_in_numpy_has_the_same_bits(seed: int, step: int, n: int) -> None:
    key = Key.root(seed) / "leaf noise" / step
    assert by_kernel(n, key).tobytes() == gaussian(n, key).tobytes()


def test_the_twin_in_numpy_has_the_same_bits_in_every_segment() -> None:
    drawn = gaussian(N, KEY)
    assert drawn.tobytes() == by_kernel(N, KEY).tobytes()
    assert np.abs(drawn - quantile(uniform_bits(N, KEY))).max() < 1e-10


def test_moments() -> None:
    z = gaussian(N, KEY)
    for order, value in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0), (6, 15.0)):
        spread = np.sqrt(stats.norm.moment(2 * order) - stats.norm.moment(order) ** 2)
        assert abs(np.mean(z**order) - value) < 4.0 * spread / np.sqrt(N), order


def test_the_distribution_is_normal_also_in_its_tails() -> None:
    z = gaussian(N, KEY)
    assert stats.kstest(z, "norm").pvalue > 1e-4
    for far in (2.0, 3.0, 4.0):
        for tail in (np.sum(z > far), np.sum(z < -far)):
            assert stats.binomtest(int(tail), N, stats.norm.sf(far)).pvalue > 1e-4


def test_rows_rounds_outputs_and_purposes_are_independent() -> None:
    root, n = Key.root(3), 1 << 16
    z = gaussian(n, root / "structure noise" / 5 / 0)
    others = [root / "structure noise" / 6 / 0, root / "structure noise" / 5 / 1, root / "leaf noise" / 5 / 0]
    others += [Key.root(4) / "structure noise" / 5 / 0, root / "rows" / 5]
    for other in others:
        assert stats.pearsonr(z, gaussian(n, other)).pvalue > 1e-4
        assert stats.pearsonr(z**2, gaussian(n, other) ** 2).pvalue > 1e-4
    for lag in (1, 2, 3, 4, 5):
        assert stats.pearsonr(z[:-lag], z[lag:]).pvalue > 1e-4


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 50, 777]), st.booleans(), st.booleans(), st.sampled_from([1, 3])
)
def test_noise_on_gradients_is_the_same_on_every_backend(seed: int, n: int, some: bool, whole: bool, k: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(n) < 0.4).astype(np.int32) if some else None
    m = n if rows is None else len(rows)
    g, h = rng.normal(size=(k, m)).astype(np.float32), rng.exponential(size=(k, m)).astype(np.float32)
    gradients = Gradients(g, h, rng.integers(1, 5, m).astype(np.int32) if whole else None)
    noise = Noise(float(rng.exponential()), Key.root(seed) / "structure noise" / 3)
    expected = Reference().noise(gradients, rows, noise)
    with eager_threads():
        for backend in TEAMS.values():
            found = backend.noise(gradients, rows, noise)
            assert found.g.dtype == np.float32
            assert found.g.tobytes() == expected.g.tobytes()
            assert found.h is gradients.h
    of_row = np.stack([gaussian(n, noise.key / output) for output in range(k)])
    z = of_row if rows is None else of_row[:, rows]
    times = 1.0 if gradients.multiplicity is None else gradients.multiplicity
    np.testing.assert_allclose(expected.g, g + noise.deviation * np.sqrt(h / times) * z, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", [Reference(), TEAMS[1]], ids=["reference", "cpu"])
def test_a_row_has_its_noise_whichever_rows_are_drawn_with_it(backend: Reference) -> None:
    n, noise = 1000, Noise(1.0, KEY)
    zeros, ones = np.zeros((1, n), np.float32), np.ones((1, n), np.float32)
    every = backend.noise(Gradients(zeros, ones), None, noise).g[0]
    rows = np.arange(7, n, 13, dtype=np.int32)
    some = backend.noise(Gradients(zeros[:, rows], ones[:, rows]), rows, noise).g[0]
    np.testing.assert_array_equal(some, every[rows])
