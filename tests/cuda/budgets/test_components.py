"""What a round of splines costs a device, counted: bytes per row, atomic operations, and bytes to the host.

Twenty-eight features, a spline and a line for each. Per row a round reads g and h once for every batch of grids (8
bytes), every feature's bin once, and has 17 bytes for gradients and scores as a round of trees does, and 17 for the
winner's step: its bin, and the score read and written. A tree of depth 8 may move 353.
"""

from __future__ import annotations

from functools import cache

import pytest
from emulator import FakeCupy, emulated_runtime
from support.builders import random_case

from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.components import HEAD, MOST_TOGETHER
from gpuboost.base_learners.best_of_families import BestOfFamilies
from gpuboost.boosting import boost
from gpuboost.learners import Linear, Spline
from gpuboost.recipe import Recipe
from gpuboost.types import TrainingSet

pytestmark = pytest.mark.slow

FEATURES, ROUNDS = 28, 4
FEW, MANY = 2_000, 6_000
BATCHES = -(-FEATURES // MOST_TOGETHER)


@cache
def trained(n: int) -> FakeCupy:
    """The emulated CuPy after a training."""
    case = random_case(1, n, FEATURES, full=True, most_cuts=200, missing=0.0, categorical=0.0)
    data = TrainingSet(case.data.bins, case.data.cuts, case.data.y, x=case.x)
    runtime = emulated_runtime(count=True)
    recipe = Recipe(losses.SquaredError(), ROUNDS, 0.5, base_learner=BestOfFamilies((Spline(), Linear())))
    boost(recipe, data, Cuda(runtime), seed=1)
    runtime.wait()
    return runtime.cp


def bytes_per_row(kernel: str) -> float:
    few, many = (
        sum(one.fetched + one.stored for name, one in trained(n).traffic()[kernel].items() if name != "sums")
        for n in (FEW, MANY)
    )
    return (many - few) / (MANY - FEW) / ROUNDS


def test_bytes_per_row() -> None:
    assert FEATURES <= bytes_per_row("cell_sums") <= 1.05 * (8 * BATCHES + FEATURES)
    assert 16 <= bytes_per_row("add_cells") <= 1.05 * 17


def test_shared_atomics_per_row() -> None:
    """Two for each feature, whatever the number of families on it."""
    few, many = (trained(n).shared_atomics()["cell_sums"] for n in (FEW, MANY))
    assert (many - few) / (MANY - FEW) / ROUNDS == pytest.approx(2 * FEATURES)


def test_what_comes_to_the_host_does_not_grow_with_the_rows() -> None:
    moved = [trained(n).traffic()["cell_sums"]["sums"].stored / ROUNDS for n in (FEW, MANY)]
    assert all(size <= 3 * 8 * (HEAD + 2 * FEATURES * 203) for size in moved)
