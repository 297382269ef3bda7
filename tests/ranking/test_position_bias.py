"""UnbiasedLambdaMART: its formulas, and what it learns of clicks that follow the positions of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpuboost as gb
from gpuboost.backends.reference.backend import Reference
from gpuboost.backends.reference.unbiased_ranking import position_bias
from gpuboost.losses import LambdaMART, UnbiasedLambdaMART
from gpuboost.recipe import Recipe
from gpuboost.reports.report import verdict
from gpuboost.types import PositionBias, TrainingSet

Array = np.ndarray
SHOWN = 10  # documents of a query


def weights(y: Array, f: Array, loss: UnbiasedLambdaMART) -> Array:
    """(n, n) change of NDCG of a pair, i better than j, written out."""
    rank = np.argsort(np.lexsort((np.arange(len(y)), -f))) + 1
    gain, discount = 2.0**y - 1.0, 1.0 / np.log2(1.0 + rank)
    most = loss.truncation or len(y)
    ideal = np.sort(gain)[::-1][:most] @ (1.0 / np.log2(np.arange(2, len(y) + 2)))[:most]
    w = np.maximum(gain[:, None] - gain, 0.0) * np.abs(discount[:, None] - discount) / ideal
    return np.where(np.minimum(rank[:, None], rank) <= most, w, 0.0)


def estimates(cost: Array, norm: float) -> PositionBias:
    """The two equations of the paper, in turn from 1."""
    plus, minus = np.ones(len(cost)), np.ones(len(cost))
    for _ in range(10):
        above, below = (cost / minus).sum(axis=1), (cost / plus[:, None]).sum(axis=0)
        plus, minus = (np.clip((x / x[0]) ** (1.0 / (1.0 + norm)), 2.0**-7, 2.0**7) for x in (above, below))
    return PositionBias(plus, minus)


def case(seed: int) -> tuple[TrainingSet, Array]:
    """40 lists of 6 documents with labels 0 to 2, and scores."""
    rng = np.random.default_rng(seed)
    y, position = rng.integers(0, 3, 240).astype(float), np.tile(np.arange(6), 40)
    data = TrainingSet(None, None, y, query_start=np.arange(0, 241, 6), position=position)  # type: ignore[arg-type]
    return data, rng.normal(size=240)


@pytest.mark.parametrize(
    "loss",
    [
        UnbiasedLambdaMART(),
        UnbiasedLambdaMART(sigma=1.5, truncation=2, bias_norm=0.5),
        UnbiasedLambdaMART(normalise=True),
    ],
    ids=["plain", "truncated", "normalised"],
)
def test_derivatives_and_estimates_are_those_of_the_formulas(loss: UnbiasedLambdaMART) -> None:
    """Pair by pair; and finite differences of the cost with its weights held still."""
    data, f = case(0)
    cost, of_lists = np.zeros((6, 6)), []
    for begin in range(0, 240, 6):
        y, z = data.y[begin : begin + 6], f[begin : begin + 6]
        w, ahead = weights(y, z, loss), loss.sigma * (z[:, None] - z)
        cost += w * np.logaddexp(0.0, -ahead)  # rows are in the order of positions
        of_lists.append((w, z))
    bias, found = estimates(cost, loss.bias_norm), position_bias(loss, f[None], data)
    np.testing.assert_allclose(found.plus, bias.plus, rtol=1e-12)
    np.testing.assert_allclose(found.minus, bias.minus, rtol=1e-12)
    expected = np.empty((2, 40, 6))
    for number, (change, z) in enumerate(of_lists):
        ahead = loss.sigma * (z[:, None] - z)
        w = change / (bias.plus[:, None] * bias.minus) / (0.01 + np.abs(z[:, None] - z) if loss.normalise else 1.0)
        wrong = 1.0 / (1.0 + np.exp(ahead))
        pull, bend = loss.sigma * w * wrong, loss.sigma**2 * w * wrong * (1.0 - wrong)
        factor = np.log2(1.0 + 2.0 * pull.sum()) / (2.0 * pull.sum()) if loss.normalise and pull.any() else 1.0
        expected[0, number] = (pull.sum(axis=0) - pull.sum(axis=1)) * factor
        expected[1, number] = (bend.sum(axis=0) + bend.sum(axis=1)) * factor
        if number == 0 and not loss.normalise:

            def value(at: Array, w: Array = w) -> float:
                return float((w * np.logaddexp(0.0, -loss.sigma * (at[:, None] - at))).sum())

            slopes = [(value(z + s) - value(z - s)) / 2e-6 for s in 1e-6 * np.eye(6)]
            np.testing.assert_allclose(slopes, expected[0, 0], atol=1e-7)
    gradients = Reference().gradients(loss, f[None], data, None)
    np.testing.assert_allclose(gradients.g[0], expected[0].ravel(), rtol=2e-6, atol=1e-9)
    np.testing.assert_allclose(gradients.h[0], expected[1].ravel(), rtol=2e-6, atol=1e-9)


def test_without_positions_the_order_of_rows_is_meant() -> None:
    data, f = case(1)
    unnumbered = TrainingSet(None, None, data.y, query_start=data.query_start)  # type: ignore[arg-type]
    one, other = (Reference().gradients(UnbiasedLambdaMART(), f[None], rows, None) for rows in (data, unnumbered))
    assert one.g.tobytes() == other.g.tobytes()


def shown(queries: int, seed: int) -> tuple[Array, Array, Array]:
    """Documents in the order in which they were shown, by a poor ranker; true grades; and clicks.

    A user looks at rank r with probability 1 / r, and clicks what was looked at by its grade.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries, SHOWN, 6))
    true = X[..., 0] + np.sin(2.0 * X[..., 1]) + 0.3 * rng.normal(size=(queries, SHOWN))
    poor = X[..., 2] - 0.5 * X[..., 0] + 0.5 * rng.normal(size=(queries, SHOWN))
    order = np.argsort(-poor, axis=1)
    X, true = np.take_along_axis(X, order[..., None], axis=1), np.take_along_axis(true, order, axis=1)
    grade = np.digitize(true, [0.5, 1.2, 2.0])
    looked = rng.random(grade.shape) < 1.0 / np.arange(1, SHOWN + 1)
    clicked = looked & (rng.random(grade.shape) < 0.1 + 0.9 * (2.0**grade - 1.0) / 7.0)
    return X.reshape(-1, 6), grade.ravel(), clicked.ravel().astype(float)


