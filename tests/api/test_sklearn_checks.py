"""scikit-learn's whole ``check_estimator``; nothing is declared as an expected failure."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import BaseEstimator
from support.sklearn_checks import every_check

import gpuboost as gb

SMALL = {"n_estimators": 10, "max_depth": 3}
"""The checks fit thousands of rows hundreds of times; ten trees tell as much as a hundred."""


@pytest.fixture(autouse=True)
def array_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn skips a check without this variable, which scipy wants to see before it is imported."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


@every_check(
    [
        gb.GradientBoostingRegressor(**SMALL),
        gb.GradientBoostingClassifier(**SMALL),
    ]
)
def test_small(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@every_check(
    [
        gb.GradientBoostingRegressor(),
        gb.GradientBoostingRegressor(**SMALL, growth="oblivious"),
        gb.GradientBoostingRegressor(**SMALL, growth="leafwise", loss="absolute_error"),
        gb.GradientBoostingRegressor(**SMALL, step="constant", learners=0.7, random_state=3),
        gb.GradientBoostingClassifier(),
        gb.GradientBoostingClassifier(**SMALL, growth="leafwise", step="gradient"),
    ]
)
def test_large(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@every_check(
    [
        *(
            gb.GradientBoostingRegressor(**SMALL, loss=loss)
            for loss in ("poisson", "gamma", "tweedie", "gaussian_nll", "gamma_nll")
        ),
        *(gb.GradientBoostingClassifier(**SMALL, loss=loss) for loss in ("exponential", "logitboost")),
        gb.GradientBoostingClassifier(**SMALL, loss=gb.losses.Logistic(ridge=0.1)),
        gb.GradientBoostingRegressor(n_estimators=10, base_learner=gb.learners.Linear()),
        gb.GradientBoostingRegressor(n_estimators=10, base_learner=gb.learners.Spline()),
    ]
)
def test_losses_and_base_learners(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)
