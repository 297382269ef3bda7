"""Additions to histograms in shared memory: the lanes of a warp never meet, whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from support.examples import daily
from support.growing_on_device import runtime_of

from gpuboost.backends.cuda.device.runtime import source
from gpuboost.backends.cuda.trees.arena import HISTOGRAMS

MEASURE = """
extern "C" __global__ void measure(i32 *columns, i32 *bytes)
{
    for (i32 i = 0; i < 4; ++i) {
        columns[i * 32 + threadIdx.x] = column_of(threadIdx.x, i);
        bytes[i * 32 + threadIdx.x] = i + turn_of(threadIdx.x) & 3;
    }
}
"""


@pytest.mark.parametrize("width", daily([32, 4, 8, 16, 64], 1))
def test_lanes_add_to_different_banks_and_to_each_column_of_their_words(width: int) -> None:
    runtime = runtime_of("forward")
    macros = f"#define WIDTH {width}\n#define CELLS 64\n#define COUNTS 0\n#define THREADS 1024\n#define PASSES 1\n"
    outputs = runtime.zeros(128, np.int32), runtime.zeros(128, np.int32)
    runtime.kernel(source(*HISTOGRAMS, before=macros) + MEASURE, "measure")((1,), (32,), outputs)
    columns, of_word = (runtime.download(array).reshape(4, 32) for array in outputs)
    assert all(len(set(step)) == 32 for step in (columns % 32).tolist())
    word = np.arange(32) % (width // 4)
    assert np.array_equal(columns % width, 4 * word + of_word)  # the feature whose bin it is
    assert all(len(set(lane)) == 4 for lane in of_word.T.tolist())
