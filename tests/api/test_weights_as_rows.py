"""A row of weight 3 is three equal rows, and a row of weight 0 is not there."""

from __future__ import annotations

import numpy as np
import pytest

import gpuboost as gb

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=300)
TIMES = rng.integers(1, 4, 300)
ROWS = np.repeat(np.arange(300), TIMES)


def regressor(**params):
    return gb.GradientBoostingRegressor(n_estimators=8, n_jobs=1, random_state=0, **params)


@pytest.mark.parametrize(
    "learner",
    [gb.learners.LinearTree(), gb.learners.LinearTree(2, ridge=10.0), gb.learners.Linear(), gb.learners.Spline()],
    ids=str,
)
def test_weights_are_numbers_of_rows_for_base_learners(learner):
    model = regressor(base_learner=learner)
    of_weights = model.fit(X, Y, TIMES).predict(X)
    of_rows = model.fit(X[ROWS], Y[ROWS]).predict(X)
    np.testing.assert_allclose(of_weights, of_rows, rtol=0, atol=1e-12)
    twice = model.fit(X, Y, np.full(300, 2.0)).predict(X)
    np.testing.assert_allclose(twice, model.fit(np.r_[X, X], np.r_[Y, Y]).predict(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("weight", [TIMES, np.where(TIMES > 1, 1.0, 0.0)], ids=["whole", "zero"])
def test_categories_need_rows_as_weights_count_them(weight):
    """None of the limits depends on how many rows hold the weight."""
    codes = rng.integers(0, 12, 300)
    x, rows = np.column_stack([X[:, 0], codes]), np.repeat(np.arange(300), weight.astype(int))
    y = Y + np.sin(5.0 * codes)
    model = regressor(categorical_features=[1])
    of_weights = model.fit(x, y, weight).predict(x)
    assert of_weights.tobytes() == model.fit(x[rows], y[rows]).predict(x).tobytes()


def test_the_ridge_of_lines_does_not_grow_as_fewer_rows_are_drawn():
    """The curvature of all rows is divided by their weight, and not by the number of rows drawn."""
    drawn = regressor(base_learner=gb.learners.LinearTree(1, ridge=100.0), sampling=0.1, learning_rate=1.0).fit(X, Y)
    whole = regressor(base_learner=gb.learners.LinearTree(1, ridge=100.0), learning_rate=1.0).fit(X, Y)
    slopes = [abs(model.ensemble_.components[0].slopes).max() for model in (drawn, whole)]
    assert slopes[0] > 0.4 * slopes[1]


def test_the_validation_fraction_leaves_out_rows_of_weight_0():
    weight = np.where(rng.random(300) < 0.3, 0.0, 1.0)
    there = weight > 0.0
    model = regressor(validation_fraction=0.2)
    of_all = model.fit(X, Y, weight)
    assert of_all.fit_report_.rows == int(0.8 * there.sum())
    scores = of_all.evals_result_, of_all.predict(X).tobytes()
    of_some = model.fit(X[there], Y[there])
    assert scores == (of_some.evals_result_, of_some.predict(X).tobytes())


def test_a_classifier_and_a_ranker_leave_out_rows_of_weight_0():
    weight = np.where(np.arange(300) % 10 < 3, 0.0, 1.0)
    there = weight > 0.0
    model = gb.GradientBoostingClassifier(n_estimators=3, validation_fraction=0.2, random_state=0, n_jobs=1)
    first = model.fit(X, Y > 0, weight).predict_proba(X).tobytes()
    assert first == model.fit(X[there], Y[there] > 0).predict_proba(X).tobytes()
    group = np.repeat(np.arange(30), 10)
    by_query = (np.arange(30) % 3 > 0).astype(float)
    there = by_query[group] > 0
    ranker = gb.GradientBoostingRanker(n_estimators=3, validation_fraction=0.2, random_state=0, n_jobs=1)
    grades = rng.integers(0, 3, 300)
    first = ranker.fit(X, grades, by_query, group=group).predict(X).tobytes()
    assert first == ranker.fit(X[there], grades[there], group=group[there]).predict(X).tobytes()
