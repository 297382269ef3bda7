"""The parameters of an estimator's constructor. A signature takes as long to read as a round on a thousand rows."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Mapping
from functools import cache
from typing import Any

from sklearn.base import BaseEstimator


def parameters_of(kind: type[Any]) -> Mapping[str, inspect.Parameter]:
    """The constructor's parameters of the estimator of this library that a class is, or is derived from."""
    return _signature(next(parent for parent in kind.__mro__ if parent.__module__.startswith("gpuboost.api.")))


@cache
def _signature(final: type[Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(final).parameters


class ConstructorMixin(BaseEstimator, ABC):
    """An estimator whose parameters' names are read once; scikit-learn reads them several times a fit."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        names: list[str] = super()._get_param_names()
        return names
