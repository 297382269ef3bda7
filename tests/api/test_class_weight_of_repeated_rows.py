"""Class weights beside whole row weights: equal to repeated rows up to rounding, which decides ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


def test_class_weights_are_sample_weights_as_scikit_learn_has_them() -> None:
    from sklearn.utils.class_weight import compute_sample_weight

    rng = np.random.default_rng(1)
    x = rng.normal(size=(90, 2))
    y = np.array(["rare", "usual", "usual", "most", "most", "most"])[rng.integers(0, 6, 90)]
    few = {"n_estimators": 3, "n_jobs": 1, "random_state": 0}
    for given in ("balanced", {"rare": 5.0, "most": 0.5}):
        model = gb.GradientBoostingClassifier(**few, class_weight=given).fit(x, y)
        full = given if given == "balanced" else {"usual": 1.0, **given}
        by_row = gb.GradientBoostingClassifier(**few).fit(x, y, sample_weight=compute_sample_weight(full, y))
        np.testing.assert_allclose(model.predict_proba(x), by_row.predict_proba(x), rtol=1e-6)


def test_scale_pos_weight_is_answered_with_class_weight() -> None:
    with pytest.raises(TypeError, match=r"unknown parameter 'scale_pos_weight'; here it is class_weight="):
        gb.GradientBoostingClassifier(scale_pos_weight=9.0)
    with pytest.raises(ValueError, match=r"unknown parameter 'scale_pos_weight'; here it is class_weight="):
        gb.GradientBoostingClassifier().set_params(scale_pos_weight=9.0)
