"""Model files with target statistics say all that a prediction needs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from support.file_predictor import scores
from support.hostile.model_grammar import Grammar

import gpuboost as gb

pd = pytest.importorskip("pandas")


def test_the_grammar_draws_files_of_every_version() -> None:
    versions = Counter(Grammar(seed).document()["version"] for seed in range(200))
    assert set(versions) == {1, 2, 3, 4, 5}
    assert min(versions.values()) >= 10


@pytest.mark.parametrize(("classes", "prior_weight", "version"), [(0, "auto", 5), (3, "auto", 5), (3, 2.0, 3)])
def test_scores_of_a_fit_are_those_of_its_file(classes: int, prior_weight: Any, version: int) -> None:
    rng = np.random.default_rng(2)
    n = 300
    X = pd.DataFrame({"a": rng.integers(0, 20, n), "b": rng.integers(0, 6, n), "c": rng.normal(size=n)})
    y = rng.normal(size=20)[X["a"]] + 0.3 * X["b"] + X["c"]
    X = X.astype({"a": "category", "b": "category"})
    X.loc[::17, "a"] = None
    kind: Any = gb.GradientBoostingClassifier if classes else gb.GradientBoostingRegressor
    target = np.digitize(y, [-1.0, 1.0]) if classes else y
    encoding = gb.OrderedTargetStatistics(prior_weight=prior_weight)
    model = kind(n_estimators=4, max_depth=4, random_state=0, n_jobs=1, categorical_encoding=encoding)
    model.fit(X, target, sample_weight=rng.uniform(0.05, 2.0, n))
    document = gb.to_dict(model)
    assert document["version"] == version
    new = X[:60].assign(a=X["a"].cat.add_categories([99])[:60])
    new.loc[::7, "a"] = 99  # not in training
    missing = new.astype(object).where(new.notna(), None)
    expected = [[score.value for score in row] for row in scores(document, missing.to_numpy().tolist())]
    answer = model.decision_function(new) if classes else model.predict(new)
    np.testing.assert_allclose(answer.reshape(60, -1), expected, rtol=1e-12, atol=1e-12)
