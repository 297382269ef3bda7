"""Random small problems beside scikit-learn's HistGradientBoosting, XGBoost and LightGBM, with the same parameters.

Nothing here can be tuned: the problems are drawn, and so are the parameters. The libraries differ in their bins, their
starting values and their rules for ties, so losses are compared by the band of the others, widened by ``TOLERANCE``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from support.hostile.campaign import Tally, many
from threadpoolctl import threadpool_limits

import gpuboost as gb

xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")

Array = np.ndarray

TOLERANCE = 0.10
"""Part of the distance from the loss of the best constant to that of the best library. Bins alone move the loss of a
library by some percent of that on 300 rows: XGBoost differs from scikit-learn by up to a tenth on these problems."""


CLEARLY = 2.0
"""Ratio of importances from which two features count as ordered."""

WORTH = 0.01
"""Share of the gain below which the order of features is left to chance: the splits that overfit decide there."""


@dataclass(frozen=True)
class Problem:
    """Rows to learn from and to judge by, and parameters that all libraries have."""

    x: Array
    y: Array
    x_test: Array
    y_test: Array
    classify: bool
    rounds: int
    rate: float
    depth: int
    ridge: float
    least: int
    directions: tuple[int, ...]
    strong: int  # a feature that is clearly the most important, and one that is clearly the least
    weak: int


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Data are small: the threads of the others would only wait for each other."""
    with threadpool_limits(1):
        yield


