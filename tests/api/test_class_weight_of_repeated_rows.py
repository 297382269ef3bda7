"""Class weights beside whole row weights: equal to repeated rows up to rounding, which decides ties."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuboost as gb


def test_scores_agree_and_labels_differ_only_where_classes_tie() -> None:
    """The data of scikit-learn's check of sample weights, in which 6 of 15 rows have two classes of equal score."""
    rng = np.random.RandomState(42)
    x = rng.rand(15, 30)
    y, weight = rng.randint(0, 3, size=15), rng.randint(0, 5, size=15)
    order = np.random.RandomState(0).permutation(15)
    settings: dict[str, Any] = {"n_estimators": 5, "learning_rate": 0.1, "max_depth": 3, "random_state": 0, "n_jobs": 1}
    model = gb.GradientBoostingClassifier(**settings, class_weight="balanced")
    repeated = gb.dumps(model.fit(x.repeat(weight, axis=0), y.repeat(weight)))
    weighted = gb.dumps(model.fit(x[order], y[order], sample_weight=weight[order]))
    first, second = (gb.loads(text).decision_function(x) for text in (repeated, weighted))
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-7)
    top = np.sort(first, axis=1)
    differs = gb.loads(repeated).predict(x) != gb.loads(weighted).predict(x)
    assert differs.any(), "the tie that scikit-learn's check meets"
    assert (top[differs, -1] - top[differs, -2] < 1e-7).all()
    assert gb.GradientBoostingClassifier(**settings).fit(x.repeat(weight, axis=0), y.repeat(weight)).predict(
        x
    ).tolist() == (gb.GradientBoostingClassifier(**settings).fit(x, y, sample_weight=weight).predict(x).tolist())
