"""Routing of rows on a device: the form in which kernels keep a split, and blocks that have several chunks of rows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from emulator import emulated_runtime
from support.builders import TEAMS, model_bytes, random_case
from support.examples import daily

from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.runtime import source
from gpuboost.backends.cuda.trees import grower
from gpuboost.backends.cuda.trees.arena import ROUTES
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.losses import Logistic
from gpuboost.recipe import Recipe
from gpuboost.types import Limits

MISSING_LEFT, COUNT_LEFT, COUNT_RIGHT, MOVE_LEFT = (1 << bit for bit in (16, 18, 19, 20))
OWN, NEW, LINE = 7, 255, 254  # slots and a line: the most that a byte holds, with the line after it
ASK = """
extern "C" __global__ void __launch_bounds__(256)
ask(const i32 *feature, const u32 *rule, i32 *found_feature, i32 *slot, i32 *line)
{
    const i32 at = blockIdx.x;
    const Way way = unpacked(packed(way_of({feature[at], rule[at], 255, 254}, 7)));
    const u32 code = way.feature < 0 ? 0 : threadIdx.x;
    const bool moved = moves(way, code, nullptr, nullptr, 7);
    found_feature[at] = way.feature;
    slot[256 * at + threadIdx.x] = moved ? way.slot : 7;
    line[256 * at + threadIdx.x] = line_of(way, moved);
}
"""


def test_a_route_in_one_word_sends_every_code_where_the_split_does() -> None:
    sides = (COUNT_LEFT | MOVE_LEFT, COUNT_RIGHT, COUNT_LEFT | COUNT_RIGHT)  # that choose.cuh makes
    missing = (1, 2, 100, 254, 255)
    cases = [
        (bin_, code, some_left, side)
        for code, some_left, side in product(missing, (0, MISSING_LEFT), sides)
        for bin_ in sorted({0, code // 2, code - 1})
    ]
    features = np.array([(0, 1, 65_536, 2**27 - 1)[i % 4] for i in range(len(cases))] + [-1], np.int32)
    rules = np.array([bin_ | code << 8 | left | side for bin_, code, left, side in cases] + [0], np.uint32)
    runtime = emulated_runtime()
    text = source(*ROUTES, before="#define SLOT u8\n#define SETS 0")
    found, slot, line = (runtime.zeros(size, np.int32) for size in (len(rules), 256 * len(rules), 256 * len(rules)))
    arguments = (runtime.upload(features), runtime.upload(rules), found, slot, line)
    runtime.kernel(text + ASK, "ask")((len(rules),), (256,), arguments, 0)
    found, slot, line = (runtime.download(array) for array in (found, slot, line))
    codes = np.arange(256)
    for i, (bin_, code, some_left, side) in enumerate(cases):
        left = np.where(codes == code, some_left > 0, codes <= bin_)
        moved = left == bool(side & MOVE_LEFT)
        counted = np.where(left, bool(side & COUNT_LEFT), bool(side & COUNT_RIGHT))
        lines = np.where(counted, LINE + (~left & bool(side & COUNT_LEFT)), -1)
        there = codes <= code  # the missing one is the largest that a row can have
        own = slice(256 * i, 256 * (i + 1))
        if moved[there].any():
            assert found[i] == features[i]
        else:
            assert found[i] == -1  # and no row has to be looked at
        assert np.array_equal(slot[own][there], np.where(moved, NEW, OWN)[there])
        assert np.array_equal(line[own][there] & 255, lines[there] & 255)
    assert found[-1] == -1
    assert (slot[-256:] == OWN).all()
    assert (line[-256:] == -1).all()


def test_kernels_know_the_grid_that_they_are_launched_with() -> None:
    assert f"GRID = {grower.ROUTE_BLOCKS}," in source(*ROUTES)


@pytest.mark.parametrize("order", daily(["random", "reverse"], 1))
@pytest.mark.parametrize("n", [7_000, pytest.param(90_000, marks=pytest.mark.slow)])
def test_blocks_with_several_chunks_of_rows(n: int, order: str) -> None:
    """On a device of one multiprocessor blocks take turns: lists are a chunk behind, sums a piece. (Few rows have wide
    pairs, many narrow ones.)"""
    case = random_case(1, n, 4, target="binary", weights="whole", most_cuts=30)
    recipe = Recipe(Logistic(), 2, growth=DepthWise(Limits(64, 6)))
    expected = model_bytes(boost(recipe, case.data, TEAMS[2], seed=2))
    runtime = emulated_runtime(order)
    runtime.sm_count = 1
    assert model_bytes(boost(recipe, case.data, Cuda(runtime), seed=2)) == expected
