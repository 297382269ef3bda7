"""Rows of the tables of parameters, tried: the same data with translated parameters reach about the same score.

A value is chosen that moves the score well away from that of the other parameters, so that a wrong translation shows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.metrics import d2_pinball_score, r2_score, roc_auc_score
from threadpoolctl import threadpool_limits

import gpuboost as gb

PAGES = Path(__file__).parents[2] / "docs" / "coming_from"
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(3_000, 8))
SIGNAL = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
TARGETS = {
    "numbers": SIGNAL + RNG.normal(size=3_000),
    "counts": RNG.poisson(np.exp(SIGNAL / 10)).astype(float),
    "shares": 1.0 / (1.0 + np.exp((15.0 - SIGNAL) / 3.0 + RNG.normal(size=3_000))),
    "classes": (SIGNAL + 3 * RNG.normal(size=3_000) > 17).astype(int),
}
FIT, HELD = slice(1_500), slice(1_500, 3_000)
ROUNDS = {"n_estimators": 40, "learning_rate": 0.2, "random_state": 0, "n_jobs": 1}
BY_LEVELS = ROUNDS | {"max_depth": 5, "min_child_weight": 1.0}
BY_LEAVES = ROUNDS | {"growth": "leafwise", "max_leaves": 31, "max_depth": None, "reg_lambda": 0}
BY_LEAVES |= {"min_samples_leaf": 20, "min_child_weight": 1e-3}


class Row(NamedTuple):
    """One row of a table: words of its first cell, and the parameters of both libraries."""

    words: str
    theirs: dict[str, Any]
    ours: dict[str, Any]
    target: str = "numbers"


def score(target: str, quantile: Any, found: Any) -> float:
    y = TARGETS[target][HELD]
    if target == "classes":
        return float(roc_auc_score(y, found))
    return float(r2_score(y, found) if quantile is None else d2_pinball_score(y, found, alpha=quantile))


def of_gpuboost(row: Row, base: dict[str, Any]) -> float:
    kind = gb.GradientBoostingClassifier if row.target == "classes" else gb.GradientBoostingRegressor
    model = kind(**base | row.ours).fit(X[FIT], TARGETS[row.target][FIT])
    found = model.predict_proba(X[HELD])[:, 1] if row.target == "classes" else model.predict(X[HELD])
    return score(row.target, quantile_of(row), found)


def quantile_of(row: Row) -> Any:
    return 0.9 if "uantile" in str(row.theirs) else None


def of_the_other(row: Row, regressor: Any, classifier: Any, base: dict[str, Any]) -> float:
    model = (classifier if row.target == "classes" else regressor)(**base | row.theirs)
    model.fit(X[FIT], TARGETS[row.target][FIT])
    found = model.predict_proba(X[HELD])[:, 1] if row.target == "classes" else model.predict(X[HELD])
    return score(row.target, quantile_of(row), found)


DOWN = [0, 0, 0, -1, 0, 0, 0, 0]  # of a column whose effect rises: the score falls if it is heeded
LOSSGUIDE = {"grow_policy": "lossguide", "max_leaves": 12, "max_depth": 0}
GOSS = {"data_sample_strategy": "goss", "top_rate": 0.3, "other_rate": 0.2}
QUANTILE = gb.losses.Quantile(0.9)

XGBOOST = [
    Row("`n_estimators`", {"n_estimators": 5}, {"n_estimators": 5}),
    Row("`learning_rate`", {"learning_rate": 0.02}, {"learning_rate": 0.02}),
    Row("`max_depth`", {"max_depth": 1}, {"max_depth": 1}),
    Row("`max_leaves`", {"grow_policy": "lossguide", "max_leaves": 3}, {"growth": "leafwise", "max_leaves": 3}),
    Row("`grow_policy", LOSSGUIDE, {"growth": "leafwise", "max_leaves": 12, "max_depth": None}),
    Row("`min_child_weight`", {"min_child_weight": 400}, {"min_child_weight": 400.0}),
    Row("`reg_lambda`", {"reg_lambda": 500}, {"reg_lambda": 500}),
    Row("`gamma`", {"gamma": 2000}, {"min_split_gain": 2000}),
    Row("`max_bin`", {"max_bin": 3}, {"max_bins": 3}),
    Row("`subsample=0.5`", {"subsample": 0.5}, {"sampling": 0.5}),
    Row("`colsample_bytree", {"colsample_bytree": 0.5}, {"learners": 0.5}),
    Row("`colsample_bylevel", {"colsample_bylevel": 0.25}, {"learners": gb.RandomByLevel(0.25)}),
    Row("`colsample_bynode", {"colsample_bynode": 0.25}, {"learners": gb.RandomByNode(0.25)}),
    Row("reg:absoluteerror", {"objective": "reg:absoluteerror"}, {"loss": "absolute_error"}),
    Row("reg:quantileerror", {"objective": "reg:quantileerror", "quantile_alpha": 0.9}, {"loss": QUANTILE}),
    Row("count:poisson", {"objective": "count:poisson"}, {"loss": "poisson"}, "counts"),
    Row("reg:logistic", {"objective": "reg:logistic"}, {"loss": "cross_entropy"}, "shares"),
    Row('"binary:logistic"`, `"multi', {"objective": "binary:logistic"}, {"loss": "logistic"}, "classes"),
    Row("`base_score`", {"base_score": 0.0, "n_estimators": 5}, {"start": 0.0, "n_estimators": 5}),
    Row("`monotone_constraints`", {"monotone_constraints": tuple(DOWN)}, {"monotonic_cst": DOWN}),
    Row("`scale_pos_weight=9`", {"scale_pos_weight": 9}, {"class_weight": {0: 1, 1: 9}}, "classes"),
]  # fmt: skip

LIGHTGBM = [
    Row("`n_estimators`", {"n_estimators": 5}, {"n_estimators": 5}),
    Row("`learning_rate`", {"learning_rate": 0.02}, {"learning_rate": 0.02}),
    Row("`num_leaves`", {"num_leaves": 3}, {"max_leaves": 3}),
    Row("`max_depth`", {"max_depth": 2}, {"max_depth": 2}),
    Row("`min_child_samples`", {"min_child_samples": 400}, {"min_samples_leaf": 400}),
    Row("`min_child_weight`", {"min_child_weight": 400}, {"min_child_weight": 400.0}),
    Row("`reg_lambda`", {"reg_lambda": 500}, {"reg_lambda": 500}),
    Row("`min_split_gain`", {"min_split_gain": 2000}, {"min_split_gain": 2000}),
    Row("`extra_trees", {"extra_trees": True}, {"extra_trees": True}),
    Row("`max_bin`", {"max_bin": 8, "min_data_in_bin": 1}, {"max_bins": 7}),
    Row("`subsample=0.5`", {"subsample": 0.5, "subsample_freq": 1}, {"sampling": 0.5}),
    Row('"goss"', GOSS, {"sampling": gb.GOSS(0.3, 0.2)}),
    Row("`colsample_bytree`", {"colsample_bytree": 0.5}, {"learners": 0.5}),
    Row("`feature_fraction_bynode", {"feature_fraction_bynode": 0.25}, {"learners": gb.RandomByNode(0.25)}),
    Row('"regression_l1"', {"objective": "regression_l1"}, {"loss": "absolute_error"}),
    Row('"quantile"', {"objective": "quantile", "alpha": 0.9}, {"loss": QUANTILE}),
    Row('"poisson"', {"objective": "poisson"}, {"loss": "poisson"}, "counts"),
    Row('"cross_entropy"', {"objective": "cross_entropy"}, {"loss": "cross_entropy"}, "shares"),
    Row('"binary"', {"objective": "binary"}, {"loss": "logistic"}, "classes"),
    Row("`boost_from_average`", {"boost_from_average": False, "n_estimators": 5}, {"start": 0.0, "n_estimators": 5}),
    Row("`monotone_constraints`", {"monotone_constraints": DOWN}, {"monotonic_cst": DOWN}),
    Row("`class_weight`", {"class_weight": "balanced"}, {"class_weight": "balanced"}, "classes"),
]  # fmt: skip

CATBOOST = [
    Row("`iterations`", {"iterations": 5}, {"n_estimators": 5}),
    Row("`learning_rate`", {"learning_rate": 0.02}, {"learning_rate": 0.02}),
    Row("`depth`", {"depth": 1}, {"max_depth": 1}),
    Row("`grow_policy", {"grow_policy": "Depthwise"}, {"growth": "depthwise"}),
    Row("`max_leaves`", {"grow_policy": "Lossguide", "max_leaves": 3}, {"growth": "leafwise", "max_leaves": 3}),
    Row("`l2_leaf_reg`", {"l2_leaf_reg": 500}, {"reg_lambda": 500}),
    Row("`border_count`", {"border_count": 2}, {"max_bins": 3}),
    Row("`rsm`", {"rsm": 0.5}, {"learners": gb.RandomByLevel(0.5)}),
    Row("Bernoulli", {"bootstrap_type": "Bernoulli", "subsample": 0.5}, {"sampling": 0.5}),
    Row('"MVS"', {"bootstrap_type": "MVS", "subsample": 0.5}, {"sampling": gb.MVS(0.5)}),
    Row('"MAE"', {"loss_function": "MAE"}, {"loss": "absolute_error"}),
    Row("Quantile:alpha=0.9", {"loss_function": "Quantile:alpha=0.9"}, {"loss": QUANTILE}),
    Row('"Poisson"', {"loss_function": "Poisson"}, {"loss": "poisson", "start": 0.0}, "counts"),
    Row('"Logloss"', {"loss_function": "Logloss"}, {"loss": "logistic"}, "classes"),
    Row('"Balanced"', {"auto_class_weights": "Balanced"}, {"class_weight": "balanced"}, "classes"),
]  # fmt: skip

SCIKIT_LEARN = [
    Row("`max_iter`", {"max_iter": 5}, {"n_estimators": 5}),
    Row("`learning_rate`", {"learning_rate": 0.02}, {"learning_rate": 0.02}),
    Row("`max_leaf_nodes`", {"max_leaf_nodes": 3}, {"max_leaves": 3}),
    Row("`max_depth`", {"max_depth": 2}, {"max_depth": 2}),
    Row("`min_samples_leaf`", {"min_samples_leaf": 400}, {"min_samples_leaf": 400}),
    Row("`l2_regularization`", {"l2_regularization": 500}, {"reg_lambda": 500}),
    Row("`max_bins`", {"max_bins": 3}, {"max_bins": 3}),
    Row("`max_features`", {"max_features": 0.25}, {"learners": gb.RandomByNode(0.25)}),
    Row('"absolute_error"', {"loss": "absolute_error"}, {"loss": "absolute_error"}),
    Row("`quantile=0.9`", {"loss": "quantile", "quantile": 0.9}, {"loss": QUANTILE}),
    Row('"poisson"', {"loss": "poisson"}, {"loss": "poisson"}, "counts"),
    Row("log_loss", {"loss": "log_loss"}, {"loss": "logistic"}, "classes"),
    Row("`monotonic_cst`", {"monotonic_cst": DOWN}, {"monotonic_cst": DOWN}),
    Row("`class_weight`", {"class_weight": "balanced"}, {"class_weight": "balanced"}, "classes"),
]


class Library(NamedTuple):
    rows: list[Row]
    package: str
    kinds: Callable[[Any], tuple[Any, Any]]  # regressor and classifier of the package
    base: dict[str, Any]
    ours: dict[str, Any]


LIBRARIES = {
    "xgboost": Library(
        XGBOOST, "xgboost", lambda p: (p.XGBRegressor, p.XGBClassifier),
        ROUNDS | {"max_depth": 5, "min_child_weight": 1, "reg_lambda": 1}, BY_LEVELS | {"reg_lambda": 1},
    ),
    "lightgbm": Library(
        LIGHTGBM, "lightgbm", lambda p: (p.LGBMRegressor, p.LGBMClassifier),
        ROUNDS | {"verbose": -1}, BY_LEAVES,
    ),
    "catboost": Library(
        CATBOOST, "catboost", lambda p: (p.CatBoostRegressor, p.CatBoostClassifier),
        {"iterations": 40, "learning_rate": 0.2, "depth": 5, "random_strength": 0, "bootstrap_type": "No",
         "score_function": "L2", "leaf_estimation_iterations": 1, "verbose": 0, "allow_writing_files": False,
         "thread_count": 1},
        BY_LEVELS | {"growth": "oblivious", "reg_lambda": 3},
    ),
    "scikit_learn": Library(
        SCIKIT_LEARN, "sklearn.ensemble", lambda p: (p.HistGradientBoostingRegressor, p.HistGradientBoostingClassifier),
        {"max_iter": 40, "learning_rate": 0.2, "early_stopping": False, "random_state": 0},
        BY_LEAVES,
    ),
}  # fmt: skip
CASES = [(name, row) for name, library in LIBRARIES.items() for row in library.rows]


@pytest.mark.parametrize("name", LIBRARIES)
def test_each_tried_row_is_in_the_table(name: str) -> None:
    first = [
        line.split("|")[1] for line in (PAGES / f"{name}.md").read_text("utf-8").splitlines() if line.startswith("|")
    ]
    for row in LIBRARIES[name].rows:
        assert any(row.words in cell for cell in first), row.words


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the other libraries
@pytest.mark.parametrize(("name", "row"), CASES, ids=[f"{name}-{row.words.strip('`')}" for name, row in CASES])
def test_translated_parameters_reach_the_score_of_the_other_library(name: str, row: Row) -> None:
    library = LIBRARIES[name]
    package = pytest.importorskip(library.package)
    with threadpool_limits(1, "openmp"):
        theirs = of_the_other(row, *library.kinds(package), library.base)
    ours = of_gpuboost(row, library.ours)
    assert abs(ours - theirs) < 0.03, (theirs, ours)  # draws of rows and columns differ
