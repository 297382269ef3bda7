"""Time to compile the six modules of a first fit on an empty cache: by NVRTC alone, linked, and linked in a thread.

``cd tests && python -m support.cold_start`` prints seconds of the processor and of the clock, each the least of several
processes. No GPU is needed. "by NVRTC alone" has the loss's formulas as CUDA C, as before numba.cuda compiled them.
What a fit imports in any case (numba, scikit-learn with SciPy, NVRTC) is not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = ("by NVRTC alone", "linked", "linked, numba.cuda in a thread")
PROCESSES = 3
ARCHITECTURE = 90

_FORMULAS = """
#define MANY_OUTPUTS 0
static __device__ __forceinline__ double value_of(double y, double f, double a) { return 0.5 * (f - y) * (f - y); }
static __device__ __forceinline__ void derivatives_of(double y, double f, double a, double &g, double &h)
{
    g = f - y;
    h = 1.0;
}
"""


def compile_all(way: str) -> None:
    """Compile the modules, and print the seconds of the processor and of the clock."""
    import numba  # noqa: F401
    from cuda.bindings import nvrtc

    from gpuboost import GradientBoostingRegressor, losses  # noqa: F401  with scikit-learn and SciPy
    from gpuboost.backends.cuda import leaves, target
    from gpuboost.backends.cuda.codegen import linking
    from gpuboost.backends.cuda.codegen.formulas import formulas
    from gpuboost.backends.cuda.codegen.options import FLUSH, OPTIONS
    from gpuboost.backends.cuda.device.sources import source
    from gpuboost.backends.cuda.trees import arena
    from gpuboost.types import Limits

    def alone(text: str) -> None:
        _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"module.cu", 0, [], [])
        options = [option.encode() for option in (*OPTIONS, FLUSH, f"-arch=sm_{ARCHITECTURE}")]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, text[:200]

    shape = "#define WIDTH 32\n#define PASSES 1\n#define CELLS 256\n#define COUNTS 0\n#define SETS 0\n"
    modules = {
        "bins": source("common/common.cuh", "binning/binning.cu"),
        "loss": "",
        "histograms": source(*arena.HISTOGRAMS, before=shape),
        "splits": source(*arena.searching(Limits(2)), *arena.SPLITS, before=shape),
        "rows": source(*arena.ROUTES, before="#define SLOT u8\n#define SETS 0\n"),
        "leaves": source(*leaves._LEAVES),
    }
    asked = formulas(losses.get("squared_error"))
    of_loss, by_text = (source(*target._POINTWISE, before=before) for before in (asked.text, _FORMULAS))
    seconds, clock = time.process_time(), time.perf_counter()
    if way == WAYS[2]:
        linking._in_a_thread(list(asked.functions), ARCHITECTURE)
    for name, text in modules.items():
        if name != "loss":
            alone(text)
        elif way == WAYS[0]:
            alone(by_text)
        else:
            linking.cubin(of_loss, asked.functions, ARCHITECTURE)
    print(time.process_time() - seconds, time.perf_counter() - clock)


def main() -> None:
    """A process for each way and repetition, each with an empty cache."""
    taken: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for _ in range(PROCESSES):
        for way in WAYS:
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", "support.cold_start", way]
                environment = {**os.environ, "GPUBOOST_CUBIN_CACHE": folder}
                here = Path(__file__).resolve().parents[1]
                run = subprocess.run(command, env=environment, cwd=here, capture_output=True, text=True, check=True)
            seconds, clock = run.stdout.split()
            taken[way].append((float(seconds), float(clock)))
    for way, several in taken.items():
        seconds, clock = (min(numbers) for numbers in zip(*several, strict=True))
        print(f"{way:32} {seconds:6.2f} s of the processor {clock:6.2f} s")


if __name__ == "__main__":
    compile_all(sys.argv[1]) if sys.argv[1:] else main()
