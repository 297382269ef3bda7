"""The record of a metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeAlias

from gpuboost.errors import InputError
from gpuboost.losses.protocol import Loss
from gpuboost.records import dataclass
from gpuboost.scoring.device_metrics import ScoreMetric
from gpuboost.types import Array

Function: TypeAlias = Callable[..., float]
"""(y, scores, weight, loss) -> value; y (n,), scores (k, n), weight (n,) or None; rankings also take query_start"""


MakeScoreMetric: TypeAlias = Callable[..., ScoreMetric | None]
"""(y, weight, loss, query_start) -> the metric as a device computes it; None: the host computes it"""


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
    """

    name: str
    higher_is_better: bool
    function: Function = field(repr=False)
    mean_of: Loss | None = field(default=None, repr=False)
    finish: Callable[[float], float] = field(default=same, repr=False)
    by_query: bool = field(default=False, repr=False)
    score_metric: MakeScoreMetric | None = field(default=None, repr=False)
    each: Metric | None = field(default=None, repr=False)

    def __call__(
        self, y: Array, scores: Array, weight: Array | None, loss: Loss, query_start: Array | None = None
    ) -> float:
        """The value over the rows. y (n,), scores (k, n), weight (n,) or None; query_start (queries + 1,).

        Raises:
            InputError: if y is outside the metric's domain, or it is a metric of rankings and no queries are given.
        """
        if not self.by_query:
            return self.function(y, scores, weight, loss)
        if query_start is None:
            raise InputError(f"eval_metric: {self.name!r} needs the query of each row; give the eval set a group.")
        return self.function(y, scores, weight, loss, query_start)
