"""What ``fit`` refuses as it begins, ``check`` refuses with the same reason."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

import gpuboost as gb

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = X[:, 0] + 0.1 * rng.normal(size=60)
MISSING = np.where(rng.random(X.shape) < 0.1, np.nan, X)
SPLINE, LINES, NEAR = gb.learners.Spline(), gb.learners.LinearTree(), KNeighborsRegressor(5)

REFUSED = {
    "labels of one group": ({"base_learner": LINES, "learners": gb.RandomGroup([0, 0, 1])}, X, None),
    "labels of families": ({"base_learner": [SPLINE, LINES], "learners": gb.RandomGroup([0, 0, 1])}, X, None),
    "weights of families": ({"base_learner": [SPLINE, LINES], "learners": gb.WeightedGroups(1, [1, 1])}, X, None),
    "labels of columns": ({"base_learner": NEAR, "learners": gb.RandomGroups(1, [0, 1])}, X, None),
    "no category": ({"base_learner": gb.learners.CategoricalRidge()}, X, None),
    "sample weights": ({"base_learner": NEAR}, X, np.linspace(0.5, 2.0, 60)),
    "missing values": ({"base_learner": NEAR}, MISSING, None),
    "weights of columns": ({"learners": gb.WeightedGroups(1, [1, 1])}, X, None),
}


@pytest.mark.filterwarnings("ignore:learners.*has no effect")
@pytest.mark.parametrize("case", REFUSED)
def test_check_refuses_what_fit_refuses(case):
    params, x, weight = REFUSED[case]
    model = gb.GradientBoostingRegressor(n_estimators=2, n_jobs=1, **params)
    verdict = model.check(x, Y, weight)
    with pytest.raises(ValueError, match=r".") as error:
        model.fit(x, Y, weight)
    assert verdict.kind == "refused"
    assert str(error.value).splitlines()[0] in verdict.reasons[0]


@pytest.mark.parametrize(
    "params",
    [
        {"base_learner": [SPLINE, LINES], "learners": gb.RandomGroup([0, 0, 1, 1])},
        {"base_learner": make_pipeline(SimpleImputer(), NEAR)},
        {"learners": gb.WeightedGroups(1, [1, 2, 3])},
    ],
    ids=["four groups", "imputed", "three weights"],
)
def test_check_allows_what_fit_allows(params):
    model = gb.GradientBoostingRegressor(n_estimators=2, n_jobs=1, **params)
    assert model.check(MISSING, Y).kind == model.fit(MISSING, Y).fit_report_.verdict.kind != "refused"
