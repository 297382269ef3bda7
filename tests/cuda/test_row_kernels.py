"""No race, no access out of bounds and nothing undefined in the kernels that work row by row."""

from __future__ import annotations

import pytest
from emulator.sanitizer import sanitized

RUN = """
import sys
from dataclasses import replace
import numpy as np
from support.builders import random_case
from support.rules import OF_EACH_KIND
from emulator import emulated_runtime
from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise
from gpuboost.keys import Key
from gpuboost.recipe import Recipe
from gpuboost.sampling import UniformSampling
from gpuboost.steps import QuantileStep
from gpuboost.types import Limits, Noise

n = int(sys.argv[2])
runtime = emulated_runtime(sys.argv[1] if sys.argv[1] == "random" else "forward", chained=sys.argv[1] != "unchained")
runtime.sm_count = 1
backend, key = Cuda(runtime), Key.root(3) / "rows" / 1
of_losses = (
    (losses.Logistic(), "binary", "whole"),
    (losses.Softmax(3), "3", "real"),
    (losses.Quantile(0.3), "real", "none"),
)
for loss, target, weights in of_losses:
    data = random_case(3, n, 3, target=target, weights=weights).data
    k = loss.n_outputs
    scores = backend.start(data, np.zeros(k))
    gradients = backend.gradients(loss, scores, data, None)
    for rule in OF_EACH_KIND if n < 5_000 or weights == "whole" else OF_EACH_KIND[:1]:  # the loss changes no draw
        sample = backend.draw(gradients, 0.1, rule, key)
        drawn = backend.weigh(gradients, sample)
        runtime.download(drawn.states)
    before, leaves = backend.keep_gradients(gradients, 1), np.arange(n, dtype=np.int32) % 7
    backend.to_host(backend.node_control_variate(gradients, sample, before, 0.5).g)
    backend.to_host(backend.leaf_control_variate(gradients, sample, before, 0.5, (leaves,) * k, (7,) * k).g)
    sample = backend.sample(0.5, n, key)
    drawn = backend.weigh(gradients, sample)
    noisy = backend.noise(drawn, sample.rows, Noise(0.5, key))
    backend._targets.gather(backend._arrays.bins(data.bins), sample)
    runtime.download(noisy.states)
    backend.loss_value(loss, scores, data.y, data.row_weight())
    backend.to_host(backend.losses(loss, scores, data))
if n < 5_000:
    step = QuantileStep()
    recipe = Recipe(loss, 2, 0.5, DepthWise(Limits(4, 2)), UniformSampling(0.5), step=step)
    boost(recipe, random_case(3, 200, 3).data, backend)
lists = replace(random_case(3, n, 3, target="4").data, query_start=np.array([0, 1, n // 2, n]))
tied = np.round(np.random.default_rng(2).normal(size=(1, n)), 1)
backend.gradients(losses.LambdaMART(truncation=3), runtime.upload(tied), lists, None)
backend.quantise(np.random.default_rng(1).normal(size=(n, 3)), lists.cuts)
runtime.wait()
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("sanitize", "how", "n"),
    [
        ("thread", "chained", 400),
        pytest.param("thread", "unchained", 5_000, marks=pytest.mark.thorough),
        ("address", "random", 400),
        ("address", "random", 5_000),
    ],
)
def test_sanitizers_find_nothing(sanitize: str, how: str, n: int) -> None:
    result = sanitized(sanitize, RUN, how, str(n))
    assert result.returncode == 0, result.stdout[-3_000:]
