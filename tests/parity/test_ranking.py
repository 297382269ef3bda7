"""Derivatives of lists, and models made of them: byte for byte, whatever the backend and the number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, eager_threads, model_bytes, random_case, sparse

from gpuboost.backends.cpu import ranking as cpu_lists
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.reference.backend import Reference
from gpuboost.backends.reference.ranking import Places, by_score, document_gains, gains_of
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise
from gpuboost.keys import Key
from gpuboost.losses import LambdaMART, PairwiseLogistic
from gpuboost.recipe import Recipe
from gpuboost.sampling import UniformSampling
from gpuboost.steps import GradientStep, NewtonStep
from gpuboost.types import Limits, TrainingSet

Array = np.ndarray
ListLoss = LambdaMART | PairwiseLogistic

LOSSES: list[ListLoss] = [
    LambdaMART(),
    LambdaMART(sigma=3.0, truncation=3, normalise=False),
    LambdaMART(truncation=None, gain=(0.0, 1.0, 1.0, 7.0, 20.0)),
    PairwiseLogistic(),
    PairwiseLogistic(truncation=20, normalise=False),
]


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    """Small data is shared out as large data is."""
    with eager_threads(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_lists, "SMALL", 0)
        yield


def lists_of(sizes: Array, seed: int, digits: int, spread: float) -> tuple[Array, Array, Array]:
    """Labels, scores and the starts of the lists."""
    rng = np.random.default_rng(seed)
    n = int(sizes.sum())
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    scores = np.round(rng.normal(size=(1, n)), digits) * spread
    return rng.integers(0, 5, n).astype(np.float64), scores, start


def assert_same(loss: ListLoss, data: TrainingSet, scores: Array, curvature: float | None) -> None:
    expected = Reference().gradients(loss, scores, data, curvature)
    for threads, backend in TEAMS.items():
        found = backend.gradients(loss, scores, data, curvature)
        assert (found.g.dtype, found.g.shape) == (np.float32, scores.shape)
        assert found.g.tobytes() == expected.g.tobytes(), threads
        assert found.h.tobytes() == expected.h.tobytes(), threads
        assert found.multiplicity is data.multiplicity


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(LOSSES),
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.sampled_from([0, 1, 12]),
    st.sampled_from([0.01, 1.0, 500.0]),
    st.sampled_from(["none", "real", "whole"]),
    st.sampled_from([None, 1.0]),
)
def test_lists_of_all_kinds(
    seed: int, loss: ListLoss, sizes: list[int], digits: int, spread: float, weights: str, curvature: float | None
) -> None:
    y, scores, start = lists_of(np.array(sizes), seed, digits, spread)
    rng = np.random.default_rng(seed)
    own = rng.exponential(size=len(sizes)) if weights == "real" else rng.integers(1, 5, len(sizes)).astype(np.int32)
    spread_out = np.repeat(own, sizes)
    data = TrainingSet(None, None, y, query_start=start)
    if weights != "none":
        data = replace(data, **{"weight" if weights == "real" else "multiplicity": spread_out})
    assert_same(loss, data, scores, curvature)


@pytest.mark.parametrize("size", [15, 16, 17, 127, 128, 129, 300])
def test_lists_about_as_long_as_lanes_and_sorted_runs(size: int) -> None:
    for digits in (0, 2, 12):
        y, scores, start = lists_of(np.array([size, 3, size]), size, digits, 1.0)
        assert_same(LOSSES[0], TrainingSet(None, None, y, query_start=start), scores, None)


@pytest.mark.parametrize("size", [511, 512, 513, 1025])
@pytest.mark.parametrize("truncation", [1, 31, 32, 33, 64])
def test_lists_and_truncations_about_as_large_as_tiles(size: int, truncation: int) -> None:
    y, scores, start = lists_of(np.array([size, truncation + 1]), size + truncation, 3, 1.0)
    data = TrainingSet(None, None, y, query_start=start)
    assert_same(LambdaMART(truncation=truncation), data, scores, None)


TABLES = [(0.0, 1e-9, 1.0), (1.0, 1.0 + 1e-12, 2.0), (3e300, 4e300, 4e300), (0.0, 2e-300, 5e-300), (0.0, 0.0, 7.0)]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, *TABLES]),
    st.lists(st.integers(1, 70), min_size=1, max_size=4),
    st.integers(1, 32),
    st.sampled_from([0, 1, 12]),
    st.sampled_from([1e-3, 1.0, 30.0, 1e5, 1e200]),
    st.sampled_from([1e-3, 1.0, 10.0]),
    st.booleans(),
)
def test_any_gains_and_distances_without_denormal_numbers(
    seed: int, gain: tuple[float, ...] | None, sizes: list[int], labels: int, digits: int, spread: float, sigma: float,
    normalise: bool,
) -> None:  # fmt: skip
    """Labels up to 31, lists of one label, tables of any size: all pairs stay within what float32 holds."""
    y, scores, start = lists_of(np.array(sizes), seed, digits, spread)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, min(labels, 32 if gain is None else len(gain)), len(y)).astype(np.float64)
    loss = LambdaMART(sigma=sigma, truncation=40, gain=gain, normalise=normalise)
    data = TrainingSet(None, None, y, query_start=start)
    assert_same(loss, data, scores, None)
    for row in (0, 5, len(y) // 2):
        begin, stop = start[np.searchsorted(start, row % len(y), "right") - 1 :][:2]
        rows = by_score(scores[0], begin, stop)
        places = Places.made_of(loss, document_gains(gains_of(loss), y)[rows], scores[0][rows])
        for found in places.lambdas_below(loss, 0):
            assert ((found == 0.0) | (np.abs(found) >= 2.0**-120)).all()
            assert np.isfinite(found).all()


def test_lists_on_their_own_and_together() -> None:
    """A list's derivatives depend neither on the thread nor on what was in its scratch before."""
    sizes = np.array([40, 700, 3, 90, 1, 16])
    y, scores, start = lists_of(sizes, 5, 2, 1.0)
    whole = Cpu(1).gradients(LOSSES[0], scores, TrainingSet(None, None, y, query_start=start), None)
    for begin, stop in pairwise(start.tolist()):
        alone = TrainingSet(None, None, y[begin:stop], query_start=np.array([0, stop - begin]))
        found = Cpu(1).gradients(LOSSES[0], scores[:, begin:stop].copy(), alone, None)
        assert found.g.tobytes() == whole.g[:, begin:stop].tobytes()
        assert found.h.tobytes() == whole.h[:, begin:stop].tobytes()


