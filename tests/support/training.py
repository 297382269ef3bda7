"""Trainings on every machine: the model and the scores after each round, which are the reference's byte for byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from emulator import emulated_runtime
from support.builders import TEAMS, eager_threads, model_bytes, sparse

from gpuboost import losses
from gpuboost.backends.cuda.backend import Cuda
from gpuboost.backends.cuda.device.runtime import CupyRuntime
from gpuboost.backends.protocol import Backend
from gpuboost.backends.reference.backend import Reference
from gpuboost.boosting import boost
from gpuboost.errors import RecipeError
from gpuboost.losses import Loss
from gpuboost.recipe import Recipe
from gpuboost.steps import ConstantStep, GradientStep, NewtonStep, QuantileStep, Step
from gpuboost.types import Ensemble, Progress, TrainingSet

MACHINES = ("cpu", "cuda")


@cache
def device(order: str = "forward") -> CupyRuntime:
    """One emulated device for each order of its threads, used by test after test."""
    return emulated_runtime(order)


def trained(recipe: Recipe, data: TrainingSet, backend: Backend, seed: int = 7) -> tuple[Ensemble, list[bytes]]:
    """The ensemble, and the bytes of the scores after each round."""
    scores: list[bytes] = []

    def watch(progress: Progress) -> bool:
        scores.append(backend.to_host(progress.scores).tobytes())
        return False

    return boost(recipe, data, backend, seed=seed, watch=watch), scores


def trainings(
    machine: str, data: TrainingSet, order: str = "forward", threads: tuple[int, ...] = (1, 3)
) -> Iterator[tuple[str, Backend, TrainingSet]]:
    """Name, backend and data of the trainings that a machine is held to.

    "cpu": by each number of threads, of dense and of sparse bins. "cuda": on an emulated device.
    """
    if machine == "cuda":
        yield f"cuda, {order}", Cuda(device(order)), data
        return
    for count in threads:
        yield f"{count} threads, dense", TEAMS[count], data
        yield f"{count} threads, sparse", TEAMS[count], sparse(data, data.n_rows)


def assert_parity(
    recipe: Recipe,
    data: TrainingSet,
    machine: str,
    *,
    seed: int = 7,
    order: str = "forward",
    threads: tuple[int, ...] = (1, 3),
) -> Ensemble:
    """The machine's models and scores are the reference's, whose ensemble comes back. Threads share out small data."""
    return parity(recipe, data, machine, seed=seed, order=order, threads=threads)[0]


def parity(
    recipe: Recipe, data: TrainingSet, machine: str, *, seed: int, order: str = "forward", threads: tuple[int, ...]
) -> tuple[Ensemble, list[bytes]]:
    """The same; the scores after each round come back too."""
    expected, scores = trained(recipe, data, Reference(), seed)
    with eager_threads(rows=8, narrow=30):
        for name, backend, given in trainings(machine, data, order, threads):
            found, running = trained(recipe, given, backend, seed)
            assert model_bytes(found) == model_bytes(expected), name
            assert running == scores, name
    return expected, scores


def submitted(recipe: Recipe, data: TrainingSet, rounds: int) -> list[Counter[str]]:
    """What each round submits to an emulated device: launches, graphs, copies, waits."""
    runtime = emulated_runtime()
    counts: list[Counter[str]] = []
    before = Counter[str]()

    def watch(_: Progress) -> bool:
        nonlocal before
        counts.append(runtime.cp.counts - before)
        before = runtime.cp.counts.copy()
        return False

    boost(replace(recipe, rounds=rounds), data, Cuda(runtime), watch=watch)
    return counts


def total_submitted(recipe: Recipe, data: TrainingSet) -> tuple[Ensemble, Counter[str]]:
    """The ensemble, and what the whole training submits."""
    runtime = emulated_runtime()
    return boost(recipe, data, Cuda(runtime)), Counter(runtime.cp.counts)


# losses


STEPS: list[Step] = [NewtonStep(), GradientStep(), ConstantStep(), QuantileStep()]


def quartic(by: float) -> Loss:
    """by * (f - y)^4: a loss made of functions that remember a number."""
    return losses.custom(
        lambda y, f: by * (f - y) * (f - y) * (f - y) * (f - y),
        lambda y, f: 4.0 * by * (f - y) * (f - y) * (f - y),
        lambda y, f: 12.0 * by * (f - y) * (f - y),
        name="quartic",
        smoothness=50.0,
    )


def target_of(loss: Loss) -> str:
    """The kind of target, as ``random_case`` calls it, that a loss of rows accepts."""
    if loss.name in ("poisson", "gamma", "tweedie"):
        return "positive"
    if loss.name == "aft":
        return "times"
    if loss.name == "cross_entropy":
        return "shares"
    if loss.task == "multiclass":
        return str(loss.n_outputs)
    return "binary" if loss.task == "binary" else "real"


def allowed(loss: Loss) -> list[Step]:
    """The steps that the loss allows."""
    steps = []
    for step in STEPS:
        try:
            step.curvature(loss)
        except RecipeError:
            continue
        steps.append(step)
    return steps