def ranker(**given: Any) -> gb.GradientBoostingRanker:
    few = {"n_estimators": 40, "max_depth": 3, "random_state": 0, "n_jobs": 1}
    return gb.GradientBoostingRanker(**{"loss": "unbiased_lambdamart"} | few | given)


def ndcg_of_both(seed: int) -> tuple[float, float]:
    """NDCG@10 by true grades, of other queries: of plain LambdaMART, and without the bias of positions."""
    (X, _, clicks), (X_new, grades, _) = shown(500, seed), shown(200, 1_000 + seed)
    naive = ranker(loss=LambdaMART(normalise=False)).fit(X, clicks, group=np.full(500, SHOWN))
    model = ranker().fit(X, clicks, group=np.full(500, SHOWN), position=np.tile(np.arange(SHOWN), 500))
    found = [one.score(X_new, grades, group=np.full(200, SHOWN)) for one in (naive, model)]
    return found[0], found[1]


def test_clicks_without_their_bias_rank_better_by_true_grades() -> None:
    for seed in range(2):
        naive, unbiased = ndcg_of_both(seed)
        assert unbiased > naive + 0.02


@pytest.mark.slow
def test_it_is_so_for_twenty_seeds() -> None:
    found = np.array([ndcg_of_both(seed) for seed in range(20)])
    print(found.mean(axis=0), (found[:, 1] - found[:, 0]).min())
    assert (found[:, 1] > found[:, 0]).all()
    assert found[:, 1].mean() > found[:, 0].mean() + 0.04


def test_the_estimates_of_a_fitted_ranker_fall_with_the_position() -> None:
    X, _, clicks = shown(500, 3)
    model = ranker().fit(X, clicks, group=np.full(500, SHOWN))
    bias = model.position_bias_
    assert bias.plus.shape == bias.minus.shape == (SHOWN,)
    assert bias.plus[0] == bias.minus[0] == 1.0
    assert bias.plus[1] > bias.plus[4] > 0.1
    assert bias.plus[5:].mean() < 0.8 * bias.plus[1]
    assert not hasattr(ranker(loss="lambdamart").fit(X, clicks, group=np.full(500, SHOWN)), "position_bias_")