def test_a_list_of_ten_thousand_documents() -> None:
    y, scores, start = lists_of(np.array([10_000, 20]), 1, 3, 1.0)
    data = TrainingSet(None, None, y, query_start=start)
    expected = Reference().gradients(LambdaMART(truncation=5), scores, data, None)
    found = Cpu(2).gradients(LambdaMART(truncation=5), scores, data, None)
    assert found.g.tobytes() == expected.g.tobytes()
    every = Cpu(2).gradients(PairwiseLogistic(), scores, data, None)  # 50 million pairs
    assert abs(every.g.astype(np.float64).sum()) < 1e-5
    assert (every.h > 0.0).all()


@pytest.mark.parametrize("loss", LOSSES[:1] + LOSSES[3:4], ids=repr)
@pytest.mark.parametrize("weights", ["none", "whole"])
@pytest.mark.parametrize("leafwise", [False, True])
def test_one_model_on_every_machine(loss: ListLoss, weights: str, leafwise: bool) -> None:
    case = random_case(11, 300, 5, target="5")
    start = np.concatenate([[0], np.cumsum(np.random.default_rng(0).multinomial(300, np.full(12, 1 / 12)))])
    data = replace(case.data, query_start=start)
    if weights == "whole":
        data = replace(data, multiplicity=np.repeat(np.arange(1, 13), np.diff(start)).astype(np.int32))
    limits = Limits(max_leaves=8, max_depth=4)
    for step in (NewtonStep(), GradientStep()):
        recipe = Recipe(
            loss=loss,
            rounds=4,
            growth=(LeafWise if leafwise else DepthWise)(limits),
            sampling=UniformSampling(0.7),  # of documents, after the gradients of complete lists
            step=step,
        )
        expected = model_bytes(boost(recipe, data, Reference(), seed=3))
        for backend in TEAMS.values():
            assert model_bytes(boost(recipe, data, backend, seed=3)) == expected
        assert model_bytes(boost(recipe, sparse(data), TEAMS[2], seed=3)) == expected


def test_sampled_documents_keep_the_gradients_of_complete_lists() -> None:
    """TS-12: the gradients of a list sum to zero; those of a sample of it need not."""
    y, scores, start = lists_of(np.array([30, 50]), 2, 12, 1.0)
    data, backend = TrainingSet(None, None, y, query_start=start), TEAMS[1]
    whole = backend.gradients(LambdaMART(), scores, data, None)
    sample = backend.sample(0.5, 80, Key.root(0) / "rows")
    weighed = backend.weigh(whole, sample)
    np.testing.assert_array_equal(weighed.g, whole.g[:, sample.rows] * np.float32(2.0))
    for a, b in ((0, 30), (30, 80)):
        assert abs(whole.g[0, a:b].astype(np.float64).sum()) < 1e-6
