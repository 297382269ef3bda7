"""Documents in order of their scores, whichever way the kernel takes: by steps, or by merging."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from gpuboost.kernels.gradients import ordering

Array = np.ndarray


def ordered(f: Array) -> Array:
    n = len(f)
    order, spare, ranked = np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.full(n, 7.0)
    step, counts = np.full(ordering.room_of(n), -1, np.int32), np.empty(ordering.steps_of(n), np.int32)
    ordering.by_score(f, order, ranked, spare, step, counts)
    assert ranked.tobytes() == f[order].tobytes()
    return order


def by_definition(f: Array) -> Array:
    return np.argsort(-f, kind="stable")


def spread_evenly(rng: np.random.Generator, n: int) -> Array:
    return rng.normal(size=n)


def with_a_far_one(rng: np.random.Generator, n: int) -> Array:
    """Steps as wide as that leave all others in one."""
    return np.append(rng.normal(size=n - 1), 1e9)


def few_values(rng: np.random.Generator, n: int) -> Array:
    return rng.integers(-2, 3, n) * 1.0


def zeros_of_both_signs(rng: np.random.Generator, n: int) -> Array:
    return np.where(rng.random(n) < 0.5, 0.0, -0.0)


def too_far_for_a_width(rng: np.random.Generator, n: int) -> Array:
    return rng.choice([-1.7e308, 1.7e308, 1.0], n)


def too_near_for_a_step(rng: np.random.Generator, n: int) -> Array:
    return rng.integers(0, 3, n) * 5e-324


def infinite(rng: np.random.Generator, n: int) -> Array:
    return rng.choice([-np.inf, np.inf, 0.0, 1.0], n)


KINDS = [
    spread_evenly, with_a_far_one, few_values, zeros_of_both_signs, too_far_for_a_width, too_near_for_a_step, infinite
]  # fmt: skip


@settings(max_examples=examples(80), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS), st.integers(1, 400))
def test_the_highest_first_and_equal_ones_as_they_stand(seed: int, kind, n: int) -> None:
    f = kind(np.random.default_rng(seed), n)
    np.testing.assert_array_equal(ordered(f), by_definition(f))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [127, 128, 129, 255, 256, 257, 5000])
def test_long_lists(kind, n: int) -> None:
    f = kind(np.random.default_rng(n), n)
    np.testing.assert_array_equal(ordered(f), by_definition(f))


@pytest.mark.parametrize("n", [1, 2, 100, 300])
def test_documents_stay_as_they_stand_where_scores_are_no_numbers(n: int) -> None:
    f = np.random.default_rng(n).normal(size=n)
    f[::3] = np.nan
    np.testing.assert_array_equal(ordered(f), np.arange(n))


def nearly_equal(rng: np.random.Generator, n: int) -> Array:
    """So close to each other, but for one, that several share each of the finest steps."""
    return np.append(rng.normal(size=n - 1) * 1e-4, 1.0)


@pytest.mark.parametrize("n", [2, 100, 129, 256])
def test_documents_on_one_of_the_finest_steps(n: int) -> None:
    f = nearly_equal(np.random.default_rng(n), n)
    np.testing.assert_array_equal(ordered(f), by_definition(f))
    order, step = np.empty(n, np.int32), np.empty(ordering.room_of(n), np.int32)
    assert ordering.by_ranks(f, order, step)
    assert sorted(order) == list(range(n))
    if n > 100:
        assert not (order == by_definition(f)).all()  # what the exchange of neighbours is for


def test_many_exchanges_are_given_up() -> None:
    f = with_a_far_one(np.random.default_rng(0), 300)
    order, step, counts = np.empty(300, np.int32), np.empty(300, np.int32), np.empty(512, np.int32)
    assert ordering.by_steps(f, order, step, counts)
    assert not ordering.exchanged(f, order)
    assert ordering.by_steps(f[:299], order[:299], step, counts)
    assert ordering.exchanged(f[:299], order[:299])


def test_as_many_steps_as_documents_within_bounds() -> None:
    assert [ordering.steps_of(n) for n in (0, 64, 65, 1000, 10**6)] == [64, 64, 128, 1024, 65_536]
