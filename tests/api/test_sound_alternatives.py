"""``check().alternative``: the parameters by which a composition is sound, none of which can be left out."""

from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsRegressor
from support.compositions import composition

import gpuboost as gb

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = X[:, 0] + 0.3 * rng.normal(size=60)
LABELS = (Y > 0).astype(int)
R, C = gb.GradientBoostingRegressor, gb.GradientBoostingClassifier
NOISE = gb.Langevin(shrinkage=0.01)


def abs_of(g: float, h: float) -> float:
    return abs(g) + h


def check_alternative(model: Any, x: Any, y: Any, weight: Any = None) -> Any:
    """The changes; each of them is needed, and all together make the verdict sound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = model.check(x, y, weight)
        changes = before.alternative
        assert (changes == {}) is (before.kind == "sound")
        if not changes:
            return changes
        assert clone(model).set_params(**changes).check(x, y, weight).kind == "sound", changes
        for name in changes:
            fewer = {other: value for other, value in changes.items() if other != name}
            assert clone(model).set_params(**fewer).check(x, y, weight).kind != "sound", (name, changes)
    return changes


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (R(step="gradient", learning_rate=2.5), {"learning_rate": 1.0}),
        (C(), {"step": "constant"}),
        (R(sampling=gb.MVS(0.5)), {}),
        (R(sampling=gb.ImportanceSampling(0.5, variance_control="none")), {"sampling": gb.ImportanceSampling(0.5)}),
        (R("huber", langevin=NOISE, sampling=gb.MVS(0.5)), {"sampling": gb.UniformSampling(0.5)}),
        (
            R("huber", langevin=NOISE, sampling=gb.MVS(0.5, frozen_from=3)),
            {"langevin": gb.Langevin(shrinkage=0.01, noise_scale="weight")},
        ),
        (R("huber", langevin=gb.Langevin(shrinkage=0.01, noise_scale=abs_of)), {"langevin": NOISE}),
        (R("huber", langevin=NOISE, step="newton"), {"step": "auto"}),
        (R("huber", langevin=gb.Langevin(shrinkage=0.0)), {"langevin": gb.Langevin()}),
        (R("poisson", step="gradient"), {"step": "line_search"}),
        (R(base_learner=KNeighborsRegressor(3), sampling=gb.GOSS()), {"sampling": None}),
        (R(growth="oblivious", monotonic_cst=[1, 0, 0]), {"monotonic_cst": None}),
        (R(max_depth=3, learners=gb.RandomLearners(4)), {"learners": None}),
    ],
    ids=lambda value: re.sub(r" at 0x[0-9a-f]+", "", str(value)),  # the same in every process
)
def test_the_changes_of_a_composition(model: Any, expected: dict[str, Any]) -> None:
    y = LABELS if isinstance(model, C) else np.exp(Y) if model.loss == "poisson" else Y
    assert check_alternative(model, X, y) == expected


def test_there_is_none_for_rankings_and_a_fit_has_none() -> None:
    group = np.repeat(np.arange(6), 10)
    ranker = gb.GradientBoostingRanker(n_estimators=1, n_jobs=1)
    assert ranker.check(X, LABELS, group=group).alternative is None
    report = R(n_estimators=1, n_jobs=1).fit(X, Y).fit_report_
    assert report.verdict.alternative is None
    assert pickle.loads(pickle.dumps(report)).verdict == report.verdict


@pytest.mark.parametrize("number", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_random_compositions_have_alternatives_that_are_sound(number: int) -> None:
    draws, with_changes = np.random.default_rng(5), 0
    for _ in range(number):
        case = composition(draws)
        with_changes += bool(check_alternative(case.estimator(), case.x, case.y, case.weight))
    assert with_changes >= number // 3
