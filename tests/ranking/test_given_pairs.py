"""PairLogit: a ranker that learns from given pairs of rows, on every machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.builders import random_case
from support.training import MACHINES, assert_parity

import gpuboost as gb
from gpuboost.backends.reference.backend import Reference
from gpuboost.growth import DepthWise
from gpuboost.losses import PairLogit
from gpuboost.recipe import Recipe
from gpuboost.reports.report import verdict
from gpuboost.sampling import UniformSampling
from gpuboost.steps import GradientStep
from gpuboost.types import Limits, Pairs, TrainingSet

Array = np.ndarray
START = np.array([0, 3, 40, 41, 90, 150, 200])


def drawn_pairs(y: Array, group: Array, m: int, seed: int) -> Array:
    """(m, 2) pairs of rows of one query, the better one first."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < m:
        i, j = rng.integers(0, len(y), 2)
        if group[i] == group[j] and y[i] > y[j]:
            found.append((i, j))
    return np.array(found)


def rows(queries: int, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(queries * 8, 4)), np.repeat(np.arange(queries), 8)
    return X, np.digitize(X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * rng.normal(size=len(X)), [0.5, 1.5]), group


def ranker(**given: Any) -> gb.GradientBoostingRanker:
    few = {"n_estimators": 20, "max_depth": 3, "random_state": 0, "n_jobs": 1}
    return gb.GradientBoostingRanker(**{"loss": "pair_logit"} | few | given)


def cost(pairs: Pairs, sigma: float, f: Array) -> float:
    weight = np.ones(len(pairs.winner)) if pairs.weight is None else pairs.weight
    return float(weight @ np.logaddexp(0.0, -sigma * (f[pairs.winner] - f[pairs.loser])))


def test_derivatives_are_finite_differences_of_the_cost() -> None:
    rng = np.random.default_rng(0)
    pairs, f = Pairs(*rng.integers(0, 10, (2, 30)), rng.exponential(size=30)), 2.0 * rng.normal(size=10)
    data = TrainingSet(None, None, np.zeros(10), pairs=pairs, query_start=np.array([0, 10]))  # type: ignore[arg-type]
    found = Reference().gradients(PairLogit(1.5), f[None], data, None)
    for i in range(10):
        step = 1e-4 * np.eye(10)[i]
        above, here, below = (cost(pairs, 1.5, f + by * step) for by in (1.0, 0.0, -1.0))
        loops = float(pairs.weight[(pairs.winner == pairs.loser) & (pairs.winner == i)].sum())  # whose cost is constant
        assert found.g[0, i] == pytest.approx((above - below) / 2e-4, abs=1e-5)
        assert found.h[0, i] - 2.0 * 1.5**2 * 0.25 * loops == pytest.approx((above - 2 * here + below) / 1e-8, abs=1e-4)


def test_far_scores_have_finite_derivatives() -> None:
    data = TrainingSet(None, None, np.zeros(2), pairs=Pairs(np.array([0, 1]), np.array([1, 0])))  # type: ignore[arg-type]
    found = Reference().gradients(PairLogit(), np.array([[1e300, -1e300]]), data, None)
    np.testing.assert_array_equal(found.g, [[1.0, -1.0]])
    np.testing.assert_array_equal(found.h, [[0.0, 0.0]])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
def test_one_model_on_every_machine(machine: str, weights: str) -> None:
    case, rng = random_case(11, 200, 4, target="5"), np.random.default_rng(0)
    group = np.repeat(np.arange(6), np.diff(START))
    pairs = Pairs(*drawn_pairs(case.data.y, group, 300, 1).T.copy(), rng.exponential(size=300))
    data = replace(case.data, query_start=START, pairs=pairs)
    if weights == "real":
        data = replace(data, weight=np.repeat(rng.exponential(size=6), np.diff(START)))
    if weights == "whole":
        data = replace(data, multiplicity=np.repeat(np.arange(1, 7), np.diff(START)).astype(np.int32))
    growth, sampling = DepthWise(Limits(6, 3)), UniformSampling(0.7)
    assert_parity(Recipe(PairLogit(), 4, growth=growth, sampling=sampling), data, machine)


