"""Axes of the plots, and the names of features on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuboost.errors import InputError, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def check_estimator(model: Any, attribute: str) -> None:
    """Raise InputError unless the model is an estimator of gpuboost, and NotFittedError unless it is fitted."""
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(model, BaseEstimator) or not hasattr(type(model), "predict"):
        raise InputError(f"model: must be a fitted estimator of gpuboost; got {shown(model)}.")
    check_is_fitted(model)
    if not hasattr(model, attribute):
        raise InputError(f"model: must have {attribute}, and a {type(model).__name__} has not.")


def names_of(model: Any) -> list[str]:
    """Names of a fitted model's features; ``x0``, ``x1`` ... if it has none."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{f}" for f in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def literal(text: Any) -> str:
    """The text as matplotlib draws it unchanged: its dollar signs begin no formula."""
    return str(text).replace("$", r"\$")


def axes(ax: Axes | None, *, width: float = 6.4, height: float = 4.0) -> Axes:
    """``ax``, or new ones if it is None. ImportError without matplotlib, InputError for what is no axes."""
    if ax is not None:
        if isinstance(ax, type) or not (hasattr(ax, "plot") and hasattr(ax, "set_xlabel")):
            raise InputError(f"ax: must be axes of matplotlib, or None for new ones; got {shown(ax)}.")
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("gpuboost.plot needs matplotlib: pip install gpuboosting[plot]") from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
