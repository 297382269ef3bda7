"""Functions that are linked into kernels, and float32 numbers by their bits in CUDA C and in Python."""

from __future__ import annotations

import numpy as np
import pytest
from emulator import emulated_runtime
from support.examples import daily
from support.linked_parity import disagreements, functions

from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.device.sources import source
from gpuboost.kernels.common.float32 import narrowed, widened

FUNCTIONS = {f"{of} {function.name}": (function, parameter) for of, function, parameter in functions()}


@pytest.mark.parametrize("name", daily(list(FUNCTIONS), 9))
def test_python_and_its_compilation_for_c_give_the_same_bits(name: str) -> None:
    assert disagreements(*FUNCTIONS[name], inputs=200, seed=1) == 0


def test_a_difference_would_be_seen() -> None:
    function = DeviceFunction("function_of", lambda x: x * 0.1, ("f64",))
    other = DeviceFunction("function_of", lambda x: x / 10.0, ("f64",))
    assert disagreements(function, 0.0, 100) == 0
    changed = DeviceFunction("function_of", function.function, ("f64",))
    changed.function.py_func = other.function  # type: ignore[attr-defined]
    assert disagreements(changed, 0.0, 100) > 0


CONVERSIONS = """
extern "C" __global__ void __launch_bounds__(64)
convert(const u32 *bits, const f64 *numbers, i32 n, f64 *wide, u32 *narrow)
{
    for (i32 i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) {
        wide[i] = widened(bits[i]);
        narrow[i] = narrowed(numbers[i]);
    }
}
"""


def test_float32_by_their_bits_in_cuda_c_and_in_python(rng: np.random.Generator) -> None:
    """common.cuh and float32.py: denormal numbers, halves between two numbers, zeros of both signs, and the rest."""
    ends = [0, 1, 0x007F_FFFF, 0x0080_0000, 0x7F7F_FFFF]
    some = rng.integers(0, 0x7F80_0000, 500), rng.integers(0, 0x0080_0010, 500)
    bits = np.concatenate([*some, ends]).astype(np.uint32)
    bits = np.concatenate([bits, bits | np.uint32(0x8000_0000)])
    exact = bits.view(np.float32).astype(np.float64)
    numbers = exact * rng.choice([1.0, 1.0 + 2.0**-24, 1.0 - 2.0**-25, 1.5], len(exact))
    numbers[:4] = [2.0**-150, -(2.0**-150), 3.0 * 2.0**-150, -0.0]
    runtime = emulated_runtime()
    kernel = runtime.kernel(source("common/common.cuh") + CONVERSIONS, "convert")
    wide, narrow = runtime.zeros(len(bits), np.float64), runtime.zeros(len(bits), np.uint32)
    kernel((2,), (64,), (runtime.upload(bits), runtime.upload(numbers), np.int32(len(bits)), wide, narrow))
    with np.errstate(over="ignore"):
        assert runtime.download(wide).tolist() == exact.tolist() == [widened(word) for word in bits]
        nearest = numbers.astype(np.float32).view(np.uint32).tolist()
        assert runtime.download(narrow).tolist() == nearest == [int(narrowed(x)) for x in numbers]
