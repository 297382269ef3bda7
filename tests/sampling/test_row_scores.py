"""Sampling scores by a function of one's own: the same rows on every machine."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from emulator import emulated_gpu, emulated_runtime
from numba import njit

import gpuboost as gb
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.sampling import ThresholdRule
from gpuboost.types import Gradients

Array = np.ndarray


@njit
def bent(x: float) -> float:
    return x if x < 2.0 else 2.0 + math.sqrt(x - 2.0)


def score(g: float, h: float) -> float:
    """A loop, a branch, and a call: rows with a negative gradient count more."""
    total = 0.0
    for power in range(1, 4):
        total += bent(abs(g)) / power
    return 5.0 * total if g < 0.0 else total + 0.1 * h


@dataclass(frozen=True)
class ByScore:
    """A sampler of one's own."""

    rate: float = 0.3

    def draw(self, backend: Any, gradients: Any, key: Any) -> Any:
        return backend.draw(gradients, 0.0, ThresholdRule(self.rate, None, 0.05), key, score)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_same_model_on_every_machine(classes: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=(500, 4)).astype(np.float32)
    y = np.digitize(x[:, 0] + 0.5 * rng.normal(size=500), [-0.5, 0.5][: classes - 1])
    given: dict[str, Any] = {"n_estimators": 4, "max_depth": 3, "sampling": ByScore(), "random_state": 0}

    def predicted(**more: Any) -> bytes:
        model = gb.GradientBoostingClassifier(**given, **more).fit(x, y)
        return bytes(model.predict_proba(x).tobytes())

    host = predicted(device="cpu")
    assert predicted(device="cpu", execution=gb.DataParallel(2)) == host
    with emulated_gpu() as cp:
        assert predicted(device="cuda") == host
    assert cp.counts["kernel row_scores"] > 0


def test_a_score_that_does_not_compile_is_refused(rng: np.random.Generator) -> None:
    class Broken:
        def draw(self, backend: Any, gradients: Any, key: Any) -> Any:
            return backend.draw(gradients, 0.0, ThresholdRule(0.5), key, lambda g, h: nowhere(g))  # noqa: F821

    x, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    with pytest.raises(gb.RecipeError, match=r"score: numba must be able to compile .*name 'nowhere' is not defined"):
        gb.GradientBoostingRegressor(n_estimators=1, sampling=Broken(), device="cpu").fit(x, y)


SIMULATED = """
import numpy as np
from numba import cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.kernels.sampling import row_factors
from gpuboost.kernels.sampling.row_scores import row_scores
from gpuboost.types import Gradients

def score(g, h):
    return abs(g) + 0.25 * h if g < 0.0 else h

rows = row_scores(score)

@cuda.jit
def kernel(g, h, n, k, out):
    rows(cuda.grid(1), n, cuda.gridsize(1), g, h, n, k, out)

row_factors._sum_of_squares = row_factors._sum_of_squares.py_func  # numba for the CPU does not know these arrays
times_factor, both = row_factors.row_factors.py_func, row_factors.BOTH

@cuda.jit
def factors(g, h, losses, kappa, factor, n, k, out):
    times_factor(cuda.grid(1), n, cuda.gridsize(1), g, h, losses, both, kappa, factor, True, n, k, out)

rng = np.random.default_rng(0)
n, k = 37, 2
g, h = rng.normal(size=(2, k, n)).astype(np.float32)
g[0, 0], g[1, 1] = 1e-42, -1e-42  # denormal, which a GPU may take for 0
out = np.zeros(n)
kernel[2, 8](g.view(np.uint32).reshape(-1), h.view(np.uint32).reshape(-1), n, k, out)
expected = [sum(score(float(g[c, i]), float(h[c, i])) for c in range(k)) for i in range(n)]
assert out.tolist() == expected, (out, expected)
factor = rng.exponential(size=n)
factors[2, 8](g.view(np.uint32).reshape(-1), h.view(np.uint32).reshape(-1), out, 0.1, factor, n, k, out)
assert out.tobytes() == Reference().score_rows(Gradients(g, h, None), 0.1, None, factor).tobytes()
print(type(kernel).__module__)
"""


@pytest.mark.slow
def test_the_kernel_runs_in_the_simulator_of_numba_cuda() -> None:
    """In a process of its own: the simulator takes the place of numba.cuda in the whole process."""
    pytest.importorskip("numba_cuda")
    from os import environ

    run = subprocess.run(
        [sys.executable, "-c", SIMULATED], env={**environ, "NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "simulator" in run.stdout


@pytest.mark.parametrize("outputs", [1, 3])
def test_scores_with_factors_are_the_same_on_every_machine(outputs: int, rng: np.random.Generator) -> None:
    g, h = rng.normal(size=(2, outputs, 300)).astype(np.float32)
    g[:, :9] = 0.0
    gradients = Gradients(g, np.abs(h), rng.integers(1, 4, 300).astype(np.int32))
    factor, losses = rng.exponential(size=300), rng.exponential(size=300)
    device = Cuda(emulated_runtime())
    for kappa in (0.0, 0.1, math.inf):
        for arguments in ((kappa,), (kappa, None, factor), (kappa, losses, factor)):
            expected = Reference().score_rows(gradients, *arguments)
            assert expected.tobytes() == Cpu(2).score_rows(gradients, *arguments).tobytes()
            assert expected.tobytes() == device.to_host(device.score_rows(gradients, *arguments)).tobytes()