def problem(seed: int) -> Problem:
    """One drawn problem."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(200, 600)), int(rng.integers(3, 7))
    x = rng.normal(size=(2 * n, d))
    if rng.random() < 0.4:
        x[:, -1] = rng.integers(0, 5, 2 * n)
    weights = np.concatenate([[2.0, 1.0], rng.random(d - 3) * 0.5, [0.0]])
    score = x @ weights + 0.7 * np.sin(3 * x[:, 1]) * (x[:, 0] > 0)
    score += float(rng.choice([0.1, 0.5, 1.0])) * rng.normal(size=2 * n)
    if rng.random() < 0.4:
        x[rng.random(x.shape) < 0.05] = np.nan
    classify = bool(rng.random() < 0.5)
    y = (score > np.median(score)).astype(int) if classify else score
    monotone = rng.random() < 0.4
    return Problem(
        x[:n], y[:n], x[n:], y[n:], classify,
        rounds=int(rng.integers(10, 60)), rate=float(rng.choice([0.05, 0.1, 0.3])), depth=int(rng.integers(1, 6)),
        ridge=float(rng.choice([0.0, 1.0, 5.0])), least=int(rng.choice([1, 5, 20])),
        directions=(1, *[0] * (d - 1)) if monotone else (0,) * d, strong=0, weak=d - 1,
    )  # fmt: skip


def ours(p: Problem) -> Any:
    """scikit-learn has no limit on curvature that could be set, XGBoost none on rows: both are off, but for rows."""
    kind = gb.GradientBoostingClassifier if p.classify else gb.GradientBoostingRegressor
    return kind(
        n_estimators=p.rounds, learning_rate=p.rate, max_depth=p.depth, reg_lambda=p.ridge, min_samples_leaf=p.least,
        min_child_weight=1e-3, monotonic_cst=list(p.directions), random_state=0, n_jobs=1,
    ).fit(p.x, p.y)  # fmt: skip


def of_scikit_learn(p: Problem) -> Any:
    kind = HistGradientBoostingClassifier if p.classify else HistGradientBoostingRegressor
    return kind(
        max_iter=p.rounds, learning_rate=p.rate, max_depth=p.depth, max_leaf_nodes=None, l2_regularization=p.ridge,
        min_samples_leaf=p.least, monotonic_cst=list(p.directions), early_stopping=False,
    ).fit(p.x, p.y)  # fmt: skip


def of_xgboost(p: Problem) -> Any:
    kind = xgboost.XGBClassifier if p.classify else xgboost.XGBRegressor
    return kind(
        n_estimators=p.rounds, learning_rate=p.rate, max_depth=p.depth, reg_lambda=p.ridge, tree_method="hist",
        min_child_weight=1e-3 if p.classify else p.least, monotone_constraints=p.directions, n_jobs=1, verbosity=0,
    ).fit(p.x, p.y)  # fmt: skip


def of_lightgbm(p: Problem) -> Any:
    kind = lightgbm.LGBMClassifier if p.classify else lightgbm.LGBMRegressor
    return kind(
        n_estimators=p.rounds, learning_rate=p.rate, max_depth=p.depth, num_leaves=2**p.depth, reg_lambda=p.ridge,
        min_child_samples=p.least, monotone_constraints=list(p.directions), n_jobs=1, verbosity=-1,
    ).fit(p.x, p.y)  # fmt: skip


OTHERS = {"scikit-learn": of_scikit_learn, "XGBoost": of_xgboost, "LightGBM": of_lightgbm}


def loss_of(p: Problem, model: Any, x: Array, y: Array) -> float:
    """Mean log loss of classes, mean squared error of numbers."""
    if p.classify:
        chance = np.clip(model.predict_proba(x)[np.arange(len(y)), y], 1e-12, 1.0)
        return float(-np.log(chance).mean())
    return float(np.mean((np.asarray(model.predict(x)) - y) ** 2))


def constant_loss(p: Problem, y: Array) -> float:
    if p.classify:
        share = np.clip(p.y.mean(), 1e-12, 1.0 - 1e-12)
        return float(-np.mean(y * np.log(share) + (1 - y) * np.log(1 - share)))
    return float(np.mean((y - p.y.mean()) ** 2))


def _falls(model: Any, p: Problem) -> bool:
    """True if the score falls somewhere along feature 0, of which it must not."""
    rows = np.repeat(p.x_test[:10], 25, axis=0)
    rows[:, 0] = np.tile(np.linspace(-4, 4, 25), 10)
    answers = model.predict_proba(rows)[:, 1] if p.classify else model.predict(rows)
    return bool((np.diff(np.asarray(answers).reshape(10, 25), axis=1) < -1e-9).any())


def _compare(seed: int, tally: Tally) -> None:
    p = problem(seed)
    with warnings.catch_warnings(action="ignore"):
        mine, theirs = ours(p), {name: fit(p) for name, fit in OTHERS.items()}
    tally.add("problems")
    for what, x, y, slack in (("training", p.x, p.y, TOLERANCE), ("held-out", p.x_test, p.y_test, 2.0 * TOLERANCE)):
        losses = {name: loss_of(p, model, x, y) for name, model in theirs.items()}
        gain = max(constant_loss(p, y) - min(losses.values()), 0.05 * constant_loss(p, y))
        low, high = min(losses.values()) - slack * gain, max(losses.values()) + slack * gain
        loss = loss_of(p, mine, x, y)
        if not low <= loss <= high:
            tally.fault(f"problem {seed}", f"{what} loss {loss:.5g}, of others {losses}; {p.rounds} rounds, {p}"[:700])
    if any(p.directions):
        tally.add("monotone problems")
        if _falls(mine, p):
            tally.fault(f"problem {seed}", "predictions fall where they must rise")
    shares = mine.feature_importances_
    if shares[p.strong] <= shares[p.weak] or np.argmax(shares) != p.strong:
        tally.fault(f"problem {seed}", f"importances {shares.round(3)}; feature {p.strong} is the strongest")
    _compare_order(
        shares, [gains(model, len(shares)) for name, model in theirs.items() if name != "scikit-learn"], seed, tally
    )


def gains(model: Any, d: int) -> Array:
    """(d,) the share of each feature in the total gain of all splits."""
    if hasattr(model, "booster_"):  # LightGBM
        total = model.booster_.feature_importance("gain")
    else:
        scores = model.get_booster().get_score(importance_type="total_gain")
        total = np.array([scores.get(f"f{f}", 0.0) for f in range(d)])
    return np.asarray(total / max(total.sum(), 1e-300))


def _compare_order(mine: Array, theirs: list[Array], seed: int, tally: Tally) -> None:
    """Two features that every other library finds clearly different in importance have the same order here."""
    for a in range(len(mine)):
        for b in range(len(mine)):
            if all(shares[a] > max(WORTH, CLEARLY * shares[b]) for shares in theirs):
                tally.add("pairs of features in order")
                if mine[a] < mine[b]:
                    tally.fault(f"problem {seed}", f"features {a} and {b}: importances {mine}, of others {theirs}")


def test_random_problems(tally: Tally) -> None:
    for seed in range(8):
        _compare(seed, tally)
    tally.check()


@pytest.mark.thorough
def test_many_random_problems(tally: Tally) -> None:
    for seed in range(100, 100 + many(200)):
        _compare(seed, tally)
    tally.check()