def test_positions_go_with_qid_columns_weights_drawn_queries_and_checkpoints(tmp_path: Path) -> None:
    X, _, clicks = shown(40, 4)
    group, rng = np.repeat(np.arange(40), SHOWN), np.random.default_rng(0)
    position = np.concatenate([rng.permutation(SHOWN) for _ in range(40)])
    model = ranker(n_estimators=8).fit(X, clicks, group=group, position=position)
    whole = model.predict(X).tobytes()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(qid=group)
    by_column = ranker(n_estimators=8).fit(frame, clicks, group="qid", position=position)
    assert by_column.predict(frame[list("abcdef")]).tobytes() == whole
    np.testing.assert_array_equal(by_column.position_bias_.plus, model.position_bias_.plus)
    held = gb.Dataset(X, clicks, group=group)
    assert ranker(n_estimators=8).fit(held, position=position).predict(X).tobytes() == whole
    assert ranker(n_estimators=8).fit(X, clicks, group=group).predict(X).tobytes() != whole
    rest = group > 4
    some = ranker(n_estimators=8).fit(X, clicks, rest.astype(float), group=group, position=position)
    alone = ranker(n_estimators=8).fit(X[rest], clicks[rest], group=group[rest], position=position[rest])
    assert some.predict(X).tobytes() == alone.predict(X).tobytes()
    np.testing.assert_array_equal(some.position_bias_.minus, alone.position_bias_.minus)
    drawn = [
        ranker(n_estimators=8, sampling=gb.QuerySampling(0.5), n_jobs=n).fit(X, clicks, group=group, position=position)
        for n in (1, 2)
    ]
    assert drawn[0].predict(X).tobytes() == drawn[1].predict(X).tobytes() != whole
    aside = ranker(validation_fraction=0.3, early_stopping_rounds=5).fit(X, clicks, group=group, position=position)
    assert list(aside.evals_result_["validation_0"]) == ["ndcg@10"]
    path = tmp_path / "checkpoint.json"
    ranker(n_estimators=4, callbacks=[gb.callbacks.Checkpoint(path, every=4)]).fit(
        X, clicks, group=group, position=position
    )
    resumed = ranker(n_estimators=8).fit(X, clicks, group=group, position=position, resume_from=path)
    assert resumed.predict(X).tobytes() == whole
    with pytest.raises(gb.InputError, match="resume_from"):
        ranker(n_estimators=8).fit(X, clicks, group=group, resume_from=path)
    resumed.save_model(tmp_path / "model.json")
    loaded = gb.load_model(tmp_path / "model.json")
    assert loaded.loss_ == UnbiasedLambdaMART()
    assert loaded.predict(X).tobytes() == whole


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"position": [0, 1]}, r"position: needs one number for each of 20 rows; got shape \(2,\)"),
        ({"position": [0.5] * 20}, r"position: positions are whole numbers from 0, the top; row 0 holds 0\.5"),
        ({"position": [*range(19), -1]}, r"row 19 holds -1\.0. Number the places of a query"),
        ({"position": [np.nan] * 20}, r"row 0 holds nan \(20 such rows\)"),
        ({"position": "top"}, "position: must hold numbers"),
    ],
)
def test_bad_positions_are_refused(given: dict[str, Any], message: str) -> None:
    X, _, clicks = shown(2, 0)
    with pytest.raises(gb.InputError, match=message):
        ranker().fit(X, clicks, group=[10, 10], **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "lambdamart"}, "loss: 'lambdamart' does not look at positions; use loss='unbiased_lambdamart'"),
        ({"execution": gb.DataParallel(2)}, "execution: loss 'unbiased_lambdamart' is computed by one host"),
        ({"sampling": gb.ImportanceSampling(0.5, score="loss")}, "sampling: the loss of a single row is not known"),
    ],
)
def test_compositions_that_mean_nothing_are_refused(given: dict[str, Any], message: str) -> None:
    X, _, clicks = shown(2, 0)
    with pytest.raises(gb.RecipeError, match=message):
        ranker(**given).fit(X, clicks, group=[10, 10], position=np.tile(np.arange(10), 2))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bias_norm": -0.5}, "bias_norm: UnbiasedLambdaMART needs a number of 0 or more; got -0.5"),
        ({"bias_norm": "a"}, "bias_norm: UnbiasedLambdaMART needs a finite number"),
        ({"sigma": 0.0}, "sigma: UnbiasedLambdaMART needs a positive number"),
        ({"truncation": 0}, "truncation: UnbiasedLambdaMART needs a whole number of places"),
        ({"gain": [1.0, 0.0]}, "gain: UnbiasedLambdaMART needs numbers of 0 or more that do not fall"),
    ],
)
def test_wrong_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(gb.RecipeError, match=message):
        UnbiasedLambdaMART(**given)


def test_there_is_no_fixed_objective() -> None:
    assert "no fixed objective" in verdict(Recipe(UnbiasedLambdaMART(), 3)).reasons[0]
