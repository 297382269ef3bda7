"""What a round costs a device, counted: bytes per row, graph nodes, atomic operations, waits.

Twenty-eight features, trees of depth 8. Per row and tree a round may move 353 bytes: gradients and scores 17, root
histogram 36, seven times routing 21, seven histograms of the smaller children 20, the last route 14 (and what lists and
leaves add). Bytes are those of 32-byte sectors, each counted once a launch; what does not grow with the rows, the
histograms of nodes, is left out by taking the difference of two numbers of rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache

import pytest
from emulator import FakeCupy, emulated_runtime
from support.builders import random_case

from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.recipe import Recipe
from gpuboost.types import Limits

pytestmark = pytest.mark.slow

FEATURES, DEPTH, SHALLOW, ROUNDS = 28, 8, 3, 3
FEW, MANY = 1_500, 4_500
BYTES_PER_ROW = 353
OF_NODES = {"line_sums", "sums", "candidates", "nodes"}  # parameters whose size is that of histograms, not of rows
ONCE = {"start", "lay_rows"}  # kernels of a training, not of a round


@dataclass(frozen=True)
class Spent:
    sectors: Counter[str]  # bytes by kernel, of arrays that grow with the rows
    shared_atomics: Counter[str]


def trained(n: int, rounds: int, depth: int, count: bool) -> FakeCupy:
    """The emulated CuPy after a training."""
    case = random_case(1, n, FEATURES, full=True, most_cuts=200, missing=0.0, categorical=0.0)
    runtime = emulated_runtime(count=count)
    recipe = Recipe(losses.SquaredError(), rounds, 0.5, DepthWise(Limits(2**depth, depth)))
    boost(recipe, case.data, Cuda(runtime), seed=1)
    runtime.wait()
    return runtime.cp


@cache
def spent(n: int) -> Spent:
    cp = trained(n, ROUNDS, DEPTH, count=True)
    sectors: Counter[str] = Counter()
    for kernel, moved in cp.traffic().items():
        if kernel not in ONCE:
            sectors[kernel] += sum(one.fetched + one.stored for name, one in moved.items() if name not in OF_NODES)
    return Spent(sectors, cp.shared_atomics())


@cache
def counts(n: int, rounds: int) -> Counter[str]:
    return trained(n, rounds, SHALLOW, count=False).counts


def launches(counted: Counter[str]) -> dict[str, int]:
    return {kind: n for kind, n in counted.items() if kind.startswith("kernel ")}


def per_row(of: str, kernel: str) -> float:
    return (getattr(spent(MANY), of)[kernel] - getattr(spent(FEW), of)[kernel]) / (MANY - FEW) / ROUNDS


def test_bytes_per_row_and_tree():
    each = {kernel: per_row("sectors", kernel) for kernel in spent(MANY).sectors}
    assert sum(each.values()) <= BYTES_PER_ROW, each
    assert each["root_histogram"] >= 32  # a row's bins are read, or the count is wrong


def test_shared_atomics_per_row_and_tree():
    """Two for each feature, 28 of a tile of 32: at the root of every row, at a level of half of them at most."""
    assert per_row("shared_atomics", "root_histogram") == pytest.approx(2 * 28, abs=0.5)
    assert per_row("shared_atomics", "list_histogram") <= 0.5 * (DEPTH - 1) * 2 * 28
    assert per_row("shared_atomics", "route") <= DEPTH


def test_a_round_is_one_graph_of_a_fixed_size():
    """Three launches a level, and one: 25 at depth 8. (The histogram of the root is that of its level; the last route
    takes the tree's values and the scores' step in.)"""
    few, more = counts(500, ROUNDS), counts(500, ROUNDS + 3)
    assert few["graph"] == ROUNDS - 2  # two are launched one by one, the third is recorded
    assert few["graph nodes"] <= (3 * SHALLOW + 1) * few["graph"]
    assert more["graph"] == few["graph"] + 3
    assert launches(more) == launches(few)


def test_waiting_does_not_grow_with_the_rounds():
    assert counts(500, ROUNDS + 3)["sync"] == counts(500, ROUNDS)["sync"]


def test_more_rows_take_no_more_launches():
    assert launches(counts(1000, ROUNDS)) == launches(counts(500, ROUNDS))
