"""Time of the host per tree, with a runtime that computes nothing in place of a GPU.

Such a tree costs what Python does between the kernels: the verbs, their recording, and the replay of the graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.dry_run import CountedArray, DryRun
from gpuboost.backends.cuda.device.lock_step import LockStep
from gpuboost.benchmarks.harness.experiments import Finding, Options
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise, SignStump
from gpuboost.langevin import Langevin
from gpuboost.learners import RandomByNode, RandomGroups
from gpuboost.losses import Logistic
from gpuboost.recipe import Recipe
from gpuboost.sampling import MVS
from gpuboost.steps import GradientStep
from gpuboost.training.train import SHOWN_TOGETHER
from gpuboost.types import Cuts, Ensemble, Limits, TrainingSet

SM_COUNT = 132  # of an H100
ROWS, FEATURES, BINS = 2_000, 28, 255
TOGETHER = 16  # trainings in lock-step
FEW = 10  # rounds that record the graph, which the figures leave out

SIX, EIGHT = DepthWise(Limits(64, 6)), DepthWise(Limits(256, 8))
RECIPES = {
    "depth 6": Recipe(Logistic(), growth=SIX),
    "depth 8": Recipe(Logistic(), growth=EIGHT),
    "stump of one value": Recipe(Logistic(), growth=SignStump(Limits(2, 1))),
    "31 leaves, leaf-wise": Recipe(Logistic(), growth=LeafWise(Limits(31, 6))),
    "depth 6, 22 features": Recipe(Logistic(), growth=SIX, learners=RandomGroups(22)),
    "depth 6, 5 features per node": Recipe(Logistic(), growth=SIX, learners=RandomByNode(5)),
    "depth 6, half of the rows by gb.MVS": Recipe(Logistic(), growth=SIX, sampling=MVS(0.5)),
    "depth 6, Langevin": Recipe(Logistic(), growth=SIX, step=GradientStep(), langevin=Langevin()),
}
IN_LOCK_STEP = "depth 6", "depth 6, Langevin"


def host(options: Options) -> Finding:
    """CPU time per tree of each recipe, the least of several trainings."""
    rounds, repeats = (20, 1) if options.small else (FEW + 500, options.repeats or 5)
    times = {}
    trainings = [(name, recipe, 1) for name, recipe in RECIPES.items()]
    trainings += [(f"{name}, {TOGETHER} trainings in lock-step", RECIPES[name], TOGETHER) for name in IN_LOCK_STEP]
    for name, recipe, count in trainings:
        options.tell(name)
        few, many = (min(_seconds(recipe, n, count) for _ in range(repeats)) for n in (FEW, rounds))
        times[name] = 1e6 * (many - few) / (rounds - FEW) / count
    return Finding(
        f"Host time per tree, two classes, {FEATURES} features, without a GPU",
        ("recipe", "CPU us per tree"),
        tuple((name, f"{micros:.0f}") for name, micros in times.items()),
        numbers={"us": times},
    )


def _seconds(recipe: Recipe, rounds: int, trainings: int) -> float:
    """CPU time of so many trainings, in lock-step if there are several."""
    runtimes = [DryRun(SM_COUNT) for _ in range(trainings)]
    lock_step = LockStep(DryRun(SM_COUNT), runtimes) if trainings > 1 else None
    ready = [_training(recipe, rounds, runtime) for runtime in runtimes]

    def train(number: int) -> None:
        if lock_step is None:
            ready[number]()
            return
        lock_step.members[number].begin()
        ready[number]()
        lock_step.members[number].end()

    begin = time.process_time()
    with ThreadPoolExecutor(trainings) as pool:
        list(pool.map(train, range(trainings)))
    return time.process_time() - begin


def _training(recipe: Recipe, rounds: int, runtime: DryRun) -> Callable[[], Ensemble]:
    machine = Cuda(runtime)
    cuts = Cuts((np.arange(BINS - 1.0),) * FEATURES, (None,) * FEATURES)
    bins = machine.quantise(CountedArray((ROWS, FEATURES), np.float32), cuts)
    data = TrainingSet(bins, cuts, runtime.empty(ROWS, np.float64))
    recipe, begin = replace(recipe, rounds=rounds), Ensemble(np.zeros(1), cuts)
    return partial(boost, recipe, data, machine, resume=begin, together=SHOWN_TOGETHER)
