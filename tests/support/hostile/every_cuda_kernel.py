"""Small work on the emulator that between it launches every CUDA kernel.

``python -m support.hostile.every_cuda_kernel`` prints the names of the launched kernels; under a sanitizer, see
``emulator.sanitizer.sanitized``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from emulator import emulated_runtime, launch
from support import cuda_modules
from support.builders import random_case, sparse
from support.linked_modules import magnitude
from support.rules import OF_EACH_KIND

from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.inputs.matrix import CudaMatrix
from gpuboost.backends.cuda.prediction.forest import MOST_FEATURES
from gpuboost.backends.numerics.probabilities import ThresholdRule
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise, Oblivious
from gpuboost.keys import Key
from gpuboost.langevin import Langevin
from gpuboost.recipe import Recipe
from gpuboost.sampling import ImportanceSampling
from gpuboost.steps import GradientStep
from gpuboost.types import Limits, Noise, TrainingSet

OF_PYTHON = {"row_factors", "row_scores", "row_draws", "row_noise"}  # kernels whose text is Python


def launched(*some: int) -> set[str]:
    """Names of the kernels of CUDA C that some parts of the work launch, one by one or in a graph; none given: all."""
    names: set[str] = set()
    start = launch.Kernel._run

    def noted(kernel: Any, *arguments: Any) -> None:
        names.add(kernel.name)
        start(kernel, *arguments)

    launch.Kernel._run = noted  # type: ignore[method-assign]
    try:
        works = parts()
        for part in some or range(len(works)):
            works[part]()
    finally:
        launch.Kernel._run = start  # type: ignore[method-assign]
    return names - OF_PYTHON


def parts() -> tuple[Callable[[], object], ...]:
    """All of the work, in parts."""
    case = random_case(3, 150, 6, most_cuts=30)
    trainings = product((case.data, sparse(case.data, 1)), recipes())
    return (
        *cuda_modules.cases(),
        _matrix,
        _lists,
        _verbs,
        _evaluated,
        _staged,
        *(partial(_train, case.x, *training) for training in trainings),
    )


def _matrix() -> None:
    runtime = emulated_runtime()
    matrix = CudaMatrix.of(runtime, runtime.upload(np.arange(12.0).reshape(4, 3)))
    matrix.with_columns({1: matrix.host_column(0)})
    matrix[np.array([0, 3])].host_rows(np.array([1]))
    runtime.wait()


def _lists() -> None:
    """Pairs weighed by the change of MAP."""
    backend = Cuda(emulated_runtime())
    data = cuda_modules.in_lists(random_case(3, 300, 3, target="binary").data)
    backend.to_host(backend.gradients(losses.LambdaMART(metric="map"), backend.start(data, np.zeros(1)), data, None).g)


def _verbs() -> None:
    """Verbs of a round, one after the other, as the tests of sanitizers in tests/cuda call them."""
    n, loss = 300, losses.Logistic()
    runtime = emulated_runtime()
    backend, key = Cuda(runtime), Key.root(3) / "rows" / 1
    data = random_case(3, n, 3, target="binary", weights="whole").data
    scores = backend.start(data, np.zeros(1))
    gradients = backend.gradients(loss, scores, data, None)
    for rule in OF_EACH_KIND:
        sample = backend.draw(gradients, 0.1, rule, key)
        runtime.download(backend.weigh(gradients, sample).states)
    before, leaves = backend.keep_gradients(gradients, 1), np.arange(n, dtype=np.int32) % 7
    backend.to_host(backend.node_control_variate(gradients, sample, before, 0.5).g)
    backend.to_host(backend.leaf_control_variate(gradients, sample, before, 0.5, (leaves,), (7,)).g)
    backend.to_host(backend.horvitz_thompson(gradients, sample).g)
    backend.to_host(backend.score_rows(gradients, 0.1))
    sample = backend.sample(0.5, n, key)
    for scale in (None, magnitude):
        noisy = backend.noise(backend.weigh(gradients, sample), sample.rows, Noise(0.5, key, scale))
        runtime.download(noisy.states)
    runtime.download(backend.draw(gradients, 0.0, ThresholdRule(rho=0.8), key, magnitude).rows)
    backend.loss_value(loss, scores, data.y, data.row_weight())
    backend.to_host(backend.losses(loss, scores, data))
    runtime.wait()


def _evaluated() -> None:
    """Rounds that add their tree to the scores of other rows."""
    backend, data = Cuda(emulated_runtime()), random_case(3, 150, 6, most_cuts=30).data
    scores = backend.start(data, np.zeros(1))

    def evaluate(trees: Any, factor: float, _scale: float) -> None:
        for tree in trees:
            backend.add_tree(scores, tree, factor, data.bins, data.cuts)

    boost(Recipe(losses.SquaredError(), 3, growth=DepthWise(Limits(8, 3))), data, backend, evaluate=evaluate)
    backend.to_host(scores)


def _staged() -> None:
    """Predictions with more features than trees can be laid out as complete ones for."""
    backend, case = Cuda(emulated_runtime()), random_case(3, 150, MOST_FEATURES + 1, missing=0.0, categorical=0.0)
    ensemble = boost(Recipe(losses.SquaredError(), 1), case.data, backend)
    backend.to_host(backend.predict(ensemble, np.tile(case.x, (2 + 32 * backend._runtime.sm_count // 150, 1))))


def recipes() -> tuple[Recipe, ...]:
    chain = Recipe(losses.SquaredError(), 3, step=GradientStep(), langevin=Langevin())
    controlled = ImportanceSampling(0.4, variance_control="previous_leaf")
    deep = Limits(60, 14, min_child_weight=0.0)
    return (
        chain,
        Recipe(losses.SquaredError(), 3, sampling=controlled, growth=DepthWise(Limits(8, 3))),
        Recipe(losses.SquaredError(), 1, growth=DepthWise(deep)),
        Recipe(losses.SquaredError(), 1, growth=LeafWise(deep)),
        Recipe(losses.SquaredError(), 1, growth=Oblivious(Limits(60, 5))),
    )


def _train(x: Any, data: TrainingSet, recipe: Recipe) -> None:
    backend = Cuda(emulated_runtime())
    ensemble = boost(recipe, data, backend)
    backend.to_host(backend.leaves(ensemble, x))
    for rows in (x[:2], np.tile(x, (2 + 32 * backend._runtime.sm_count // len(x), 1))):  # a block a row; a thread a row
        backend.to_host(backend.predict(ensemble, rows))
    backend._runtime.block_memory = 1_024  # no room for rows and trees: a thread a row, trees in the device's memory
    backend.to_host(backend.predict(ensemble, np.tile(x, (2 + 32 * backend._runtime.sm_count // len(x), 1))))
    scores = backend.start(data, np.zeros(1))
    backend.add_tree(scores, ensemble.trees[0], 0.1, data.bins, data.cuts)
    backend.to_host(scores)
    boost(replace(recipe, rounds=1), data, backend, resume=ensemble)


if __name__ == "__main__":
    print("launched:" + json.dumps(sorted(launched())))