@pytest.mark.slow
def test_a_ranker_learns_from_pairs_alone() -> None:
    """Targets do not matter to the model, and NDCG of held-out queries is far above that of a constant."""
    X, y, group = rows(60, 0)
    X_new, y_new, group_new = rows(60, 1)
    pairs = drawn_pairs(y, group, 800, 2)
    model = ranker(n_estimators=60).fit(X, y, group=group, pairs=pairs)
    blind = ranker(n_estimators=60).fit(X, np.zeros(len(y)), group=group, pairs=pairs)
    assert model.predict(X).tobytes() == blind.predict(X).tobytes()
    constant = ranker(n_estimators=0).fit(X, y, group=group, pairs=pairs)
    assert model.score(X_new, y_new, group=group_new) > 0.15 + constant.score(X_new, y_new, group=group_new)


def test_all_pairs_of_the_labels_are_those_of_pairwise_logistic() -> None:
    X, y, group = rows(30, 3)
    i, j = np.nonzero((group[:, None] == group[None, :]) & (y[:, None] > y[None, :]))
    own = ranker(loss=gb.losses.PairwiseLogistic(normalise=False)).fit(X, y, group=group)
    given = ranker().fit(X, y, group=group, pairs=np.stack([i, j], axis=1))
    np.testing.assert_allclose(given.predict(X), own.predict(X), rtol=1e-4, atol=1e-4)


def test_a_weight_of_three_is_a_pair_three_times_and_a_query_without_weight_takes_its_pairs_away() -> None:
    X, y, group = rows(20, 4)
    pairs = drawn_pairs(y, group, 100, 5)
    times = np.random.default_rng(6).integers(1, 4, 100)
    weighted = ranker().fit(X, y, group=group, pairs=pairs, pairs_weight=times)
    repeated = ranker().fit(X, y, group=group, pairs=np.repeat(pairs, times, axis=0))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-5, atol=1e-6)
    weight, inside = (group > 4).astype(float), group[pairs[:, 0]] > 4
    some = ranker().fit(X, y, weight, group=group, pairs=pairs)
    rest = group > 4
    alone = ranker().fit(X[rest], y[rest], group=group[rest], pairs=pairs[inside] - 5 * 8)
    assert some.predict(X).tobytes() == alone.predict(X).tobytes()


