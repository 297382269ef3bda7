"""Derivatives of lists, and models made of them: byte for byte, whatever the backend and the number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import TEAMS, eager_threads, model_bytes, random_case
from support.examples import crossed, daily, examples
from support.training import MACHINES, assert_parity, device

from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cpu.rankings import ranking as cpu_lists
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.backends.reference.ranking import Places, by_score, document_gains, gains_of
from gpuboost.boosting import boost
from gpuboost.errors import InputError
from gpuboost.growth import DepthWise, LeafWise
from gpuboost.keys import Key
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
    LambdaMART(metric="map"),
    LambdaMART(truncation=4, normalise=False, metric="map"),
]
ORDERS = ["forward", "reverse", "random"]


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    """Small data is shared out as large data is."""
    with eager_threads(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_lists, "SMALL", 0)
        yield


def listed(sizes: list[int], seed: int, digits: int = 12, spread: float = 1.0) -> tuple[TrainingSet, Array]:
    """Lists of these sizes with labels 0 to 4, and scores, of which many tie if there are few digits."""
    rng, n = np.random.default_rng(seed), sum(sizes)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    scores = np.round(rng.normal(size=(1, n)), digits) * spread
    return TrainingSet(None, None, rng.integers(0, 5, n).astype(np.float64), query_start=start), scores


def labelled_for(loss: ListLoss, data: TrainingSet) -> TrainingSet:
    """The data with labels 0 and 1 if the loss is of MAP."""
    return replace(data, y=(data.y > 2.0).astype(np.float64)) if loss.weighs_precision else data


def assert_same(
    machine: str,
    loss: ListLoss,
    data: TrainingSet,
    scores: Array,
    curvature: float | None = None,
    order: str = "forward",
) -> None:
    data = labelled_for(loss, data)
    expected = Reference().gradients(loss, scores, data, curvature)
    if machine == "cuda":
        backend, runtime = Cuda(device(order)), device(order)
        computed = backend.gradients(loss, runtime.upload(scores), data, curvature)
        assert backend.to_host(computed.g).tobytes() == expected.g.tobytes()
        assert backend.to_host(computed.h).tobytes() == expected.h.tobytes()
        measured = backend.to_host(backend._targets.given(expected).states)
        assert backend.to_host(computed.states).tobytes() == measured.tobytes()
        return
    for threads, backend in TEAMS.items():
        computed = backend.gradients(loss, scores, data, curvature)
        assert (computed.g.dtype, computed.g.shape) == (np.float32, scores.shape)
        assert computed.g.tobytes() == expected.g.tobytes(), threads
        assert computed.h.tobytes() == expected.h.tobytes(), threads
        assert computed.multiplicity is data.multiplicity


EACH = pytest.mark.parametrize("machine", MACHINES)


@EACH
@settings(max_examples=examples(30))
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
    machine: str, seed: int, loss: ListLoss, sizes: list[int], digits: int, spread: float, weights: str,
    curvature: float | None, order: str,
) -> None:  # fmt: skip
    data, scores = listed(sizes, seed, digits, spread)
    rng = np.random.default_rng(seed)
    if weights == "real":
        data = replace(data, weight=np.repeat(rng.exponential(size=len(sizes)), sizes))
    if weights == "whole":
        data = replace(data, multiplicity=np.repeat(rng.integers(1, 5, len(sizes)).astype(np.int32), sizes))
    assert_same(machine, loss, data, scores, curvature, order)


@EACH
@pytest.mark.parametrize("size", daily([15, 17, 127, 129, 511, 513, 16, 128, 255, 256, 257, 512], 6))
def test_lists_about_as_long_as_lanes_and_sorted_runs(size: int, machine: str) -> None:
    for digits in (0, 2, 12):
        for loss in (LOSSES[0], LOSSES[5]):
            assert_same(machine, loss, *listed([size, 3, 1, size, 1, 1], size, digits))


@EACH
@pytest.mark.parametrize("size", [511, 512, 513, 1025])
@pytest.mark.parametrize("truncation", daily([1, 32, 33, 31, 64, 65], 3))
def test_lists_and_truncations_about_as_large_as_tiles(size: int, truncation: int, machine: str) -> None:
    assert_same(machine, LambdaMART(truncation=truncation), *listed([size, 20, truncation + 1], size + truncation, 3))


@EACH
@pytest.mark.parametrize(
    "gain", [(0.0, 1e-9, 0.5, 1.0, 1.0), (3e300, 3e300, 3e300, 3e300, 4e300), (0.0, 0, 0, 0, 2e-300)]
)
def test_gains_of_any_size(gain: tuple[float, ...], machine: str) -> None:
    for spread in (1e-3, 30.0, 1e200):
        assert_same(machine, LambdaMART(gain=gain, truncation=9), *listed([40, 17], 3, 12, spread))


@EACH
@pytest.mark.parametrize("size", [1, 300])
def test_lists_without_pairs(size: int, machine: str) -> None:
    """Single documents, and lists in which all are worth the same: nothing pulls."""
    data, scores = listed([size] * 3, 1)
    data = replace(data, y=np.repeat([0.0, 3.0, 0.0], size))
    for loss in (LOSSES[0], LOSSES[4]):
        assert not Reference().gradients(loss, scores, data, None).g.any()
        assert_same(machine, loss, data, scores)


@EACH
def test_zero_has_no_sign_and_large_scores_keep_their_order(machine: str) -> None:
    data, scores = listed([40], 3)
    scores[0, :10], scores[0, 10:20], scores[0, 20:24] = 0.0, -0.0, (1e300, -1e300, 1e-310, -1e-310)
    for loss in LOSSES:
        assert_same(machine, loss, data, scores)


TABLES = [(0.0, 1e-9, 1.0), (1.0, 1.0 + 1e-12, 2.0), (3e300, 4e300, 4e300), (0.0, 2e-300, 5e-300), (0.0, 0.0, 7.0)]


@settings(max_examples=examples(40), deadline=None)
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
    data, scores = listed(sizes, seed, digits, spread)
    y, start = data.y, data.query_start
    rng = np.random.default_rng(seed)
    y = rng.integers(0, min(labels, 32 if gain is None else len(gain)), len(y)).astype(np.float64)
    loss = LambdaMART(sigma=sigma, truncation=40, gain=gain, normalise=normalise)
    assert_same("cpu", loss, replace(data, y=y), scores)
    for row in (0, 5, len(y) // 2):
        begin, stop = start[np.searchsorted(start, row % len(y), "right") - 1 :][:2]
        rows = by_score(scores[0], begin, stop)
        places = Places.made_of(loss, document_gains(gains_of(loss), y)[rows], scores[0][rows])
        for found in places.lambdas_below(loss, 0):
            assert ((found == 0.0) | (np.abs(found) >= 2.0**-120)).all()
            assert np.isfinite(found).all()


def test_lists_on_their_own_and_together() -> None:
    """A list's derivatives depend neither on the thread nor on what was in its scratch before."""
    data, scores = listed([40, 700, 3, 90, 1, 16], 5, 2)
    y, start = data.y, data.query_start
    whole = Cpu(1).gradients(LOSSES[0], scores, data, None)
    for begin, stop in pairwise(start.tolist()):
        alone = TrainingSet(None, None, y[begin:stop], query_start=np.array([0, stop - begin]))
        found = Cpu(1).gradients(LOSSES[0], scores[:, begin:stop].copy(), alone, None)
        assert found.g.tobytes() == whole.g[:, begin:stop].tobytes()
        assert found.h.tobytes() == whole.h[:, begin:stop].tobytes()


