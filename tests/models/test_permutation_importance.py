"""``gb.permutation_importance``: the metric of held-out rows with a column permuted, by its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import log_loss, root_mean_squared_error

import gpuboost as gb

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
X[rng.random(X.shape) < 0.05] = np.nan
Y = np.nan_to_num(X[:, 0]) + 0.3 * rng.normal(size=400)
WEIGHT = rng.uniform(0.5, 2.0, size=400)
FIT, HELD = slice(300), slice(300, 400)


def orders(repeats: int, n: int = 100) -> list[Any]:
    random = np.random.default_rng(0)
    return [random.permutation(n) for _ in range(repeats)]


def permuted(x: Any, column: int, order: Any) -> Any:
    changed = x.copy()
    changed[:, column] = x[order, column]
    return changed


def test_it_is_how_much_worse_the_metric_is() -> None:
    model = gb.GradientBoostingRegressor(n_estimators=10, max_depth=2).fit(X[FIT], Y[FIT], WEIGHT[FIT])
    held, y, weight = X[HELD], Y[HELD], WEIGHT[HELD]
    found = gb.permutation_importance(model, held, y, weight, n_repeats=3)
    score = root_mean_squared_error(y, model.predict(held), sample_weight=weight)
    assert found.metric == "rmse"
    assert found.score == pytest.approx(score)
    for f in range(4):
        want = [
            root_mean_squared_error(y, model.predict(permuted(held, f, order)), sample_weight=weight) - score
            for order in orders(3)
        ]
        np.testing.assert_allclose(found.importances[f], want, atol=1e-12)
    np.testing.assert_allclose(found.importances_mean, found.importances.mean(axis=1))
    assert str(found).splitlines()[1].split()[0] == "0"  # the greatest first
    again = gb.permutation_importance(model, gb.Dataset(held, y, weight=weight), n_repeats=3)
    np.testing.assert_array_equal(again.importances, found.importances)


def test_metrics_that_rise_and_functions_of_scikit_learn() -> None:
    model = gb.GradientBoostingClassifier(n_estimators=10, max_depth=2).fit(X[FIT], np.where(Y[FIT] > 0, "yes", "no"))
    y = np.where(Y[HELD] > 0, "yes", "no")
    by_area = gb.permutation_importance(model, X[HELD], y, metric="auc", n_repeats=1)
    assert by_area.importances_mean.argmax() == 0
    assert by_area.importances_mean[0] > 0.1
    by_loss = gb.permutation_importance(model, X[HELD], y, metric=log_loss, n_repeats=1)
    assert by_loss.score == pytest.approx(log_loss(y, model.predict_proba(X[HELD])))
    with pytest.raises(gb.InputError, match="row 0 holds maybe"):
        gb.permutation_importance(model, X[HELD], np.full(100, "maybe"))


@pytest.mark.parametrize("encoding", ["partition", "ordered"])
def test_columns_of_categories_are_permuted_before_they_are_encoded(encoding: str) -> None:
    city = rng.integers(0, 30, 400)
    frame = pd.DataFrame({"city": pd.Categorical([f"c{i}" for i in city]), "size": X[:, 1]})
    y = np.sin(city) + 0.1 * Y
    model = gb.GradientBoostingRegressor(n_estimators=5, categorical_encoding=encoding, random_state=0)
    model.fit(frame[:300], y[:300])
    held = frame[300:].reset_index(drop=True)
    found = gb.permutation_importance(model, held, y[300:], n_repeats=1)
    changed = held.assign(city=held["city"].to_numpy()[orders(1)[0]]).astype({"city": frame["city"].dtype})
    want = root_mean_squared_error(y[300:], model.predict(changed)) - found.score
    assert found.importances[0, 0] == pytest.approx(want)
    assert found.names == ("city", "size")


def test_rankings_and_offsets() -> None:
    group = np.arange(400) // 10
    grades = np.digitize(Y, [0.0, 1.0])
    ranker = gb.GradientBoostingRanker(n_estimators=5, eval_at=[5]).fit(X[FIT], grades[FIT], group=group[FIT])
    found = gb.permutation_importance(ranker, X[HELD], grades[HELD], group=group[HELD])
    assert found.metric == "ndcg@5"
    assert found.score == ranker.score(X[HELD], grades[HELD], group=group[HELD])
    assert found.importances_mean.argmax() == 0
    counts, years = rng.poisson(np.exp(np.nan_to_num(X[:, 0]))), np.linspace(-1.0, 1.0, 400)
    rates = gb.GradientBoostingRegressor("poisson", n_estimators=5).fit(X[FIT], counts[FIT], init_score=years[FIT])
    told = gb.permutation_importance(rates, X[HELD], counts[HELD], init_score=years[HELD], metric="rmse")
    assert told.score == pytest.approx(
        root_mean_squared_error(counts[HELD], rates.predict(X[HELD], init_score=years[HELD]))
    )


def test_sparse_rows_and_columns_that_no_tree_asks_for() -> None:
    x = np.where(np.isnan(X), 0.0, X) * (np.abs(np.nan_to_num(X)) > 1.0)
    model = gb.GradientBoostingRegressor(n_estimators=5, max_depth=1).fit(x[FIT], Y[FIT])
    dense = gb.permutation_importance(model, x[HELD], Y[HELD])
    stored = gb.permutation_importance(model, sparse.csr_matrix(x[HELD]), Y[HELD])
    np.testing.assert_array_equal(stored.importances, dense.importances)
    unused = model.feature_importances_ == 0.0
    assert unused.any()
    assert (dense.importances[unused] == 0.0).all()
    lines = gb.GradientBoostingRegressor(n_estimators=5, base_learner=gb.learners.Linear()).fit(x[FIT], Y[FIT])
    assert gb.permutation_importance(lines, x[HELD], Y[HELD]).importances_mean.argmax() == 0


def test_bad_arguments_are_named() -> None:
    model = gb.GradientBoostingRegressor(n_estimators=2).fit(X, Y)
    with pytest.raises(gb.RecipeError, match="n_repeats"):
        gb.permutation_importance(model, X, Y, n_repeats=0)
    with pytest.raises(gb.RecipeError, match="random_state"):
        gb.permutation_importance(model, X, Y, random_state=-1)
    with pytest.raises(gb.RecipeError, match="model: must be an estimator of gpuboost; got int"):
        gb.permutation_importance(3, X, Y)
    with pytest.raises(ValueError, match="features"):
        gb.permutation_importance(model, X[:, :3], Y)
    with pytest.raises(gb.InputError, match=r"^metric: unknown name 'no'"):
        gb.permutation_importance(model, X, Y, metric="no")
    with pytest.raises(gb.RecipeError, match=r"metric: must be one metric, .*got \['rmse', 'mae'\]"):
        gb.permutation_importance(model, X, Y, metric=["rmse", "mae"])
    for judge in (gb.permutation_importance, lambda model, x: model.refit(x, None)):
        with pytest.raises(gb.InputError, match="y: a target is needed"):
            judge(model, X)
