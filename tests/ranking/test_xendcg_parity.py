"""Derivatives of XE-NDCG, and models made of them: the same bytes on every machine."""

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
from gpuboost.backends.cpu.rankings import cross_entropy as cpu_cross_entropy
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise
from gpuboost.keys import Key, Stream
from gpuboost.langevin import Langevin
from gpuboost.losses import XENDCG
from gpuboost.recipe import Recipe
from gpuboost.sampling import UniformSampling
from gpuboost.steps import GradientStep
from gpuboost.types import Limits, TrainingSet

Array = np.ndarray
EACH = pytest.mark.parametrize("machine", MACHINES)


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    """Small data is shared out as large data is."""
    with eager_threads(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_cross_entropy, "SMALL", 1)
        yield


def assert_same(machine: str, data: TrainingSet, scores: Array, key: Key) -> None:
    for curvature in (None, 0.5):
        expected = Reference().drawn_gradients(XENDCG(), scores, data, curvature, key)
        assert np.isfinite(expected.g).all()
        if machine == "cuda":
            runtime = device()
            backend = Cuda(runtime)
            computed = backend.drawn_gradients(XENDCG(), runtime.upload(scores), data, curvature, key)
            assert backend.to_host(computed.g).tobytes() == expected.g.tobytes()
            assert backend.to_host(computed.h).tobytes() == expected.h.tobytes()
            continue
        for threads, team in TEAMS.items():
            computed = team.drawn_gradients(XENDCG(), scores, data, curvature, key)
            assert computed.g.tobytes() == expected.g.tobytes(), threads
            assert computed.h.tobytes() == expected.h.tobytes(), threads


@EACH
@settings(max_examples=examples(16))
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 90), min_size=1, max_size=5),
    st.sampled_from([0.01, 1.0, 500.0]),
    st.booleans(),
)
def test_lists_of_all_kinds(machine: str, seed: int, sizes: list[int], spread: float, weighted: bool) -> None:
    data, scores = listed(sizes, seed, spread)
    if weighted:
        data = replace(data, weight=np.repeat(np.random.default_rng(seed).exponential(size=len(sizes)), sizes))
    assert_same(machine, data, scores, Key.root(seed) / Stream.SCORE_NOISE / 9)


@EACH
def test_one_model_on_every_machine(machine: str) -> None:
    """Also as a recorded round, whose gammas are new in each replay."""
    growth, sampling = DepthWise(Limits(6, 3)), UniformSampling(0.7)
    assert_parity(Recipe(XENDCG(), 5, growth=growth, sampling=sampling), ranking_case(), machine)


@EACH
def test_langevin_boosting(machine: str) -> None:
    recipe = Recipe(XENDCG(), 4, growth=DepthWise(Limits(6, 3)), step=GradientStep(), langevin=Langevin(shrinkage=0.1))
    assert_parity(recipe, ranking_case(), machine)


def test_shards_continued_fits_and_drawn_queries_have_the_same_model() -> None:
    """Threads, shards of rows, 3 + 2 rounds for 5; whole queries drawn on one thread and on two."""
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(120, 3)), np.repeat(np.arange(8), 15)
    y = np.digitize(X[:, 0], [0.0, 1.0])
    few = {"max_depth": 2, "random_state": 3, "n_jobs": 1, "min_child_weight": 0.0}

    def fitted(rounds: int, init_model: object = None, **given: object) -> bytes:
        model = gb.GradientBoostingRanker("xendcg", n_estimators=rounds, **few | given)
        return model.fit(X, y, group=group, init_model=init_model)

    whole = fitted(5).predict(X).tobytes()
    assert fitted(5, execution=gb.DataParallel(2)).predict(X).tobytes() == whole
    assert fitted(2, fitted(3)).predict(X).tobytes() == whole
    assert fitted(5, random_state=4).predict(X).tobytes() != whole
    drawn = {"sampling": gb.QuerySampling(0.5)}
    assert fitted(5, **drawn).predict(X).tobytes() == fitted(5, n_jobs=2, **drawn).predict(X).tobytes() != whole


def test_part_of_the_rows_has_the_gammas_of_all() -> None:
    data, scores = listed([30, 20, 25], 4, 1.0)
    key = Key.root(2) / Stream.SCORE_NOISE / 1
    whole = Cpu(1).drawn_gradients(XENDCG(), scores, data, None, key)
    rest = TrainingSet(None, None, data.y[50:], query_start=np.array([0, 25]))  # type: ignore[arg-type]
    part = Cpu(1).drawn_gradients(XENDCG(), scores[:, 50:].copy(), rest, None, key, 50)
    assert part.g.tobytes() == whole.g[:, 50:].tobytes()
