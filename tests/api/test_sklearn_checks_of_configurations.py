"""scikit-learn's checks over more than 40 configurations of the estimators, as slow tests.

``test_sklearn_checks.py`` has 19 more, without any exception. Exceptions are written beside their configuration: checks
that compare two fits which are equal in law only, or by rows and not by weight.
"""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import BaseEstimator
from support.sklearn_checks import every_check

import gpuboost as gb

SMALL: dict[str, Any] = {"n_estimators": 10, "learning_rate": 0.5, "max_depth": 3, "random_state": 0}

REPEATED = "check_sample_weight_equivalence_on_dense_data"
SPARSE_REPEATED = "check_sample_weight_equivalence_on_sparse_data"
IN_LAW = "rows are drawn, so a weight of 2 equals two rows in law and not in every draw (docs/user_guide.md)"
ROUNDED = "class weights are fractions, whose gradients are rounded by row: a tie of two classes may go the other way"
DRAWN = {REPEATED: IN_LAW, SPARSE_REPEATED: IN_LAW}


def regressor(**params: Any) -> gb.GradientBoostingRegressor:
    return gb.GradientBoostingRegressor(**SMALL | params)


def classifier(**params: Any) -> gb.GradientBoostingClassifier:
    return gb.GradientBoostingClassifier(**SMALL | params)


CONFIGURATIONS: list[tuple[BaseEstimator, dict[str, str]]] = [
    # losses
    *((regressor(loss=loss), {}) for loss in ("huber", "quantile")),
    (regressor(loss=gb.losses.Quantile(0.9)), {"check_regressors_train": "its R2 is low: a high quantile is no mean"}),
    (classifier(loss="smoothed_zero_one"), {}),
    # growth
    *((regressor(growth=growth), {}) for growth in ("leafwise", "oblivious", "sign_stump")),
    (classifier(growth="oblivious"), {}),
    (regressor(growth="leafwise", max_depth=None, max_leaves=8), {}),
    (regressor(max_bins=8), {}),
    (
        regressor(min_samples_leaf=3, min_child_weight=0.0),
        {REPEATED: "min_samples_leaf counts rows", SPARSE_REPEATED: "min_samples_leaf counts rows"},
    ),
    (regressor(reg_lambda=0.0, min_split_gain=0.1), {}),
    (regressor(random_strength=1.0), {}),
    # steps and starts
    *((regressor(step=step), {}) for step in ("newton", "gradient", "constant", "line_search")),
    (regressor(step=gb.LineSearchStep("leaf"), loss="huber"), {}),
    (regressor(start="mean"), {}),
    (classifier(loss="exponential", start="half_log_odds"), {}),
    (regressor(start=1.5), {}),
    # rows
    (regressor(sampling=0.7), DRAWN),
    (classifier(sampling=0.7), DRAWN),
    (regressor(sampling=gb.GOSS(0.3, 0.3)), DRAWN),
    (regressor(sampling=gb.MVS(0.6)), DRAWN),
    (classifier(sampling=gb.MVS(0.6)), DRAWN),
    (regressor(sampling=gb.WeightTrimming(0.9)), {}),
    (regressor(sampling=gb.smart_first_order(0.6)), DRAWN),
    (classifier(sampling=gb.smart_second_order(0.6)), DRAWN),
    # learners
    (regressor(learners=0.5), {}),
    (regressor(learners=gb.RandomByNode(0.5)), {}),
    (regressor(learners=gb.RandomLearners(5), max_depth=1), {}),
    (regressor(learners=gb.CyclicGroups(0.5), max_depth=1), {}),
    (classifier(learners=gb.RandomByNode(0.5)), {}),
    # base learners
    (gb.GradientBoostingRegressor(n_estimators=5, base_learner=gb.learners.LinearTree()), {}),
    (gb.GradientBoostingRegressor(n_estimators=5, base_learner=[gb.learners.Linear(), gb.learners.Tree()]), {}),
    (gb.GradientBoostingClassifier(n_estimators=5, base_learner=gb.learners.Spline()), {}),
    # execution
    (regressor(n_jobs=1), {}),
    (regressor(n_jobs=2), {}),
    (regressor(execution=gb.DataParallel(2, engine="threads")), {}),
    (classifier(execution=gb.DataParallel(2, engine="threads")), {}),
    (regressor(execution=gb.SimulatedWorkers(2, build_time=1.0, server_time=0.0, allow_unproven=True)), {}),
    # watching
    (regressor(validation_fraction=0.3, early_stopping_rounds=2), DRAWN),
    (classifier(class_weight="balanced"), {}),
    (
        classifier(class_weight="balanced", n_estimators=5, learning_rate=0.1),
        {REPEATED: ROUNDED, SPARSE_REPEATED: ROUNDED},
    ),
    (classifier(loss="softmax"), {}),
]


def reasons(estimator: BaseEstimator) -> dict[str, str]:
    """The checks that a configuration is excepted from, with the reason."""
    return next(why for other, why in CONFIGURATIONS if other is estimator)


@pytest.fixture(autouse=True)
def array_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn skips a check without this variable, which scipy wants to see before it is imported."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


def test_there_are_forty_and_each_is_another() -> None:
    assert len({repr(estimator) for estimator, _ in CONFIGURATIONS}) == len(CONFIGURATIONS) >= 40


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::gpuboost.errors.OutsideTheoryWarning")
@every_check([estimator for estimator, _ in CONFIGURATIONS], expected_failed_checks=reasons)
def test_each_configuration(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)
