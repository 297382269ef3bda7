"""What ``fit`` refuses of the data, ``check`` refuses; a chain knows its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost as gb

rng = np.random.default_rng(0)
X = np.column_stack([rng.integers(0, 4, 80), rng.normal(size=80)]).astype(float)
Y = X[:, 1] + (X[:, 0] == 2) + 0.3 * rng.normal(size=80)


@pytest.mark.slow
def test_pairs_of_feature_and_cut_are_refused_with_categories() -> None:
    kw: dict[str, Any] = {"n_estimators": 2, "max_depth": 1, "learners": gb.RandomLearners(3), "n_jobs": 1}
    categorical = gb.GradientBoostingRegressor(categorical_features=[0], **kw)
    for data in ((X, Y), (gb.Dataset(X, Y, categorical_features=[0]),)):
        model = gb.GradientBoostingRegressor(**kw) if len(data) == 1 else categorical
        with pytest.raises(ValueError, match="categorical") as refused:
            model.fit(*data)
        verdict = model.check(*data)
        assert verdict.kind == "refused"
        assert str(refused.value) in str(verdict)
    numeric = gb.GradientBoostingRegressor(**kw)
    assert numeric.check(X, Y).kind != "refused"
    numeric.fit(X, Y)
    by_root = categorical.set_params(learners=gb.RandomGroup(groups="root"))
    assert by_root.check(X, Y).kind != "refused"
    by_root.fit(X, Y)


def test_a_chain_goes_on_with_its_rows_only(tmp_path: Any) -> None:
    kw: dict[str, Any] = {"loss": "huber", "n_estimators": 3, "langevin": gb.Langevin(), "n_jobs": 1, "random_state": 0}
    start = gb.GradientBoostingRegressor(**kw).fit(X, Y)
    same = gb.GradientBoostingRegressor(**kw).fit(X.copy(order="F"), Y, init_model=start)
    assert same.guarantee_.kind == "stationary law"
    other = gb.GradientBoostingRegressor(**kw).fit(X[::-1], Y, init_model=start)
    assert other.guarantee_.kind == "none"
    path = str(tmp_path / "run.json")
    gb.GradientBoostingRegressor(callbacks=[gb.callbacks.Checkpoint(path, every=2)], **kw).fit(X, Y)
    more = gb.GradientBoostingRegressor(**{**kw, "n_estimators": 5})
    assert more.fit(X, Y, resume_from=path).guarantee_.kind == "stationary law"
    with pytest.raises(ValueError, match="these are not the data that the fit began with"):
        more.fit(X[::-1], Y, resume_from=path)
