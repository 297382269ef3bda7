"""Rows drawn by their scores, on many machines: the shards count, the driver finds the threshold, the shards draw."""

from __future__ import annotations

from functools import reduce
from operator import add

from gpuboost.backends.numerics import threshold
from gpuboost.backends.numerics.probabilities import Heaviest, Odds, Proportional, TopAndOthers
from gpuboost.backends.numerics.threshold import Counts
from gpuboost.backends.sharded.arrays import Distributed, Driver
from gpuboost.keys import Key
from gpuboost.types import Array, Gradients


def draw(
    driver: Driver, gradients: Gradients, kappa: float, odds: Odds, key: Key, losses: Array | None
) -> tuple[tuple[int, ...], list[int], int]:
    """See ``Backend.draw``. Numbers of the rows and of 1 / p, how many each shard drew, and rows of probability 0.

    Raises:
        InputError: if a gradient is not a number.
    """
    (number,), answers = driver.ask_and_keep(1, "importance", gradients, kappa, losses)
    shape = gradients.g.shape[1:]
    scores = driver.array(number, shape, gradients.g.sizes)
    threshold.check(sum(bad for _, _, bad in answers))
    counts = Counts(*(reduce(add, column) for column in list(zip(*answers, strict=True))[:2]))
    found, never = _threshold(driver, scores, counts, odds)
    numbers, drawn = driver.ask_and_keep(2, "draw_by", scores, odds, found, key)
    return numbers, drawn, counts.n - sum(drawn) if never is None else never


def _threshold(driver: Driver, scores: Distributed, counts: Counts, odds: Odds) -> tuple[tuple[float, ...], int | None]:
    """What the draw needs to know of all rows, and how many have probability 0; None for all that are not drawn."""

    def three_sums(mu: float, low: float, scale: float) -> tuple[int, int, int]:
        above, below, between = reduce(add, driver.ask("three_sums", scores, mu, low, scale)).tolist()
        return above, below, between

    def within(shift: int, prefix: int, narrow: int) -> tuple[Array, Array]:
        rows, significands = reduce(add, driver.ask("within", scores, shift, prefix, narrow))
        return rows, significands

    match odds:
        case Proportional():
            rho = 0.0 if odds.rho is None else odds.rho
            if odds.rate is not None:
                rho = threshold.proportional(counts, odds.rate, odds.floor, three_sums)
            return (rho,), counts.zeros if odds.floor == 0.0 else 0
        case TopAndOthers():
            most = odds.top * counts.n
            border, above, ties = threshold.ranked(counts, most, within)
            others = threshold.others(odds.top, odds.other)
            return (border, threshold.at_border(most, above, ties, others), others), 0
        case Heaviest():
            return (threshold.heaviest(counts, odds.mass, within),), None
