"""Losses of arrays: one user's function for the derivatives of all rows."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from support.builders import random_case, weighted
from support.training import MACHINES, assert_parity

import gpuboost as gb
from gpuboost.recipe import Recipe
from gpuboost.steps import GradientStep

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=120)
GRADES = np.digitize(X[:, 0], [-0.5, 0.5]).astype(float)
QUERIES = np.repeat(np.arange(12), 10)
SIZES = [10] * 12
custom_arrays = gb.losses.custom_arrays


def squares(y, score):
    return score - y, score * 0.0 + 1.0


def squares_value(y, score):
    return 0.5 * (score - y) * (score - y)


def weighted_squares(y, score, weight):
    return weight * (score - y), weight


def logistic(y, score):
    p = 1.0 / (1.0 + np.exp(-score))
    return p - y, p * (1.0 - p)


def two_squares(y, score):
    """Both scores fit y, the second one at half the pull. (n, 2)"""
    distance = score - (y.reshape(-1, 1) if isinstance(y, np.ndarray) else y.reshape(y.shape[0], 1))
    return distance * np.array(1.0), distance * 0.0 + 2.0


def two_squares_value(y, score):
    return 0.5 * ((score - y[:, None]) ** 2).sum(axis=1)


def list_softmax(y, score, weight, group):
    """ListNet: the cross entropy of softmax(score) and the shares of the labels in a query; on the host."""
    device = not isinstance(y, np.ndarray)
    y, score = (x.get() if device else x for x in (y, score))
    g, h, end = np.empty(len(y)), np.empty(len(y)), 0
    for size in group:
        part, end = slice(end, end + size), end + size
        p = np.exp(score[part] - score[part].max())
        p /= p.sum()
        g[part], h[part] = p - y[part] / max(1.0, y[part].sum()), p * (1.0 - p) + 1e-3
    return g, h


def list_softmax_value(y, score, weight, group):
    total, end = 0.0, 0
    for size in group:
        part, end = slice(end, end + size), end + size
        shares = y[part] / max(1.0, y[part].sum())
        total += shares.sum() * np.log(np.exp(score[part]).sum()) - shares @ score[part]
    return total


def regressor(loss, rounds=5, **params):
    return gb.GradientBoostingRegressor(n_estimators=rounds, loss=loss, max_depth=2, n_jobs=1, random_state=0, **params)


def ranker(loss, **params):
    return gb.GradientBoostingRanker(n_estimators=5, loss=loss, max_depth=2, n_jobs=1, random_state=0, **params)


def test_the_squared_error_as_arrays_is_the_squared_error():
    loss = custom_arrays(squares, value=squares_value, start=lambda y, weight: np.average(y, weights=weight))
    for weight in (None, rng.integers(1, 4, 120).astype(float), rng.uniform(0.5, 2.0, 120)):
        mine = regressor(loss).fit(X, Y, sample_weight=weight, eval_set=(X, Y))
        theirs = regressor("squared_error", start=float(mine.ensemble_.bias[0])).fit(X, Y, sample_weight=weight)
        assert mine.predict(X).tobytes() == theirs.predict(X).tobytes()
        assert mine.evals_result_["validation_0"]["loss"][-1] == pytest.approx(
            np.mean((mine.predict(X) - Y) ** 2) / 2, rel=1e-12
        )


def test_a_function_that_takes_the_weights_has_them_in_its_derivatives():
    for weight in (rng.integers(1, 4, 120).astype(float), rng.uniform(0.5, 2.0, 120), None):
        by_us, by_user = (
            regressor(custom_arrays(loss), step=step).fit(X, Y, sample_weight=weight)
            for loss, step in ((squares, "newton"), (weighted_squares, "newton"))
        )
        np.testing.assert_allclose(by_user.predict(X), by_us.predict(X), rtol=1e-6)
    times = rng.integers(1, 4, 120)
    rows = np.repeat(np.arange(120), times)
    once = regressor(custom_arrays(squares)).fit(X, Y, sample_weight=times)
    assert once.predict(X).tobytes() == regressor(custom_arrays(squares)).fit(X[rows], Y[rows]).predict(X).tobytes()


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("weights", ["none", "real", "whole"])
def test_every_machine_makes_the_same_model(machine, weights):
    data = weighted(random_case(4, 150, 3, target="binary").data, weights, np.random.default_rng(1))
    assert_parity(Recipe(custom_arrays(logistic), rounds=3), data, machine)
    assert_parity(Recipe(custom_arrays(weighted_squares), rounds=2, step=GradientStep()), data, machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_makes_the_same_model_of_several_outputs_and_of_lists(machine):
    data = random_case(4, 150, 3, target="binary").data
    assert_parity(Recipe(custom_arrays(two_squares, n_outputs=2), rounds=2), data, machine)
    lists = replace(data, query_start=np.array([0, 50, 90, 150]))
    assert_parity(Recipe(custom_arrays(list_softmax), rounds=3), lists, machine)


def test_several_outputs_through_the_estimator():
    loss = custom_arrays(two_squares, value=two_squares_value, n_outputs=2, start=[0.0, 1.0])
    found = regressor(loss).fit(X, Y).predict(X)
    assert found.shape == (120, 2)
    halved = custom_arrays(lambda y, score: (score - y, np.full(len(y), 2.0)))  # twice the curvature
    assert found[:, 0].tobytes() == regressor(halved).fit(X, Y).predict(X).tobytes()
    mean = custom_arrays(two_squares, n_outputs=2, inverse_link=lambda scores: scores.mean(axis=0))
    assert regressor(mean).fit(X, Y).predict(X).shape == (120,)


def test_a_classifier_and_langevin_boosting():
    loss = custom_arrays(logistic, inverse_link=lambda score: 1.0 / (1.0 + np.exp(-score)), start=0.0)
    params = {"n_estimators": 5, "n_jobs": 1, "random_state": 0}
    mine = gb.GradientBoostingClassifier(loss=loss, **params).fit(X, Y > 0.0)
    theirs = gb.GradientBoostingClassifier(start=0.0, **params).fit(X, Y > 0.0)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), rtol=1e-5)
    chain = regressor(custom_arrays(squares), langevin=gb.Langevin(shrinkage=0.1))
    assert chain.check(X, Y).kind == "heuristic"
    assert np.isfinite(chain.fit(X, Y).predict(X)).all()


def test_lists_of_a_ranking_and_its_model_file(tmp_path):
    model = ranker(custom_arrays(list_softmax, value=list_softmax_value, name="listnet"))
    model.fit(X, GRADES, group=SIZES, eval_set=(X, GRADES, QUERIES))
    assert model.score(X, GRADES, group=QUERIES) > 0.85
    assert list(model.evals_result_["validation_0"]) == ["ndcg@10"]
    path = tmp_path / "model.json"
    model.save_model(path)
    loaded = gb.load_model(path)
    assert isinstance(loaded, gb.GradientBoostingRanker)
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()
    assert loaded.score(X, GRADES, group=QUERIES) == model.score(X, GRADES, group=QUERIES)
    assert gb.dumps(loaded) == path.read_text()
    more = ranker(model.loss).fit(X, GRADES, group=SIZES, init_model=path)
    assert more.n_iter_ == 10
    with pytest.raises(gb.RecipeError, match="read from a model file"):
        ranker(loaded.loss_).fit(X, GRADES, group=SIZES)
    with pytest.raises(gb.RecipeError, match="is for rankings"):
        regressor(custom_arrays(list_softmax)).fit(X, GRADES)
    with pytest.raises(gb.RecipeError, match="is not for rankings"):
        ranker(custom_arrays(squares)).fit(X, GRADES, group=SIZES)


def test_workers_get_gradients_and_not_the_function():
    workers = gb.SimulatedWorkers(3, build_time=1.0, server_time=0.2)
    model = regressor(custom_arrays(squares), sampling=0.5, execution=workers).fit(X, Y)
    again = regressor(custom_arrays(squares), sampling=0.5, execution=gb.Replay(model.log_)).fit(X, Y)
    assert gb.dumps(again) == gb.dumps(model)


def test_losses_of_arrays_are_pickled_copied_and_compared():
    loss = custom_arrays(squares, value=squares_value)
    assert pickle.loads(pickle.dumps(loss)) == loss == copy.deepcopy(loss)
    assert loss != custom_arrays(logistic)
    assert repr(loss) == "custom_arrays('squares')"


def test_memory_is_estimated_without_a_call_of_the_function():
    def fails(y, score):
        raise AssertionError

    estimate = gb.estimate_memory(1000, 5, regressor(custom_arrays(fails), device="cuda"), eval_rows=10)
    assert estimate.total > 0


def test_a_progress_bar_without_a_value_shows_no_training_loss(capsys):
    assert regressor(custom_arrays(squares), verbose=1).fit(X, Y).n_iter_ == 5
    with pytest.raises(gb.RecipeError, match="eval_metric: custom_arrays\\('squares'\\) has derivatives and no value"):
        regressor(custom_arrays(squares)).fit(X, Y, eval_set=(X, Y))
    judged = regressor(custom_arrays(squares), eval_metric="rmse").fit(X, Y, eval_set=(X, Y))
    assert list(judged.evals_result_["validation_0"]) == ["rmse"]


def test_derivatives_are_compared_with_the_value():
    def uphill(y, score):
        return y - score, np.ones(len(y))

    def flat(y, score):
        return score - y, np.full(len(y), 1e-3)

    def falling(y, score):
        return score - y, -np.ones(len(y))

    for function, why in ((uphill, "the value rises by"), (flat, "g rises by"), (falling, "g rises by")):
        with pytest.raises(gb.RecipeError, match=f"derivatives: in row .*{why}.*check_derivatives=False"):
            regressor(custom_arrays(function, value=squares_value)).fit(X, Y)
        regressor(custom_arrays(function, value=squares_value, check_derivatives=False), rounds=1).fit(X, Y)

    def second_wrong(y, score):
        g, h = two_squares(y, score)
        return g * [1.0, -1.0], h

    with pytest.raises(gb.RecipeError, match="in row 0, output 1"):
        regressor(custom_arrays(second_wrong, value=two_squares_value, n_outputs=2)).fit(X, Y)

    def wrong_lists(y, score, weight, group):
        g, h = list_softmax(y, score, weight, group)
        return g + 0.1, h

    with pytest.raises(gb.RecipeError, match="derivatives: in row"):
        ranker(custom_arrays(wrong_lists, value=list_softmax_value)).fit(X, GRADES, group=SIZES)


@pytest.mark.parametrize(
    "answer",
    [None, 1.0, (1.0, 1.0), (np.zeros(3), np.zeros(3)), np.zeros((2, 120)), (np.zeros((120, 1)), np.ones((120, 1)))],
)
def test_answers_of_the_wrong_shape_are_refused(answer):
    with pytest.raises(gb.RecipeError, match=r"derivatives: mine must return g and h, two arrays of shape \(120,\)"):
        regressor(custom_arrays(lambda y, score: answer, name="mine")).fit(X, Y)


def test_answers_that_are_no_finite_numbers_are_refused():
    with pytest.raises(gb.RecipeError, match="derivatives: must return arrays of numbers"):
        regressor(custom_arrays(lambda y, score: (np.full(120, "a"), np.ones(120)))).fit(X, Y)
    with pytest.raises(gb.InputError, match="finite"):
        regressor(custom_arrays(lambda y, score: (np.full(120, np.nan), np.ones(120)))).fit(X, Y)


def test_pieces_that_need_single_rows_are_refused():
    loss = custom_arrays(squares)
    for params, why in (
        ({"execution": gb.DataParallel(2)}, "execution: custom_arrays.*shards of DataParallel hold parts"),
        ({"sampling": gb.ImportanceSampling(0.5, score="loss")}, "sampling: the loss of a single row is not known"),
        ({"step": "line_search"}, "step: a line search needs the loss of single rows"),
        ({"step": "constant"}, "step: a constant step needs a finite smoothness constant"),
    ):
        with pytest.raises(gb.RecipeError, match=why):
            regressor(loss, **params).fit(X, Y)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((3,), "derivatives: must be a function"),
        ((lambda y: y,), "derivatives: must be a function"),
        ((lambda a, b, c, d, e: a,), "derivatives: must be a function"),
        ((squares, weighted_squares), "value: must take the 2 arguments"),
        ((squares, 3), "value: must be a function"),
        ((squares, None, ""), "name: must be text"),
        ((squares, None, None, 3), "inverse_link: must be a function"),
        ((squares, None, None, None, "minimise"), "start: must be a number or a function"),
        ((squares, None, None, None, [1.0, 2.0]), "start: must be a number"),
        ((squares, None, None, None, None, 1), "check_derivatives: must be True or False"),
        ((squares, None, None, None, None, True, 0), "n_outputs: must be a whole number"),
        ((list_softmax, None, None, None, None, True, 2), "n_outputs: a ranking has one score"),
    ],
)
def test_wrong_arguments_are_refused(arguments, why):
    names = ("derivatives", "value", "name", "inverse_link", "start", "check_derivatives", "n_outputs")
    with pytest.raises(gb.RecipeError, match=f"^{why}"):
        custom_arrays(**dict(zip(names, arguments, strict=False)))
