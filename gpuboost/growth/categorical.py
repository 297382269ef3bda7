"""``categorical_splits=``: regularisation of splits by sets of categories."""

from __future__ import annotations

from typing import Any

from gpuboost.arguments import is_real
from gpuboost.errors import RecipeError, shown
from gpuboost.records import dataclass
from gpuboost.types import CATEGORY_LIMITS, CategoryLimits


@dataclass(frozen=True, slots=True)
class CategoricalSplits:
    """Regularisation of splits that send a set of categories to the left.

    The categories of a node are sorted by G / (H + ``smoothing``), and the first or last 1, 2, ... 32 of them are
    candidates for one side (Fisher 1958). Where a node holds at most four categories, each of them against the others
    is a candidate, and no limit of this class applies. Rows are estimated by their share of H.

    Args:
        smoothing: added to a category's H before categories are sorted (``cat_smooth`` of LightGBM).
        reg_lambda: added to the estimator's ``reg_lambda`` in the gain, not in leaf values (``cat_l2`` of LightGBM).
        min_category_rows: a category of fewer rows in a node is not sent by itself: it goes to the side of the missing
            values. None: a thousandth of the training rows, at most 10.
        min_group_rows: rows of each side of the split, and between two candidates (``min_data_per_group`` of LightGBM).
            None: a hundredth of the training rows, at most 100.

    Raises:
        RecipeError: if a number is negative or not finite.
    """

    smoothing: float = 10.0
    reg_lambda: float = 10.0
    min_category_rows: float | None = None
    min_group_rows: float | None = None

    def __post_init__(self) -> None:
        _check("smoothing", self.smoothing)
        _check("reg_lambda", self.reg_lambda)
        for name in ("min_category_rows", "min_group_rows"):
            if getattr(self, name) is not None:
                _check(name, getattr(self, name))

    def limits(self, n_rows: int) -> CategoryLimits:
        """The limits for trees of ``n_rows`` training rows."""
        category, group = self.min_category_rows, self.min_group_rows
        return CategoryLimits(
            float(self.smoothing),
            float(self.reg_lambda),
            min(CATEGORY_LIMITS.min_category_rows, n_rows / 1000) if category is None else float(category),
            min(CATEGORY_LIMITS.min_group_rows, n_rows / 100) if group is None else float(group),
        )


def _check(name: str, value: Any) -> None:
    if not is_real(value, 0.0):
        raise RecipeError(f"categorical_splits: {name} must be a finite number of at least 0; got {shown(value)}.")
