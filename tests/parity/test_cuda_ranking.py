"""Derivatives of lists on the emulated device, and models made of them: Reference's bytes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from emulator import emulated_runtime
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, model_bytes, random_case

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise, LeafWise
from gpuboost.langevin import Langevin
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
ORDERS = ["forward", "reverse", "random"]


@cache
def cuda(order: str = "forward") -> Cuda:
    return Cuda(emulated_runtime(order))


def listed(sizes: list[int], seed: int, digits: int = 12, spread: float = 1.0) -> tuple[TrainingSet, Array]:
    """Lists of these sizes with labels 0 to 4, and scores, of which many tie if there are few digits."""
    rng, n = np.random.default_rng(seed), sum(sizes)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    scores = np.round(rng.normal(size=(1, n)), digits) * spread
    return TrainingSet(None, None, rng.integers(0, 5, n).astype(np.float64), query_start=start), scores


def assert_same(
    loss: ListLoss, data: TrainingSet, scores: Array, curvature: float | None = None, order: str = "forward"
) -> None:
    expected, backend = Reference().gradients(loss, scores, data, curvature), cuda(order)
    found = backend.gradients(loss, backend._runtime.upload(scores), data, curvature)
    assert backend.to_host(found.g).tobytes() == expected.g.tobytes()
    assert backend.to_host(found.h).tobytes() == expected.h.tobytes()
    measured = backend.to_host(backend._targets.given(expected).states)
    assert backend.to_host(found.states).tobytes() == measured.tobytes()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(LOSSES),
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.sampled_from([0, 1, 12]),
    st.sampled_from([0.01, 1.0, 500.0]),
    st.sampled_from(["none", "real", "whole"]),
    st.sampled_from([None, 1.0]),
    st.sampled_from(ORDERS),
)
def test_lists_of_all_kinds(
    seed: int, loss: ListLoss, sizes: list[int], digits: int, spread: float, weights: str, curvature: float | None,
    order: str,
) -> None:  # fmt: skip
    data, scores = listed(sizes, seed, digits, spread)
    rng = np.random.default_rng(seed)
    if weights == "real":
        data = replace(data, weight=np.repeat(rng.exponential(size=len(sizes)), sizes))
    if weights == "whole":
        data = replace(data, multiplicity=np.repeat(rng.integers(1, 5, len(sizes)).astype(np.int32), sizes))
    assert_same(loss, data, scores, curvature, order)


@pytest.mark.parametrize("size", [16, 17, 255, 256, 257, 511, 512, 513])
def test_lists_about_as_long_as_lanes_and_sorted_runs(size: int) -> None:
    for digits in (0, 2, 12):
        assert_same(LOSSES[0], *listed([size, 3, 1, size, 1, 1], size, digits))


@pytest.mark.parametrize(("size", "truncation"), [(513, 33), (1025, 65), (512, 32)])
def test_lists_about_as_large_as_tiles(size: int, truncation: int) -> None:
    assert_same(LambdaMART(truncation=truncation), *listed([size, 20, truncation + 1], size, 3))


@pytest.mark.parametrize(
    "gain", [(0.0, 1e-9, 0.5, 1.0, 1.0), (3e300, 3e300, 3e300, 3e300, 4e300), (0.0, 0, 0, 0, 2e-300)]
)
def test_gains_of_any_size(gain: tuple[float, ...]) -> None:
    for spread in (1e-3, 30.0, 1e200):
        assert_same(LambdaMART(gain=gain, truncation=9), *listed([40, 17], 3, 12, spread))


@pytest.mark.parametrize("size", [1, 300])
def test_lists_without_pairs(size: int) -> None:
    """Single documents, and lists in which all are worth the same: nothing pulls."""
    data, scores = listed([size] * 3, 1)
    data = replace(data, y=np.repeat([0.0, 3.0, 0.0], size))
    for loss in (LOSSES[0], LOSSES[4]):
        assert_same(loss, data, scores)
        assert not cuda().to_host(cuda().gradients(loss, cuda()._runtime.upload(scores), data, None).g).any()


def test_zero_has_no_sign_and_large_scores_keep_their_order() -> None:
    data, scores = listed([40], 3)
    scores[0, :10], scores[0, 10:20], scores[0, 20:24] = 0.0, -0.0, (1e300, -1e300, 1e-310, -1e-310)
    for loss in LOSSES:
        assert_same(loss, data, scores)


def test_a_list_of_ten_thousand_documents() -> None:
    data, scores = listed([10_000, 20, 1], 1, digits=3)
    loss = LambdaMART(truncation=3)
    expected = Cpu(2).gradients(loss, scores, data, None)
    found = cuda().gradients(loss, cuda()._runtime.upload(scores), data, None)
    assert cuda().to_host(found.g).tobytes() == expected.g.tobytes()
    assert cuda().to_host(found.h).tobytes() == expected.h.tobytes()


def ranking_case(weights: str = "none") -> TrainingSet:
    case = random_case(11, 300, 5, target="5")
    start = np.concatenate([[0], np.cumsum(np.random.default_rng(0).multinomial(300, np.full(12, 1 / 12)))])
    data = replace(case.data, query_start=start)
    if weights == "whole":
        data = replace(data, multiplicity=np.repeat(np.arange(1, 13), np.diff(start)).astype(np.int32))
    return data


@pytest.mark.parametrize("loss", LOSSES[:1] + LOSSES[3:4], ids=repr)
@pytest.mark.parametrize("weights", ["none", "whole"])
@pytest.mark.parametrize("leafwise", [False, True])
def test_one_model_on_every_machine(loss: ListLoss, weights: str, leafwise: bool) -> None:
    data, limits = ranking_case(weights), Limits(max_leaves=8, max_depth=4)
    for step in (NewtonStep(), GradientStep()):
        growth, sampling = (LeafWise if leafwise else DepthWise)(limits), UniformSampling(0.7)
        recipe = Recipe(loss=loss, rounds=5, growth=growth, sampling=sampling, step=step)
        expected = model_bytes(boost(recipe, data, Reference(), seed=3))
        for backend in (cuda(), TEAMS[2]):
            assert model_bytes(boost(recipe, data, backend, seed=3)) == expected


def test_langevin_boosting_of_rankings() -> None:
    langevin = Langevin(inverse_temperature=3e3, shrinkage=0.1, allow_unproven=True)
    recipe = Recipe(LambdaMART(), 5, 0.3, DepthWise(Limits(8, 3)), step=NewtonStep(), langevin=langevin)
    data = ranking_case()
    assert model_bytes(boost(recipe, data, cuda())) == model_bytes(boost(recipe, data, Reference()))


def test_one_backend_trains_one_ranking_after_the_other() -> None:
    recipe = Recipe(LambdaMART(), 4, 0.3, DepthWise(Limits(8, 3)))
    whole = ranking_case()
    other = replace(whole, query_start=np.array([0, 1, 2, 150, 300]))
    for data in (whole, other, whole):
        for loss in LOSSES[:2]:
            one = replace(recipe, loss=loss)
            assert model_bytes(boost(one, data, cuda())) == model_bytes(boost(one, data, Reference()))


def test_rows_without_queries_are_refused() -> None:
    data = replace(ranking_case(), query_start=None)
    with pytest.raises(InputError, match="the query of each row must be known"):
        boost(Recipe(LambdaMART(), 1, 0.3), data, cuda())
