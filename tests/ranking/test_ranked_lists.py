"""Gradients of rankings that NumPy computes for many lists at once are those of the definition, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from gpuboost.backends.reference import cross_entropy, ranked_lists, ranking
from gpuboost.keys import Key, Stream
from gpuboost.losses import LambdaMART, PairwiseLogistic
from gpuboost.types import Gradients, TrainingSet

Array = np.ndarray

truncations = st.sampled_from([None, 1, 3, 30, 40])
ndcg = st.builds(
    LambdaMART,
    sigma=st.sampled_from([0.5, 1.0, 3.0]),
    truncation=truncations,
    gain=st.sampled_from([None, (0.0, 0.0, 1.0, 5.0, 5.0)]),
    normalise=st.booleans(),
)
precision = st.builds(LambdaMART, truncation=truncations, normalise=st.booleans(), metric=st.just("map"))
pairs = st.builds(PairwiseLogistic, truncation=truncations, normalise=st.booleans())


def lists_of(seed: int, lengths: list[int], labels: int, spread: float, *, whole: bool) -> tuple[TrainingSet, Array]:
    """Lists with ties of scores, and of weights."""
    rng, n = np.random.default_rng(seed), sum(lengths)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    y = rng.integers(0, labels, n).astype(np.float64)
    weight = np.repeat(rng.random(len(lengths)), lengths) if seed % 2 else None
    scores = rng.normal(size=(1, n))
    data = TrainingSet(None, None, y, weight, query_start=start)  # type: ignore[arg-type]
    return data, (np.round(scores, 1) if whole else scores) * spread


def as_bytes(gradients: Gradients) -> tuple[bytes, bytes]:
    return gradients.g.tobytes(), gradients.h.tobytes()


@settings(max_examples=examples(150))
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 70), min_size=1, max_size=12),
    st.one_of(ndcg, precision, pairs),
    st.sampled_from([0.0, 1e-12, 1.0, 30.0, 1e4]),
    st.booleans(),
    st.sampled_from([None, 0.5]),
)
def test_pairs_are_summed_as_in_one_list(
    seed: int,
    lengths: list[int],
    loss: LambdaMART | PairwiseLogistic,
    spread: float,
    whole: bool,
    curvature: float | None,
) -> None:
    data, scores = lists_of(seed, lengths, 2 if loss.weighs_precision else 5, spread, whole=whole)
    lambdas = ranked_lists.lambdas, ranking.lambdas
    found, expected = (ranking.gradients(loss, scores, data, curvature, of_lists) for of_lists in lambdas)
    assert as_bytes(found) == as_bytes(expected)


@pytest.mark.parametrize("loss", [LambdaMART(truncation=70), LambdaMART(metric="map"), PairwiseLogistic(truncation=3)])
def test_lists_of_several_tiles_have_the_same_sums(loss: LambdaMART | PairwiseLogistic) -> None:
    data, scores = lists_of(3, [1, 600, 530], 2, 1.0, whole=True)
    found, expected = (one.lambdas(loss, data.y, scores[0], data.lists()) for one in (ranked_lists, ranking))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_lists_are_divided_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    data, scores = lists_of(5, [9, 30, 31, 30, 2, 31, 9], 5, 1.0, whole=False)
    of_lists = LambdaMART(), data.y, scores[0], data.lists()
    expected = ranked_lists.lambdas(*of_lists)
    monkeypatch.setattr(ranked_lists, "MOST_PAIRS", 100)
    for ours, theirs in zip(ranked_lists.lambdas(*of_lists), expected, strict=True):
        assert ours.tobytes() == theirs.tobytes()


@settings(max_examples=examples(100))
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 100), min_size=1, max_size=12),
    st.sampled_from([0.0, 1.0, 30.0, 1e4]),
    st.sampled_from([None, 0.5]),
)
def test_cross_entropies_are_those_of_one_list(
    seed: int, lengths: list[int], spread: float, curvature: float | None
) -> None:
    data, scores = lists_of(seed, lengths, 5, spread, whole=seed % 3 == 0)
    key = Key.root(seed) / Stream.LEARNERS / 3
    found = ranked_lists.perturbed_gradients(scores, data, curvature, key)
    assert as_bytes(found) == as_bytes(cross_entropy.gradients(scores, data, curvature, key))
