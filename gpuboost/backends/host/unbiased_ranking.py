"""Unbiased LambdaMART on the host: threads divide the queries. The bits are those of ``reference.unbiased_ranking``."""

from __future__ import annotations

import hashlib
import inspect
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from gpuboost import elementary
from gpuboost.backends.host.threads import ThreadPool
from gpuboost.backends.numerics.list_gradients import weighted_and_rounded
from gpuboost.backends.numerics.position_bias import estimated, tracked_positions
from gpuboost.backends.python_functions import registered
from gpuboost.kernels.common.jit import kernel
from gpuboost.kernels.gradients import ranking
from gpuboost.kernels.gradients.unbiased_ranking import PairRule, ShownLists, passes_of
from gpuboost.losses.protocol import DebiasingLoss
from gpuboost.losses.ranking import NEAR
from gpuboost.types import Array, PositionBias, TrainingSet

BLOCK = 512  # lists whose costs are summed before blocks are


class UnbiasedRanking:
    """Derivatives and estimates of the bias, for one training set at a time."""

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool
        self._last: tuple[TrainingSet, DebiasingLoss, ShownLists, PairRule] | None = None

    def derivatives(
        self, loss: DebiasingLoss, scores: Array, data: TrainingSet, curvature: float | None
    ) -> tuple[Array, Array]:
        """(1, n) float32 g and h, weighted."""
        lists, rule = self._of(loss, data)
        bias, f = self.position_bias(loss, scores, data), np.ascontiguousarray(scores[0])
        g, h = np.empty(data.n_rows), np.empty(data.n_rows)
        blocks, (_, run) = _blocks(len(lists.scales)), _kernels()

        def part(number: int) -> None:
            for first, last in blocks[number :: self._pool.size]:
                run(lists, rule, f, bias.plus, bias.minus, first, last, g, h)

        self._pool.run(part)
        return weighted_and_rounded(g, h, data, curvature)

    def position_bias(self, loss: DebiasingLoss, scores: Array, data: TrainingSet) -> PositionBias:
        """The estimates at these scores."""
        lists, rule = self._of(loss, data)
        size = int(lists.position.max(initial=0)) + 1
        blocks, (run, _) = _blocks(len(lists.scales)), _kernels()
        of_blocks, f = np.zeros((len(blocks), size, size)), np.ascontiguousarray(scores[0])

        def part(number: int) -> None:
            for block in range(number, len(blocks), self._pool.size):
                run(lists, rule, f, *blocks[block], of_blocks[block])

        self._pool.run(part)
        cost = np.zeros((size, size))
        for of_block in of_blocks:
            cost = cost + of_block
        return estimated(cost, loss.bias_norm)

    def _of(self, loss: DebiasingLoss, data: TrainingSet) -> tuple[ShownLists, PairRule]:
        last = self._last
        if last is None or last[0] is not data or last[1] != loss:
            last = self._last = data, loss, *_constants(loss, data)
        return last[2], last[3]


def _constants(loss: DebiasingLoss, data: TrainingSet) -> tuple[ShownLists, PairRule]:
    start, gains = np.ascontiguousarray(data.lists(), np.int64), np.asarray(loss.gains(), np.float64)
    longest, scales = int(np.diff(start).max(initial=0)), np.ones(len(start) - 1)
    discounts = elementary.log(2.0) / elementary.log_array(np.arange(longest) + 2.0)
    truncation = longest if loss.truncation is None else loss.truncation
    ranking.scales(data.y, gains, start, discounts, truncation, scales)
    gain = gains[np.asarray(data.y).astype(np.int64)]
    lists = ShownLists(gain, tracked_positions(data), start, scales, discounts, data.row_weight())
    return lists, PairRule(loss.parameter, truncation, loss.prefers_close, loss.evens_lists, NEAR)


def _blocks(lists: int) -> list[tuple[int, int]]:
    return list(pairwise([*range(0, lists, BLOCK), lists]))


@cache
def _kernels() -> Any:
    text = inspect.getsource(elementary)
    functions = (registered(function) for function in (elementary.exp, elementary.log, elementary.log1pexp))
    return passes_of(*functions, hashlib.sha256(text.encode()).hexdigest(), kernel)
