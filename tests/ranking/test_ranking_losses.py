"""List-wise losses against their definitions: all pairs, one by one, and finite differences."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.backends.reference.ranking import lambdas
from gpuboost.errors import InputError, RecipeError
from gpuboost.losses import LambdaMART, PairwiseLogistic
from gpuboost.losses.protocol import is_list_loss
from gpuboost.losses.ranking import pair_derivatives
from gpuboost.metrics import default_metric
from gpuboost.types import TrainingSet

Array = np.ndarray
ListLoss = LambdaMART | PairwiseLogistic

PLAIN = LambdaMART(normalise=False)
LOSSES: list[ListLoss] = [
    PLAIN,
    LambdaMART(),
    LambdaMART(sigma=2.5, truncation=2, normalise=False),
    LambdaMART(truncation=None, gain=(0.0, 1.0, 1.0, 7.0, 20.0)),
    PairwiseLogistic(normalise=False),
    PairwiseLogistic(sigma=0.5, truncation=4),
    LambdaMART(normalise=False, truncation=None, metric="map"),
    LambdaMART(sigma=2.0, truncation=3, metric="map"),
]


def one_list(n: int, seed: int = 0, labels: int = 5, digits: int = 6) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, labels, n).astype(np.float64), np.round(rng.normal(size=n), digits)


def of(loss: ListLoss, y: Array, f: Array) -> tuple[Array, Array]:
    """g and h of one list; of labels above 2 for MAP."""
    return lambdas(loss, labels_for(loss, y), f, np.array([0, len(y)]))


def labels_for(loss: ListLoss, y: Array) -> Array:
    return (y > 2.0).astype(np.float64) if loss.weighs_precision else y


def average_precision(y: Array, order: Array) -> float:
    """Mean over relevant documents of the precision at their places."""
    relevant = y[order] > 0.0
    return float((np.cumsum(relevant) / np.arange(1, len(y) + 1))[relevant].mean())


def map_weights(loss: ListLoss, y: Array, f: Array) -> Array:
    """``weights`` of MAP: the two are exchanged, and average precision is computed anew."""
    order, w = np.lexsort((np.arange(len(y)), -f)), np.zeros((len(y), len(y)))
    places = np.argsort(order)
    for i in np.flatnonzero(y > 0.0):
        for j in np.flatnonzero(y == 0.0):
            exchanged = order.copy()
            exchanged[[places[i], places[j]]] = j, i
            if min(places[i], places[j]) < (loss.truncation or len(y)):
                close = 0.01 + abs(f[i] - f[j]) if loss.normalise else 1.0
                w[i, j] = abs(average_precision(y, exchanged) - average_precision(y, order)) / close
    return w


def weights(loss: ListLoss, y: Array, f: Array) -> Array:
    """(n, n) w_ij where i is better than j, by the definition; 0 elsewhere."""
    n, y = len(y), labels_for(loss, y)
    if loss.weighs_precision:
        return map_weights(loss, y, f)
    rank = np.empty(n, int)
    rank[np.lexsort((np.arange(n), -f))] = np.arange(1, n + 1)
    table = loss.gains()
    gain = table[y.astype(int)] if len(table) else y
    discount = 1.0 / np.log2(1.0 + rank)
    most = n if loss.truncation is None else loss.truncation
    ideal = np.sort(gain)[::-1][:most] @ (1.0 / np.log2(1.0 + np.arange(1, n + 1)))[:most]
    w = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if gain[i] > gain[j] and min(rank[i], rank[j]) <= most:
                w[i, j] = 1.0
                if isinstance(loss, LambdaMART):
                    w[i, j] = (gain[i] - gain[j]) * abs(discount[i] - discount[j]) / ideal
                    if loss.normalise:
                        w[i, j] /= 0.01 + abs(f[i] - f[j])
    return w


def cost(w: Array, sigma: float, f: Array) -> float:
    """The sum of w_ij log(1 + e^(-sigma (f_i - f_j)))."""
    return float(np.sum(w * np.logaddexp(0.0, -sigma * (f[:, None] - f[None, :]))))


def by_definition(loss: ListLoss, y: Array, f: Array) -> tuple[Array, Array]:
    w = weights(loss, y, f)
    wrong = 1.0 / (1.0 + np.exp(loss.sigma * (f[:, None] - f[None, :])))
    first, second = loss.sigma * w * wrong, loss.sigma**2 * w * wrong * (1.0 - wrong)
    g, h = first.sum(axis=0) - first.sum(axis=1), second.sum(axis=0) + second.sum(axis=1)
    pulled = 2.0 * first.sum()
    factor = np.log2(1.0 + pulled) / pulled if loss.normalise and pulled > 0.0 else 1.0
    return g * factor, h * factor


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n", [2, 3, 17, 40])
def test_derivatives_are_those_of_all_pairs_one_by_one(loss: ListLoss, n: int) -> None:
    for seed in range(5):
        y, f = one_list(n, seed, digits=1 if seed == 4 else 6)
        for found, expected in zip(of(loss, y, f), by_definition(loss, y, f), strict=True):
            np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("loss", [PLAIN, LOSSES[2], LOSSES[4], LOSSES[6]], ids=repr)
def test_derivatives_are_finite_differences_of_the_cost_with_weights_held_still(loss: ListLoss) -> None:
    y, f = one_list(12, 3)
    w, (g, h) = weights(loss, y, f), of(loss, y, f)
    step = 1e-4
    for i in range(12):
        at = np.zeros(12)
        at[i] = step
        above, here, below = (cost(w, loss.sigma, f + by * at) for by in (1.0, 0.0, -1.0))
        assert (above - below) / (2.0 * step) == pytest.approx(g[i], rel=1e-5, abs=1e-8)
        assert (above - 2.0 * here + below) / step**2 == pytest.approx(h[i], rel=1e-3, abs=1e-6)


def test_a_pair_by_hand() -> None:
    """Gains 3 and 0 in the wrong order: |delta NDCG| = 1 - 1 / log2(3), and sigma(0.5) of it pulls."""
    g, h = of(PLAIN, np.array([0.0, 2.0]), np.array([0.5, 0.0]))
    p = 1.0 / (1.0 + math.exp(-0.5))
    delta = 1.0 - 1.0 / math.log2(3.0)
    np.testing.assert_allclose(g, [delta * p, -delta * p], rtol=3e-7)
    np.testing.assert_allclose(h, [delta * p * (1 - p)] * 2, rtol=3e-7)
    one = np.float32(1.0)
    assert pair_derivatives(one, one, np.float32(2.0), one) == (1.0, 0.5)
    assert pair_derivatives(one, one, np.float32(2.0), np.float32(0.5)) == (2.0, 1.0)


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32 - 1), st.sampled_from(LOSSES), st.integers(1, 30), st.sampled_from([0, 1, 6]))
def test_what_pulls_one_up_pulls_another_down(seed: int, loss: ListLoss, n: int, digits: int) -> None:
    y, f = one_list(n, seed, digits=digits)
    g, h = of(loss, y, f)
    assert abs(math.fsum(g)) <= 3e-7 * np.abs(g).sum()
    assert (h >= 0.0).all()
    assert (g[h == 0.0] == 0.0).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_only_differences_of_scores_matter(loss: ListLoss) -> None:
    y, f = one_list(30, 1)
    np.testing.assert_allclose(of(loss, y, f + 1000.0), of(loss, y, f), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_order_of_rows_does_not_matter_without_ties(loss: ListLoss) -> None:
    y, f = one_list(30, 2)
    order = np.random.default_rng(0).permutation(30)
    for shuffled, straight in zip(of(loss, y[order], f[order]), of(loss, y, f), strict=True):
        assert shuffled.tobytes() == straight[order].tobytes()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_lists_know_nothing_of_each_other(loss: ListLoss) -> None:
    y, f = one_list(40, 5)
    together = lambdas(loss, labels_for(loss, y), f, np.array([0, 13, 14, 40]))
    apart = [of(loss, y[a:b], f[a:b]) for a, b in ((0, 13), (13, 14), (14, 40))]
    for i in (0, 1):
        assert together[i].tobytes() == np.concatenate([one[i] for one in apart]).tobytes()


def test_equal_scores_stand_in_the_order_of_rows() -> None:
    y = np.array([0.0, 1.0, 2.0])
    tied, falling = of(PLAIN, y, np.zeros(3)), of(PLAIN, y, np.array([0.0, -1e-13, -2e-13]))
    np.testing.assert_allclose(tied, falling, rtol=1e-9)
    assert tied[0][0] > 0.0 > tied[0][2]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("y", [[3.0], [0.0, 0.0, 0.0], [2.0, 2.0]], ids=["one document", "worthless", "all alike"])
def test_a_list_with_nothing_to_order_pulls_at_nothing(loss: ListLoss, y: list[float]) -> None:
    g, h = of(loss, np.array(y), np.arange(len(y), dtype=np.float64))
    assert not g.any()
    assert not h.any()


def test_only_pairs_with_a_document_among_the_first_places_count() -> None:
    y, f = np.array([1.0, 0.0, 0.0, 4.0]), np.array([4.0, 3.0, 2.0, 1.0])
    g, _ = of(PairwiseLogistic(truncation=1, normalise=False), y, f)
    alone, _ = of(PairwiseLogistic(normalise=False), y[[0, 3]], f[[0, 3]])
    assert g[3] == alone[1]  # with the first, and with neither of those it should overtake as well
    assert g[1] == pytest.approx(1.0 / (1.0 + math.e))


def test_scores_that_lie_far_apart_give_finite_derivatives_and_no_denormal_float32() -> None:
    y, f = np.array([1.0, 0.0, 2.0, 0.0, 3.0]), np.array([1e6, 0.0, -1e6, 300.0, 80.0])
    tiny = 2.0**-126
    for loss in LOSSES:
        data = TrainingSet(None, None, labels_for(loss, y), query_start=np.array([0, 5]))
        gradients = Reference().gradients(loss, f[None], data, None)
        for values in (gradients.g, gradients.h):
            assert values.dtype == np.float32
            assert np.isfinite(values).all()
            assert ((values == 0.0) | (np.abs(values) >= tiny)).all()


@pytest.mark.parametrize("backend", [Reference(), Cpu()], ids=["reference", "cpu"])
@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_score_that_is_no_number_is_not_hidden(backend: Backend, broken: float) -> None:
    y, f = one_list(300, 4)
    f[::7] = broken
    gradients = backend.gradients(
        LambdaMART(), f[None], TrainingSet(None, None, y, query_start=np.array([0, 300])), None
    )
    assert not np.isfinite(gradients.g).all()


def test_without_queries_there_are_no_lists() -> None:
    with pytest.raises(InputError, match="group: to rank, the query of each row must be known; pass group="):
        Reference().gradients(PLAIN, np.zeros((1, 3)), TrainingSet(None, None, np.zeros(3)), None)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_list_loss_is_a_value(loss: ListLoss) -> None:
    assert is_list_loss(loss)
    assert pickle.loads(pickle.dumps(loss)) == copy.deepcopy(loss) == loss
    assert hash(loss) == hash(copy.copy(loss))
    assert losses.from_json(json.loads(json.dumps(losses.to_json(loss)))) == loss
    np.testing.assert_array_equal(loss.start(np.ones(3), np.ones(3)), [0.0])
    np.testing.assert_array_equal(loss.inverse_link(np.array([[1.0, -2.0]])), [1.0, -2.0])
    for formula in (loss.value, loss.derivatives, loss.row_value, loss.row_derivatives):
        with pytest.raises(TypeError, match="pair_weight"):
            formula(1.0, 2.0, 3.0)


def test_losses_by_name() -> None:
    assert losses.get("lambdamart") == LambdaMART()
    assert losses.get("pairwise_logistic") == PairwiseLogistic()
    assert not is_list_loss(losses.get("logistic"))
    for other, ours in (("rank:ndcg", "lambdamart"), ("ranknet", "pairwise_logistic")):
        with pytest.raises(InputError, match=f"Did you mean '{ours}'"):
            losses.get(other)


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        (LambdaMART, {"sigma": 0.0}, "sigma: LambdaMART needs a positive number; got 0.0"),
        (LambdaMART, {"sigma": "1"}, "sigma: LambdaMART needs a finite number"),
        (LambdaMART, {"truncation": 0}, "truncation: LambdaMART needs a whole number of places, 1 or more, or None"),
        (LambdaMART, {"truncation": 2.5}, "truncation: .*; got 2.5"),
        (LambdaMART, {"gain": [0.0, 3.0, 2.0]}, "gain: LambdaMART needs numbers of 0 or more that do not fall"),
        (LambdaMART, {"gain": [1.0, 1.0]}, "nor are all equal"),
        (LambdaMART, {"gain": [-1.0, 1.0]}, "gain: LambdaMART needs numbers of 0 or more"),
        (LambdaMART, {"gain": [1.0]}, "gain: LambdaMART needs two numbers or more"),
        (LambdaMART, {"gain": [0.0, math.inf]}, "gain: LambdaMART needs a finite number"),
        (LambdaMART, {"normalise": 1}, "normalise: LambdaMART needs True or False; got 1"),
        (LambdaMART, {"metric": "mrr"}, "metric: LambdaMART has pair weights of 'ndcg' or 'map'; got 'mrr'"),
        (LambdaMART, {"metric": "map", "gain": [0.0, 1.0]}, "gain: MAP has no gains of labels; got"),
        (PairwiseLogistic, {"sigma": -1.0}, "sigma: PairwiseLogistic needs a positive number"),
        (PairwiseLogistic, {"truncation": True}, "truncation: PairwiseLogistic needs a whole number"),
    ],
)
def test_parameters_are_checked(kind: type, parameters: dict[str, object], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        kind(**parameters)


@pytest.mark.parametrize(
    ("loss", "y", "words"),
    [
        (PLAIN, [0.0, -1.0], "y: LambdaMART needs labels that are whole numbers, 0 or more .*; row 1 holds -1.0"),
        (PLAIN, [0.0, 1.5], "row 1 holds 1.5. Code the grades as 0, 1, 2"),
        (PLAIN, [0.0, 32.0], "LambdaMART knows the gain of labels 0 to 31; row 1 holds 32.0. Pass LambdaMART.gain="),
        (LambdaMART(gain=(0.0, 1.0)), [0.0, 2.0], "labels 0 to 1; row 1 holds 2.0"),
        (PLAIN, [0.0, math.nan], "LambdaMART needs finite numbers; row 1 holds nan"),
        (LambdaMART(metric="map"), [0.0, 2.0], r"metric='map'\) needs labels 0 and 1; row 1 holds 2.0. Pass y > 0"),
        (PairwiseLogistic(), [0.5, 1.0], "PairwiseLogistic needs labels that are whole numbers"),
    ],
)
def test_targets_are_checked(loss: ListLoss, y: list[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        loss.check_target(np.array(y))


def test_labels_up_to_31_and_beyond_where_only_their_order_counts() -> None:
    PLAIN.check_target(np.arange(32.0))
    PairwiseLogistic().check_target(np.array([0.0, 1000.0]))
    of_gains = LambdaMART(gain=tuple(range(50)))
    of_gains.check_target(np.arange(50.0))
    for loss, beyond in ((PLAIN, 32.0), (of_gains, 50.0)):
        with pytest.raises(InputError, match=f"row 0 holds {beyond}"):
            loss.check_target(np.array([beyond]))


def test_a_parameter_of_a_later_version_is_in_files_only_where_it_differs() -> None:
    """A file of NDCG is that of earlier versions; their pickles are read too."""
    assert "metric" not in losses.to_json(LambdaMART())
    assert losses.to_json(LambdaMART(metric="map"))["metric"] == "map"
    earlier = LambdaMART.__new__(LambdaMART)
    earlier.__setstate__([2.0, 5, None, True])
    assert earlier == LambdaMART(sigma=2.0, truncation=5)


def test_the_metric_of_a_loss_of_map_is_map() -> None:
    assert [default_metric(loss).name for loss in (PLAIN, LOSSES[6])] == ["ndcg", "map"]


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"name": "lambdamart", "sigma": 1.0}, "holds \\['sigma', 'truncation', 'gain', 'normalise'\\]"),
        ({"name": "lambdamart", "sigma": 1.0, "truncation": "x", "gain": None, "normalise": True}, "truncation"),
        ({"name": "lambdamart", "sigma": 1.0, "truncation": 3, "gain": {"a": 1}, "normalise": True}, "gain"),
        ({"name": "pairwise_logistic", "sigma": 1.0, "truncation": None, "normalise": 3}, "normalise"),
    ],
)
def test_a_damaged_entry_of_a_model_file_is_refused(stored: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=f"model file: .*{words}"):
        losses.from_json(stored)
