"""Unbiased LambdaMART: the same bytes on every machine; the host computes its derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, random_case
from support.examples import examples
from support.training import MACHINES, assert_parity, device

from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.host import unbiased_ranking as fast
from gpuboost.backends.reference import unbiased_ranking as reference
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise
from gpuboost.losses import UnbiasedLambdaMART
from gpuboost.recipe import Recipe
from gpuboost.sampling import UniformSampling
from gpuboost.types import Limits, TrainingSet

Array = np.ndarray
LOSSES = [
    UnbiasedLambdaMART(),
    UnbiasedLambdaMART(sigma=2.0, truncation=3, normalise=True, bias_norm=0.0),
    UnbiasedLambdaMART(truncation=None, gain=(0.0, 1.0, 1.0, 7.0, 20.0), bias_norm=3.0),
]
EACH = pytest.mark.parametrize("machine", MACHINES)


@pytest.fixture(autouse=True)
def _small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "BLOCK", 2)
        patch.setattr(reference, "BLOCK", 2)
        yield


@EACH
@settings(max_examples=examples(16))
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(LOSSES),
    st.lists(st.integers(1, 25), min_size=1, max_size=6),
    st.sampled_from([0.01, 1.0, 500.0]),
    st.booleans(),
    st.sampled_from([None, 1.0]),
)
def test_lists_of_all_kinds(
    machine: str, seed: int, loss: UnbiasedLambdaMART, sizes: list[int], spread: float, given_positions: bool,
    curvature: float | None,
) -> None:  # fmt: skip
    rng, n = np.random.default_rng(seed), sum(sizes)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    data = TrainingSet(None, None, rng.integers(0, 5, n).astype(np.float64), query_start=start)  # type: ignore[arg-type]
    if given_positions:
        data = replace(
            data, position=rng.integers(0, 120, n), weight=np.repeat(rng.exponential(size=len(sizes)), sizes)
        )
    scores = np.round(rng.normal(size=(1, n)), 1) * spread
    expected = Reference().gradients(loss, scores, data, curvature)
    assert np.isfinite(expected.g).all()
    if machine == "cuda":
        runtime = device()
        backend = Cuda(runtime)
        computed = backend.gradients(loss, runtime.upload(scores), data, curvature)
        assert backend.to_host(computed.g).tobytes() == expected.g.tobytes()
        assert backend.to_host(computed.h).tobytes() == expected.h.tobytes()
        return
    for threads, team in TEAMS.items():
        computed = team.gradients(loss, scores, data, curvature)
        assert computed.g.tobytes() == expected.g.tobytes(), threads
        assert computed.h.tobytes() == expected.h.tobytes(), threads


@EACH
def test_one_model_on_every_machine(machine: str) -> None:
    case, start = random_case(11, 200, 4, target="2"), np.array([0, 3, 40, 41, 90, 150, 200])
    data = replace(case.data, query_start=start, position=np.random.default_rng(0).integers(0, 9, 200))
    recipe = Recipe(LOSSES[0], 4, growth=DepthWise(Limits(6, 3)), sampling=UniformSampling(0.7))
    assert_parity(recipe, data, machine)
