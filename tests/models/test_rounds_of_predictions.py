"""``n_rounds``: predictions by some of the rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu
from sklearn.datasets import load_iris

import gpuboost as gb

SETTINGS: dict[str, Any] = {"n_estimators": 6, "max_depth": 2, "n_jobs": 1}


@pytest.fixture(scope="module")
def model() -> gb.GradientBoostingRegressor:
    x = np.random.default_rng(0).normal(size=(200, 3))
    return gb.GradientBoostingRegressor(**SETTINGS).fit(x, x[:, 0] + x[:, 1] ** 2)


X = np.random.default_rng(1).normal(size=(50, 3))


def test_the_first_rounds_predict_as_the_model_of_them(model: Any) -> None:
    for k in range(7):
        part = model[:k]
        np.testing.assert_array_equal(model.predict(X, n_rounds=k), part.predict(X))
        np.testing.assert_array_equal(model.apply(X, n_rounds=(0, k)), part.apply(X))
        contributions = model.predict_contributions(X, n_rounds=k)
        np.testing.assert_array_equal(contributions, part.predict_contributions(X))
    staged = list(model.staged_predict(X, n_rounds=4))
    np.testing.assert_array_equal(staged, list(model.staged_predict(X))[:4])


def test_ranges_of_rounds_add_up(model: Any) -> None:
    bias = model.predict(X, n_rounds=0)
    parts = [model.predict(X, n_rounds=ends) - bias for ends in ((0, 2), (2, 3), [3, 6])]
    np.testing.assert_allclose(bias + sum(parts), model.predict(X), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.apply(X, n_rounds=(2, 5)), model.apply(X)[:, 2:5])
    assert len(list(model.staged_predict(X, n_rounds=(2, 5)))) == 3
    whole = model.predict_contributions(X) - model.predict_contributions(X, n_rounds=0)
    two = [model.predict_contributions(X, n_rounds=ends) for ends in ((0, 3), (3, 6))]
    two = [part - model.predict_contributions(X, n_rounds=0) for part in two]
    np.testing.assert_allclose(two[0] + two[1], whole, rtol=0, atol=1e-12)


def test_classes_and_rankings_and_chains_have_parts_too() -> None:
    x, y = load_iris(return_X_y=True)
    classifier = gb.GradientBoostingClassifier(**SETTINGS).fit(x, y)
    np.testing.assert_array_equal(classifier.predict_proba(x, n_rounds=2), classifier[:2].predict_proba(x))
    np.testing.assert_array_equal(classifier.predict(x, n_rounds=2), classifier[:2].predict(x))
    bias = classifier.decision_function(x, n_rounds=0)
    late = classifier.decision_function(x, n_rounds=(2, 6)) + classifier.decision_function(x, n_rounds=2) - bias
    np.testing.assert_allclose(late, classifier.decision_function(x), rtol=0, atol=1e-12)
    ranker = gb.GradientBoostingRanker(**SETTINGS).fit(x, y, group=np.arange(150) // 10)
    np.testing.assert_array_equal(ranker.predict(x, n_rounds=3), ranker[:3].predict(x))
    chain = gb.GradientBoostingRegressor(**SETTINGS, langevin=gb.Langevin(), random_state=0).fit(x, y)
    parts = [chain.predict(x, n_rounds=ends) - chain.ensemble_.bias for ends in ((0, 3), (3, 6))]
    scales = chain.ensemble_.scales
    expected = parts[0] * (scales[5] / scales[2]) + parts[1] + chain.ensemble_.bias
    np.testing.assert_allclose(expected, chain.predict(x), rtol=0, atol=1e-12)
    effects = gb.GradientBoostingRegressor(n_estimators=6, base_learner=gb.learners.Spline()).fit(x, y)
    np.testing.assert_array_equal(effects.predict(x, n_rounds=2), effects[:2].predict(x))


def test_a_gpu_predicts_by_the_same_rounds(model: Any) -> None:
    with emulated_gpu():
        other = gb.loads(gb.dumps(model)).set_params(device="cuda")
        for ends in (2, (2, 5), 6):
            np.testing.assert_array_equal(other.predict(X, n_rounds=ends), model.predict(X, n_rounds=ends))
        np.testing.assert_array_equal(other.apply(X, n_rounds=(1, 3)), model.apply(X, n_rounds=(1, 3)))


@pytest.mark.parametrize("asked", [7, -1, (3, 2), (0, 7), (1, 2, 3), True, 1.5, "2"])
def test_other_ranges_are_refused(model: Any, asked: Any) -> None:
    with pytest.raises(gb.InputError, match=r"n_rounds: must be None, a number of rounds, or a pair .* has 6"):
        model.predict(X, n_rounds=asked)
