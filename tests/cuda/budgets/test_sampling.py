"""What drawing rows by importance costs a device, counted: bytes per row and launches, beside a round of all rows.

A round that draws a share r pays for every row once more: its score is made of g and h and written (12 bytes), and
read by each step of the search for the threshold and by the draw (4 each); its leaf is looked up (its bins, and 4
written) and its g and h are summed by leaf (12). What a tree costs, 353 bytes less the gradients' 17 for 28 features
and depth 8, is paid for r of the rows. Those are laid side by side before, from sectors that hold the numbers of eight
rows each.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from emulator import FakeCupy, emulated_runtime
from support.builders import random_case

from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.numerics.threshold import STEPS
from gpuboost.benchmarks.gpu.budget import sampled_bytes_per_row
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.recipe import Recipe
from gpuboost.sampling import GOSS, MVS, ImportanceSampling, Sampling, UniformSampling
from gpuboost.types import Limits

pytestmark = pytest.mark.slow

FEATURES, DEPTH, ROUNDS, RATE = 28, 8, 3, 0.1
FEW, MANY = 2_000, 6_000
OF_NODES = {"line_sums", "sums", "candidates", "nodes", "counts"}  # whose size is not that of rows
ONCE = {"start", "lay_rows"}


def trained(rule: Sampling, n: int, rounds: int, depth: int, count: bool) -> FakeCupy:
    """The emulated CuPy after a training."""
    case = random_case(1, n, FEATURES, full=True, most_cuts=200, missing=0.0, categorical=0.0)
    runtime = emulated_runtime(count=count)
    boost(
        Recipe(losses.SquaredError(), rounds, 0.5, DepthWise(Limits(2**depth, depth)), rule), case.data, Cuda(runtime)
    )
    runtime.wait()
    return runtime.cp


@cache
def moved(rule: Sampling, n: int) -> Counter[str]:
    """Bytes by kernel, of 32-byte sectors, each counted once a launch."""
    found: Counter[str] = Counter()
    for kernel, parameters in trained(rule, n, ROUNDS, DEPTH, count=True).traffic().items():
        if kernel not in ONCE:
            found[kernel] += sum(one.fetched + one.stored for name, one in parameters.items() if name not in OF_NODES)
    return found


def per_row(rule: Sampling) -> dict[str, float]:
    few, many = moved(rule, FEW), moved(rule, MANY)
    return {kernel: (many[kernel] - few[kernel]) / (MANY - FEW) / ROUNDS for kernel in many}


def test_bytes_per_row_and_tree() -> None:
    each = per_row(MVS(RATE))
    assert each["score_rows"] == pytest.approx(12.0, abs=0.2)
    assert 4.0 <= each["approach"] <= 4.0 * STEPS + 0.2
    assert each["draw_scored"] == pytest.approx(4.1, abs=0.2)
    assert each["find_leaves"] == pytest.approx(36.2, abs=1.0)
    assert sum(each.values()) <= sampled_bytes_per_row(FEATURES, DEPTH, RATE), each


@pytest.mark.slow
def test_a_draw_by_rank_takes_two_passes() -> None:
    each = per_row(GOSS(RATE / 2, RATE / 2))
    assert each["refine"] == pytest.approx(8.0, abs=0.3)
    assert "approach" not in each


@pytest.mark.slow
def test_it_is_less_than_a_round_of_all_rows() -> None:
    plain = per_row(UniformSampling(1.0))
    assert sum(per_row(MVS(RATE)).values()) < 0.6 * sum(plain.values())


@pytest.mark.parametrize("rule", [MVS(RATE), GOSS(), ImportanceSampling(0.3, variance_control="node")], ids=repr)
def test_more_rows_and_more_rounds_take_no_more_launches(rule: Sampling) -> None:
    few, many, longer = (
        trained(rule, n, rounds, 3, count=False).counts for n, rounds in ((500, 6), (900, 6), (500, 9))
    )
    launched = [{kind: n for kind, n in one.items() if kind.startswith("kernel ")} for one in (few, many, longer)]
    assert launched[0] == launched[1] == launched[2]
    assert longer["graph"] == few["graph"] + 3
    assert longer["sync"] == few["sync"]