def test_a_list_of_ten_thousand_documents() -> None:
    data, scores = listed([10_000, 20, 1], 1, digits=3)
    loss, runtime = LambdaMART(truncation=3), device()
    expected, found = Reference().gradients(loss, scores, data, None), Cpu(2).gradients(loss, scores, data, None)
    assert found.g.tobytes() == expected.g.tobytes()
    backend = Cuda(runtime)
    computed = backend.gradients(loss, runtime.upload(scores), data, None)
    assert backend.to_host(computed.g).tobytes() == expected.g.tobytes()
    assert backend.to_host(computed.h).tobytes() == expected.h.tobytes()
    every = Cpu(2).gradients(PairwiseLogistic(), scores, data, None)  # 50 million pairs
    assert abs(every.g.astype(np.float64).sum()) < 1e-5
    assert (every.h[0, :-1] > 0.0).all()  # the last document has nothing beside it


def ranking_case(weights: str = "none") -> TrainingSet:
    case = random_case(11, 300, 5, target="5")
    start = np.concatenate([[0], np.cumsum(np.random.default_rng(0).multinomial(300, np.full(12, 1 / 12)))])
    data = replace(case.data, query_start=start)
    if weights == "whole":
        data = replace(data, multiplicity=np.repeat(np.arange(1, 13), np.diff(start)).astype(np.int32))
    return data


