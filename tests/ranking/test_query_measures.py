"""Metrics of rankings, against scikit-learn and against the definitions taken at their word."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from gpuboost import losses, metrics
from gpuboost.errors import InputError

Array = np.ndarray
LOSS = losses.LambdaMART()


def lists(seed: int, sizes: list[int], digits: int = 12) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    y = rng.choice(5, int(start[-1]), p=[0.6, 0.2, 0.1, 0.05, 0.05]).astype(np.float64)
    return y, np.round(rng.normal(size=(1, len(y))), digits), start


def parts(y: Array, scores: Array, start: Array) -> list[Array]:
    """The labels of each list, best score first, ties as they stand."""
    return [y[a:b][np.lexsort((np.arange(b - a), -scores[0, a:b]))] for a, b in pairwise(start)]


def naive_ndcg(labels: Array, k: int | None) -> float | None:
    def dcg(grades: Array) -> float:
        return sum((2.0**grade - 1.0) / math.log2(place + 2.0) for place, grade in enumerate(grades[:k]))

    best = dcg(np.sort(labels)[::-1])
    return dcg(labels) / best if best > 0.0 else None


def naive_map(labels: Array, k: int | None) -> float | None:
    k = len(labels) if k is None else min(k, len(labels))
    relevant = labels > 0.0
    if not relevant.any():
        return None
    precisions = [relevant[: place + 1].mean() for place in range(k) if relevant[place]]
    return sum(precisions) / min(k, int(relevant.sum()))


def naive_mrr(labels: Array, k: int | None) -> float | None:
    if not (labels > 0.0).any():
        return None
    first = next(place for place, grade in enumerate(labels, 1) if grade > 0.0)
    return 1.0 / first if k is None or first <= k else 0.0


NAIVE: dict[str, Callable[[Array, int | None], float | None]] = {"ndcg": naive_ndcg, "map": naive_map, "mrr": naive_mrr}
MAKE: dict[str, Callable[..., metrics.Metric]] = {
    "ndcg": metrics.ndcg,
    "map": metrics.mean_average_precision,
    "mrr": metrics.mean_reciprocal_rank,
}


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.sampled_from(list(NAIVE)),
    st.sampled_from([None, 1, 3, 10, 100]),
    st.sampled_from([1.0, 0.0, 0.3, None]),
    st.sampled_from([0, 12]),
    st.booleans(),
)
def test_by_definition(
    seed: int, sizes: list[int], name: str, k: int | None, empty: float | None, digits: int, weighted: bool
) -> None:
    y, scores, start = lists(seed, sizes, digits)
    own = np.random.default_rng(seed).exponential(size=len(sizes)) if weighted else np.ones(len(sizes))
    pairs = [
        (value if value is not None else empty, weight)
        for value, weight in zip((NAIVE[name](one, k) for one in parts(y, scores, start)), own, strict=True)
        if value is not None or empty is not None
    ]
    found = MAKE[name](k, empty=empty)(y, scores, np.repeat(own, sizes) if weighted else None, LOSS, start)
    if not pairs:
        assert math.isnan(found)
    else:
        expected = sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs)
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [None, 1, 5, 10])
def test_ndcg_is_that_of_scikit_learn(k: int | None) -> None:
    y, scores, start = lists(0, [30] * 20)
    gain, table = (2.0**y - 1.0).reshape(20, 30), scores.reshape(20, 30)
    expected = ndcg_score(gain, table, k=k)  # its queries without gain count 0
    assert metrics.ndcg(k, empty=0.0)(y, scores, None, LOSS, start) == pytest.approx(expected, rel=1e-12)


def test_equal_scores_stand_in_the_order_of_rows() -> None:
    y, start = np.array([0.0, 1.0, 0.0, 2.0]), np.array([0, 4])
    level = metrics.ndcg()(y, np.zeros((1, 4)), None, LOSS, start)
    assert level == metrics.ndcg()(y, -np.arange(4.0)[None], None, LOSS, start)


def test_the_gain_is_the_losses_own_unless_one_is_given() -> None:
    y, scores, start = np.array([0.0, 1.0, 2.0]), np.array([[1.0, 3.0, 2.0]]), np.array([0, 3])
    linear = losses.LambdaMART(gain=(0.0, 1.0, 2.0))
    expected = (1.0 + 2.0 / math.log2(3.0)) / (2.0 + 1.0 / math.log2(3.0))
    assert metrics.ndcg()(y, scores, None, linear, start) == pytest.approx(expected)
    assert metrics.ndcg(gain=[0.0, 1.0, 2.0])(y, scores, None, LOSS, start) == pytest.approx(expected)
    assert metrics.ndcg()(y, scores, None, losses.PairwiseLogistic(), start) == metrics.ndcg()(
        y, scores, None, LOSS, start
    )


def test_the_mean_does_not_depend_on_the_order_of_queries() -> None:
    y, scores, start = lists(3, [7] * 40)
    order = np.random.default_rng(0).permutation(40)
    rows = (order[:, None] * 7 + np.arange(7)).ravel()
    for make in MAKE.values():
        assert make(3)(y, scores, None, LOSS, start) == make(3)(y[rows], scores[:, rows], None, LOSS, start)


def test_lists_of_very_different_lengths() -> None:
    y, scores, start = lists(1, [1, 5000, 2, 1, 130, 64, 65])
    for name, make in MAKE.items():
        expected = [NAIVE[name](one, 10) for one in parts(y, scores, start)]
        found = make(10)(y, scores, None, LOSS, start)
        assert found == pytest.approx(np.mean([1.0 if one is None else one for one in expected]), rel=1e-12)


@pytest.mark.parametrize(
    ("text", "name", "k", "empty"),
    [
        ("ndcg", "ndcg", None, 1.0),
        ("ndcg@10", "ndcg", 10, 1.0),
        ("map@5:0", "map", 5, 0.0),
        ("mrr:skip", "mrr", None, None),
        ("ndcg@3:skip", "ndcg", 3, None),
    ],
)
def test_names(text: str, name: str, k: int | None, empty: float | None) -> None:
    metric, made = metrics.get(text, LOSS), MAKE[name](k, empty=empty)
    assert (metric.name, metric.higher_is_better, metric.by_query) == (text, True, True)
    assert made.name == text
    y, scores, start = lists(9, [4, 9, 2, 1, 30])
    assert metric(y, scores, None, LOSS, start) == made(y, scores, None, LOSS, start)
    assert pickle.loads(pickle.dumps(metric))(y, scores, None, LOSS, start) == made(y, scores, None, LOSS, start)


def test_the_default_of_ranking_losses() -> None:
    assert metrics.default_metric(LOSS).name == "ndcg"
    assert metrics.default_metric(losses.PairwiseLogistic()).name == "ndcg"


@pytest.mark.parametrize(
    ("text", "loss", "words"),
    [
        ("ndcg@0", LOSS, "ndcg@0' must read ndcg, ndcg@10, ndcg@10:0 or ndcg@10:skip: k: ndcg needs a whole number"),
        ("ndcg@x", LOSS, "'ndcg@x' must read"),
        ("map@5:2", LOSS, "empty: map needs a number from 0 to 1, or None"),
        ("mrr:never", LOSS, "'mrr:never' must read"),
        ("auc@5", losses.Logistic(), "unknown name 'auc@5'"),
        ("ndcg@5", losses.Logistic(), "'ndcg' does not fit loss 'logistic': it judges ranking targets"),
        ("map", losses.custom(lambda y, f: 0.0, lambda y, f: 0.0, None), "use GradientBoostingRanker"),
        ("rmse", LOSS, "'rmse' does not fit loss 'lambdamart'"),
        ("loss", LOSS, "'loss' does not fit loss 'lambdamart'"),
        ("mean_reciprocal_rank", LOSS, "Did you mean 'mrr'"),
    ],
)
def test_names_that_do_not_fit_are_refused(text: str, loss: losses.Loss, words: str) -> None:
    with pytest.raises(InputError, match=words):
        metrics.get(text, loss)


def test_what_cannot_be_judged_is_refused() -> None:
    y, scores = np.array([0.0, 40.0]), np.zeros((1, 2))
    with pytest.raises(InputError, match=r"'ndcg' needs the query of each row; give the eval set a group"):
        metrics.ndcg()(y, scores, None, LOSS)
    with pytest.raises(InputError, match=r"ndcg knows the gain of labels 0 to 31; row 1 holds 40.0\. .*or use map"):
        metrics.ndcg()(y, scores, None, losses.PairwiseLogistic(), np.array([0, 2]))
    assert metrics.mean_average_precision()(y, scores, None, LOSS, np.array([0, 2])) == 0.5
