"""Kernels that are launched by name: what is read of their text, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulator import emulated_runtime, require_compiler
from emulator.compiler import _compiler, _kernels_of, _run
from support.examples import daily

from gpuboost.backends.cuda.device.dry_run import DryRun
from gpuboost.backends.cuda.device.kernels import Kernels, Launcher
from gpuboost.backends.cuda.device.launches import queue
from gpuboost.backends.cuda.device.parameters import parameters
from gpuboost.backends.cuda.device.recorder import Recorder
from gpuboost.backends.cuda.device.sources import source

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
FILES = sorted(path.relative_to(KERNELS).as_posix() for path in KERNELS.glob("*/*.cu"))
HEADERS = sorted(path.relative_to(KERNELS).as_posix() for path in KERNELS.glob("*/*.cuh"))
SWITCHES = (
    "SHARDED",
    "BOUNDED",
    "SETS",
    "COUNTS",
    "MANY_OUTPUTS",
    "NARROW_VALUES",
    "NEAR_ENTRIES",
    "DISTURBED",
    "INTERACTIONS",
)
LINE = """
#define MORE , double b /* the last one */
extern "C" __global__ void __launch_bounds__(32, (1 + 1))
line(const float *x, // where
     float *y, float a, int n MORE)
{ if (threadIdx.x < n) y[threadIdx.x] = a * x[threadIdx.x] + (float)b; }
"""


def names(text: str, kernel: str) -> list[str]:
    return [parameter.name for parameter in parameters(text)[kernel]]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("on", daily([1, 0], 1))
def test_the_parameters_are_those_that_a_compiler_sees(file, on):
    require_compiler()
    macros = "".join(f"#define {name} {on}\n" for name in SWITCHES) + "#define CELLS 256\n#define WIDTH 32\n"
    text = source(*HEADERS, file, before=macros)
    seen = _kernels_of(_run([_compiler(), "-E", "-x", "c++", "-std=c++17", "-"], text))
    found = parameters(text)
    assert {name: " ".join(p.name for p in found[name]) for name in found} == {name: seen[name][1] for name in seen}


def test_macros_that_continue_a_list_of_parameters():
    files = "growth/choose.cuh", "splits/bounds.cuh", "splits/interactions.cuh"
    files = *files, "splits/extra_trees.cuh", "splits/split.cu"
    plain = names(source(*files, before="#define SHARDED 0\n"), "evaluate")
    assert plain[-2:] == ["chosen", "words"]
    macros = "".join(f"#define {name} 1\n" for name in ("SHARDED", "BOUNDED", "INTERACTIONS", "EXTRA_TREES"))
    of_paths = ["column_of", "sets", "set_words", "most_columns"]
    of_cuts = ["cut_seed_low", "cut_seed_high", "cut_iteration", "cut_name"]
    every = names(source(*files, before=macros), "evaluate")
    assert every == [*plain, "bounds", "directions", *of_paths, *of_cuts, "here"]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("1", True), ("A", True), ("B", False), ("UNKNOWN", False), ("A == 3 && !B", True), ("B || defined(C)", True),
        ("defined C && C > 3", False), ("A >= 3", True), ("(A - 1) * 2 == 4", True), ("A != 3", False), ("C", True),
        ("defined(UNKNOWN) && UNKNOWN < 800", False),
    ],
)  # fmt: skip
def test_conditions(condition, holds):
    text = (
        f"#define A 3\n#define B 0\n#define C A\n#if {condition}  // why\n"
        'extern "C" __global__ void k(int *yes) {}\n'
        '#elif A\nextern "C" __global__ void k(int *no) {}\n#else\nextern "C" __global__ void k() {}\n#endif\n'
    )
    assert names(text, "k") == (["yes"] if holds else ["no"])


def test_a_branch_inside_another_that_is_not_compiled():
    text = (
        '#ifdef A\n#define B 1\n#ifndef B\nextern "C" __global__ void k(int *a) {}\n#else\n'
        'extern "C" __global__ void k(int *b) {}\n#endif\n#else\nextern "C" __global__ void k(void) {}\n#endif\n'
    )
    assert parameters(text) == {"k": ()}
    assert names(f"#define A\n{text}", "k") == ["b"]


def test_numbers_take_the_type_that_the_kernel_declares():
    runtime = emulated_runtime()
    x, y = runtime.upload(np.arange(4, dtype=np.float32)), runtime.zeros(4, np.float32)
    line = Launcher(runtime, LINE, "line")
    line((1,), (32,), n=4, x=x, b=np.float32(0.5), y=y, a=2)
    np.testing.assert_array_equal(runtime.download(y), [0.5, 2.5, 4.5, 6.5])
    with pytest.raises(OverflowError):
        line((1,), (32,), n=2**31, x=x, b=1.0, y=y, a=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": 0, "y": 0, "a": 0, "b": 0}, r"kernel line: no argument for \['n'\], no parameter for none; its"),
        (
            {"x": 0, "y": 0, "a": 0, "b": 0, "n": 0, "k": 0},
            r"no argument for none, no parameter for \['k'\]; its",
        ),
        (
            {"x": 0, "y": 0, "a": 0, "b": 0, "m": 0},
            r"\['n'\], no .* \['m'\]; its parameters are x, y, a, n, b\.",
        ),
    ],
)
def test_names_that_are_missing_or_unknown(arguments, words):
    line = Launcher(DryRun(1), LINE, "line")
    for _ in range(2):
        with pytest.raises(TypeError, match=words):
            line((1,), (32,), **arguments)


def test_a_recorded_launch_is_done_again_by_position():
    runtime = Recorder(emulated_runtime())
    x, y = runtime.upload(np.ones(4, np.float32)), runtime.zeros(4, np.float32)
    line = Launcher(runtime, LINE, "line")
    _, launches, replayable = runtime.record(lambda: line((1,), (32,), x=x, y=y, a=1, n=4, b=1))
    runtime.fill(y, 0)
    queue(launches, runtime)
    assert replayable
    np.testing.assert_array_equal(runtime.download(y), np.full(4, 2.0))


def test_a_kernel_is_compiled_once():
    kernels = Kernels(emulated_runtime(), "common/common.cuh", "prediction/walk.cuh", "prediction/predict.cu")
    assert kernels("start") is kernels("start") is not kernels("start", "#define SHARDED 1\n")


def test_a_number_of_an_unknown_type_is_refused():
    """It would be passed as it is: eight bytes of a Python integer."""
    with pytest.raises(ValueError, match="parameter 'const short n': must be a pointer, or one of u8, u16, i32"):
        parameters('extern "C" __global__ void k(const short n) {}')
