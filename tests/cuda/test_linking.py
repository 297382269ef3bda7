"""Python functions in CUDA C, as numba.cuda, NVRTC and nvJitLink make them: nothing is contracted, all is kept."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from os import environ
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from support.cuda_compiler import ARCHITECTURES, ptx, resources
from support.examples import THOROUGH
from support.linked_modules import FUSED, Linked, fused, modules

from gpuboost.backends.cuda.codegen import linking, numba_cuda
from gpuboost.backends.cuda.codegen.fingerprint import fingerprint
from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.codegen.linking import Linker, cubin
from gpuboost.backends.cuda.codegen.numpy_functions import NUMPY_FUNCTIONS
from gpuboost.errors import DeviceError

needs_numba_cuda = pytest.mark.skipif(linking.find_spec("numba_cuda") is None, reason="pip install 'numba-cuda[cu13]'")

SOME = ("logistic", "softmax", "lambdamart", "a user's score")
DRAWS = "sampling/importance.cu"
KERNEL = """
extern "C" __global__ void __launch_bounds__(64) run(const double *x, double *out)
{
    out[threadIdx.x] = function_of(x[threadIdx.x]) * 2.0 + x[0];
}
"""


def named(module: Linked) -> str:
    return f"{module.of} {module.file}"


def chosen() -> Iterator[Linked]:
    """Modules of the everyday tests: of every kind of function one."""
    return (module for module in modules() if module.of in SOME or module.file == DRAWS)


@pytest.mark.slow
@needs_numba_cuda
@pytest.mark.parametrize("module", list(chosen()), ids=named)
def test_no_product_is_fused_with_a_sum(module: Linked) -> None:
    """For sm_90; the slow tests take every module, and every architecture."""
    assert fused(module, 90) == 0


def every() -> Iterator[Any]:
    """Every module and architecture: slow are those of sm_90, and of the chosen modules; the others are thorough."""
    some = [named(module) for module in chosen()]
    for module, architecture in product(modules(), ARCHITECTURES):
        marks = [pytest.mark.slow] if architecture == 90 or named(module) in some else THOROUGH
        yield pytest.param(module, architecture, marks=marks, id=f"{named(module)} sm_{architecture}")


@needs_numba_cuda
@pytest.mark.parametrize(("module", "architecture"), list(every()))
def test_nor_in_any_loss_and_on_any_architecture(module: Linked, architecture: int) -> None:
    assert fused(module, architecture) == 0


def polynomial(x: float) -> float:
    """What a compiler would fuse, behind a loop, a branch and a call."""
    total = 0.0
    for k in range(3):
        total += x * total + bent(x) * k
    return total


@njit
def bent(x: float) -> float:
    return x * x + 1.0 if x > 0.0 else math.sqrt(-x)


def of(function: Callable[..., Any]) -> tuple[DeviceFunction, ...]:
    return (DeviceFunction("function_of", function, ("f64",)),)


@needs_numba_cuda
def test_a_function_with_calls_is_inlined_and_a_fused_product_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ptx(KERNEL, functions=of(polynomial))
    assert "call" not in made.partition(".entry")[2]
    assert not FUSED.search(made)
    assert resources(KERNEL, 90, of(polynomial))["run"].spills == 0
    monkeypatch.setattr(linking, "LINK", ("-lto", "-fma=1"))
    assert FUSED.search(linking.link(KERNEL, of(polynomial), 90, to_ptx=True)[0].decode())


@needs_numba_cuda
def test_the_scalar_functions_of_numpy_compile() -> None:
    def one(x: float) -> float:
        return np.exp(x) + np.sqrt(x) + np.sign(x) + np.rint(x) + np.floor(x) + np.abs(x) + np.power(x, 2.5)

    assert resources(KERNEL, 90, of(one))["run"].spills == 0
    for ufunc, function in NUMPY_FUNCTIONS.items():
        for x in (-2.5, -0.4, 0.5, 1.5, 7.0):
            if x > 0.0 or ufunc not in (np.sqrt, np.log1p, np.power):
                arguments = (x, 2.0)[: ufunc.nin]
                assert function(*arguments) == pytest.approx(float(ufunc(*arguments))), ufunc


PROCESS = """
import sys
from types import SimpleNamespace
import test_linking_function as user
from gpuboost.backends.cuda.codegen.functions import DeviceFunction
from gpuboost.backends.cuda.codegen.linking import Linker, cubin

