"""Estimates of smoothed ranking metrics, and models made of them: the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, eager_threads, listed, ranking_case
from support.examples import examples
from support.training import MACHINES, assert_parity, device

import gpuboost as gb
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.rankings import smoothed_ranking as cpu_smoothed
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise
from gpuboost.keys import Key, Stream
from gpuboost.langevin import Langevin
from gpuboost.losses import StochasticRank
from gpuboost.recipe import Recipe
from gpuboost.sampling import UniformSampling
from gpuboost.steps import GradientStep
from gpuboost.types import Limits, TrainingSet

Array = np.ndarray
LOSSES = [
    StochasticRank(),
    StochasticRank(sigma=0.2, truncation=3, mu=0.5, samples=3),
    StochasticRank(truncation=None, gain=(0.0, 1.0, 1.0, 7.0, 20.0), scale_free=True, samples=2),
]
EACH = pytest.mark.parametrize("machine", MACHINES)


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    """Small data is shared out as large data is."""
    with eager_threads(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_smoothed, "SMALL", 1)
        yield


def assert_same(machine: str, loss: StochasticRank, data: TrainingSet, scores: Array, key: Key) -> None:
    expected = Reference().drawn_gradients(loss, scores, data, 1.0, key)
    assert np.isfinite(expected.g).all()
    if machine == "cuda":
        runtime = device()
        backend = Cuda(runtime)
        computed = backend.drawn_gradients(loss, runtime.upload(scores), data, 1.0, key)
        assert backend.to_host(computed.g).tobytes() == expected.g.tobytes()
        assert backend.to_host(computed.h).tobytes() == expected.h.tobytes()
        return
    for threads, backend in TEAMS.items():
        computed = backend.drawn_gradients(loss, scores, data, 1.0, key)
        assert computed.g.tobytes() == expected.g.tobytes(), threads
        assert computed.h.tobytes() == expected.h.tobytes(), threads
        assert computed.multiplicity is data.multiplicity


@EACH
@settings(max_examples=examples(16))
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(LOSSES),
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
    st.sampled_from([0.01, 1.0, 500.0]),
    st.booleans(),
)
def test_lists_of_all_kinds(
    machine: str, seed: int, loss: StochasticRank, sizes: list[int], spread: float, weighted: bool
) -> None:
    data, scores = listed(sizes, seed, spread)
    if weighted:
        data = replace(data, weight=np.repeat(np.random.default_rng(seed).exponential(size=len(sizes)), sizes))
    assert_same(machine, loss, data, scores, Key.root(seed) / Stream.SCORE_NOISE / 9)


@EACH
def test_long_lists_and_lists_of_one_label(machine: str) -> None:
    data, scores = listed([300, 1, 257, 40], 3, 1.0)
    data = replace(data, y=np.where(np.arange(598) < 558, data.y, 2.0))
    assert_same(machine, LOSSES[1], data, scores, Key.root(1) / Stream.SCORE_NOISE / 0)


@EACH
@pytest.mark.parametrize("loss", LOSSES[1:], ids=["several draws", "scale-free"])
def test_one_model_on_every_machine(machine: str, loss: StochasticRank) -> None:
    """Also as a recorded round, whose noise is new in each replay."""
    growth, sampling = DepthWise(Limits(6, 3)), UniformSampling(0.7)
    assert_parity(Recipe(loss, 5, growth=growth, sampling=sampling, step=GradientStep()), ranking_case(), machine)


@EACH
def test_langevin_boosting_of_a_smoothed_metric(machine: str) -> None:
    recipe = Recipe(LOSSES[0], 4, growth=DepthWise(Limits(6, 3)), step=GradientStep(), langevin=Langevin(shrinkage=0.1))
    assert_parity(recipe, ranking_case(), machine)


def test_part_of_the_rows_has_the_noise_of_all() -> None:
    data, scores = listed([30, 20, 25], 4, 1.0)
    key = Key.root(2) / Stream.SCORE_NOISE / 1
    whole = Cpu(1).drawn_gradients(LOSSES[1], scores, data, 1.0, key)
    rest = TrainingSet(None, None, data.y[50:], query_start=np.array([0, 25]))  # type: ignore[arg-type]
    part = Cpu(1).drawn_gradients(LOSSES[1], scores[:, 50:].copy(), rest, 1.0, key, 50)
    assert part.g.tobytes() == whole.g[:, 50:].tobytes()


def test_shards_and_continued_fits_have_the_same_model() -> None:
    """Threads, shards of rows, and 3 + 2 rounds for 5."""
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(120, 3)), np.repeat(np.arange(8), 15)
    y = np.digitize(X[:, 0], [0.0, 1.0])
    few = {"max_depth": 2, "random_state": 3, "n_jobs": 1}

    def fitted(rounds: int, init_model: object = None, **given: object) -> gb.GradientBoostingRanker:
        model = gb.GradientBoostingRanker(LOSSES[1], n_estimators=rounds, **few | given)
        return model.fit(X, y, group=group, init_model=init_model)

    whole = fitted(5).predict(X)
    assert fitted(5, execution=gb.DataParallel(2)).predict(X).tobytes() == whole.tobytes()
    assert fitted(2, fitted(3)).predict(X).tobytes() == whole.tobytes()
    assert fitted(5, random_state=4).predict(X).tobytes() != whole.tobytes()
