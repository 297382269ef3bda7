"""scikit-learn's tags of a classifier do not promise more than two classes where ``start`` refuses them."""

from __future__ import annotations

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_classifier_not_supporting_multiclass

import gpuboost as gb


@pytest.mark.parametrize("start", ["half_log_odds", "mean"])
def test_starts_of_two_classes_are_tagged_so(start: str) -> None:
    model = gb.GradientBoostingClassifier(n_estimators=2, start=start)
    assert not get_tags(model).classifier_tags.multi_class
    check_classifier_not_supporting_multiclass("GradientBoostingClassifier", model)


@pytest.mark.parametrize("start", ["optimum", 0.5])
def test_other_starts_are_of_any_number_of_classes(start: str | float) -> None:
    assert get_tags(gb.GradientBoostingClassifier(start=start)).classifier_tags.multi_class