functions = (DeviceFunction("function_of", user.function, ("f64",)),)
Linker(SimpleNamespace(cuda=SimpleNamespace(Device=lambda: SimpleNamespace(compute_capability="90")))).check(functions)
path = cubin(user.KERNEL, functions, 90)
compilers = [name for name in ("numba.cuda", "cuda.bindings.nvrtc", "cuda.bindings.nvvm", "cuda.bindings.nvjitlink")
             if name in sys.modules]
print(path.name, len(path.read_bytes()) > 1000, compilers)
"""


@pytest.mark.slow
@needs_numba_cuda
def test_a_second_process_compiles_nothing_and_imports_no_compiler(tmp_path: Path) -> None:
    module = tmp_path / "test_linking_function.py"

    def run(by: str) -> str:
        module.write_text(f"BY = {by}\nKERNEL = {KERNEL!r}\n\n\ndef function(x):\n    return BY * x\n")
        environment = {**environ, "GPUBOOST_CUBIN_CACHE": str(tmp_path / "cubins"), "PYTHONPATH": str(tmp_path)}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, "-c", PROCESS]
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    first, second, third = run("2.0"), run("2.0"), run("3.0")
    assert "numba.cuda" in first
    assert second.split()[0] == first.split()[0]
    assert second.endswith("True []\n")
    assert third.split()[0] != first.split()[0]


def closure(by: Any) -> Callable[[float], float]:
    def function(x: float) -> float:
        return by * x

    return function


def of_no_module(by: float) -> Callable[[float], float]:
    """A function that calls another, both made by ``exec``."""
    names: dict[str, Any] = {}
    exec(f"def scaled(x): return {by} * x\ndef function(x): return scaled(x)", names)
    made: Callable[[float], float] = names["function"]
    assert made.__module__ is None
    return made


def test_a_fingerprint_is_of_all_that_a_function_reads() -> None:
    assert fingerprint(closure(2.0)) == fingerprint(closure(2.0))
    several = [2.0, 3.0, 2, (1.0, 2.0), np.array([1.0, 2.0]), np.array([1.0, 3.0]), np.float32(2.0)]
    assert len({fingerprint(closure(by)) for by in several}) == len(several)
    assert fingerprint(polynomial) is not None
    assert fingerprint(closure({})) is None  # what has no hash is compiled by each process
    assert fingerprint(math.sin) is None
    assert len({fingerprint(of_no_module(by)) for by in (2.0, 3.0)}) == 2


def test_without_numba_cuda_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUBOOST_CUBIN_CACHE", str(tmp_path))
    monkeypatch.setattr(linking, "find_spec", lambda name: None)
    with pytest.raises(DeviceError, match=r"needs numba-cuda .*pip install 'gpuboosting\[cuda13\]'"):
        cubin(KERNEL, of(closure(7.25)), 90)


@needs_numba_cuda
def test_without_nvidias_libraries_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda.bindings import nvrtc

    def missing() -> None:
        raise RuntimeError("no libnvrtc.so\nSearched for it here and there")

    monkeypatch.setattr(nvrtc, "nvrtcVersion", missing)
    numba_cuda.load.cache_clear()
    with pytest.raises(
        DeviceError, match=r"^device: numba-cuda cannot load NVIDIA's compilers: no libnvrtc.so. Install"
    ):
        numba_cuda.ltoir(of(polynomial)[0], 90)


def test_a_module_reaches_cupy_as_the_file_of_a_cubin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from types import SimpleNamespace

    asked: list[Any] = []
    monkeypatch.setattr(linking, "cubin", lambda *parts: asked.append(parts) or tmp_path / "made.cubin")
    device = SimpleNamespace(Device=lambda: SimpleNamespace(compute_capability="86"))
    cp = SimpleNamespace(cuda=device, RawModule=lambda **given: given)
    assert Linker(cp).module(KERNEL, of(polynomial)) == {"path": str(tmp_path / "made.cubin")}
    assert asked == [(KERNEL, of(polynomial), 86)]
