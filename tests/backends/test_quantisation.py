"""Gradients as integers lose nothing that matters: held-out scores against sums of all 53 bits of a float64.

The same definition of training, ``Reference``, is run with gradients that are as fine as float64 sums are, and with
gradients of 16 bits, the coarsest that any number of rows leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import floor, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator import emulated_runtime
from support.builders import TEAMS
from support.examples import THOROUGH

import gpuboost as gb
from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.trees.tree import STATE, as_records
from gpuboost.backends.reference import backend as reference
from gpuboost.backends.reference import growth as reference_growth
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.data.tables import as_table
from gpuboost.growth import DepthWise
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.types import Ensemble, Gradients, Limits, TrainingSet

Array = np.ndarray
Scale = Callable[[float, float], int]  # (largest, sum) -> exponent
CPU = TEAMS[2]


class Definition(Reference):
    """What is done row by row has the CPU's bits, and is left to it."""

    def gradients(self, loss: Loss, scores: Array, data: TrainingSet, curvature: float | None) -> Gradients:
        return CPU.gradients(loss, scores, data, curvature)


def float64_sums(top: float, total: float) -> int:
    return floor(log2(2.0**53 / total))


def sixteen_bits(top: float, total: float) -> int:
    return floor(log2((2.0**15 - 1.5) / top))


@contextmanager
def quantised_by(scale: Scale) -> Iterator[None]:
    """``Reference`` scales gradients like this meanwhile."""

    def integers(gradients: Gradients, output: int) -> tuple[Array, Array, tuple[float, float]]:
        assert gradients.multiplicity is None
        found = []
        for values in (gradients.g[output].astype(np.float64), gradients.h[output].astype(np.float64)):
            unit = 2.0 ** -scale(float(np.abs(values).max()), float(np.abs(values).sum()))
            found.append((np.rint(values / unit).astype(np.int64), unit))
        (g, unit_g), (h, unit_h) = found
        return g, h, (unit_g, unit_h)

    with pytest.MonkeyPatch.context() as patch:
        for module in (reference, reference_growth):
            patch.setattr(module, "integers", integers)
        yield


def scores_of(recipe: Recipe, data: TrainingSet, score: Callable[[Ensemble], float]) -> tuple[float, float, float]:
    """As trained everywhere, with float64 sums, and with 16 bits."""
    found = [score(boost(recipe, data, CPU))]
    for scale in (float64_sums, sixteen_bits):
        with quantised_by(scale):
            found.append(score(boost(recipe, data, Definition())))
    return found[0], found[1], found[2]


def root_mean_square(y: Array, f: Array) -> float:
    return float(np.sqrt(np.mean((y - f[0]) ** 2)))


def log_loss(y: Array, f: Array) -> float:
    return float(np.mean(np.logaddexp(0.0, (1.0 - 2.0 * y) * f[0])))


def deviance(y: Array, f: Array) -> float:
    return float(np.mean(np.exp(f[0]) - y * f[0]))


def cross_entropy(y: Array, f: Array) -> float:
    return float(np.mean(np.logaddexp.reduce(f, axis=0) - f[y.astype(int), np.arange(len(y))]))


SETS: dict[str, tuple[Loss, Any]] = {
    "california": (losses.SquaredError(), root_mean_square),
    "diamonds": (losses.SquaredError(), root_mean_square),
    "bank": (losses.Logistic(), log_loss),
    "adult": (losses.Logistic(), log_loss),
    "higgs7k": (losses.Logistic(), log_loss),
    "breast_cancer": (losses.Logistic(), log_loss),
    "freMTPL2freq": (losses.Poisson(), deviance),
    "covtype_sub": (losses.Softmax(7), cross_entropy),
}


def assert_nothing_is_lost(name: str, rows: int, rounds: int, depth: int) -> None:
    from gpuboost.benchmarks.data import real

    (loss, measure), held = SETS[name], getattr(real, name)(rows)
    learned = gb.Dataset(held.X, np.asarray(held.y, np.float64))
    data = learned.training_set(CPU.quantise)
    x, y = learned.columns.encode(as_table(held.X_test)), np.asarray(held.y_test, np.float64)
    recipe = Recipe(loss, rounds, 0.1, DepthWise(Limits(2**depth, depth)))
    trained, fine, coarse = scores_of(recipe, data, lambda model: measure(y, CPU.predict(model, x)))
    assert trained == pytest.approx(fine, rel=1e-3)
    assert coarse == pytest.approx(fine, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["california", "bank"])
def test_held_out_scores_are_those_of_float64(name: str, data_dir: Path) -> None:
    assert_nothing_is_lost(name, 1_000, 10, 3)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in {"diamonds", "freMTPL2freq"} else THOROUGH) for name in SETS],
)
def test_held_out_scores_are_those_of_float64_on_more_sets(name: str, data_dir: Path) -> None:
    assert_nothing_is_lost(name, 2_000, 10, 4)


def test_heavy_tails_need_more_than_16_bits_and_have_them() -> None:
    """Cauchy noise: one row in thousands is a thousand times the others."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(1_500, 3))
    truth = np.sin(2.0 * x[:, 0]) + x[:, 1] * (x[:, 2] > 0.0)
    y = truth + 0.1 * rng.standard_cauchy(len(x))
    y[7] = 1e5
    data = gb.Dataset(x, y).training_set(CPU.quantise)
    recipe = Recipe(losses.SquaredError(), 10, 0.3, DepthWise(Limits(16, 4, 1, 0.0, 0.0)))
    usual = np.abs(y - truth) < 1.0
    trained, fine, coarse = scores_of(
        recipe, data, lambda model: root_mean_square(truth[usual], CPU.predict(model, x)[:, usual])
    )
    assert trained == pytest.approx(fine, rel=1e-3)
    assert abs(coarse - fine) > 1e-2 * fine  # 16 bits would not do: the test can fail


@pytest.mark.parametrize(("kind", "wide"), [("even", 0), ("Cauchy", 1), ("one large", 1), ("few", 1)])
def test_a_device_takes_wide_pairs_where_16_bits_are_too_few(kind: str, wide: int) -> None:
    rng, n = np.random.default_rng(1), 2_000 if kind == "few" else 200_000
    g = rng.uniform(-1.0, 1.0, (1, n)).astype(np.float32)
    if kind == "Cauchy":
        g = rng.standard_cauchy((1, n)).astype(np.float32)
    if kind == "one large":
        g[0, 17] = 1e6
    runtime = emulated_runtime()
    states = Cuda(runtime)._targets.given(Gradients(g, np.ones_like(g))).states
    assert as_records(runtime.download(states), STATE)["wide"].tolist() == [wide]
