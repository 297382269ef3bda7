"""Importance sampling on shards: the shards count scores, the driver computes the threshold, the shards draw rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.probabilities import ProbabilityRule
from gpuboost.backends.numerics.threshold import Counts, Ints, SearchBySums
from gpuboost.backends.sharded.arrays import Distributed, Driver
from gpuboost.backends.sharded.shard import Shard
from gpuboost.keys import Key
from gpuboost.types import Array, Gradients, RowScore


def draw(
    driver: Driver,
    gradients: Gradients,
    kappa: float,
    rule: ProbabilityRule,
    key: Key,
    losses: Array | RowScore | None,
) -> tuple[tuple[int, ...], list[int], int]:
    """See ``Backend.draw``. Returns the numbers of the arrays of rows and of 1 / p, each shard's number of drawn rows,
    and the number of rows of probability 0.

    Raises:
        InputError: if a gradient is not a number.
    """
    (number,), answers = driver.ask_and_keep(1, Shard.importance, gradients, kappa, losses)
    shape = gradients.g.shape[1:]
    scores = driver.array(number, shape, gradients.g.sizes)
    threshold.check(sum(bad for _, _, bad in answers))
    counts = Counts(*(reduce(add, column) for column in list(zip(*answers, strict=True))[:2]))
    parameters = rule.solve(SearchBySums(counts, _RowSums(driver, scores)))
    numbers, sizes = driver.ask_and_keep(2, Shard.draw_by, scores, rule, parameters, key)
    drawn, excluded = zip(*sizes, strict=True)
    return numbers, list(drawn), sum(excluded)


@dataclass(frozen=True, slots=True)
class _RowSums:
    """``threshold.RowSums`` of scores held by the shards."""

    driver: Driver
    scores: Distributed

    def three_sums(self, mu: float, low: float, scale: float) -> tuple[int, int, int]:
        above, below, between = reduce(add, self.driver.ask(Shard.three_sums, self.scores, mu, low, scale)).tolist()
        return above, below, between

    def within(self, shift: int, prefix: int, low_bits: int) -> tuple[Ints, Ints]:
        rows, significands = reduce(add, self.driver.ask(Shard.within, self.scores, shift, prefix, low_bits))
        return rows, significands
