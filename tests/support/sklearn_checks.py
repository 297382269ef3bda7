"""scikit-learn's checks as parameters of a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks


def every_check(
    estimators: Sequence[BaseEstimator], expected_failed_checks: Callable[[BaseEstimator], dict[str, str]] | None = None
) -> pytest.MarkDecorator:
    """``parametrize_with_checks`` that writes each estimator once: scikit-learn does so for each of its 60 checks,
    which took five seconds of every collection.
    """
    mark = parametrize_with_checks(list(estimators), expected_failed_checks=expected_failed_checks)
    name_of = mark.kwargs["ids"]
    names = {id(estimator): name_of(estimator) for estimator in estimators}
    return pytest.mark.parametrize(*mark.args, ids=lambda part: names.get(id(part)) or name_of(part))
