"""What pictures are drawn on, and what they call the features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def names_of(model: Any) -> list[str]:
    """Of a fitted model's features."""
    known = getattr(model, "feature_names_in_", None)
    return [f"x{f}" for f in range(model.n_features_in_)] if known is None else [str(name) for name in known]


def axes(ax: Axes | None, *, width: float = 6.4, height: float = 4.0) -> Axes:
    """``ax``, or new ones if it is None. ImportError without matplotlib."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("gpuboost.plot needs matplotlib: pip install gpuboost[plot]") from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
