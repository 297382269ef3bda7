"""The record of a metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeAlias

from gpuboost.errors import InputError, shown
from gpuboost.losses.protocol import Loss
from gpuboost.records import dataclass
from gpuboost.scoring.device_metrics import ScoreMetric
from gpuboost.types import Array

Function: TypeAlias = Callable[..., float]
"""(y, scores, weight, loss) -> value; y (n,), scores (k, n), weight (n,) or None; rankings also take query_start"""


MakeScoreMetric: TypeAlias = Callable[..., ScoreMetric | None]
"""(y, weight, loss, query_start) -> the metric as a device computes it; None: the host computes it"""

Check: TypeAlias = Callable[[Array, Array | None], None]
"""(y (n,), weight (n,) or None): raises InputError for rows that the metric has no value for, whatever the scores"""


def same(mean: float) -> float:
    """The mean itself."""
    return mean


@dataclass(frozen=True, slots=True)
class Metric:
    """A named function of targets and scores.

    If ``mean_of`` is a loss, the metric is ``finish`` of the weighted mean of that loss: a backend's
    ``loss_value`` then gives the same number, up to rounding, without the scores leaving the device. If it declares
    ``score_metric``, the metric is ``finish`` of what a device computes from the scores where they are, with the bits
    of ``function``. If ``each`` is a metric of one target and one score, the metric is the mean over the outputs of it.
    ``check`` is called for each eval set before the first tree.

    Raises:
        InputError: if name is no text, higher_is_better neither True nor False, or function cannot be called.
    """

    name: str
    higher_is_better: bool
    function: Function = field(repr=False)
    mean_of: Loss | None = field(default=None, repr=False)
    finish: Callable[[float], float] = field(default=same, repr=False)
    by_query: bool = field(default=False, repr=False)
    score_metric: MakeScoreMetric | None = field(default=None, repr=False)
    each: Metric | None = field(default=None, repr=False)
    check: Check | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(f"name: a metric's name is text; got {shown(self.name)}.")
        if not isinstance(self.higher_is_better, bool):
            raise InputError(f"higher_is_better: must be True or False; got {shown(self.higher_is_better)}.")
        if not callable(self.function):
            raise InputError(
                f"function: a function of (y, scores, weight, loss) is needed; got {shown(self.function)}."
            )

    def __call__(
        self, y: Array, scores: Array, weight: Array | None, loss: Loss, query_start: Array | None = None
    ) -> float:
        """The value over the rows. y (n,), scores (k, n), weight (n,) or None; query_start (queries + 1,).

        Raises:
            InputError: if y is outside the metric's domain, the function returns no number, or it is a metric of
                rankings and no queries are given.
        """
        if not self.by_query:
            return number(repr(self.name), self.function(y, scores, weight, loss))
        if query_start is None:
            raise InputError(f"eval_metric: {self.name!r} needs the query of each row; give the eval set a group.")
        return number(repr(self.name), self.function(y, scores, weight, loss, query_start))


def number(called: str, result: Any) -> float:
    """The result of the metric's function as a float. Raises InputError unless it is a number, which text is not."""
    try:
        if not isinstance(result, (str, bytes)):
            return float(result)
    except (TypeError, ValueError):
        pass
    raise InputError(f"eval_metric: {called} must return a number; it returned {shown(result)}.")