@EACH
@pytest.mark.parametrize(
    ("loss", "growth", "weights"),
    crossed(LOSSES[:1] + LOSSES[3:4], [DepthWise, LeafWise], ["none", "whole"]),
    ids=lambda value: getattr(value, "name", None),
)
def test_one_model_on_every_machine(loss: ListLoss, weights: str, growth: type[DepthWise], machine: str) -> None:
    data, limits = ranking_case(weights), Limits(max_leaves=8, max_depth=4)
    for step in (NewtonStep(), GradientStep()):
        sampling = UniformSampling(0.7)  # of documents, after the gradients of complete lists
        recipe = Recipe(loss=loss, rounds=5, growth=growth(limits), sampling=sampling, step=step)
        assert_parity(recipe, data, machine, seed=3, threads=(1, 2, 3, 4))


@EACH
def test_one_model_of_map_on_every_machine(machine: str) -> None:
    data = labelled_for(LOSSES[5], ranking_case())
    assert_parity(Recipe(LOSSES[5], 4, growth=DepthWise(Limits(8, 3))), data, machine)


@EACH
def test_langevin_boosting_of_rankings(machine: str) -> None:
    langevin = Langevin(inverse_temperature=3e3, shrinkage=0.1, allow_unproven=True)
    recipe = Recipe(LambdaMART(), 5, 0.3, DepthWise(Limits(8, 3)), step=NewtonStep(), langevin=langevin)
    assert_parity(recipe, ranking_case(), machine)


def test_one_backend_trains_one_ranking_after_the_other() -> None:
    backend = Cuda(device())
    recipe = Recipe(LambdaMART(), 4, 0.3, DepthWise(Limits(8, 3)))
    whole = ranking_case()
    other = replace(whole, query_start=np.array([0, 1, 2, 150, 300]))
    for data in (whole, other, whole):
        for loss in LOSSES[:2]:
            one = replace(recipe, loss=loss)
            assert model_bytes(boost(one, data, backend)) == model_bytes(boost(one, data, Reference()))


def test_rows_without_queries_are_refused() -> None:
    data = replace(ranking_case(), query_start=None)
    with pytest.raises(InputError, match="the query of each row must be known"):
        boost(Recipe(LambdaMART(), 1, 0.3), data, Cuda(device()))


def test_sampled_documents_keep_the_gradients_of_complete_lists() -> None:
    """TS-12: the gradients of a list sum to zero; those of a sample of it need not."""
    (data, scores), backend = listed([30, 50], 2), TEAMS[1]
    whole = backend.gradients(LambdaMART(), scores, data, None)
    sample = backend.sample(0.5, 80, Key.root(0) / "rows")
    weighed = backend.weigh(whole, sample)
    np.testing.assert_array_equal(weighed.g, whole.g[:, sample.rows] * np.float32(2.0))
    for a, b in ((0, 30), (30, 80)):
        assert abs(whole.g[0, a:b].astype(np.float64).sum()) < 1e-6