def test_pairs_go_with_qid_columns_drawn_queries_eval_sets_and_checkpoints(tmp_path: Path) -> None:
    X, y, group = rows(30, 7)
    pairs = drawn_pairs(y, group, 200, 8)
    whole = ranker().fit(X, y, group=group, pairs=pairs).predict(X)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(qid=group)
    by_column = ranker().fit(frame, y, group="qid", pairs=pairs)
    assert by_column.predict(frame[list("abcd")]).tobytes() == whole.tobytes()
    held = gb.Dataset(X, y, group=group)
    assert ranker().fit(held, pairs=pairs).predict(X).tobytes() == whole.tobytes()
    drawn = [ranker(sampling=gb.QuerySampling(0.5), n_jobs=n).fit(X, y, group=group, pairs=pairs) for n in (1, 2)]
    assert drawn[0].predict(X).tobytes() == drawn[1].predict(X).tobytes() != whole.tobytes()
    aside = ranker(validation_fraction=0.3, n_estimators=50, early_stopping_rounds=5)
    aside.fit(X, y, group=group, pairs=pairs)
    assert list(aside.evals_result_["validation_0"]) == ["ndcg@10"]
    path = tmp_path / "checkpoint.json"
    first = ranker(n_estimators=8, callbacks=[gb.callbacks.Checkpoint(path, every=8)])
    first.fit(X, y, group=group, pairs=pairs)
    resumed = ranker().fit(X, y, group=group, pairs=pairs, resume_from=path)
    assert resumed.predict(X).tobytes() == whole.tobytes()
    with pytest.raises(gb.InputError, match="resume_from"):
        ranker().fit(X, y, group=group, pairs=pairs[::-1], resume_from=path)
    resumed.save_model(tmp_path / "model.json")
    assert gb.load_model(tmp_path / "model.json").loss_ == PairLogit()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "pairs: loss 'pair_logit' learns from pairs of rows, and none are given; pass pairs="),
        ({"pairs": [[0, 1, 2]]}, r"pairs: needs a line \(winner, loser\) of row numbers .* got shape \(1, 3\)"),
        ({"pairs": np.empty((0, 2))}, "pairs: needs a line .* at least one"),
        ({"pairs": "no"}, "pairs: must hold numbers"),
        ({"pairs": [[0, 1], [2, 0.5]]}, r"pairs: row numbers are whole; pair 1 is \(2, 0.5\)"),
        ({"pairs": [[0, 1], [2, np.nan]]}, r"pairs: row numbers are whole; pair 1 is \(2, nan\)"),
        ({"pairs": [[0, 1], [2, 24]]}, r"pairs: rows are numbered from 0 to 23; pair 1 is \(2, 24\)"),
        ({"pairs": [[-1, 1], [2, 24]]}, r"pair 0 is \(-1, 1\) \(2 such pairs\)"),
        ({"pairs": [[0, 1], [2, 2]]}, r"pairs: winner and loser are two rows; pair 1 is \(2, 2\)"),
        ({"pairs": [[0, 1], [7, 8]]}, r"pairs: winner and loser are of one query; pair 1 is \(7, 8\)"),
        ({"pairs_weight": [1.0]}, "pairs_weight: weights of pairs are given, and no pairs"),
        ({"pairs": [[0, 1]], "pairs_weight": [1.0, 2.0]}, r"one number for each of 1 pairs; got shape \(2,\)"),
        ({"pairs": [[0, 1]], "pairs_weight": [-1.0]}, r"finite, 0 or more; pair 0 has -1\.0"),
        ({"pairs": [[0, 1]], "pairs_weight": [np.inf]}, "pair 0 has inf"),
        ({"pairs": [[0, 1]], "pairs_weight": [0.0]}, "pairs_weight: every pair has weight 0"),
    ],
)
def test_bad_pairs_are_refused(given: dict[str, Any], message: str) -> None:
    X, y, group = rows(3, 0)
    with pytest.raises(gb.InputError, match=message):
        ranker().fit(X, y, group=group, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "lambdamart"}, "loss: 'lambdamart' does not look at given pairs; use loss='pair_logit'"),
        ({"execution": gb.DataParallel(2)}, "execution: loss 'pair_logit' is computed by one host"),
        ({"sampling": gb.ImportanceSampling(0.5, score="loss")}, "sampling: the loss of a single row is not known"),
        ({"step": gb.LineSearchStep()}, "step: a line search needs"),
        ({"loss": gb.losses.PairLogit, "step": "newton"}, "the class PairLogit"),
    ],
)
def test_compositions_that_mean_nothing_are_refused(given: dict[str, Any], message: str) -> None:
    X, y, group = rows(3, 0)
    with pytest.raises((gb.RecipeError, gb.InputError), match=message):
        ranker(**given).fit(X, y, group=group, pairs=[[0, 1]])
    with pytest.raises(gb.RecipeError, match="sigma: PairLogit needs a positive number"):
        PairLogit(0.0)


def test_the_objective_is_a_fixed_one() -> None:
    assert "curvature may change" in verdict(Recipe(PairLogit(), 3)).reasons[0]
    langevin = verdict(Recipe(PairLogit(), 3, step=GradientStep(), langevin=gb.Langevin()))
    assert langevin.kind == "heuristic"
    assert not any("no fixed objective" in reason for reason in langevin.reasons)
