"""Whole trainings under the sanitizers: no kernel races, strays or computes what C++ leaves undefined."""

from __future__ import annotations

import pytest
from emulator.sanitizer import sanitized

TRAIN = """
import sys
import numpy as np
from support.builders import model_bytes, random_case
from emulator import emulated_runtime
from gpuboost import losses, metrics
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.collective import Alone
from gpuboost.backends.cuda.trees.all_reduce import RowsOfGpu
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.growth import DepthWise, LeafWise
from gpuboost.multi_output import OneTree, RandomProjection
from gpuboost.recipe import Recipe
from gpuboost.sampling import ImportanceSampling, UniformSampling
from gpuboost.steps import automatic
from gpuboost.types import Limits

def train(case, recipe, chained=True, shared=False):
    n = case.data.n_rows
    share = RowsOfGpu(Alone(), 0, n, n, 1, 1.0) if shared else None
    backend = Cuda(emulated_runtime("random", chained=chained), share)
    found = boost(recipe, case.data, backend, seed=2)
    backend.predict(found, case.x)
    backend.interactions(found, case.x[:30])
    assert model_bytes(found) == model_bytes(boost(recipe, case.data, Reference(), seed=2))

def judge(loss, y, names, start=None, chained=True):
    rng, n = np.random.default_rng(len(y)), len(y)
    scores, runtime = rng.normal(size=(loss.n_outputs, n)).round(1), emulated_runtime("random", chained=chained)
    backend, there = Cuda(runtime), runtime.upload(scores)
    for metric in (metrics.get(name, loss) for name in names):
        for weight in (None, np.repeat(rng.gamma(1.0, size=n // 7 + 1), 7)[:n]):
            asked = metric.score_metric(y, weight, loss, start)
            assert metric.finish(backend.score_metric(asked, there)()) == metric(y, scores, weight, loss, start)

def judge_all(n, chained=True):
    y = np.random.default_rng(n).integers(0, 6, n)
    judge(losses.Logistic(), y % 2 * 1.0, ("auc", "average_precision", "error", "f1"), chained=chained)
    judge(losses.Softmax(3), y % 3 * 1.0, ("top_k_accuracy@2", "mcc", "auc_ovr", "brier"), chained=chained)
    judge(losses.Poisson(), y + 0.5, ("r2", "rmsle", "tweedie_deviance:1.5"), chained=chained)
    judge(losses.Quantiles((0.1, 0.9)), y + 0.5, ("coverage",), chained=chained)
    judge(losses.LambdaMART(), y % 4 * 1.0, ("ndcg@5", "map"), np.arange(0, n + 1, 7), chained=chained)

if sys.argv[1] == "metrics":
    judge_all(301)
    sys.exit()
if sys.argv[1] == "blocks":
    judge_all(301, chained=False)
    train(random_case(1, 40, 3), Recipe(losses.SquaredError(), 1, growth=DepthWise(Limits(4, 2))), chained=False)
    sys.exit()
few = random_case(2, 90, 3, target="3", most_cuts=9)
controlled = ImportanceSampling(0.4, variance_control="previous_leaf")
loss = losses.AbsoluteError()
if sys.argv[1] == "first":
    train(few, Recipe(losses.Softmax(3), 2, growth=DepthWise(Limits(6, 3, 2)), sampling=UniformSampling(0.7)))
    two, drawn = random_case(4, 120, 3, target="binary", weights="whole"), DepthWise(Limits(6, 3))
    train(two, Recipe(losses.Logistic(), 2, growth=drawn, sampling=controlled))
    some = random_case(3, 150, 6, most_cuts=30)
    train(some, Recipe(loss, 2, growth=LeafWise(Limits(5, 4)), step=automatic(loss)))
else:
    shared_tree = {"growth": DepthWise(Limits(6, 3, 2)), "multi_output": OneTree(RandomProjection(2))}
    train(few, Recipe(losses.Softmax(3), 1, sampling=controlled, **shared_tree))
    constrained = random_case(5, 150, 4, most_cuts=30, categorical=0.0)
    growth = DepthWise(Limits(8, 4, directions=(1, 0, -1, 0)))
    train(constrained, Recipe(losses.SquaredError(), 2, growth=growth))
    shares = random_case(3, 90, 3, most_cuts=30)
    train(shares, Recipe(loss, 1, growth=DepthWise(Limits(6, 3, 2)), step=automatic(loss)), shared=True)
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("sanitize", ["address", "thread"])
def test_trainings(sanitize):
    """Several outputs, by one tree too; drawn rows, control variates, lengths of leaves, constraints, shared rows."""
    for half in ("first", "second"):  # of a process each: the thread sanitizer's memory does not reach for both
        result = sanitized(sanitize, TRAIN, half)
        assert result.returncode == 0, result.stdout


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("sanitize", ["address", "thread"])
def test_metrics(sanitize):
    """Of two and of several classes and of rankings, with weights and without, equal scores among them."""
    result = sanitized(sanitize, TRAIN, "metrics")
    assert result.returncode == 0, result.stdout


@pytest.mark.slow
@pytest.mark.long
def test_blocks_do_not_race():
    result = sanitized("thread", TRAIN, "blocks")
    assert result.returncode == 0, result.stdout
