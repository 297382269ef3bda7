"""What the derivatives of lists cost a device, counted: bytes per document, launches, and none that waits.

A document's score, label, list, place, run and sums pass through memory a few times in four launches, whatever the
length of the lists; pairs are looked at in caches, 32 to a sector. Bytes are counted as in ``test_rounds``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from emulator import FakeCupy, emulated_runtime
from support.builders import random_case

from gpuboost.backends.cuda.backend import Cuda
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.losses import LambdaMART, SquaredError
from gpuboost.losses.protocol import Loss
from gpuboost.recipe import Recipe
from gpuboost.types import Limits, TrainingSet

pytestmark = pytest.mark.slow

LAUNCHES = ("sort_runs", "place_documents", "pair_lambdas", "finish_lists")
SHORT, LONG, ROUNDS = 30, 600, 5
BYTES_PER_DOCUMENT = 190


def documents(n: int, size: int) -> TrainingSet:
    data = random_case(1, n, 4, target="4", missing=0.0, categorical=0.0).data
    return replace(data, query_start=np.arange(0, n + 1, size))


def trained(loss: Loss, n: int, size: int, count: bool = False) -> FakeCupy:
    """The emulated CuPy after a training."""
    runtime = emulated_runtime(count=count)
    boost(Recipe(loss, ROUNDS, 0.5, DepthWise(Limits(4, 2))), documents(n, size), Cuda(runtime))
    runtime.wait()
    return runtime.cp


@cache
def moved(n: int, size: int) -> Counter[str]:
    traffic = trained(LambdaMART(truncation=10), n, size, count=True).traffic()
    return Counter({name: sum(one.fetched + one.stored for one in traffic[name].values()) for name in LAUNCHES})


@pytest.mark.parametrize("size", [SHORT, LONG])
def test_bytes_per_document_do_not_depend_on_the_lists(size: int) -> None:
    each = {name: (moved(2_400, size)[name] - moved(1_200, size)[name]) / 1_200 / ROUNDS for name in LAUNCHES}
    assert sum(each.values()) <= BYTES_PER_DOCUMENT, each
    assert each["finish_lists"] >= 8 + 16 + 8  # gradients are written, sums read


def test_a_round_is_one_graph_with_three_nodes_more_than_for_rows() -> None:
    ranked, plain = (trained(loss, 600, SHORT).counts for loss in (LambdaMART(), SquaredError()))
    assert ranked["graph"] == plain["graph"] == ROUNDS - 2
    assert ranked["graph nodes"] == plain["graph nodes"] + 3 * ranked["graph"]


def test_longer_lists_take_no_more_launches_and_waits() -> None:
    short, long = (trained(LambdaMART(), 600, size).counts for size in (SHORT, LONG))
    assert short == long
