"""Trees that compete with other families."""

from __future__ import annotations

from typing import ClassVar

from gpuboost.learners.families.checks import check_int, check_real
from gpuboost.learners.families.protocol import TreeFamily
from gpuboost.records import dataclass


@dataclass(frozen=True, slots=True)
class Tree(TreeFamily):
    """A tree among other families; the default is a stump.

    Parameters
    ----------
    max_depth : int
        Levels of splits.
    reg_lambda : float
        L2 term of its leaves.

    Raises
    ------
    RecipeError
        If a number is out of its range.
    """

    max_depth: int = 1
    reg_lambda: float = 1.0

    kind: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        check_int(self, "max_depth", 1, 30)
        check_real(self, "reg_lambda")


@dataclass(frozen=True, slots=True)
class LinearTree(TreeFamily):
    """A tree with a ridge regression in each leaf, on the numeric features along its path.

    A missing value counts as the mean of its feature (Shi, Li and Li 2019 have the idea; LightGBM's linear trees too).

    Parameters
    ----------
    max_depth : int
        Levels of splits.
    ridge : float
        L2 term on slopes, of features that are scaled to variance 1, times the mean curvature of a row of weight 1.
    reg_lambda : float
        L2 term of the constants, and of the search for splits.

    Raises
    ------
    RecipeError
        If a number is out of its range.
    """

    max_depth: int = 3
    ridge: float = 1.0
    reg_lambda: float = 1.0

    kind: ClassVar[str] = "linear_tree"
    on_gpu: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_int(self, "max_depth", 1, 12)
        check_real(self, "ridge")
        check_real(self, "reg_lambda")
