"""Noise of a user's scale, and draws by a user's score without a threshold: the same bytes on every machine."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from os import environ
from typing import Any, ClassVar

import numpy as np
import pytest
from emulator import emulated_gpu, emulated_runtime
from numba import njit
from support.builders import random_case

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cpu.backend import Cpu
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.keys import Key
from gpuboost.sampling import ThresholdRule
from gpuboost.types import Noise


@njit
def root(x: float) -> float:
    return math.sqrt(x)


def scale(g: float, h: float) -> float:
    """A branch, a loop and a call: rows that are far off get more noise."""
    total = 0.0
    for power in range(1, 3):
        total += abs(g) / power
    return root(h) if total < 1.0 else 1.5 * root(h + 0.25)


def score(g: float, h: float) -> float:
    return abs(g) + 0.1 * h if g < 0.0 else abs(g)


@pytest.mark.parametrize("drawn", [False, True])
def test_noise_of_a_users_scale_has_the_same_bytes(drawn: bool) -> None:
    data = random_case(5, 300, 2, target="3", weights="whole").data
    key, loss, answers = Key.root(7) / "noise" / 3, losses.Softmax(3), []
    for machine in (Reference(), Cpu(1), Cpu(3), Cuda(emulated_runtime())):
        gradients = machine.gradients(loss, machine.start(data, np.zeros(3)), data, None)
        rows = None
        if drawn:
            sample = machine.sample(0.5, 300, key)
            gradients, rows = machine.weigh(gradients, sample), sample.rows
        noisy = machine.noise(gradients, rows, Noise(0.7, key, scale))
        answers.append(np.asarray(machine.to_host(noisy.g))[:, : 300 if rows is None else len(machine.to_host(rows))])
    lengths = min(answer.shape[1] for answer in answers)
    assert len({answer[:, :lengths].tobytes() for answer in answers}) == 1


@dataclass(frozen=True)
class ByScore:
    """A sampler of one's own, whose probabilities are 0.4 times the score, and 0.05 at least."""

    unbiased: ClassVar[bool] = True
    bounded: ClassVar[bool] = True

    def draw(self, backend: Any, gradients: Any, key: Any) -> Any:
        return backend.draw(gradients, 0.0, ThresholdRule(None, 0.4, 0.05), key, score)


@pytest.mark.parametrize("weighted", [False, True])
def test_one_model_with_functions_for_draws_and_noise(weighted: bool, rng: np.random.Generator) -> None:
    x = rng.normal(size=(500, 4)).astype(np.float32)
    y = x[:, 0] * (x[:, 1] > 0.0) + 0.1 * rng.normal(size=500)
    given: dict[str, Any] = {
        "loss": "huber", "n_estimators": 5, "max_depth": 3, "sampling": ByScore(), "random_state": 0,
        "langevin": gb.Langevin(shrinkage=0.05, noise_scale=scale, schedule=njit(lambda t: 1.0 + 1.0 / (1.0 + t))),
    }  # fmt: skip
    weight = rng.integers(1, 4, 500) if weighted else None

    def fitted(**more: Any) -> gb.GradientBoostingRegressor:
        return gb.GradientBoostingRegressor(**given, **more).fit(x, y, sample_weight=weight)

    host = fitted(device="cpu")
    with emulated_gpu() as cp:
        device = fitted(device="cuda")
        assert device.predict(x).tobytes() == host.predict(x).tobytes()
    assert cp.counts["kernel row_draws"] > 0
    assert cp.counts["kernel row_noise"] > 0
    one, two = (model.fit_report_.sampling for model in (device, host))
    assert (one.rates, one.largest_weights, one.never) == (two.rates, two.largest_weights, two.never)
    other = fitted(device="cpu", execution=gb.DataParallel(2))
    assert other.predict(x).tobytes() == host.predict(x).tobytes()


