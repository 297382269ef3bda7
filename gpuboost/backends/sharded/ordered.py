"""The library's fixed-order sum of numbers that are spread over several machines.

The order is 16 lanes for each stretch of 4,096 rows, the stretches of each block of 65,536 rows, then the blocks
(``numerics.exact_sums.fixed_order_sum``). A stretch within one machine is summed there and sent as one number. A
stretch across a boundary is sent as it is, at most 4,095 numbers from either side, and summed by the receiver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.kernels.common import fixed_point
from gpuboost.kernels.gradients import pointwise

Floats = NDArray[np.float64]

PER_BLOCK = fixed_point.BLOCK // fixed_point.STRETCH


@dataclass(frozen=True, slots=True)
class Part:
    """One machine's part of an ordered sum: rows first .. first + n - 1."""

    head: Floats  # numbers before the first whole stretch
    stretches: Floats  # the sum of each whole stretch
    tail: Floats  # numbers after the last one; () if the head is all there is


def bounds(first: int, n: int) -> tuple[int, int]:
    """Begin and end of the whole stretches among n rows, the first of which is number ``first``."""
    begin = min(-first % fixed_point.STRETCH, n)
    return begin, n - (first + n) % fixed_point.STRETCH if begin < n else n


def part_of(first: int, n: int, numbers: Callable[[int, int], Floats], total: Callable[[int, int], float]) -> Part:
    """The part of n rows, the first of which is number ``first`` of all.

    numbers(a, b): numbers of rows a .. b - 1, counted within the part. total(a, b): their sum, for a whole stretch.
    """
    begin, end = bounds(first, n)
    starts = range(begin, end, fixed_point.STRETCH)
    stretches = np.array([total(a, a + fixed_point.STRETCH) for a in starts], np.float64)
    return Part(numbers(0, begin), stretches, numbers(end, n))


def part_of_numbers(first: int, numbers: Floats) -> Part:
    """The part of an array, (n,) float64."""
    return part_of(
        first, len(numbers), lambda a, b: numbers[a:b].copy(), lambda a, b: float(pointwise.sum_in_order(numbers[a:b]))
    )


def joined(parts: Iterable[Part]) -> float:
    """The sum of all rows, from the parts in the order of their rows."""
    sums: list[float] = []
    cut: list[Floats] = []  # numbers of the stretch that is not whole yet
    held = 0

    def hold(numbers: Floats) -> None:
        nonlocal held
        cut.append(numbers)
        held += len(numbers)
        if held >= fixed_point.STRETCH:  # never more: a part is cut where stretches end
            close()

    def close() -> None:
        nonlocal held
        sums.append(float(pointwise.sum_in_order(np.concatenate(cut))))
        cut.clear()
        held = 0

    for part in parts:
        hold(part.head)
        sums += part.stretches.tolist()
        hold(part.tail)
    if held:
        close()
    total = 0.0
    for block in range(0, len(sums), PER_BLOCK):
        in_block = 0.0
        for stretch in sums[block : block + PER_BLOCK]:
            in_block += stretch
        total += in_block
    return total