def test_what_is_no_scale_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(gb.RecipeError, match="noise_scale: Langevin needs None, 'weight' or a function"):
        gb.Langevin(noise_scale=2.0)  # type: ignore[arg-type]
    x, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    broken = gb.Langevin(shrinkage=0.05, noise_scale=lambda g, h: nowhere(g))  # type: ignore[name-defined]  # noqa: F821
    with pytest.raises(gb.RecipeError, match=r"noise_scale: numba must be able to compile .*'nowhere' is not defined"):
        gb.GradientBoostingRegressor(n_estimators=1, loss="huber", langevin=broken, device="cpu").fit(x, y)


SIMULATED = """
import numpy as np
from numba import cuda
from gpuboost.backends.reference.backend import Reference
from gpuboost.backends.numerics.probabilities import ThresholdRule
from gpuboost.kernels.common.normal_table import TABLE
from gpuboost.kernels.sampling import row_draws, row_noise
from gpuboost.keys import Key
from gpuboost.types import Gradients, Noise

def scale(g, h):
    return abs(g) + 0.25 * h if g < 0.0 else h

row_noise.normal = row_noise.normal.py_func  # numba for the CPU does not know the simulator's arrays
noise_of, draws_of = row_noise.row_noise(scale), row_draws.row_draws(scale)

@cuda.jit
def noise(g, h, rows, m, n, k, deviation, low, high, iteration, names, table, out):
    of, streams = row_noise.Derivatives(g, h, rows, 0), row_noise.Streams(low, high, iteration, names)
    drawn = row_noise.DrawnRows(rows, 0, m)
    noise_of(cuda.grid(1), n, cuda.gridsize(1), of, drawn, n, k, deviation, streams, table, out)

@cuda.jit
def draws(g, h, rows, count, k, n, rho, floor, stream, scores, masks, bad):
    draws_of(cuda.grid(1), n, cuda.gridsize(1), g, h, rows, 0, count, k, n, rho, floor, stream, scores, masks, bad)

rng = np.random.default_rng(0)
n, k, key = 37, 2, Key.root(5) / "noise" / 2
g, h = rng.normal(size=(2, k, n)).astype(np.float32)
h = abs(h)
g[0, 0] = 1e-42  # denormal, which a GPU may take for 0
flat = [x.view(np.uint32).reshape(-1) for x in (g, h)]
none, out = np.zeros(1, np.int32), np.zeros(k * n, np.uint32)
low, high, iteration, _ = key.words
names = np.array([(key / c).words[3] for c in range(k)], np.uint32)
noise[2, 8](*flat, none, none, n, k, 0.7, np.uint32(low), np.uint32(high), np.array([iteration], np.uint32), names,
            TABLE.reshape(-1), out)
expected = Reference().noise(Gradients(g, h, None), None, Noise(0.7, key, scale)).g
assert out.tobytes() == expected.tobytes()

entries = 3
scores, masks, bad = np.zeros(n, np.uint32), np.zeros(entries, np.uint16), np.zeros(1, np.uint32)
draws[1, 2](*flat, none, n, k, entries, 0.4, 0.1, np.array(key.words, np.uint32), scores, masks, bad)
drawn = [row for row in range(n) if masks[row // 16] >> row % 16 & 1]
sample = Reference().draw(Gradients(g, h, None), 0.0, ThresholdRule(None, 0.4, 0.1), key, scale)
assert drawn == sample.rows.tolist() and 0 < len(drawn) < n and not bad[0]
print(type(noise).__module__)
"""


@pytest.mark.slow
def test_the_kernels_run_in_the_simulator_of_numba_cuda() -> None:
    """In a process of its own: the simulator takes the place of numba.cuda in the whole process."""
    pytest.importorskip("numba_cuda")
    environment = {**environ, "NUMBA_ENABLE_CUDASIM": "1"}
    run = subprocess.run(
        [sys.executable, "-c", SIMULATED], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "simulator" in run.stdout
